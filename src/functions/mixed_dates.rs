//! Dates that are combined with timestamps.
//!
//! Such a date is midnight, in the zone of the timestamps if they have one. DataFusion 55 casts
//! both to timestamps in nanoseconds without a zone, and so each instant to its time in UTC, and
//! fails for dates before 1677 and after 2262.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};

use crate::array::leaf_type;
use crate::functions::element_types::{replace_element_field, replace_leaf};
use crate::functions::{StockFact, has_fact};

/// Functions that add values to a list, or make a list of values. Functions that compare elements
/// are not listed here, but have [`StockFact::ComparesElements`].
const BUILDING: [&str; 5] =
    ["array_append", "array_concat", "array_prepend", "array_resize", "make_array"];

/// Prepares `values`, which DataFusion will cast to one common type: if one is a timestamp, casts
/// the dates among them to timestamps with its zone. Does the same for dates in lists and structs,
/// if another value has a timestamp at the same list level and field. Returns `None` if nothing is
/// cast.
pub(crate) fn cast_mixed_dates(values: &[(&Expr, &DFSchema)]) -> Option<Vec<Expr>> {
    let types = values.iter().map(|(e, schema)| e.get_type(*schema).ok());
    let types = types.collect::<Option<Vec<_>>>()?;
    let moved = move_all_dates(&types)?;
    let cast = values.iter().zip(types).zip(moved).map(|((&(e, _), t), to)| match t == to {
        true => e.clone(),
        false => Expr::Cast(Cast::new(Box::new(e.clone()), to)),
    });
    Some(cast.collect())
}

/// If a function of lists, such as `array_append`, has both dates and timestamps as elements, casts
/// the dates as [`cast_mixed_dates`] does. Returns `None` for any other call.
pub(crate) fn cast_element_dates(call: &ScalarFunction, schema: &DFSchema) -> Option<Vec<Expr>> {
    let name = call.name();
    if !BUILDING.contains(&name) && !has_fact(name, StockFact::ComparesElements) {
        return None;
    }
    cast_leaf_dates(&call.args, schema)
}

/// If the leaves of one value are timestamps, casts the values whose leaves are dates to such
/// timestamps. A scalar is its own leaf, so `values` may be scalars and lists of any
/// depths. Returns `None` if nothing is cast.
pub(super) fn cast_leaf_dates(values: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let types = values.iter().map(|e| e.get_type(schema).ok()).collect::<Option<Vec<_>>>()?;
    let leaves: Vec<DataType> = types.iter().map(|t| leaf_type(t).clone()).collect();
    let moved = move_all_dates(&leaves)?;
    let leaves = leaves.iter().zip(moved);
    let cast =
        values.iter().zip(&types).zip(leaves).map(|((e, t), (leaf, to))| match *leaf == to {
            true => e.clone(),
            false => Expr::Cast(Cast::new(Box::new(e.clone()), replace_leaf(t, &to))),
        });
    Some(cast.collect())
}

/// Replaces dates in `types`, so that DataFusion finds a common type with the zone and for all
/// years. A date becomes a timestamp if another of the types has a timestamp at the same list level
/// and field, preferably one with a zone. Next to timestamps in nanoseconds without a zone, a date
/// stays a date, which DataFusion casts to nanoseconds. Returns `None` if no type changes.
pub(crate) fn move_all_dates(types: &[DataType]) -> Option<Vec<DataType>> {
    let mut distinct: Vec<&DataType> = Vec::new();
    for t in types {
        if !distinct.contains(&t) {
            distinct.push(t);
        }
    }
    if distinct.len() < 2 {
        return None;
    }
    let is_instant = |t: &DataType| matches!(t, DataType::Timestamp(_, Some(_)));
    let is_local = |t: &DataType| match t {
        DataType::Timestamp(unit, None) => *unit != TimeUnit::Nanosecond,
        _ => false,
    };
    let move_type = |t: &DataType| {
        let moved =
            distinct.iter().fold(t.clone(), |moved, other| move_dates(&moved, other, &is_instant));
        distinct.iter().fold(moved, |moved, other| move_dates(&moved, other, &is_local))
    };
    let moved: Vec<DataType> = types.iter().map(move_type).collect();
    (moved.as_slice() != types).then_some(moved)
}

