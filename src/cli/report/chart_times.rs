//! Finds the column with the times of a chart, and formats times as text.

use arrow::temporal_conversions::timestamp_us_to_datetime;

use super::profile::{ColumnProfile, TableProfile, ValueKind};

/// Unit of the values of a column of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeScale {
    /// Microseconds since 1970.
    Microseconds,
    /// Numbers of an unknown unit.
    Number,
}

const DAY: f64 = 86_400e6;

impl TimeScale {
    pub(super) fn from_kind(kind: ValueKind) -> Option<Self> {
        match kind {
            ValueKind::Time => Some(Self::Microseconds),
            ValueKind::Integer | ValueKind::Float => Some(Self::Number),
            _ => None,
        }
    }

    /// Formats the time `at` as a label of a time axis that is `span` long, in the unit of `self`.
    /// The label has the minute if `span` is below 3 days, and only the year if it is above 8
    /// years.
    pub(super) fn format_at(self, at: f64, span: f64) -> String {
        match self {
            Self::Microseconds if span < 3.0 * DAY => format_time(at, "%Y-%m-%d %H:%M"),
            Self::Microseconds if span < 400.0 * DAY => format_time(at, "%Y-%m-%d"),
            Self::Microseconds if span < 8.0 * 366.0 * DAY => format_time(at, "%Y-%m"),
            Self::Microseconds => format_time(at, "%Y"),
            Self::Number => format_number(at),
        }
    }

    /// Formats a time to the second, such as `2010-03-04 12:33:20`, or as `2010-03-04` at midnight.
    /// Formats a number of an unknown unit in full if it is an integer.
    pub(super) fn format_exact(self, at: f64) -> String {
        match self {
            Self::Microseconds => {
                let text = format_time(at, "%Y-%m-%d %H:%M:%S");
                text.strip_suffix(" 00:00:00").map(str::to_owned).unwrap_or(text)
            }
            Self::Number if at.fract() == 0.0 && at.abs() < 1e16 => format!("{at:.0}"),
            Self::Number => format_number(at),
        }
    }
}

/// Returns the column with the times of the elements of axis `below`: a column named `time` if it
/// has times or numbers, else the first column of times. Only columns on axis `below` or an outer
/// axis are considered. Returns `None` if there is no such column.
pub(super) fn choose_time(profile: &TableProfile, below: usize) -> Option<&ColumnProfile> {
    let columns = || profile.columns.iter().filter(|c| c.axis <= below && c.sketch.count() > 0);
    let named = || columns().filter(|c| c.name == "time" && TimeScale::from_kind(c.kind).is_some());
    let times = || columns().filter(|c| c.kind == ValueKind::Time);
    // Elements of deeper axes do not use a column of times on axis 0, unless its name is `time`:
    // such a column may be the date of birth of the subject, not the time of an event.
    let found = named().next().or_else(|| times().find(|c| c.axis > 0));
    found.or_else(|| times().find(|c| below == c.axis))
}

fn format_time(at: f64, format: &str) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "out of range saturates")]
    let micros = at as i64;
    match timestamp_us_to_datetime(micros) {
        Some(time) => time.format(format).to_string(),
        None => format_number(at),
    }
}

/// Formats a number with at most four significant digits, or an integer below a million in full.
pub(super) fn format_number(number: f64) -> String {
    if !number.is_finite() {
        return number.to_string();
    }
    let size = number.abs();
    let text = if number.fract() == 0.0 && size < 1e6 {
        format!("{number:.0}")
    } else if (1e-3..1e6).contains(&size) {
        let digits = [1.0, 10.0, 100.0, 1000.0].iter().filter(|bound| size >= **bound).count();
        let text = format!("{number:.*}", 4usize.saturating_sub(digits));
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    } else {
        format!("{number:.3e}")
    };
    if text == "-0" { "0".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (12.0, "12"),
            (123_456.0, "123456"),
            (0.5, "0.5"),
            (-3.15159, "-3.152"),
            (98.6, "98.6"),
            (12_345.678, "12346"),
            (1e9, "1.000e9"),
            (0.000_012, "1.200e-5"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ];
        for (number, text) in cases {
            assert_eq!(format_number(number), text);
        }
    }

    #[test]
    fn times_are_as_precise_as_their_axis() {
        let at = 1_267_706_000e6;
        let of = |days: f64| TimeScale::Microseconds.format_at(at, days * DAY);
        assert_eq!(of(1.0), "2010-03-04 12:33");
        assert_eq!(of(30.0), "2010-03-04");
        assert_eq!(of(3000.0), "2010");
        assert_eq!(TimeScale::Microseconds.format_exact(at), "2010-03-04 12:33:20");
        assert_eq!(TimeScale::Microseconds.format_exact(0.0), "1970-01-01");
        assert_eq!(TimeScale::Microseconds.format_exact(1e300), "1.000e300");
        assert_eq!(TimeScale::Number.format_at(17.0, 1.0), "17");
        assert_eq!(TimeScale::Number.format_exact(980_000_000_000_001.0), "980000000000001");
    }
}
