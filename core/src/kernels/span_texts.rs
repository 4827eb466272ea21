//! Formats durations and intervals as strings such as `4951d 03:00`, and structs as `{'a': 1}`;
//! parses such strings of durations.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericListArray, OffsetSizeTrait, StringArray,
    StringBuilder, StructArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Field, FieldRef, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalUnit, IntervalYearMonthType, TimeUnit,
};
use arrow::util::display::FormatOptions;

use crate::error::Result;

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;

/// Returns whether the values of a type, or the elements of its lists, are durations, intervals or
/// structs.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::{DataType, TimeUnit};
/// use serrate::internal::times::has_spans;
/// let spans = DataType::Duration(TimeUnit::Second);
/// assert!(has_spans(&DataType::new_list(spans, true)) && !has_spans(&DataType::Int64));
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn has_spans(t: &DataType) -> bool {
    match t {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            has_spans(field.data_type())
        }
        t => matches!(t, DataType::Duration(_) | DataType::Interval(_) | DataType::Struct(_)),
    }
}

/// Converts durations, intervals (see [`make_span_formatter`]) and structs, including those in
/// lists, to strings. Nulls stay null. Arrays of other types are returned unchanged.
///
/// A struct becomes `{'a': 1, 'b': [x, NULL]}`, as in DuckDB: names are quoted, strings are not.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, AsArray, DurationSecondArray};
/// use serrate::internal::times::write_spans;
/// let spans: ArrayRef = Arc::new(DurationSecondArray::from(vec![Some(5_184_000), None]));
/// let strings = write_spans(&spans)?;
/// assert_eq!(strings.as_string::<i32>().iter().collect::<Vec<_>>(), [Some("60d"), None]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If a list array cannot be built from the strings of its elements.
pub fn write_spans(values: &ArrayRef) -> Result<ArrayRef> {
    if let Some(format) = make_span_formatter(values) {
        let texts = (0..values.len()).map(|i| values.is_valid(i).then(|| format(i)));
        return Ok(Arc::new(texts.collect::<StringArray>()));
    }
    Ok(match values.data_type() {
        t if !has_spans(t) => Arc::clone(values),
        DataType::List(field) => write_lists::<i32>(values, field)?,
        DataType::LargeList(field) => write_lists::<i64>(values, field)?,
        DataType::FixedSizeList(field, size) => {
            let lists = values.as_fixed_size_list();
            let texts = write_spans(lists.values())?;
            let (field, nulls) = (make_text_field(field, &texts), lists.nulls().cloned());
            Arc::new(FixedSizeListArray::try_new(field, *size, texts, nulls)?)
        }
        DataType::Struct(_) => Arc::new(write_structs(values.as_struct())?),
        _ => Arc::clone(values),
    })
}

fn write_structs(structs: &StructArray) -> Result<StringArray> {
    let format = FormatOptions::default().with_null("NULL");
    let options = CastOptions { safe: false, format_options: format };
    let mut fields = Vec::with_capacity(structs.num_columns());
    for (field, values) in structs.fields().iter().zip(structs.columns()) {
        let texts = cast_with_options(&write_spans(values)?, &DataType::Utf8, &options)?;
        fields.push((format!("'{}': ", field.name().replace('\'', "''")), texts));
    }
    let mut written = StringBuilder::with_capacity(structs.len(), 0);
    for row in 0..structs.len() {
        if structs.is_null(row) {
            written.append_null();
            continue;
        }
        let mut text = String::from("{");
        for (at, (name, texts)) in fields.iter().enumerate() {
            let value =
                if texts.is_null(row) { "NULL" } else { texts.as_string::<i32>().value(row) };
            text.push_str(if at == 0 { "" } else { ", " });
            text.push_str(name);
            text.push_str(value);
        }
        text.push('}');
        written.append_value(text);
    }
    Ok(written.finish())
}

fn write_lists<O: OffsetSizeTrait>(values: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    let lists = values.as_list::<O>();
    let texts = write_spans(lists.values())?;
    let (field, nulls) = (make_text_field(field, &texts), lists.nulls().cloned());
    Ok(Arc::new(GenericListArray::try_new(field, lists.offsets().clone(), texts, nulls)?))
}

