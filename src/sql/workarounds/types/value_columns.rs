//! Changes the types of columns of VALUES, and removes the casts that the planner adds.
//!
//! The planner casts all values of a column to one type. A rule cannot tell these casts from casts
//! in the statement, so `sql::statement::keys::constants` doubles the casts in the statement before
//! the planner runs, and one of the two remains.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, Values};

/// Replaces each value of the column at index `at` with what `remove` returns for it, and casts the
/// result to `to` if it has another type.
pub(super) fn cast_cells(
    values: &mut Values,
    at: usize,
    to: &DataType,
    remove: impl Fn(Expr) -> Expr,
) -> Result<()> {
    for cell in values.values.iter_mut().filter_map(|row| row.get_mut(at)) {
        let value = remove(std::mem::take(cell));
        *cell = match value.get_type(&DFSchema::empty())? == *to {
            true => value,
            false => Expr::Cast(Cast::new(Box::new(value), to.clone())),
        };
    }
    Ok(())
}

/// Gives each column the type in `types`, which has one entry per column; a column with `None`
/// keeps its type. Returns whether a column got a type.
pub(super) fn set_column_types(values: &mut Values, types: &[Option<DataType>]) -> Result<bool> {
    if types.iter().all(Option::is_none) {
        return Ok(false);
    }
    let fields = values.schema.iter().zip(types).map(|((table, field), to)| {
        let field = match to {
            Some(to) => Arc::new(field.as_ref().clone().with_data_type(to.clone())),
            None => Arc::clone(field),
        };
        (table.cloned(), field)
    });
    let metadata = values.schema.metadata().clone();
    let schema = DFSchema::new_with_metadata(fields.collect(), metadata)?;
    values.schema = Arc::new(schema);
    Ok(true)
}

/// Returns the operand of a cast to `planned`, or any other `cell` unchanged, and whether `cell`
/// was such a cast.
pub(super) fn split_cast(cell: Expr, planned: &DataType) -> (Expr, bool) {
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
