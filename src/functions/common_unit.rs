//! The common type of times of several units.

use arrow::datatypes::{DataType, TimeUnit};

/// Returns the type with the finest unit of `types` if all of them are timestamps without a zone,
/// or all are durations. Returns `None` for other types. Ignores NULL types.
pub(super) fn find_finest_unit(types: &[&DataType]) -> Option<DataType> {
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
