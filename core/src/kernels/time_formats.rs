//! Formats timestamps as strings, with the format directives of DuckDB's `strftime`.

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::error::ArrowError;
use chrono::{DateTime, Datelike, NaiveDateTime, Offset, TimeZone, Timelike};

use super::time_parts::{TimePart, extract_time_part};
use super::times::count_nanoseconds;
use crate::error::{Error, Result};

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// Formats timestamps.
///
/// A timestamp with a time zone is formatted as local time in this zone. Nulls stay null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, TimestampSecondArray};
/// use serrate::kernels::time_formats::format_times;
/// let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1_709_600_523]));
/// assert_eq!(format_times(&times, "%Y-%m-%d, %A")?.value(0), "2024-03-05, Tuesday");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// The directives are those of DuckDB: `%Y` `%y` `%G` (year, year of the century, year of the ISO
/// week), `%m` `%d` `%j` (month, day, day of the year), `%w` `%u` (day of the week: 0 is Sunday, 1
/// is Monday), `%V` (ISO week), `%U` `%W` (week of the year if weeks begin on Sunday, on Monday),
/// `%H` `%I` `%p` `%M` `%S` (hour, hour from 1 to 12, AM or PM, minute, second), `%g` `%f` `%n`
/// (milliseconds, microseconds, nanoseconds), `%a` `%A` `%b` `%B` (names of day and month, short
/// and long), `%z` `%Z` (offset, zone), `%x` `%X` `%c` (ISO date, time, both) and `%%`. A hyphen,
/// as in `%-d`, omits leading zeros.
///
/// # Errors
/// For an unknown directive, values that are not timestamps, a time outside the years -262143 to
/// 262142, and strings of more than 2 GiB in total.
pub fn format_times(times: &ArrayRef, format: &str) -> Result<StringArray> {
    let parts = parse_format(format)?;
    let clock = LocalClock::try_new(times)?;
    if let [part] = parts.as_slice()
        && let Some(texts) = clock.name_all(times, part)?
    {
        return Ok(texts);
    }
    clock.format_all(&parts)
}

/// Formats each timestamp with the format of its row; a null format gives null.
///
/// See [`format_times`].
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, StringArray, TimestampSecondArray};
/// use serrate::kernels::time_formats::format_times_each;
/// let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![0, 0]));
/// let strings = format_times_each(&times, &StringArray::from(vec!["%Y", "%H:%M"]))?;
/// assert_eq!(strings.iter().flatten().collect::<Vec<_>>(), ["1970", "00:00"]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`format_times`].
pub fn format_times_each(times: &ArrayRef, formats: &StringArray) -> Result<StringArray> {
    LocalClock::try_new(times)?.format_each(formats)
}

