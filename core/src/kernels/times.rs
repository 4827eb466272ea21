//! Exact comparison and conversion of instants (dates and timestamps), durations and intervals. A
//! cast to the finer of two units may overflow (the year 2999 in nanoseconds), and a cast to the
//! coarser drops digits. Values are therefore compared as `i128`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};

use super::span_texts::make_span_formatter;
use super::text::is_text;
pub use super::time_units::count_nanoseconds;
use super::zones::{local_to_instants, may_change};
use crate::array::exact_casts::cast_strictly;
use crate::error::{Error, Result};

/// Type to which dates, timestamps, durations and intervals without months are converted for
/// comparisons: seconds with nine fractional digits. A day of an interval has 24 hours.
pub const EXACT_SECONDS: DataType = DataType::Decimal128(38, 9);

/// Type to which intervals are converted for comparisons: nanoseconds. As in DuckDB, a month has
/// 30 days, and a day 24 hours.
pub const INTERVAL_NANOSECONDS: DataType = DataType::Decimal128(38, 0);

/// Number of nanoseconds in a day of 24 hours.
pub const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;
const DAYS_PER_MONTH: i128 = 30;

/// Returns whether [`to_exact_seconds`] converts a type: dates, timestamps, durations, intervals.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::{DataType, TimeUnit};
/// use serrate::internal::times::is_instant_or_span;
/// assert!(is_instant_or_span(&DataType::Date32));
/// assert!(!is_instant_or_span(&DataType::Time64(TimeUnit::Nanosecond)));
/// ```
pub fn is_instant_or_span(t: &DataType) -> bool {
    use DataType::{Date32, Date64, Duration, Interval, Timestamp};
    matches!(t, Timestamp(..) | Date32 | Date64 | Duration(_) | Interval(_))
}

/// Converts values to seconds as decimals ([`EXACT_SECONDS`]); instants become seconds since 1970.
/// Nulls stay null.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::array::{AsArray, DurationMillisecondArray};
/// use arrow::datatypes::Decimal128Type;
/// use serrate::internal::times::to_exact_seconds;
/// let spans = DurationMillisecondArray::from(vec![2500]);
/// let seconds = to_exact_seconds(&spans)?;
/// assert_eq!(seconds.as_primitive::<Decimal128Type>().value(0), 2_500_000_000); // 2.500000000
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// For an interval with months, which has no fixed length (the message shows it).
pub fn to_exact_seconds(values: &dyn Array) -> Result<ArrayRef> {
    to_decimals(to_nanoseconds(values, None)?, &EXACT_SECONDS)
}

/// Parses strings as dates or timestamps, and converts them to seconds since 1970
/// ([`EXACT_SECONDS`]). Keeps nine fractional digits, also for years that 64-bit nanoseconds cannot
/// represent. A string without an offset is a local time in `zone`, or in UTC if there is none.
/// Nulls stay null.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::array::{AsArray, StringArray};
/// use arrow::datatypes::Decimal128Type;
/// use serrate::internal::times::parse_exact_seconds;
/// let strings = StringArray::from(vec!["1970-01-01 00:00:01.000000001"]);
/// let seconds = parse_exact_seconds(&strings, None)?;
/// assert_eq!(seconds.as_primitive::<Decimal128Type>().value(0), 1_000_000_001); // 1.000000001
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// For a string that is not a time.
pub fn parse_exact_seconds(texts: &dyn Array, zone: Option<Arc<str>>) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8)?;
    // Nanoseconds do not cover all years: parse microseconds, and add the other digits later.
    let wide = DataType::Timestamp(TimeUnit::Microsecond, zone);
    let instants = match cast_time(&texts, &wide) {
        Some(instants) => instants?,
        None => cast_strictly(&texts, &wide)?,
    };
    let whole = to_nanoseconds(&instants, None)?;
    let pairs = whole.iter().zip(texts.as_string::<i32>().iter());
    let exact = pairs.map(|(whole, text)| Some(whole? + parse_digits_below_microseconds(text?)));
    to_decimals(exact.collect::<Decimal128Array>(), &EXACT_SECONDS)
}

/// Returns whether the time in each string is a whole number of microseconds; true for nulls.
pub(super) fn are_whole_microseconds(texts: &dyn Array) -> Result<BooleanArray> {
    let texts = cast(texts, &DataType::Utf8)?;
    let whole =
        |text: Option<&str>| text.is_none_or(|text| parse_digits_below_microseconds(text) == 0);
    Ok(texts.as_string::<i32>().iter().map(|text| Some(whole(text))).collect())
}

/// Returns the value of the seventh to ninth digits after the point: 789 for `10:00:00.123456789`.
fn parse_digits_below_microseconds(text: &str) -> i128 {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let mut digits = fraction.bytes().take_while(u8::is_ascii_digit).skip(6);
    (0..3).fold(0, |number, _| {
        number * 10 + digits.next().map_or(0, |digit| i128::from(digit - b'0'))
    })
}

