//! Chooses the type of a column of VALUES that mixes dates and timestamps.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{Expr, ExprSchemable, Values};
use serrate_core::internal::holds_type;

use crate::functions::{find_finest_unit, move_all_dates};
use crate::sql::workarounds::types::value_columns::{cast_cells, remove_cast, set_column_types};

/// Converts a column of VALUES that mixes dates with timestamps, also in lists and structs, to
/// timestamps in the zone of these timestamps and in the finest of their units. Returns whether a
/// column changed.
///
/// The planner casts all values of such a column to timestamps in nanoseconds without a zone, which
/// do not represent all years. This function removes these casts. It cannot tell them from casts in
/// the statement, so `sql::statement::keys::constants` doubles the casts in the statement before
/// the planner runs, and one of the two remains. The planner adds no cast to a single row, and
/// casts in the statement are not doubled there.
pub(super) fn unify_dates_of_values(values: &mut Values) -> Result<bool> {
    let schema = Arc::clone(&values.schema);
    let has_casts = values.values.len() > 1;
    let mut types = Vec::with_capacity(schema.fields().len());
    for (at, field) in schema.fields().iter().enumerate() {
        let planned = field.data_type();
        let cells = values.values.iter().filter_map(|row| row.get(at));
        let cells = cells.map(|cell| find_value(cell, planned, has_casts));
        let common = find_common_type(planned, cells);
        if let Some(to) = &common {
            let remove = |cell: Expr| find_value(&cell, planned, has_casts).clone();
            cast_cells(values, at, to, remove)?;
        }
        types.push(common);
    }
    set_column_types(values, &types)
}

/// Returns the common type of the `values` of a column if `planned`, the type that the planner
/// chose, lacks the zone of the common type or has a finer unit. Returns `None` otherwise.
fn find_common_type<'a>(
    planned: &DataType,
    values: impl Iterator<Item = &'a Expr>,
) -> Option<DataType> {
    let has_nanoseconds = |t: &DataType| {
        holds_type(t, |t| matches!(t, DataType::Timestamp(TimeUnit::Nanosecond, None)))
    };
    let has_zone = |t: &DataType| holds_type(t, |t| matches!(t, DataType::Timestamp(_, Some(_))));
    if !has_nanoseconds(planned) {
        return None;
    }
    let none = DFSchema::empty();
    let types = values.filter(|value| !is_null(value)).map(|value| value.get_type(&none).ok());
    let types = types.collect::<Option<Vec<_>>>()?;
    if let Some(finest) = find_finest_timestamp(&types) {
        return Some(finest);
    }
    let moved = match move_all_dates(&types) {
        Some(moved) => moved,
        // An earlier rewrite may have changed the types. For example, it has given the zone and the
        // unit of the timestamps to all elements of a list of dates and timestamps.
        None if types.iter().any(has_zone) && !has_zone(planned) => types,
        None if !types.iter().any(has_nanoseconds) => types,
        None => return None,
    };
    let (first, rest) = moved.split_first()?;
    rest.iter().try_fold(first.clone(), |common, t| type_union_coercion(&common, t))
}

/// Returns the timestamp type with the finest unit of `types`. Returns `None` unless all of `types`
/// are dates, timestamps without a zone or NULL, some are timestamps, and none has nanoseconds.
fn find_finest_timestamp(types: &[DataType]) -> Option<DataType> {
    let is_date = |t: &&DataType| matches!(t, DataType::Date32 | DataType::Date64);
    let times: Vec<&DataType> = types.iter().filter(|t| !is_date(t)).collect();
    let is_coarse =
        |t: &DataType| matches!(t, DataType::Timestamp(unit, _) if *unit != TimeUnit::Nanosecond);
    find_finest_unit(&times).filter(is_coarse)
}

/// Returns `cell` without the cast to `planned` that the planner has added if `has_casts`.
fn find_value<'a>(cell: &'a Expr, planned: &DataType, has_casts: bool) -> &'a Expr {
    if !has_casts {
        return cell;
    }
    let value = remove_cast(cell, planned);
    // A cast of a string is kept, because it is a literal of the statement, such as `TIMESTAMP(9)
    // '2020-01-01'`.
    let is_text = value.get_type(&DFSchema::empty()).is_ok_and(|t| t.is_string());
    if is_text { cell } else { value }
}

fn is_null(cell: &Expr) -> bool {
    matches!(cell, Expr::Literal(value, _) if value.is_null())
}
