//! Parses strings to values of a type. A string that no value of the type represents exactly is
//! `None`.

use std::str::FromStr;

use arrow::array::ArrowPrimitiveType;
use arrow::array::timezone::Tz;
use arrow::compute::kernels::cast_utils::{
    Parser, parse_decimal, parse_interval_month_day_nano, string_to_datetime,
};
use arrow::datatypes::{
    Date32Type, DecimalType, IntervalMonthDayNano, Time64NanosecondType, TimeUnit,
};
use serrate_core::internal::times::complete_time;

use crate::sql::base::decimal_texts::DecimalNumber;
use crate::sql::base::interval_texts::spell_out;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sql) struct TextRules {
    /// Whether an integer in a text that no float represents, such as `9007199254740993`, is an
    /// error in a column of floats. True if the types of columns are inferred.
    pub(in crate::sql) exact_floats: bool,
    /// Whether a number is accepted as a date or time, in the unit of the type: 1 is 1970-01-02 in
    /// a column of Date32. True for JSON.
    pub(in crate::sql) numeric_times: bool,
    /// Whether a time with a zone or an offset is an error in a column of times without zone. True
    /// if the types of columns are inferred. If false, such a time is converted to UTC, as by a
    /// cast.
    pub(in crate::sql) local_times: bool,
}

/// Parses an interval in any form of the literals `INTERVAL '..'`. Returns `None` for other
/// strings.
pub(super) fn parse_interval(text: &str) -> Option<IntervalMonthDayNano> {
    let spelled = spell_out(text);
    parse_interval_month_day_nano(spelled.as_deref().unwrap_or(text)).ok()
}

pub(super) fn parse_integer<N: TryFrom<i128>>(text: &str) -> Option<N> {
    let value = match text.parse::<i64>() {
        Ok(value) => i128::from(value),
        Err(_) => DecimalNumber::parse(text)?.as_integer()?,
    };
    N::try_from(value).ok()
}

/// Whether `number`, the float that was read from `text`, is the integer in the text. False for
/// `9007199254740993`, which no float represents. A text with a point or an exponent counts as
/// equal.
pub(super) fn is_exact_float(text: &str, number: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.abs() < EXACT || !number.is_finite() || text.contains(['.', 'e', 'E']) {
        return true;
    }
    let unsigned = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    format!("{:.0}", number.abs()) == unsigned
}

/// Returns the number of digits after the point of a text, without trailing zeros.
fn count_fraction_digits(text: &str) -> usize {
    let Some((_, fraction)) = text.rsplit_once('.') else { return 0 };
    let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
    fraction.get(..end).unwrap_or_default().trim_end_matches('0').len()
}

pub(super) fn parse_date(text: &str, rules: TextRules) -> Option<i32> {
    let complete = complete_time(text);
    let text = complete.as_deref().unwrap_or(text);
    let Some(days) = Date32Type::parse(text) else {
        return if rules.numeric_times { parse_integer(text) } else { None };
    };
    // A date such as `2024-01-01` has ten characters. A sign begins a date with a longer year, such
    // as `+12345-01-01`. Any other text has a time of day, which must be midnight.
    if text.len() <= 10 || text.starts_with(['+', '-']) {
        return Some(days);
    }
    let time = string_to_datetime(&Tz::from_str("+00:00").ok()?, text).ok()?;
    let is_midnight = time.timestamp() == i64::from(days).checked_mul(86_400)?
        && time.timestamp_subsec_nanos() == 0
        && count_fraction_digits(text) == 0;
    is_midnight.then_some(days)
}

pub(super) fn parse_time(text: &str, unit: TimeUnit, zone: Tz, rules: TextRules) -> Option<i64> {
    let complete = complete_time(text);
    let text = complete.as_deref().unwrap_or(text);
    let Ok(time) = string_to_datetime(&zone, text) else {
        return if rules.numeric_times { parse_integer(text) } else { None };
    };
    let (places, value) = match unit {
        TimeUnit::Second => (0, time.timestamp()),
        TimeUnit::Millisecond => (3, time.timestamp_millis()),
        TimeUnit::Microsecond => (6, time.timestamp_micros()),
        TimeUnit::Nanosecond => (9, time.timestamp_nanos_opt()?),
    };
    (count_fraction_digits(text) <= places).then_some(value)
}

/// Whether a string is a time with a zone or an offset, such as `2020-01-01T00:00:00+02:00`.
pub(super) fn names_zone(text: &str) -> bool {
    let complete = complete_time(text);
    let text = complete.as_deref().unwrap_or(text);
    // Most times have only digits and separators after the date, and need no parsing.
    let is_local = |byte: u8| byte.is_ascii_digit() || b"T :.".contains(&byte);
    if text.get(10..).is_none_or(|time| time.bytes().all(is_local)) {
        return false;
    }
    // A time without a zone is a different instant in each zone.
    let read = |zone: &str| string_to_datetime(&Tz::from_str(zone).ok()?, text).ok();
    let instants = ["+00:00", "+01:00"].map(|zone| read(zone).map(|time| time.timestamp()));
    matches!(instants, [Some(a), Some(b)] if a == b)
}

/// Whether a string is 23:59:60, the second after the last one that a time of day represents.
/// Arrow's parser accepts it.
pub(in crate::sql) fn exceeds_day(text: &str) -> bool {
    const DAY: i64 = 86_400_000_000_000;
    text.contains(":60") && Time64NanosecondType::parse(text).is_some_and(|time| time >= DAY)
}

/// Parses a time of day or, if `rules.numeric_times` is true, an integer. Returns `None` for other
/// strings, and for more than `places` digits after the point.
pub(super) fn parse_clock<T>(text: &str, places: usize, rules: TextRules) -> Option<T::Native>
where
    T: ArrowPrimitiveType + Parser,
    T::Native: TryFrom<i128>,
{
    // Arrow's parser reads an integer as a time in the unit of the type: '10' as 10 nanoseconds.
    match T::parse(text).filter(|_| text.contains(':') && !exceeds_day(text)) {
        Some(time) => (count_fraction_digits(text) <= places).then_some(time),
        None if rules.numeric_times => parse_integer(text),
        None => None,
    }
}

pub(super) fn parse_exact_decimal<T: DecimalType>(
    text: &str,
    precision: u8,
    scale: i8,
) -> Option<T::Native> {
    let number = DecimalNumber::parse(text)?;
    if !number.fits_scale(scale) {
        return None;
    }
    // `to_plain_text` drops trailing zeros of the fraction, because Arrow's parser would count them
    // as digits.
    let plain = number.to_plain_text()?;
    parse_decimal::<T>(&plain, precision, scale).ok()
}
