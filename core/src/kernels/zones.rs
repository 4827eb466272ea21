//! Conversion of local times in time zones whose offset from UTC changes. Clocks that go forward
//! skip the local times of an hour; clocks that go back repeat them. Arrow converts neither. As in
//! PostgreSQL and DuckDB, a skipped time is converted with the offset before the change, and a
//! repeated time becomes the later of its two instants.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{CastOptions, cast, cast_with_options, is_not_null};
use arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use arrow::util::display::array_value_to_string;
use chrono::{DateTime, Days, MappedLocalTime, Months, NaiveDateTime, Offset, TimeDelta, TimeZone};

use super::native::reinterpret_values;
use super::time_units::count_nanoseconds;
use crate::error::{Error, Result};

/// Returns whether the offset of a zone may change: false for UTC and for a fixed offset such as
/// `+02:00`.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::internal::zones::may_change;
/// assert!(may_change("Europe/Berlin") && !may_change("UTC") && !may_change("+02:00"));
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn may_change(zone: &str) -> bool {
    !zone.starts_with(['+', '-']) && !matches!(zone, "UTC" | "Z" | "GMT" | "Etc/UTC")
}

/// Converts local times (timestamps without a zone, dates, or strings) to instants of the type
/// `to`, a timestamp with a zone.
///
/// A string may name another zone or an offset. If `safe` is set, a time outside the range of `to`
/// and a string that is not a time become null. A local time that clocks skip is converted with the
/// offset before the change; a local time that they repeat becomes the later of its two instants.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, AsArray, TimestampSecondArray};
/// # use arrow::datatypes::{DataType, TimeUnit, TimestampSecondType};
/// use serrate::internal::zones::local_to_instants;
/// let east = DataType::Timestamp(TimeUnit::Second, Some("+01:00".into()));
/// let local: ArrayRef = Arc::new(TimestampSecondArray::from(vec![3600, 7200]));
/// let instants = local_to_instants(&local, &east, false)?;
/// assert_eq!(instants.as_primitive::<TimestampSecondType>().values(), &[0, 3600]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If `to` is not a timestamp with a known zone, or the values are not local times. Without `safe`,
/// also if a time is outside the range of `to`, or a string is not a time.
pub fn local_to_instants(times: &ArrayRef, to: &DataType, safe: bool) -> Result<ArrayRef> {
    let (unit, zone) = read_unit_and_zone(to)?;
    let local = DataType::Timestamp(unit, None);
    let options = CastOptions { safe, ..CastOptions::default() };
    if times.data_type().is_string() {
        return convert_strings_to_instants(times, to, &options);
    }
    let counts = count_units(&cast_with_options(times, &local, &options)?)?;
    map_counts(&counts, safe, to, |count| {
        let local = make_time(count, unit)?;
        count_since_epoch(&find_instant(local, zone)?, unit)
    })
}

/// Converts timestamps with a zone to local times in this zone: timestamps without a zone.
///
/// Nulls stay null. Arrays of other types are returned unchanged.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, AsArray, TimestampSecondArray};
/// # use arrow::datatypes::TimestampSecondType;
/// use serrate::internal::zones::to_local;
/// let times = TimestampSecondArray::from(vec![0]).with_timezone("+01:00");
/// let local = to_local(&(Arc::new(times) as ArrayRef))?;
/// assert_eq!(local.as_primitive::<TimestampSecondType>().values(), &[3600]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If a time is out of range, or its zone is unknown.
pub fn to_local(times: &ArrayRef) -> Result<ArrayRef> {
    let DataType::Timestamp(unit, Some(_)) = times.data_type() else { return Ok(times.clone()) };
    let (unit, zone) = (*unit, read_unit_and_zone(times.data_type())?.1);
    let to = DataType::Timestamp(unit, None);
    map_counts(&count_units(times)?, false, &to, |count| {
        let instant = make_time(count, unit)?;
        let offset = zone.offset_from_utc_datetime(&instant).fix();
        count_since_epoch(&instant.checked_add_offset(offset)?, unit)
    })
}