/// Converts intervals, durations or instants to nanoseconds as decimals ([`INTERVAL_NANOSECONDS`]).
/// Nulls stay null.
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::array::{AsArray, IntervalMonthDayNanoArray};
/// # use arrow::datatypes::{Decimal128Type, IntervalMonthDayNano};
/// use serrate::internal::times::to_exact_nanoseconds;
/// let month = IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(1, 0, 0)]);
/// let spans = to_exact_nanoseconds(&month)?;
/// let day = 86_400_000_000_000;
/// assert_eq!(spans.as_primitive::<Decimal128Type>().value(0), 30 * day);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// For values of any other type.
pub fn to_exact_nanoseconds(values: &dyn Array) -> Result<ArrayRef> {
    to_decimals(to_nanoseconds(values, Some(DAYS_PER_MONTH))?, &INTERVAL_NANOSECONDS)
}

/// Converts values to the timestamp or duration type `to`; null if a value is not a multiple of the
/// unit of `to` or does not fit 64 bits. A time zone only changes the type: instants stay the same.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Array, ArrayRef, AsArray, DurationMillisecondArray};
/// # use arrow::datatypes::{DataType, DurationSecondType, TimeUnit};
/// use serrate::internal::times;
/// let seconds = DataType::Duration(TimeUnit::Second);
/// let spans: ArrayRef = Arc::new(DurationMillisecondArray::from(vec![2000, 2500]));
/// assert!(times::is_instant_or_span(spans.data_type()));
/// let exact = times::convert_exactly(&spans, &seconds)?;
/// let exact: Vec<_> = exact.as_primitive::<DurationSecondType>().iter().collect();
/// assert_eq!(exact, [Some(2), None]);
/// assert!(times::convert_all_exactly(&spans, &seconds)?.is_none());
/// assert!(times::compare_exactly(spans.data_type(), &seconds));
/// assert_eq!(times::to_exact_seconds(&spans)?.len(), times::to_exact_nanoseconds(&spans)?.len());
/// assert!(times::cast_time(&spans, &DataType::Int64).is_none_or(|cast| cast.is_ok()));
/// assert_eq!(times::count_nanoseconds(TimeUnit::Millisecond), 1_000_000);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// For an interval with months, for values that are not times, durations or intervals, and for a
/// type `to` that is neither a timestamp nor a duration.
pub fn convert_exactly(values: &dyn Array, to: &DataType) -> Result<ArrayRef> {
    let (DataType::Timestamp(unit, _) | DataType::Duration(unit)) = to else {
        return Err(Error::type_of(
            "the type that times are converted to",
            "a timestamp or a duration (choose such a type)",
            to,
        ));
    };
    let per = count_nanoseconds(*unit);
    let counts: Int64Array = to_nanoseconds(values, None)?.unary_opt::<_, Int64Type>(|n| {
        (n % per == 0).then(|| i64::try_from(n / per).ok()).flatten()
    });
    Ok(cast(&counts, to)?)
}

/// Converts like [`convert_exactly`], but returns `None` if any value would become null.
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::array::{AsArray, DurationMillisecondArray};
/// # use arrow::datatypes::{DataType, DurationSecondType, TimeUnit};
/// use serrate::internal::times::convert_all_exactly;
/// let seconds = DataType::Duration(TimeUnit::Second);
/// let whole = convert_all_exactly(&DurationMillisecondArray::from(vec![2000, 3000]), &seconds)?.unwrap();
/// assert_eq!(whole.as_primitive::<DurationSecondType>().values(), &[2, 3]);
/// assert!(convert_all_exactly(&DurationMillisecondArray::from(vec![2000, 2500]), &seconds)?.is_none());
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`convert_exactly`].
pub fn convert_all_exactly(values: &dyn Array, to: &DataType) -> Result<Option<ArrayRef>> {
    let converted = convert_exactly(values, to)?;
    Ok((converted.null_count() == values.logical_null_count()).then_some(converted))
}

/// Returns the type to which strings are parsed for comparisons with values of the type `times`.
/// Its unit may be finer than the unit of `times`: parsed to seconds, `10:00:00.5` would equal
/// `10:00:00`.
pub(super) fn find_parsed_type(times: &DataType) -> DataType {
    match times {
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        DataType::Date32 | DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Nanosecond),
        other => other.clone(),
    }
}

/// Returns whether values of two types compare exactly: both are durations or intervals, both are
/// instants (dates and timestamps) with a time zone, or both are instants without one.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::{DataType, TimeUnit};
/// use serrate::internal::times::compare_exactly;
/// let seconds = DataType::Duration(TimeUnit::Second);
/// assert!(compare_exactly(&seconds, &DataType::Duration(TimeUnit::Nanosecond)));
/// assert!(!compare_exactly(&seconds, &DataType::Date32));
/// ```
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

