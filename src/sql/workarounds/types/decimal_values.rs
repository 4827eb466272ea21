//! Rewrites the expressions of VALUES, and chooses the type of a column that has both decimals and
//! floats.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Values};

use super::decimal_literals::cast_digits;
use super::decimal_types::to_written_decimal;
use super::value_columns::{cast_cells, remove_cast, set_column_types, split_cast};
use crate::array::leaf_type;

/// Applies `rewrite` to each value of VALUES, and makes a column with both decimals and floats a
/// double, unless all floats are literals of at most 15 digits. A column is also a double if
/// `rewrite` makes one of its values a double.
///
/// The planner casts all values of a column of decimals and floats to DECIMAL(30, 15), and this
/// function removes these casts.
pub(super) fn rewrite_values(
    mut values: Values,
    rewrite: impl Fn(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let none = DFSchema::empty();
    let schema = Arc::clone(&values.schema);
    let mut types = Vec::with_capacity(schema.fields().len());
    let mut changed = false;
    for (at, field) in schema.fields().iter().enumerate() {
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
        let doubles = choose_doubles(&values, at, planned, &retyped);
        match &doubles {
            Some(to) => cast_cells(&mut values, at, to, |cell| split_cast(cell, planned).0)?,
            None => {
                for cell in values.values.iter_mut().filter_map(|row| row.get_mut(at)) {
                    changed |= fit_cell(cell, planned, !retyped.is_empty())?;
                }
            }
        }
        types.push(doubles);
    }
    changed |= set_column_types(&mut values, &types)?;
    Ok(Transformed::new_transformed(LogicalPlan::Values(values), changed))
}

/// Returns the type of doubles, or of lists of doubles, that column `at` gets in place of
/// `planned`; `None` if it keeps its type. `retyped` are the types of the values that a rewrite has
/// changed.
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

/// Casts a value to the type `planned` of its column if `is_retyped` says that a rewrite may have
/// changed its type, and casts the digits of a literal to a decimal. Returns whether it changed the
/// value.
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