/// Returns the type `t`, in which a date becomes a timestamp if the type `other` has a timestamp
/// for which `is_wanted` holds at the same list level and field.
fn move_dates(t: &DataType, other: &DataType, is_wanted: &dyn Fn(&DataType) -> bool) -> DataType {
    use DataType::{Date32, Date64, FixedSizeList, LargeList, List, Map, Struct, Timestamp};
    let within = |field: &FieldRef, other: &FieldRef| {
        let to = move_dates(field.data_type(), other.data_type(), is_wanted);
        Arc::new(field.as_ref().clone().with_data_type(to))
    };
    match (t, other) {
        // The unit is at most as fine as microseconds, because nanoseconds cannot represent all
        // dates, and for `Date64` at least milliseconds, because a `Date64` counts milliseconds.
        (Date32, Timestamp(unit, zone)) if is_wanted(other) => {
            Timestamp((*unit).min(TimeUnit::Microsecond), zone.clone())
        }
        (Date64, Timestamp(unit, zone)) if is_wanted(other) => {
            Timestamp((*unit).clamp(TimeUnit::Millisecond, TimeUnit::Microsecond), zone.clone())
        }
        (
            List(field) | LargeList(field) | FixedSizeList(field, _),
            List(of_other) | LargeList(of_other) | FixedSizeList(of_other, _),
        ) => replace_element_field(t, within(field, of_other)),
        (Map(field, sorted), Map(of_other, _)) => Map(within(field, of_other), *sorted),
        (Struct(fields), Struct(of_other)) if fields.len() == of_other.len() => {
            // Type coercion pairs fields by name if the structs have the same names, else by
            // position.
            let by_name = fields.iter().all(|field| of_other.find(field.name()).is_some());
            let find = |at: usize, field: &FieldRef| match by_name {
                true => of_other.find(field.name()).map(|(_, found)| found),
                false => of_other.get(at),
            };
            let moved = fields.iter().enumerate().map(|(at, field)| match find(at, field) {
                Some(found) => within(field, found),
                None => Arc::clone(field),
            });
            Struct(moved.collect())
        }
        _ => t.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn dates_become_the_timestamps_at_the_same_place() {
        let zoned = |unit| DataType::Timestamp(unit, Some("Europe/Berlin".into()));
        let (seconds, micros) = (zoned(TimeUnit::Second), zoned(TimeUnit::Microsecond));
        let date = DataType::Date32;
        let list = |t: &DataType| DataType::new_list(t.clone(), true);
        let fixed = |t: &DataType| DataType::new_fixed_size_list(t.clone(), 2, true);
        let fields = |names: [&str; 2], types: [&DataType; 2]| {
            let fields = names.into_iter().zip(types);
            DataType::Struct(fields.map(|(n, t)| Field::new(n, t.clone(), true)).collect())
        };
        let moved = |types: [&DataType; 2]| move_all_dates(&types.map(DataType::clone));
        assert_eq!(moved([&date, &seconds]), Some(vec![seconds.clone(), seconds.clone()]));
        assert_eq!(
            moved([&date, &zoned(TimeUnit::Nanosecond)]),
            Some(vec![micros.clone(), zoned(TimeUnit::Nanosecond)])
        );
        assert_eq!(
            moved([&list(&fixed(&micros)), &fixed(&list(&date))]),
            Some(vec![list(&fixed(&micros)), fixed(&list(&micros))])
        );
        // Both structs have the fields `a` and `b`, so their fields are matched by name, in any
        // order.
        let (ab, ba) = (["a", "b"], ["b", "a"]);
        assert_eq!(
            moved([
                &fields(ab, [&date, &DataType::Int64]),
                &fields(ba, [&DataType::Int64, &micros])
            ]),
            Some(vec![
                fields(ab, [&micros, &DataType::Int64]),
                fields(ba, [&DataType::Int64, &micros])
            ])
        );
        assert_eq!(
            moved([&fields(ab, [&date, &date]), &fields(["c", "d"], [&micros, &date])]),
            Some(vec![fields(ab, [&micros, &date]), fields(["c", "d"], [&micros, &date])])
        );
        let local = |unit| DataType::Timestamp(unit, None);
        assert_eq!(
            moved([&list(&date), &list(&local(TimeUnit::Second))]),
            Some(vec![list(&local(TimeUnit::Second)), list(&local(TimeUnit::Second))])
        );
        assert_eq!(moved([&date, &local(TimeUnit::Nanosecond)]), None);
        assert_eq!(
            move_all_dates(&[local(TimeUnit::Second), date.clone(), micros.clone()]),
            Some(vec![local(TimeUnit::Second), micros.clone(), micros.clone()])
        );
        assert_eq!(moved([&list(&date), &micros]), None);
    }
}