/// Converts strings to instants with Arrow's cast, and reads each string that Arrow rejects as a
/// local time in the zone of `to`. A string that is not a local time either is an error, or null
/// with `options.safe`.
fn convert_strings_to_instants(
    times: &ArrayRef,
    to: &DataType,
    options: &CastOptions<'_>,
) -> Result<ArrayRef> {
    let lenient = CastOptions::default();
    let found = cast_with_options(times, to, &lenient)?;
    let missing = times.logical_null_count();
    if found.null_count() == missing {
        return Ok(found);
    }
    let local =
        cast_with_options(times, &DataType::Timestamp(read_unit_and_zone(to)?.0, None), &lenient)?;
    let local = local_to_instants(&local, to, true)?;
    let merged = zip(&is_not_null(&found)?, &found, &local)?;
    match merged.null_count() == missing || options.safe {
        true => Ok(merged),
        // Cast again to return Arrow's error, which shows the string.
        false => Ok(cast_with_options(times, to, options)?),
    }
}

/// Adds intervals to timestamps with a zone, or subtracts them: months and days in local time, the
/// rest as elapsed time.
///
/// A null gives null. If one array has only one value, this value is combined with every value of
/// the other array.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray, TimestampSecondArray};
/// # use arrow::datatypes::{IntervalMonthDayNano, TimestampSecondType};
/// use serrate::internal::zones::add_intervals;
/// let local = TimestampSecondArray::from(vec![3600]).with_timezone("+01:00");
/// let day = IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(0, 1, 0)]);
/// let (times, day): (ArrayRef, ArrayRef) = (Arc::new(local), Arc::new(day));
/// let next = add_intervals(&times, &day, false)?;
/// assert_eq!(next.as_primitive::<TimestampSecondType>().values(), &[25 * 3600]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the values are not timestamps with a zone and intervals, or a result is out of range.
pub fn add_intervals(times: &ArrayRef, intervals: &ArrayRef, subtract: bool) -> Result<ArrayRef> {
    let (unit, zone) = read_unit_and_zone(times.data_type())?;
    let parts = cast(intervals, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let parts = parts.as_primitive::<IntervalMonthDayNanoType>();
    let counts = count_units(times)?;
    let rows = if counts.len() == 1 { parts.len() } else { counts.len() };
    let sums = (0..rows).map(|row| {
        let at = if counts.len() == 1 { 0 } else { row };
        let by = if parts.len() == 1 { 0 } else { row };
        if counts.is_null(at) || parts.is_null(by) {
            return Ok(None);
        }
        let moved = move_time(counts.value(at), unit, zone, parts.value(by), subtract);
        moved.map(Some).ok_or_else(|| {
            let sign = if subtract { '-' } else { '+' };
            let shown =
                |values: &dyn Array, at| array_value_to_string(values, at).unwrap_or_default();
            Error::invalid(format!(
                "{} {sign} {} is outside the range of {}; use times closer to 1970",
                shown(times, at),
                shown(parts, by),
                times.data_type()
            ))
        })
    });
    let sums: Int64Array = sums.collect::<Result<_>>()?;
    reinterpret_values(&(Arc::new(sums) as ArrayRef), times.data_type())
}

fn move_time(
    count: i64,
    unit: TimeUnit,
    zone: Tz,
    by: IntervalMonthDayNano,
    subtract: bool,
) -> Option<i64> {
    let mut moved = count;
    if by.months != 0 || by.days != 0 {
        let instant = make_time(count, unit)?;
        let local = instant.checked_add_offset(zone.offset_from_utc_datetime(&instant).fix())?;
        let backwards = |n: i32| (n < 0) != subtract;
        let months = Months::new(by.months.unsigned_abs());
        let local = match backwards(by.months) {
            true => local.checked_sub_months(months)?,
            false => local.checked_add_months(months)?,
        };
        let days = Days::new(u64::from(by.days.unsigned_abs()));
        let local = match backwards(by.days) {
            true => local.checked_sub_days(days)?,
            false => local.checked_add_days(days)?,
        };
        moved = count_since_epoch(&find_instant(local, zone)?, unit)?;
    }
    let nanoseconds = i128::from(by.nanoseconds) / count_nanoseconds(unit);
    let nanoseconds = if subtract { -nanoseconds } else { nanoseconds };
    i64::try_from(i128::from(moved) + nanoseconds).ok()
}

fn read_unit_and_zone(t: &DataType) -> Result<(TimeUnit, Tz)> {
    match t {
        DataType::Timestamp(unit, Some(zone)) => Ok((*unit, zone.parse()?)),
        other => Err(Error::type_of(
            "adding an interval in local time, or converting from local time",
            "a timestamp with a time zone (cast the times to TIMESTAMPTZ first)",
            other,
        )),
    }
}

fn count_units(times: &ArrayRef) -> Result<Int64Array> {
    Ok(reinterpret_values(times, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

fn map_counts(
    counts: &Int64Array,
    safe: bool,
    to: &DataType,
    convert: impl Fn(i64) -> Option<i64>,
) -> Result<ArrayRef> {
    let found: Int64Array = match safe {
        true => counts.unary_opt::<_, Int64Type>(convert),
        false => counts.try_unary::<_, Int64Type, Error>(|count| {
            convert(count).ok_or_else(|| {
                Error::invalid(format!(
                    "the time {count} (since 1970, in the unit of {to}) is outside the range of {to}; use times closer to 1970"
                ))
            })
        })?,
    };
    reinterpret_values(&(Arc::new(found) as ArrayRef), to)
}

fn make_time(count: i64, unit: TimeUnit) -> Option<NaiveDateTime> {
    let per_second = 1_000_000_000 / count_nanoseconds(unit);
    let seconds = i128::from(count).div_euclid(per_second);
    let rest = i128::from(count).rem_euclid(per_second) * count_nanoseconds(unit);
    let time = DateTime::from_timestamp(i64::try_from(seconds).ok()?, u32::try_from(rest).ok()?);
    Some(time?.naive_utc())
}

fn count_since_epoch(instant: &NaiveDateTime, unit: TimeUnit) -> Option<i64> {
    let time = instant.and_utc();
    let nanoseconds =
        i128::from(time.timestamp()) * 1_000_000_000 + i128::from(time.timestamp_subsec_nanos());
    i64::try_from(nanoseconds.div_euclid(count_nanoseconds(unit))).ok()
}

pub(super) fn find_instant(local: NaiveDateTime, zone: Tz) -> Option<NaiveDateTime> {
    let offset = match zone.offset_from_local_datetime(&local) {
        MappedLocalTime::Single(offset) => offset.fix(),
        // Take the later of the two instants, which has the smaller offset from UTC.
        MappedLocalTime::Ambiguous(one, other) => {
            let (one, other) = (one.fix(), other.fix());
            if one.local_minus_utc() < other.local_minus_utc() { one } else { other }
        }
        MappedLocalTime::None => find_offset_before(local, zone),
    };
    local.checked_sub_offset(offset)
}

/// Returns the offset before the change that skips the local time `local`. A change skips at most
/// one day (Samoa in 2011), so the local time 25 hours earlier exists.
fn find_offset_before(local: NaiveDateTime, zone: Tz) -> chrono::FixedOffset {
    let known = [1, 3, 6, 12, 25].into_iter().find_map(|hours| {
        let earlier = local.checked_sub_signed(TimeDelta::hours(hours))?;
        zone.offset_from_local_datetime(&earlier).latest()
    });
    known.map_or_else(|| zone.offset_from_utc_datetime(&local).fix(), |offset| offset.fix())
}