#[derive(Debug, PartialEq, Eq)]
enum FormatPart {
    Text(String),
    /// A number, padded with zeros to this many digits.
    Number(TimeField, usize),
    WeekdayName {
        short: bool,
    },
    MonthName {
        short: bool,
    },
    HalfOfDay,
    Offset,
    Zone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeField {
    Year,
    YearOfCentury,
    IsoYear,
    Month,
    Day,
    DayOfYear,
    /// From 0 for Sunday to 6 for Saturday.
    Weekday,
    /// From 1 for Monday to 7 for Sunday.
    IsoWeekday,
    IsoWeek,
    WeekFromSunday,
    WeekFromMonday,
    Hour,
    HourOfHalf,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

fn parse_format(format: &str) -> Result<Vec<FormatPart>> {
    let (mut parts, mut text) = (Vec::new(), String::new());
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let mut directive = chars.next();
        let unpadded = directive == Some('-');
        if unpadded {
            directive = chars.next();
        }
        let found = parse_directive(format, directive, unpadded)?;
        for part in found {
            match part {
                FormatPart::Text(more) => text.push_str(&more),
                part => {
                    if !text.is_empty() {
                        parts.push(FormatPart::Text(std::mem::take(&mut text)));
                    }
                    parts.push(part);
                }
            }
        }
    }
    if !text.is_empty() {
        parts.push(FormatPart::Text(text));
    }
    Ok(parts)
}

/// Returns the parts that a directive of `format` stands for. `unpadded` is whether it has a `-`
/// after the `%`.
fn parse_directive(
    format: &str,
    directive: Option<char>,
    unpadded: bool,
) -> Result<Vec<FormatPart>> {
    use TimeField as F;
    let number = |field, digits| vec![FormatPart::Number(field, if unpadded { 1 } else { digits })];
    let dash = || FormatPart::Text("-".to_owned());
    let colon = || FormatPart::Text(":".to_owned());
    let date = || {
        let (month, day) = (FormatPart::Number(F::Month, 2), FormatPart::Number(F::Day, 2));
        vec![FormatPart::Number(F::Year, 4), dash(), month, dash(), day]
    };
    let clock = || {
        let (minute, second) = (FormatPart::Number(F::Minute, 2), FormatPart::Number(F::Second, 2));
        vec![FormatPart::Number(F::Hour, 2), colon(), minute, colon(), second]
    };
    Ok(match directive {
        Some('%') => vec![FormatPart::Text("%".to_owned())],
        Some('Y') => number(F::Year, 4),
        Some('y') => number(F::YearOfCentury, 2),
        Some('G') => number(F::IsoYear, 4),
        Some('m') => number(F::Month, 2),
        Some('d') => number(F::Day, 2),
        Some('j') => number(F::DayOfYear, 3),
        Some('w') => number(F::Weekday, 1),
        Some('u') => number(F::IsoWeekday, 1),
        Some('V') => number(F::IsoWeek, 2),
        Some('U') => number(F::WeekFromSunday, 2),
        Some('W') => number(F::WeekFromMonday, 2),
        Some('H') => number(F::Hour, 2),
        Some('I') => number(F::HourOfHalf, 2),
        Some('M') => number(F::Minute, 2),
        Some('S') => number(F::Second, 2),
        Some('g') => number(F::Millisecond, 3),
        Some('f') => number(F::Microsecond, 6),
        Some('n') => number(F::Nanosecond, 9),
        Some('a') => vec![FormatPart::WeekdayName { short: true }],
        Some('A') => vec![FormatPart::WeekdayName { short: false }],
        Some('b' | 'h') => vec![FormatPart::MonthName { short: true }],
        Some('B') => vec![FormatPart::MonthName { short: false }],
        Some('p') => vec![FormatPart::HalfOfDay],
        Some('z') => vec![FormatPart::Offset],
        Some('Z') => vec![FormatPart::Zone],
        Some('x' | 'F') => date(),
        Some('X' | 'T') => clock(),
        Some('c') => {
            let blank = [FormatPart::Text(" ".to_owned())];
            date().into_iter().chain(blank).chain(clock()).collect()
        }
        other => {
            let other = other.map_or(String::new(), String::from);
            return Err(Error::invalid(format!(
                "strftime: the format {format:?} has the unknown directive '%{other}'; use one of %Y %y %G %m %d %j %w %u %V %U %W %H %I %M %S %g %f %n %a %A %b %B %p %z %Z %x %X %c and %%"
            )));
        }
    })
}

struct LocalClock {
    times: Int64Array,
    /// Nanoseconds per unit of `times`, from 1 to 10^9.
    unit: i64,
    zone: Option<(Tz, String)>,
}

impl LocalClock {
    fn try_new(times: &ArrayRef) -> Result<Self> {
        let DataType::Timestamp(unit, zone) = times.data_type() else {
            return Err(Error::type_of(
                "the times to format with strftime",
                "timestamps (cast the values first)",
                times.data_type(),
            ));
        };
        let zone =
            zone.as_deref().map(|zone| Ok::<_, ArrowError>((zone.parse()?, zone.to_owned())));
        Ok(Self {
            times: cast(times, &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
            unit: i64::try_from(count_nanoseconds(*unit)).unwrap_or(NANOSECONDS_PER_SECOND),
            zone: zone.transpose()?,
        })
    }

    /// Returns local time and offset from UTC in seconds; `None` for a null. Returns an error
    /// outside the years of `chrono` (-262143 to 262142).
    fn find_local_time(&self, row: usize) -> Result<Option<(NaiveDateTime, i32)>> {
        if self.times.is_null(row) {
            return Ok(None);
        }
        let tick = self.times.value(row);
        // Divide the 64-bit `tick`: dividing 128-bit nanoseconds would take several times as long.
        let per_second = NANOSECONDS_PER_SECOND / self.unit;
        let fraction = u32::try_from(tick.rem_euclid(per_second) * self.unit).ok();
        let utc = fraction.and_then(|f| DateTime::from_timestamp(tick.div_euclid(per_second), f));
        let utc = utc.map(|utc| utc.naive_utc()).ok_or_else(|| {
            let nanoseconds = i128::from(tick) * i128::from(self.unit);
            Error::invalid(format!("strftime: the time in row {row} ({nanoseconds} nanoseconds since 1970) is outside the years -262143 to 262142; filter the row out"))
        })?;
        Ok(Some(match &self.zone {
            None => (utc, 0),
            Some((zone, _)) => {
                let offset = zone.offset_from_utc_datetime(&utc).fix();
                (utc + offset, offset.local_minus_utc())
            }
        }))
    }

    /// Appends the formatted time of a row to `out`; returns false for a null time. Returns the
    /// errors of [`find_local_time`](Self::find_local_time).
    fn format_row(&self, row: usize, parts: &[FormatPart], out: &mut Vec<u8>) -> Result<bool> {
        let Some((time, offset)) = self.find_local_time(row)? else { return Ok(false) };
        for part in parts {
            match part {
                FormatPart::Text(text) => out.extend_from_slice(text.as_bytes()),
                FormatPart::Number(field, digits) => {
                    write_number(read_field(time, *field), *digits, out)
                }
                FormatPart::WeekdayName { short } => {
                    push_name(WEEKDAYS, time.weekday().num_days_from_monday(), *short, out)
                }
                FormatPart::MonthName { short } => push_name(MONTHS, time.month0(), *short, out),
                FormatPart::HalfOfDay => {
                    out.extend_from_slice(if time.hour() < 12 { b"AM" } else { b"PM" });
                }
                FormatPart::Offset => {
                    let minutes = offset.unsigned_abs() / 60;
                    out.push(if offset < 0 { b'-' } else { b'+' });
                    write_number(i64::from(minutes / 60), 2, out);
                    if minutes % 60 > 0 {
                        out.push(b':');
                        write_number(i64::from(minutes % 60), 2, out);
                    }
                }
                FormatPart::Zone => {
                    let name = self.zone.as_ref().map_or("", |(_, name)| name);
                    out.extend_from_slice(name.as_bytes());
                }
            }
        }
        Ok(true)
    }

    /// Formats times without a zone as the names of their days or months, without their local
    /// times, which takes half the time. Returns `None` for other parts, and for times that
    /// [`extract_time_part`] leaves out.
    fn name_all(&self, times: &ArrayRef, part: &FormatPart) -> Result<Option<StringArray>> {
        let (names, number, short) = match part {
            FormatPart::WeekdayName { short } => (WEEKDAYS, TimePart::IsoWeekday, *short),
            FormatPart::MonthName { short } => (MONTHS, TimePart::Month, *short),
            _ => return Ok(None),
        };
        let Some(numbers) = extract_time_part(times, number)? else { return Ok(None) };
        let mut texts: Vec<u8> = Vec::with_capacity(self.times.len().saturating_mul(8));
        let mut lengths = Vec::with_capacity(self.times.len());
        for (row, number) in numbers.values().iter().enumerate() {
            let start = texts.len();
            if self.times.is_valid(row) {
                // Both numbers begin with 1.
                push_name(names, (number - 1).cast_unsigned(), short, &mut texts);
            }
            lengths.push(texts.len() - start);
        }
        self.build_texts(texts, lengths, self.times.nulls().cloned()).map(Some)
    }

    fn format_all(&self, parts: &[FormatPart]) -> Result<StringArray> {
        let rows = self.times.len();
        let mut texts: Vec<u8> = Vec::with_capacity(rows.saturating_mul(10));
        let mut lengths = Vec::with_capacity(rows);
        for row in 0..rows {
            let start = texts.len();
            self.format_row(row, parts, &mut texts)?;
            lengths.push(texts.len() - start);
        }
        self.build_texts(texts, lengths, self.times.nulls().cloned())
    }

    fn format_each(&self, formats: &StringArray) -> Result<StringArray> {
        let mut texts: Vec<u8> = Vec::new();
        let (mut lengths, mut valid) = (Vec::new(), Vec::new());
        let mut last: Option<(&str, Vec<FormatPart>)> = None;
        for (row, format) in formats.iter().enumerate() {
            let start = texts.len();
            let Some(format) = format else {
                lengths.push(0);
                valid.push(false);
                continue;
            };
            let parts = match last.take() {
                Some((source, parts)) if source == format => parts,
                _ => parse_format(format)?,
            };
            valid.push(self.format_row(row, &parts, &mut texts)?);
            lengths.push(texts.len() - start);
            last = Some((format, parts));
        }
        self.build_texts(texts, lengths, Some(valid.into()))
    }

    fn build_texts(
        &self,
        texts: Vec<u8>,
        lengths: Vec<usize>,
        nulls: Option<NullBuffer>,
    ) -> Result<StringArray> {
        if i32::try_from(texts.len()).is_err() {
            return Err(Error::invalid(format!(
                "strftime: the formatted times of a batch take {} bytes, more than the maximum of 2^31 - 1; use a shorter format or smaller batches",
                texts.len()
            )));
        }
        let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
        Ok(StringArray::try_new(offsets, texts.into(), nulls)?)
    }
}

fn read_field(time: NaiveDateTime, field: TimeField) -> i64 {
    let sunday = || time.weekday().num_days_from_sunday();
    let monday = || time.weekday().num_days_from_monday();
    i64::from(match field {
        TimeField::Year => return time.year().into(),
        TimeField::IsoYear => return time.iso_week().year().into(),
        TimeField::YearOfCentury => return time.year().rem_euclid(100).into(),
        TimeField::Month => time.month(),
        TimeField::Day => time.day(),
        TimeField::DayOfYear => time.ordinal(),
        TimeField::Weekday => sunday(),
        TimeField::IsoWeekday => monday() + 1,
        TimeField::IsoWeek => time.iso_week().week(),
        // Week 1 begins with the first Sunday (or Monday) of the year; the days before are week 0.
        TimeField::WeekFromSunday => (time.ordinal() + 6 - sunday()) / 7,
        TimeField::WeekFromMonday => (time.ordinal() + 6 - monday()) / 7,
        TimeField::Hour => time.hour(),
        TimeField::HourOfHalf => (time.hour() + 11) % 12 + 1,
        TimeField::Minute => time.minute(),
        TimeField::Second => time.second(),
        TimeField::Millisecond => time.nanosecond() / 1_000_000,
        TimeField::Microsecond => time.nanosecond() / 1_000,
        TimeField::Nanosecond => time.nanosecond(),
    })
}

/// Appends a number with at least `digits` digits, without the slower `write!`.
fn write_number(number: i64, digits: usize, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    // A number of 64 bits has at most 20 digits.
    let mut text = [b'0'; 20];
    let (mut rest, mut start) = (number.unsigned_abs(), text.len());
    while rest > 0 && start > 0 {
        start -= 1;
        text[start] += u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    out.extend_from_slice(&text[start.min(text.len().saturating_sub(digits))..]);
}

const WEEKDAYS: &[&str] =
    &["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: &[&str] = &[
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn push_name(names: &[&str], at: u32, short: bool, out: &mut Vec<u8>) {
    let name = usize::try_from(at).ok().and_then(|at| names.get(at)).copied().unwrap_or_default();
    let name = if short { name.get(..3).unwrap_or(name) } else { name };
    out.extend_from_slice(name.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
        TimestampSecondArray,
    };

    use super::*;

    fn format_one(times: ArrayRef, format: &str) -> String {
        let clock = LocalClock::try_new(&times).unwrap();
        clock.format_all(&parse_format(format).unwrap()).unwrap().value(0).to_owned()
    }

    #[test]
    fn directives_are_formatted() {
        let time: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1_709_600_523_045_678]));
        for (format, text) in [
            ("%Y-%m-%d %H:%M:%S.%f", "2024-03-05 01:02:03.045678"),
            ("%x %X|%c", "2024-03-05 01:02:03|2024-03-05 01:02:03"),
            ("%-d.%-m.%y %I%p", "5.3.24 01AM"),
            ("%a %A %b %B %j %w %u", "Tue Tuesday Mar March 065 2 2"),
            ("%G-W%V %U %W", "2024-W10 09 10"),
            ("%g %n %z%Z%%", "045 045678000 +00%"),
            ("", ""),
        ] {
            assert_eq!(format_one(Arc::clone(&time), format), text, "{format}");
        }
        assert!(parse_format("%Q").is_err() && parse_format("%").is_err());
    }

