//! Rewrites the expressions of VALUES, and chooses the type of a column that has both decimals and floats.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Values};

use super::decimal_literals::cast_digits;
use super::decimal_types::to_written_decimal;
use crate::array::leaf_type;

/// Applies `rewrite` to each value of VALUES, and makes a column with both decimals and floats a double, unless all
/// floats are literals of at most 15 digits. A column is also a double if `rewrite` makes one of its values a double.
///
/// The planner casts all values of a column of decimals and floats to DECIMAL(30, 15), and this function removes these
/// casts. It cannot tell them from casts in the statement, so `sql::statement::keys::constants` doubles
/// the casts in the statement before the planner runs, and one of the two remains.
pub(super) fn rewrite_values(
    mut values: Values,
    rewrite: impl Fn(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let none = DFSchema::empty();
    let mut fields = Vec::with_capacity(values.schema.fields().len());
    let mut changed = false;
    for (at, (table, field)) in values.schema.iter().enumerate() {
        let planned = field.data_type();
        let mut retyped: Vec<DataType> = Vec::new();
        for cell in values.values.iter_mut().filter_map(|row| row.get_mut(at)) {
            if matches!(cell, Expr::Literal(..)) {
                continue;
            }
            let (value, is_cast) = split_cast(std::mem::take(cell), planned);
            let before = value.get_type(&none).ok();
            let done = rewrite(value)?;
            changed |= done.transformed;
            let after = done.data.get_type(&none).ok();
            retyped.extend(after.filter(|after| before.as_ref() != Some(after)));
            *cell = match is_cast {
                true => Expr::Cast(Cast::new(Box::new(done.data), planned.clone())),
                false => done.data,
            };
        }
        let Some(to) = choose_doubles(&values, at, planned, &retyped) else {
            for cell in values.values.iter_mut().filter_map(|row| row.get_mut(at)) {
                changed |= fit_cell(cell, planned, !retyped.is_empty())?;
            }
            fields.push((table.cloned(), Arc::clone(field)));
            continue;
        };
        for cell in values.values.iter_mut().filter_map(|row| row.get_mut(at)) {
            let (value, _) = split_cast(std::mem::take(cell), planned);
            *cell = match value.get_type(&none)? == to {
                true => value,
                false => Expr::Cast(Cast::new(Box::new(value), to.clone())),
            };
        }
        fields.push((table.cloned(), Arc::new(field.as_ref().clone().with_data_type(to))));
        changed = true;
    }
    if changed {
        let schema = DFSchema::new_with_metadata(fields, values.schema.metadata().clone())?;
        values.schema = Arc::new(schema);
    }
    Ok(Transformed::new_transformed(LogicalPlan::Values(values), changed))
}

/// Returns the type of doubles, or of lists of doubles, that column `at` gets in place of `planned`; `None` if it keeps
/// its type. `retyped` are the types of the values that a rewrite has changed.
fn choose_doubles(
    values: &Values,
    at: usize,
    planned: &DataType,
    retyped: &[DataType],
) -> Option<DataType> {
    let none = DFSchema::empty();
    let cells = || values.values.iter().filter_map(|row| row.get(at));
    let is_decimal = |e: &Expr| e.get_type(&none).is_ok_and(|t| t.is_decimal());
    let is_rounded = |e: &Expr| {
        e.get_type(&none).is_ok_and(|t| t.is_floating()) && to_written_decimal(e).is_none()
    };
    let is_mixed = planned.is_decimal()
        && cells().any(|cell| is_decimal(remove_cast(cell, planned)))
        && cells().any(|cell| is_rounded(remove_cast(cell, planned)));
    if is_mixed {
        return Some(DataType::Float64);
    }
    let first = retyped.first().filter(|t| *leaf_type(t) == DataType::Float64)?;
    retyped.iter().all(|t| t == first).then(|| first.clone())
}

/// Casts a value to the type `planned` of its column if `is_retyped` says that a rewrite may have changed its type, and
/// casts the digits of a literal to a decimal. Returns whether it changed the value.
fn fit_cell(cell: &mut Expr, planned: &DataType, is_retyped: bool) -> Result<bool> {
    if is_retyped && cell.get_type(&DFSchema::empty())? != *planned {
        *cell = Expr::Cast(Cast::new(Box::new(std::mem::take(cell)), planned.clone()));
        return Ok(true);
    }
    let Expr::Cast(cast) = &*cell else { return Ok(false) };
    match cast_digits(&cast.expr, cast.field.data_type()) {
        Some(exact) => {
            *cell = exact;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// Returns the operand of a cast to `planned`, or any other `cell` unchanged, and whether `cell` was such a cast.
fn split_cast(cell: Expr, planned: &DataType) -> (Expr, bool) {
    match cell {
        Expr::Cast(Cast { expr, field }) if field.data_type() == planned => (*expr, true),
        cell => (cell, false),
    }
}

/// Returns the operand of `cell` if `cell` is a cast to `planned`, the type to which the planner
/// casts all values of the column. Returns any other `cell` unchanged.
pub(super) fn remove_cast<'a>(cell: &'a Expr, planned: &DataType) -> &'a Expr {
    match cell {
        Expr::Cast(Cast { expr, field }) if field.data_type() == planned => expr,
        cell => cell,
    }
}