/// Casts to `to` with the exact conversions of this module; `None` if the types need only Arrow's
/// cast. Nulls stay null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
/// # use arrow::datatypes::{DataType, DurationSecondType, IntervalMonthDayNano, TimeUnit};
/// use serrate::internal::times::cast_time;
/// # let day = IntervalMonthDayNano::new(0, 1, 0);
/// let day: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![day]));
/// let seconds = cast_time(&day, &DataType::Duration(TimeUnit::Second)).unwrap()?;
/// assert_eq!(seconds.as_primitive::<DurationSecondType>().value(0), 86_400);
/// assert!(cast_time(&day, &DataType::Utf8).is_none()); // Arrow's cast suffices
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// * For an interval with months, unless `to` is [`INTERVAL_NANOSECONDS`].
/// * For an interval that the 64-bit integers of a duration `to` cannot represent exactly.
/// * For a string that is not a time.
/// * For a local time outside the range of `to`, if this is a timestamp with a zone.
pub fn cast_time(values: &ArrayRef, to: &DataType) -> Option<Result<ArrayRef>> {
    let from = values.data_type();
    let interval = matches!(from, DataType::Interval(_));
    match to {
        t if *t == EXACT_SECONDS && is_instant_or_span(from) => Some(to_exact_seconds(values)),
        t if *t == EXACT_SECONDS && is_text(from) => Some(parse_exact_seconds(values, None)),
        t if *t == INTERVAL_NANOSECONDS && interval => Some(to_exact_nanoseconds(values)),
        // Arrow rejects the local times that clocks skip or repeat, so do not use its cast.
        DataType::Timestamp(_, Some(zone)) if may_change(zone) && is_local_time(from) => {
            Some(local_to_instants(values, to, false))
        }
        DataType::Duration(unit) if interval => Some(convert_exactly(values, to).and_then(|found| {
            if found.null_count() == values.logical_null_count() {
                return Ok(found);
            }
            let lost = (0..found.len()).find(|row| found.is_null(*row) && values.is_valid(*row));
            let shown = make_span_formatter(values).zip(lost).map(|(format, row)| format(row));
            Err(Error::invalid(format!(
                "the interval {} cannot be represented exactly as a 64-bit number of {unit:?}s; cast to a duration with a finer unit, or with a coarser unit if the interval is long",
                shown.unwrap_or_default()
            )))
        })),
        _ => None,
    }
}

fn is_local_time(t: &DataType) -> bool {
    use DataType::{Date32, Date64, Timestamp};
    matches!(t, Timestamp(_, None) | Date32 | Date64) || t.is_string()
}

fn to_decimals(values: Decimal128Array, to: &DataType) -> Result<ArrayRef> {
    Ok(Arc::new(values.with_data_type(to.clone())))
}

/// Converts dates and timestamps to nanoseconds since 1970, and durations and intervals to their
/// length in nanoseconds. In an interval, a month has `days_per_month` days; if this is `None`, an
/// interval with months is an error.
fn to_nanoseconds(values: &dyn Array, days_per_month: Option<i128>) -> Result<Decimal128Array> {
    use DataType::{Date32, Date64, Duration, Interval, Timestamp};
    let per = match values.data_type() {
        Timestamp(unit, _) | Duration(unit) => count_nanoseconds(*unit),
        Date32 => NANOSECONDS_PER_DAY,
        Date64 => count_nanoseconds(TimeUnit::Millisecond),
        Interval(_) => {
            let to = Interval(IntervalUnit::MonthDayNano);
            let values = cast_strictly(values, &to)?;
            let spans = values.as_primitive::<IntervalMonthDayNanoType>();
            if days_per_month.is_none()
                && let Some(row) =
                    (0..spans.len()).find(|&i| spans.is_valid(i) && spans.value(i).months != 0)
            {
                let shown =
                    make_span_formatter(spans).map(|format| format(row)).unwrap_or_default();
                return Err(Error::invalid(format!(
                    "the interval {shown} cannot be compared with a duration or converted to one, because a month has no fixed length; write days, such as INTERVAL '30 days'"
                )));
            }
            let per_month = days_per_month.unwrap_or_default();
            return Ok(spans.unary::<_, Decimal128Type>(|v| {
                let days = i128::from(v.months) * per_month + i128::from(v.days);
                days * NANOSECONDS_PER_DAY + i128::from(v.nanoseconds)
            }));
        }
        other => {
            return Err(Error::type_of(
                "a value to convert to a time, or to compare with one",
                "a date, timestamp, duration or interval (cast the value first)",
                other,
            ));
        }
    };
    let counts = match values.data_type() {
        Date32 => cast(&cast(values, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(values, &DataType::Int64)?,
    };
    Ok(counts.as_primitive::<Int64Type>().unary::<_, Decimal128Type>(|v| i128::from(v) * per))
}