fn make_text_field(field: &FieldRef, texts: &ArrayRef) -> FieldRef {
    Arc::new(Field::new(field.name(), texts.data_type().clone(), field.is_nullable()))
}

/// Returns a function that formats value `i`, which must not be null, of an array of durations or
/// intervals; `None` for other types. Examples of durations are `4951d 03:00` and `00:00:01.5`; an
/// interval is `1y 2mo 3d 04:00`. Each part has its own sign: `-1d -02:00`.
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::array::DurationSecondArray;
/// use serrate::internal::times::make_span_formatter;
/// let spans = DurationSecondArray::from(vec![90]);
/// assert_eq!(make_span_formatter(&spans).map(|format| format(0)).as_deref(), Some("00:01:30"));
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn make_span_formatter(array: &dyn Array) -> Option<Box<dyn Fn(usize) -> String + '_>> {
    Some(match array.data_type() {
        DataType::Duration(unit) => {
            let (value, factor): (Box<dyn Fn(usize) -> i64 + '_>, i128) = match unit {
                TimeUnit::Second => {
                    let values = array.as_primitive::<DurationSecondType>();
                    (Box::new(|i| values.value(i)), SECOND)
                }
                TimeUnit::Millisecond => {
                    let values = array.as_primitive::<DurationMillisecondType>();
                    (Box::new(|i| values.value(i)), 1_000_000)
                }
                TimeUnit::Microsecond => {
                    let values = array.as_primitive::<DurationMicrosecondType>();
                    (Box::new(|i| values.value(i)), 1_000)
                }
                TimeUnit::Nanosecond => {
                    let values = array.as_primitive::<DurationNanosecondType>();
                    (Box::new(|i| values.value(i)), 1)
                }
            };
            Box::new(move |i| format_duration(i128::from(value(i)) * factor))
        }
        DataType::Interval(IntervalUnit::YearMonth) => {
            let values = array.as_primitive::<IntervalYearMonthType>();
            Box::new(|i| format_interval(values.value(i), 0, 0))
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let values = array.as_primitive::<IntervalDayTimeType>();
            Box::new(|i| {
                let value = values.value(i);
                format_interval(0, value.days, i128::from(value.milliseconds) * 1_000_000)
            })
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            Box::new(|i| {
                let value = values.value(i);
                format_interval(value.months, value.days, i128::from(value.nanoseconds))
            })
        }
        _ => return None,
    })
}

/// Formats nanoseconds as days and a time, both with the sign: `4951d 03:00`, `-1d -00:00:01.5`.
fn format_duration(nanoseconds: i128) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let (days, rest) = (nanoseconds.abs() / DAY, nanoseconds.abs() % DAY);
    match (days, rest) {
        (0, rest) => format!("{sign}{}", format_clock(rest)),
        (days, 0) => format!("{sign}{days}d"),
        (days, rest) => format!("{sign}{days}d {sign}{}", format_clock(rest)),
    }
}

/// Formats nanoseconds, 0 or more, as `03:00`, or as `03:00:01.5` if the seconds are not zero.
fn format_clock(nanoseconds: i128) -> String {
    let (seconds, fraction) = (nanoseconds / SECOND, nanoseconds % SECOND);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{hours:02}:{minutes:02}");
    if seconds > 0 || fraction > 0 {
        text.push_str(&format!(":{seconds:02}"));
    }
    if fraction > 0 {
        text.push_str(format!(".{fraction:09}").trim_end_matches('0'));
    }
    text
}

/// Parses the strings of [`format_duration`] and returns their nanoseconds. Returns `None` for
/// other strings.
pub(crate) fn parse_duration(text: &str) -> Option<i128> {
    let (days, clock) = match text.split_once('d') {
        Some((days, "")) => (days, None),
        Some((days, clock)) => (days, Some(clock.strip_prefix(' ')?)),
        None => ("0", Some(text)),
    };
    let nanoseconds = match clock {
        Some(clock) => parse_clock(clock)?,
        None => 0,
    };
    days.parse::<i128>().ok()?.checked_mul(DAY)?.checked_add(nanoseconds)
}

/// Parses `03:00`, `03:00:01.5`, or either with a minus sign.
fn parse_clock(text: &str) -> Option<i128> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    if !(1..=9).contains(&fraction.len()) {
        return None;
    }
    let fraction = format!("{fraction:0<9}");
    let [hours, minutes, seconds, fraction] =
        [hours, minutes, seconds, fraction.as_str()].map(parse_digits);
    Some(sign * ((hours? * 3600 + minutes? * 60 + seconds?) * SECOND + fraction?))
}

