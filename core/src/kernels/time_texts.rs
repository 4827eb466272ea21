//! Rewrites dates and times in formats that DuckDB parses, but Arrow does not, to a format that
//! Arrow parses.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericStringArray, OffsetSizeTrait,
    StringViewArray, make_array,
};
use arrow::datatypes::DataType;
use chrono::{Datelike, NaiveDateTime, TimeDelta};

use super::times::EXACT_SECONDS;
use super::zones::find_instant;
use crate::error::Result;

/// Returns whether the values of a type, or the elements of its lists, are strings.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::DataType;
/// use serrate::internal::times::has_texts;
/// assert!(has_texts(&DataType::new_list(DataType::Utf8, true)) && !has_texts(&DataType::Int64));
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn has_texts(t: &DataType) -> bool {
    match t {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            has_texts(field.data_type())
        }
        DataType::Dictionary(_, values) => has_texts(values),
        t => t.is_string(),
    }
}

/// Rewrites each date or time that DuckDB parses, but Arrow does not, to a format that Arrow parses
/// (see [`complete_time`]). Other strings and nulls stay unchanged; lists keep their lengths.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, AsArray, StringArray};
/// use serrate::internal::times::complete_times;
/// let strings: ArrayRef = Arc::new(StringArray::from(vec!["2024-01-01 10:00", "noon"]));
/// let complete = complete_times(&strings)?;
/// assert_eq!(complete.as_string::<i32>().value(0), "2024-01-01T10:00:00");
/// assert_eq!(complete.as_string::<i32>().value(1), "noon");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If a list array cannot be built from the rewritten strings.
pub fn complete_times(texts: &ArrayRef) -> Result<ArrayRef> {
    Ok(match texts.data_type() {
        DataType::Utf8 => complete_strings::<i32>(texts),
        DataType::LargeUtf8 => complete_strings::<i64>(texts),
        DataType::Utf8View => {
            let views = texts.as_string_view();
            if !views.iter().flatten().any(|text| complete_time(text).is_some()) {
                return Ok(Arc::clone(texts));
            }
            let complete = views.iter().map(|text| text.map(complete_or_same));
            Arc::new(StringViewArray::from_iter(complete))
        }
        DataType::Dictionary(..) => {
            let dictionary = texts.as_any_dictionary();
            dictionary.with_values(complete_times(dictionary.values())?)
        }
        DataType::List(_) => complete_lists::<i32>(texts)?,
        DataType::LargeList(_) => complete_lists::<i64>(texts)?,
        DataType::FixedSizeList(field, size) => {
            let lists = texts.as_fixed_size_list();
            let values = complete_times(lists.values())?;
            let nulls = lists.nulls().cloned();
            Arc::new(FixedSizeListArray::try_new(Arc::clone(field), *size, values, nulls)?)
        }
        _ => Arc::clone(texts),
    })
}

fn complete_strings<O: OffsetSizeTrait>(texts: &ArrayRef) -> ArrayRef {
    let strings = texts.as_string::<O>();
    if !strings.iter().flatten().any(|text| complete_time(text).is_some()) {
        return Arc::clone(texts);
    }
    let complete = strings.iter().map(|text| text.map(complete_or_same));
    Arc::new(GenericStringArray::<O>::from_iter(complete))
}

/// Rewrites strings with [`complete_times`] if `to` is a date, a timestamp or [`EXACT_SECONDS`].
pub(super) fn complete_texts(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    use DataType::{Date32, Date64, Timestamp};
    let is_time = matches!(to, Timestamp(..) | Date32 | Date64) || *to == EXACT_SECONDS;
    if is_time && has_texts(values.data_type()) {
        return complete_times(values);
    }
    Ok(Arc::clone(values))
}

fn complete_or_same(text: &str) -> String {
    complete_time(text).unwrap_or_else(|| text.to_owned())
}

fn complete_lists<O: OffsetSizeTrait>(lists: &ArrayRef) -> Result<ArrayRef> {
    let lists = lists.as_list::<O>();
    let values = complete_times(lists.values())?;
    let data = lists.to_data().into_builder().child_data(vec![values.to_data()]).build()?;
    Ok(make_array(data))
}

