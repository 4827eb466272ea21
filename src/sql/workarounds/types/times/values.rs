//! Chooses the type of a column of VALUES that mixes dates and timestamps.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, Values};

use crate::functions::move_all_dates;
use crate::sql::base::held_types::holds_type;
use crate::sql::workarounds::types::decimal_values::remove_cast;

/// Converts a column of VALUES that mixes dates with timestamps in a zone, also in lists and
/// structs, to timestamps in this zone. Converts a column that mixes dates with timestamps without
/// a zone to the finest unit of these timestamps. Returns whether a column changed.
///
/// The planner casts all values of such a column to timestamps in nanoseconds without a zone, which
/// do not represent all years. This function removes these casts. It cannot tell them from casts in
/// the statement, so `sql::statement::keys::constants` doubles the casts in the statement before
/// the planner runs, and one of the two remains.
pub(super) fn unify_dates_of_values(values: &mut Values) -> Result<bool> {
    let none = DFSchema::empty();
    let mut fields = Vec::with_capacity(values.schema.fields().len());
    let mut changed = false;
    for (at, (table, field)) in values.schema.iter().enumerate() {
        let planned = field.data_type().clone();
        let cells = values.values.iter().filter_map(|row| row.get(at));
        let Some(to) = find_common_type(&planned, cells) else {
            fields.push((table.cloned(), Arc::clone(field)));
            continue;
        };
        for cell in values.values.iter_mut().filter_map(|row| row.get_mut(at)) {
            let value = find_value(cell, &planned).clone();
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
    Ok(changed)
}

/// Returns the common type of the values `cells` of a column if `planned`, the type that the
/// planner chose, lacks the zone of the common type or has a finer unit. Returns `None` otherwise.
fn find_common_type<'a>(
    planned: &DataType,
    cells: impl Iterator<Item = &'a Expr>,
) -> Option<DataType> {
    let is_local = |t: &DataType| matches!(t, DataType::Timestamp(TimeUnit::Nanosecond, None));
    let has_zone = |t: &DataType| holds_type(t, |t| matches!(t, DataType::Timestamp(_, Some(_))));
    if !holds_type(planned, is_local) {
        return None;
    }
    let none = DFSchema::empty();
    let values = cells.filter(|cell| !is_null(cell)).map(|cell| find_value(cell, planned));
    let types = values.map(|value| value.get_type(&none).ok()).collect::<Option<Vec<_>>>()?;
    let moved = match move_all_dates(&types) {
        Some(moved) => moved,
        // No date has to be moved to a zone, but some value has a zone. For example, an earlier
        // rewrite has given the zone to all elements of a list of dates and timestamps.
        None if types.iter().any(has_zone) && !has_zone(planned) => types,
        None => return find_finest_timestamp(&types),
    };
    let (first, rest) = moved.split_first()?;
    rest.iter().try_fold(first.clone(), |common, t| type_union_coercion(&common, t))
}

/// Returns the timestamp type with the finest unit of `types`. Returns `None` unless all of `types`
/// are dates or timestamps without a zone, some are timestamps, and none has nanoseconds.
fn find_finest_timestamp(types: &[DataType]) -> Option<DataType> {
    let mut finest: Option<TimeUnit> = None;
    for t in types {
        match t {
            DataType::Date32 | DataType::Date64 => {}
            DataType::Timestamp(unit, None) => finest = finest.max(Some(*unit)),
            _ => return None,
        }
    }
    let finest = finest.filter(|unit| *unit != TimeUnit::Nanosecond)?;
    Some(DataType::Timestamp(finest, None))
}

/// Returns `cell` without the cast to `planned` that the planner has added.
fn find_value<'a>(cell: &'a Expr, planned: &DataType) -> &'a Expr {
    let value = remove_cast(cell, planned);
    // A cast of a string is kept, because it is a literal of the statement, such as `TIMESTAMP(9)
    // '2020-01-01'`.
    let is_text = value.get_type(&DFSchema::empty()).is_ok_and(|t| t.is_string());
    if is_text { cell } else { value }
}

fn is_null(cell: &Expr) -> bool {
    matches!(cell, Expr::Literal(value, _) if value.is_null())
}