fn parse_digits(text: &str) -> Option<i128> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse::<u32>().ok().filter(|_| is_number).map(i128::from)
}

/// Formats the parts of an interval, each with its own sign: `1y 2mo 3d 04:00`.
fn format_interval(months: i32, days: i32, nanoseconds: i128) -> String {
    let mut parts = Vec::new();
    for (number, unit) in [(months / 12, "y"), (months % 12, "mo"), (days, "d")] {
        if number != 0 {
            parts.push(format!("{number}{unit}"));
        }
    }
    if nanoseconds != 0 || parts.is_empty() {
        let sign = if nanoseconds < 0 { "-" } else { "" };
        parts.push(format!("{sign}{}", format_clock(nanoseconds.abs())));
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use arrow::array::{DurationMicrosecondArray, Int8Array, Int32Array, ListArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn durations_have_days_and_a_time() {
        let hour = 3600 * SECOND;
        for (nanoseconds, shown) in [
            (0, "00:00"),
            (4951 * DAY, "4951d"),
            (4951 * DAY + 3 * hour, "4951d 03:00"),
            (-(DAY + 2 * hour), "-1d -02:00"),
            (-hour / 2, "-00:30"),
            (5 * SECOND, "00:00:05"),
            (DAY + SECOND + 250_000_000, "1d 00:00:01.25"),
            (1, "00:00:00.000000001"),
        ] {
            assert_eq!(format_duration(nanoseconds), shown);
            assert_eq!(parse_duration(shown), Some(nanoseconds));
        }
        let least = i128::from(i64::MIN) * SECOND;
        assert_eq!(format_duration(least), "-106751991167300d -15:30:08");
        assert_eq!(parse_duration("-106751991167300d -15:30:08"), Some(least));
        for text in
            ["", "d", "1", "1d03:00", "1d ", "1 d", "03", "03:", "3:x", "00:00:00.", "1d 2d"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        assert_eq!(parse_duration("00:00:00.0000000001"), None);
    }

    #[test]
    fn intervals_have_their_parts() {
        assert_eq!(format_interval(14, 3, 4 * 3600 * SECOND), "1y 2mo 3d 04:00");
        assert_eq!(format_interval(0, 0, 0), "00:00");
        assert_eq!(format_interval(-1, 2, -60 * SECOND), "-1mo 2d -00:01");
        assert_eq!(format_interval(0, 0, 50 * 3600 * SECOND), "50:00");
    }

    #[test]
    fn structs_name_their_fields() {
        let lists = [Some(vec![Some(1), None]), None, Some(vec![])];
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
        let nested: ArrayRef = Arc::new(StructArray::from(vec![(
            Arc::new(Field::new("b", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![None, Some(2), Some(3)])) as ArrayRef,
        )]));
        let fields = vec![
            Arc::new(Field::new("it's", lists.data_type().clone(), true)),
            Arc::new(Field::new("s", nested.data_type().clone(), true)),
        ];
        let nulls = vec![true, true, false].into();
        let columns: Vec<ArrayRef> = vec![Arc::new(lists), nested];
        let structs: ArrayRef = Arc::new(StructArray::new(fields.into(), columns, Some(nulls)));
        let texts = write_spans(&structs).unwrap();
        assert_eq!(
            texts.as_string::<i32>().iter().collect::<Vec<_>>(),
            [
                Some("{'it''s': [1, NULL], 's': {'b': NULL}}"),
                Some("{'it''s': NULL, 's': {'b': 2}}"),
                None
            ]
        );
        let sliced = write_spans(&structs.slice(1, 1)).unwrap();
        assert_eq!(sliced.as_string::<i32>().value(0), "{'it''s': NULL, 's': {'b': 2}}");
    }

    #[test]
    fn units_of_arrays_count() {
        let array = DurationMicrosecondArray::from(vec![90_000_000]);
        assert_eq!(make_span_formatter(&array).map(|f| f(0)).as_deref(), Some("00:01:30"));
        assert!(make_span_formatter(&Int8Array::from(vec![1])).is_none());
    }
}