/// Returns a date or time in the format that Arrow parses, such as `2024-01-01T10:00:00+02:00`.
/// Returns `None` if Arrow can parse `text` unchanged, or if `text` is not a date or time.
///
/// `text` may lack the seconds, and may have one digit for a month, day or hour, `/` instead of
/// `-`, several blanks before the time, and blanks at both ends. The leap second `23:59:60` is the
/// first second of the next day, as in PostgreSQL; Arrow reads it as `23:59:59` if the unit is
/// seconds. The time zone is `Z`, `UTC`, an offset such as `+02`, or a name such as
/// `Europe/Berlin`. With a name, the result is in UTC, because Arrow rejects local times that
/// clocks skip or repeat.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::internal::times::complete_time;
/// assert_eq!(complete_time(" 2024/1/5 9:30+02").as_deref(), Some("2024-01-05T09:30:00+02:00"));
/// assert_eq!(complete_time("2024-01-05"), None);
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn complete_time(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_usual = match bytes.len() {
        10 => bytes[4] == b'-' && bytes[7] == b'-',
        19.. => {
            let is_separated =
                bytes[4] == b'-' && bytes[7] == b'-' && bytes[13] == b':' && bytes[16] == b':';
            is_separated && !bytes[17..].starts_with(b"60")
        }
        _ => false,
    };
    let may_name_zone = matches!(bytes, [.., before, last] if before.is_ascii_alphabetic() && last.is_ascii_alphabetic());
    if is_usual && !may_name_zone || bytes.len() > MAX_TEXT_BYTES {
        return None;
    }
    let mut rest = TimeParser { rest: text.trim_matches(' ') };
    let year = rest.take_digits(4, 4)?;
    let separator = rest.read_one_of(&['-', '/'])?;
    let month = rest.take_digits(1, 2)?;
    rest.read_one_of(&[separator])?;
    let day = rest.take_digits(1, 2)?;
    let mut complete = format!("{year}-{month:0>2}-{day:0>2}");
    if !rest.is_empty() {
        rest.separate_time()?;
        let hour = rest.take_digits(1, 2)?;
        rest.read_one_of(&[':'])?;
        let minute = rest.take_digits(2, 2)?;
        complete.push_str(&format!("T{hour:0>2}:{minute}:"));
        match rest.read_one_of(&[':']) {
            Some(_) => {
                let seconds = rest.take_digits(2, 2)?;
                complete.push_str(seconds);
                if rest.read_one_of(&['.']).is_some() {
                    complete.push('.');
                    complete.push_str(rest.take_digits(1, 9)?);
                }
                if seconds == "60" {
                    complete = carry_leap_second(&complete)?;
                }
            }
            None => complete.push_str("00"),
        }
        if let Some(zone) = rest.take_zone_name() {
            return convert_to_utc(&complete, zone);
        }
        complete.push_str(&rest.take_zone()?);
    }
    (rest.is_empty() && complete != text).then_some(complete)
}

/// Returns the time one second after `time`, such as `2016-12-31T23:59:60.5`, with 59 in place of
/// 60 seconds. Returns `None` if `time` is not a time, and for the last second of the year 9999.
fn carry_leap_second(time: &str) -> Option<String> {
    let before = format!("{}:59{}", time.get(..16)?, time.get(19..)?);
    let before = NaiveDateTime::parse_from_str(&before, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    let time = before.checked_add_signed(TimeDelta::seconds(1))?;
    (0..=9999).contains(&time.year()).then(|| format!("{time:?}"))
}

/// Returns the UTC time at which the local time in a zone is `local`; `None` if `local` is not a
/// date with a time, the zone is unknown, or the year of the UTC time is not 0 to 9999.
fn convert_to_utc(local: &str, zone: &str) -> Option<String> {
    let local = NaiveDateTime::parse_from_str(local, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    let instant = find_instant(local, zone.parse::<Tz>().ok()?)?;
    (0..=9999).contains(&instant.year()).then(|| format!("{instant:?}Z"))
}

const MAX_TEXT_BYTES: usize = 64;

struct TimeParser<'a> {
    rest: &'a str,
}

impl<'a> TimeParser<'a> {
    fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes the leading digits. Returns `None` if there are fewer than `least` or more than
    /// `most`.
    fn take_digits(&mut self, least: usize, most: usize) -> Option<&'a str> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        if !(least..=most).contains(&end) {
            return None;
        }
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(digits)
    }

    fn read_one_of(&mut self, expected: &[char]) -> Option<char> {
        let first = self.rest.chars().next().filter(|c| expected.contains(c))?;
        self.rest = &self.rest[first.len_utf8()..];
        Some(first)
    }

    /// Skips the `T` or the blanks between a date and a time; `None` if `rest` begins with neither.
    fn separate_time(&mut self) -> Option<()> {
        self.read_one_of(&['T', 't', ' '])?;
        self.rest = self.rest.trim_start_matches(' ');
        Some(())
    }

    /// Takes the rest of the string as the name of a time zone. Returns `None` if the rest does not
    /// begin with a letter, or is `Z` or `UTC`.
    fn take_zone_name(&mut self) -> Option<&'a str> {
        let name = self.rest.trim_start_matches(' ');
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || is_utc(name) {
            return None;
        }
        self.rest = "";
        Some(name)
    }

    /// Parses an empty rest, `Z`, `UTC` or an offset such as `+02` into Arrow's format (`+02:00`).
    fn take_zone(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start_matches(' ');
        if self.is_empty() {
            return Some(String::new());
        }
        if is_utc(self.rest) {
            self.rest = "";
            return Some("Z".to_owned());
        }
        let sign = self.read_one_of(&['+', '-'])?;
        let digits = self.rest.replacen(':', "", 1);
        self.rest = "";
        let is_offset = matches!(digits.len(), 2 | 4) && digits.bytes().all(|b| b.is_ascii_digit());
        let (hours, minutes) = is_offset.then(|| digits.split_at(2))?;
        Some(format!("{sign}{hours}:{minutes:0<2}"))
    }
}

