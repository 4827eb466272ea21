//! Sets the type of a column of VALUES with decimals and floats.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Values};

use super::decimal_types::to_written_decimal;

/// Makes a column of VALUES with both decimals and floats a double, unless all floats are literals
/// of at most 15 digits.
///
/// The planner casts all values of such a column to DECIMAL(30, 15). This function removes one cast
/// of each value. A cast that the statement contains remains, because
/// `sql::statement::keys::constants` writes such a cast twice before the planner runs.
pub(super) fn convert_values_to_doubles(mut values: Values) -> Result<Transformed<LogicalPlan>> {
    let none = DFSchema::empty();
    let mut fields = Vec::with_capacity(values.schema.fields().len());
    let mut changed = false;
    for (at, (table, field)) in values.schema.iter().enumerate() {
        let planned = field.data_type();
        let cells = || values.values.iter().filter_map(|row| row.get(at));
        let is_decimal = |e: &Expr| e.get_type(&none).is_ok_and(|t| t.is_decimal());
        let is_rounded = |e: &Expr| {
            e.get_type(&none).is_ok_and(|t| t.is_floating()) && to_written_decimal(e).is_none()
        };
        let is_mixed = planned.is_decimal()
            && cells().any(|cell| is_decimal(remove_cast(cell, planned)))
            && cells().any(|cell| is_rounded(remove_cast(cell, planned)));
        if !is_mixed {
            fields.push((table.cloned(), Arc::clone(field)));
            continue;
        }
        let double = field.as_ref().clone().with_data_type(DataType::Float64);
        let planned = planned.clone();
        for cell in values.values.iter_mut().filter_map(|row| row.get_mut(at)) {
            let value = remove_cast(cell, &planned).clone();
            *cell = match value.get_type(&none)? == DataType::Float64 {
                true => value,
                false => Expr::Cast(Cast::new(Box::new(value), DataType::Float64)),
            };
        }
        fields.push((table.cloned(), Arc::new(double)));
        changed = true;
    }
    if changed {
        let schema = DFSchema::new_with_metadata(fields, values.schema.metadata().clone())?;
        values.schema = Arc::new(schema);
    }
    Ok(Transformed::new_transformed(LogicalPlan::Values(values), changed))
}

/// Returns a value without the cast that the planner has added.
pub(super) fn remove_cast<'a>(cell: &'a Expr, planned: &DataType) -> &'a Expr {
    match cell {
        Expr::Cast(Cast { expr, field }) if field.data_type() == planned => expr,
        cell => cell,
    }
}
