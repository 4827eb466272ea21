//! The common type of times of several units.

use arrow::datatypes::{DataType, TimeUnit};

/// Returns the type with the finest unit of `types` if all of them are timestamps without a zone,
/// or all are durations. Returns `None` for other types. Ignores NULL types.
pub(crate) fn find_finest_unit(types: &[&DataType]) -> Option<DataType> {
    let given = types.iter().filter(|t| !t.is_null());
    let units = given.map(|t| match t {
        DataType::Timestamp(unit, None) => Some((false, *unit)),
        DataType::Duration(unit) => Some((true, *unit)),
        _ => None,
    });
    let units: Vec<(bool, TimeUnit)> = units.collect::<Option<_>>()?;
    let (are_durations, _) = *units.first()?;
    if units.iter().any(|(is_duration, _)| *is_duration != are_durations) {
        return None;
    }
    let finest = units.iter().map(|(_, unit)| *unit).max()?;
    Some(match are_durations {
        true => DataType::Duration(finest),
        false => DataType::Timestamp(finest, None),
    })
}

/// Returns the type with the finest unit of `types` if all of them are times of day (`TIME`) or
/// NULL, and at least one is a time of day.
pub(crate) fn find_finest_clock(types: &[DataType]) -> Option<DataType> {
    if !types.iter().all(|t| t.is_null() || find_clock_unit(t).is_some()) {
        return None;
    }
    let clocks = types.iter().filter(|t| !t.is_null());
    clocks.max_by_key(|t| find_clock_unit(t)).cloned()
}

/// Returns the unit of `t` if it is a type of times of day (`TIME`), otherwise `None`.
pub(super) fn find_clock_unit(t: &DataType) -> Option<TimeUnit> {
    match t {
        DataType::Time32(unit) | DataType::Time64(unit) => Some(*unit),
        _ => None,
    }
}
