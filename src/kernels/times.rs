//! Instants, durations and intervals compared and converted exactly, whatever their units.
//!
//! A cast to the finer unit of two fails for the year 2999 in nanoseconds, and one to the coarser unit
//! drops what is below it. What compares here is an `i128`, which holds any of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Int64Array};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    DataType, Decimal128Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use arrow::util::display::array_value_to_string;

use crate::error::{Error, Result};

/// What instants, dates and durations of any unit compare as: seconds with nine digits behind the point.
/// Of intervals those without months, a day being 24 hours.
pub const EXACT_SECONDS: DataType = DataType::Decimal128(38, 9);

/// What intervals compare as: nanoseconds, a month being 30 days of 24 hours, as in DuckDB.
pub const INTERVAL_NANOSECONDS: DataType = DataType::Decimal128(38, 0);

const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;
const DAYS_PER_MONTH: i128 = 30;

/// Whether values of a type have an instant or a length of time that [`exact_seconds`] gives.
pub fn is_instant_or_span(t: &DataType) -> bool {
    use DataType::{Date32, Date64, Duration, Interval, Timestamp};
    matches!(t, Timestamp(..) | Date32 | Date64 | Duration(_) | Interval(_))
}

/// Values as [`EXACT_SECONDS`], since the epoch where they are instants.
///
/// # Errors
/// For an interval with months, which has no fixed length; the message has the interval.
pub fn exact_seconds(values: &dyn Array) -> Result<ArrayRef> {
    decimals(nanoseconds(values, None)?, &EXACT_SECONDS)
}

/// Intervals as [`INTERVAL_NANOSECONDS`].
///
/// # Errors
/// For what is no interval.
pub fn interval_nanoseconds(values: &dyn Array) -> Result<ArrayRef> {
    decimals(nanoseconds(values, Some(DAYS_PER_MONTH))?, &INTERVAL_NANOSECONDS)
}

/// Values in the unit of a timestamp or a duration; null where one is not exactly so many of it. The
/// time zone is only written behind: instants stay the instants they are.
///
/// # Errors
/// For an interval with months, and for other types.
pub fn exactly_in(values: &dyn Array, to: &DataType) -> Result<ArrayRef> {
    let (DataType::Timestamp(unit, _) | DataType::Duration(unit)) = to else {
        return Err(Error::type_of("a unit of time", "a timestamp or a duration", to));
    };
    let per = per_unit(*unit);
    let counts: Int64Array = nanoseconds(values, None)?.unary_opt::<_, Int64Type>(|n| {
        (n % per == 0).then(|| i64::try_from(n / per).ok()).flatten()
    });
    Ok(cast(&counts, to)?)
}

/// As [`exactly_in`]; `None` where one of the values is not exactly one of the unit.
///
/// # Errors
/// As [`exactly_in`].
pub fn in_unit(values: &dyn Array, to: &DataType) -> Result<Option<ArrayRef>> {
    let there = exactly_in(values, to)?;
    Ok((there.null_count() == values.logical_null_count()).then_some(there))
}

/// Whether values of two types are both instants, or both lengths of time, and compare as [`EXACT_SECONDS`].
pub fn compare_exactly(a: &DataType, b: &DataType) -> bool {
    use DataType::{Date32, Date64, Duration, Interval, Timestamp};
    let span = |t: &DataType| matches!(t, Duration(_) | Interval(_));
    let zoned = |t: &DataType| match t {
        Timestamp(_, zone) => Some(zone.is_some()),
        Date32 | Date64 => Some(false),
        _ => None,
    };
    (span(a) && span(b)) || (zoned(a).is_some() && zoned(a) == zoned(b))
}

/// The conversions of this module where they are what a cast to `to` stands for; `None` for all others,
/// which are Arrow's.
pub fn cast_time(values: &ArrayRef, to: &DataType) -> Option<Result<ArrayRef>> {
    let from = values.data_type();
    let interval = matches!(from, DataType::Interval(_));
    match to {
        t if *t == EXACT_SECONDS && is_instant_or_span(from) => Some(exact_seconds(values)),
        t if *t == EXACT_SECONDS && from.is_string() => {
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            let wide = DataType::Timestamp(TimeUnit::Microsecond, None);
            let read = cast_with_options(values, &wide, &strict).map_err(Error::from);
            Some(read.and_then(|values| exact_seconds(&values)))
        }
        t if *t == INTERVAL_NANOSECONDS && interval => Some(interval_nanoseconds(values)),
        DataType::Duration(unit) if interval => Some(in_unit(values, to).and_then(|found| {
            found.ok_or_else(|| {
                Error::invalid(format!(
                    "an interval with a duration: the interval is no whole number of the duration's {unit:?}s, or too long for them; cast the duration to a finer unit"
                ))
            })
        })),
        _ => None,
    }
}

fn decimals(values: Decimal128Array, to: &DataType) -> Result<ArrayRef> {
    Ok(Arc::new(values.with_data_type(to.clone())))
}

/// Nanoseconds in one of a unit.
pub fn per_unit(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Nanoseconds, whatever the unit; `days_per_month` is `None` where months are refused.
fn nanoseconds(values: &dyn Array, days_per_month: Option<i128>) -> Result<Decimal128Array> {
    use DataType::{Date32, Date64, Duration, Interval, Timestamp};
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let per = match values.data_type() {
        Timestamp(unit, _) | Duration(unit) => per_unit(*unit),
        Date32 => NANOSECONDS_PER_DAY,
        Date64 => per_unit(TimeUnit::Millisecond),
        Interval(_) => {
            let to = Interval(IntervalUnit::MonthDayNano);
            let values = cast_with_options(values, &to, &strict)?;
            let spans = values.as_primitive::<IntervalMonthDayNanoType>();
            if days_per_month.is_none()
                && let Some(row) =
                    (0..spans.len()).find(|&i| spans.is_valid(i) && spans.value(i).months != 0)
            {
                return Err(Error::invalid(format!(
                    "the interval {} with a duration: a month has no fixed length; write INTERVAL '30 days'",
                    array_value_to_string(spans, row)?
                )));
            }
            let per_month = days_per_month.unwrap_or_default();
            return Ok(spans.unary::<_, Decimal128Type>(|v| {
                let days = i128::from(v.months) * per_month + i128::from(v.days);
                days * NANOSECONDS_PER_DAY + i128::from(v.nanoseconds)
            }));
        }
        other => {
            return Err(Error::type_of("a time", "a date, timestamp, duration or interval", other));
        }
    };
    let counts = match values.data_type() {
        Date32 => cast(&cast(values, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(values, &DataType::Int64)?,
    };
    Ok(counts.as_primitive::<Int64Type>().unary::<_, Decimal128Type>(|v| i128::from(v) * per))
}