    #[test]
    fn numbers_have_the_digits_of_write() {
        let numbers = [0, 1, 9, 10, 42, 99, 100, 999, 1000, 9999, 10_000, 262_142];
        for number in numbers.into_iter().chain([i64::MAX, i64::MAX / 7]) {
            for digits in [1, 2, 3, 4, 6, 9] {
                let mut found = Vec::new();
                write_number(number, digits, &mut found);
                assert_eq!(String::from_utf8(found).unwrap(), format!("{number:0digits$}"));
                let mut found = Vec::new();
                write_number(-number - 1, digits, &mut found);
                let expected = format!("-{:0digits$}", number.unsigned_abs() + 1);
                assert_eq!(String::from_utf8(found).unwrap(), expected);
            }
        }
    }

    #[test]
    fn all_units_have_the_seconds_before_1970() {
        let times: [(ArrayRef, &str); 5] = [
            (Arc::new(TimestampSecondArray::from(vec![-1])), "1969-12-31 23:59:59.000000000"),
            (Arc::new(TimestampMillisecondArray::from(vec![-1])), "1969-12-31 23:59:59.999000000"),
            (Arc::new(TimestampMicrosecondArray::from(vec![-1])), "1969-12-31 23:59:59.999999000"),
            (Arc::new(TimestampNanosecondArray::from(vec![-1])), "1969-12-31 23:59:59.999999999"),
            (
                Arc::new(TimestampNanosecondArray::from(vec![i64::MIN])),
                "1677-09-21 00:12:43.145224192",
            ),
        ];
        for (times, text) in times {
            assert_eq!(format_one(times, "%x %X.%n"), text);
        }
        let edge =
            |tick: i64| -> ArrayRef { Arc::new(TimestampMicrosecondArray::from(vec![tick])) };
        for tick in [i64::MIN, i64::MAX] {
            let e = LocalClock::try_new(&edge(tick)).unwrap().find_local_time(0).unwrap_err();
            assert!(e.to_string().contains(&format!("{tick}000 nanoseconds")), "{e}");
        }
    }

    #[test]
    fn times_in_zones_are_local() {
        let zone = |zone: &str| -> ArrayRef {
            Arc::new(TimestampSecondArray::from(vec![1_709_600_523]).with_timezone(zone))
        };
        assert_eq!(format_one(zone("Asia/Kolkata"), "%H:%M %z %Z"), "06:32 +05:30 Asia/Kolkata");
        assert_eq!(format_one(zone("-03:00"), "%d %H %z"), "04 22 -03");
    }

    #[test]
    fn years_of_all_lengths() {
        let years = |seconds| -> ArrayRef { Arc::new(TimestampSecondArray::from(vec![seconds])) };
        assert_eq!(format_one(years(-62_167_219_201), "%Y-%m-%d"), "-0001-12-31");
        assert_eq!(format_one(years(253_402_300_800), "%Y"), "10000");
        let clock = LocalClock::try_new(&years(i64::MAX)).unwrap();
        assert!(clock.format_all(&[FormatPart::Number(TimeField::Year, 4)]).is_err());
    }
}