fn is_utc(zone: &str) -> bool {
    ["z", "utc"].iter().any(|utc| zone.eq_ignore_ascii_case(utc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DictionaryArray, LargeStringArray, ListArray, StringArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Field, Int8Type};

    #[test]
    fn forms_are_completed() {
        for (text, complete) in [
            ("2024-01-01 10:00", "2024-01-01T10:00:00"),
            ("2024-01-01T10:00", "2024-01-01T10:00:00"),
            ("2024-1-1", "2024-01-01"),
            ("2024/01/31", "2024-01-31"),
            (" 2024-01-01 ", "2024-01-01"),
            ("2024-1-1 1:02:03.5", "2024-01-01T01:02:03.5"),
            ("2024-01-01  10:00", "2024-01-01T10:00:00"),
            ("2024-01-01 10:00+02", "2024-01-01T10:00:00+02:00"),
            ("2024-01-01 10:00 -0330", "2024-01-01T10:00:00-03:30"),
            ("2024-01-01 10:00Z", "2024-01-01T10:00:00Z"),
            ("2024-01-01 10:00 UTC", "2024-01-01T10:00:00Z"),
            ("2024-01-01 10:00:00 UTC", "2024-01-01T10:00:00Z"),
            ("2024-01-01 10:00 Europe/Berlin", "2024-01-01T09:00:00Z"),
            ("2024-01-01 10:00:00.25 America/La_Paz", "2024-01-01T14:00:00.250Z"),
            ("2016-12-31 23:59:60", "2017-01-01T00:00:00"),
            ("2016-12-31T23:59:60.25Z", "2017-01-01T00:00:00.250Z"),
            ("2016-12-31 23:59:60 America/La_Paz", "2017-01-01T04:00:00Z"),
            // Clocks skip the first of these two local times, and repeat the second.
            ("2024-03-31 02:30:00 Europe/Berlin", "2024-03-31T01:30:00Z"),
            ("2024-10-27 02:30:00 Europe/Berlin", "2024-10-27T01:30:00Z"),
        ] {
            assert_eq!(complete_time(text).as_deref(), Some(complete), "{text:?}");
        }
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "",
            "2024",
            "2024-01",
            "2024-01-01",
            "2024-01-01 10:00:00",
            "2024-01-01T10:00:00.123456+02:00",
            "2024-01/01",
            "24-01-01",
            "12024-01-01",
            "2024-001-01",
            "2024-01-01 10",
            "2024-01-01 10:0",
            "2024-01-01 10:00:",
            "2024-01-01 10:00:00.",
            "2024-01-01 25:00:60",
            "9999-12-31 23:59:60",
            "2024-01-01 10:00+2",
            "2024-01-01 10:00 +02:00:00",
            "2024-01-01 10:00 +é",
            "2024-01-01 10:00:00 Nowhere/Land",
            "2024-01-01 10:00 AM",
            "0000-01-01 00:00:00 Asia/Tokyo",
            "2024-01-01x",
            "éééééééééé",
            "1",
        ] {
            assert_eq!(complete_time(text), None, "{text:?}");
        }
    }

    #[test]
    fn arrays_of_all_kinds_are_completed() {
        let texts = vec![Some("2024-1-1"), None, Some("x")];
        let complete = vec![Some("2024-01-01"), None, Some("x")];
        let pairs: [(ArrayRef, ArrayRef); 3] = [
            (
                Arc::new(StringArray::from(texts.clone())),
                Arc::new(StringArray::from(complete.clone())),
            ),
            (
                Arc::new(LargeStringArray::from(texts.clone())),
                Arc::new(LargeStringArray::from(complete.clone())),
            ),
            (
                Arc::new(StringViewArray::from(texts.clone())),
                Arc::new(StringViewArray::from(complete.clone())),
            ),
        ];
        for (texts, complete) in pairs {
            assert_eq!(&complete_times(&texts).unwrap(), &complete);
            let field = Arc::new(Field::new("item", texts.data_type().clone(), true));
            let lists = |values: ArrayRef| -> ArrayRef {
                let offsets = OffsetBuffer::from_lengths([1, 2]);
                let lists = ListArray::new(Arc::clone(&field), offsets, values, None);
                Arc::new(lists.slice(1, 1))
            };
            assert_eq!(&complete_times(&lists(texts)).unwrap(), &lists(complete));
        }
        let words: DictionaryArray<Int8Type> = vec!["2024-1-1", "2024-1-1"].into_iter().collect();
        let words: ArrayRef = Arc::new(words);
        let complete = complete_times(&words).unwrap();
        assert_eq!(complete.data_type(), words.data_type());
        let values = Arc::clone(complete.as_any_dictionary().values());
        assert_eq!(values.as_string::<i32>().value(0), "2024-01-01");
    }
}
