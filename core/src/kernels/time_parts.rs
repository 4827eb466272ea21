//! Parts of dates and timestamps without a time zone, such as the year, by integer arithmetic that
//! compilers turn into few instructions per value.

use arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Int64Type, TimeUnit};

use crate::error::Result;

/// A part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePart {
    /// The year of the proleptic Gregorian calendar; 0 is the year before year 1.
    Year,
    /// From 1 to 4.
    Quarter,
    /// From 1 to 12.
    Month,
    /// The ISO week, from 1 to 53.
    Week,
    /// The day of the month.
    Day,
    /// The day of the year, from 1.
    DayOfYear,
    /// The day of the week, from 0 for Sunday to 6.
    Weekday,
    /// The day of the week, from 1 for Monday to 7.
    IsoWeekday,
    /// From 0 to 23.
    Hour,
    /// From 0 to 59.
    Minute,
    /// From 0 to 59.
    Second,
}

/// The greatest distance from 1970 in days, about 246,000 years. Arrow returns null for times beyond
/// the range of `chrono`, which is a little larger, so distant times are left to Arrow.
const MAX_DAYS: i64 = 90_000_000;
/// Days from 0000-03-01, the start of a cycle of 400 years, to 1970-01-01.
const DAYS_BEFORE_1970: i32 = 719_468;
const CYCLE_DAYS: i32 = 146_097;
const SECONDS_PER_DAY: i64 = 86_400;

/// Returns a part of every time. Returns `None` for other types, for timestamps with a time zone,
/// and if a time is further from 1970 than about 246,000 years. Nulls stay null.
///
/// # Errors
/// When Arrow cannot cast the times to integers, which does not occur for the types above.
pub fn extract_time_part(times: &ArrayRef, part: TimePart) -> Result<Option<Int32Array>> {
    let parts = match times.data_type() {
        DataType::Date32 => {
            let days = times.as_primitive::<Date32Type>().values();
            compute_parts_of_ticks::<1, 0>(days.iter().map(|day| i64::from(*day)), part)
        }
        DataType::Timestamp(unit, None) => {
            let ticks = cast(times, &DataType::Int64)?;
            let ticks = ticks.as_primitive::<Int64Type>().values().iter().copied();
            // The lengths are constants, because a division by a constant is several times as fast.
            const MILLI: i64 = 1_000;
            const MICRO: i64 = 1_000_000;
            const NANO: i64 = 1_000_000_000;
            match unit {
                TimeUnit::Second => compute_parts_of_ticks::<SECONDS_PER_DAY, 1>(ticks, part),
                TimeUnit::Millisecond => {
                    compute_parts_of_ticks::<{ SECONDS_PER_DAY * MILLI }, MILLI>(ticks, part)
                }
                TimeUnit::Microsecond => {
                    compute_parts_of_ticks::<{ SECONDS_PER_DAY * MICRO }, MICRO>(ticks, part)
                }
                TimeUnit::Nanosecond => {
                    compute_parts_of_ticks::<{ SECONDS_PER_DAY * NANO }, NANO>(ticks, part)
                }
            }
        }
        _ => None,
    };
    let Some(parts) = parts else { return Ok(None) };
    Ok(Some(Int32Array::try_new(parts.into(), times.nulls().cloned())?))
}

/// Returns a part of times. `DAY` and `SECOND` are the numbers of ticks in a day and in a second;
/// `SECOND` is 0 if a tick is a day. Returns `None` if a time is out of range.
fn compute_parts_of_ticks<const DAY: i64, const SECOND: i64>(
    ticks: impl Iterator<Item = i64> + Clone,
    part: TimePart,
) -> Option<Vec<i32>> {
    let (least, greatest) =
        ticks.clone().fold((0, 0), |(least, greatest), t| (t.min(least), t.max(greatest)));
    if least.div_euclid(DAY) < -MAX_DAYS || greatest.div_euclid(DAY) > MAX_DAYS {
        return None;
    }
    let days = ticks.clone().map(|t| narrow(t.div_euclid(DAY)));
    let seconds = ticks.map(|t| match SECOND {
        0 => 0,
        _ => narrow(t.rem_euclid(DAY) / SECOND.max(1)),
    });
    Some(match part {
        TimePart::Year => days.map(|day| compute_date_of_day(day).0).collect(),
        TimePart::Quarter => days.map(|day| (compute_date_of_day(day).1 + 2) / 3).collect(),
        TimePart::Month => days.map(|day| compute_date_of_day(day).1).collect(),
        TimePart::Day => days.map(|day| compute_date_of_day(day).2).collect(),
        TimePart::Week => days.map(compute_week_of_day).collect(),
        TimePart::DayOfYear => days
            .map(|day| day - compute_first_day_of_year(compute_date_of_day(day).0) + 1)
            .collect(),
        // 1970-01-01 was a Thursday.
        TimePart::Weekday => days.map(|day| (day + 4).rem_euclid(7)).collect(),
        TimePart::IsoWeekday => days.map(|day| (day + 3).rem_euclid(7) + 1).collect(),
        TimePart::Hour => seconds.map(|second| second / 3600).collect(),
        TimePart::Minute => seconds.map(|second| second / 60 % 60).collect(),
        TimePart::Second => seconds.map(|second| second % 60).collect(),
    })
}

/// Converts a number that 32 bits can hold, because [`MAX_DAYS`] bounds it.
fn narrow(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(0)
}

/// Returns year, month and day of the month of a day after 1970-01-01.
///
/// Years begin in March here, so that the leap day is the last day of a year and months have a
/// linear formula.
fn compute_date_of_day(day: i32) -> (i32, i32, i32) {
    let shifted = day + DAYS_BEFORE_1970;
    let (cycle, of_cycle) = (shifted.div_euclid(CYCLE_DAYS), shifted.rem_euclid(CYCLE_DAYS));
    let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    (cycle * 400 + year + i32::from(month <= 2), month, of_month)
}

/// Returns the first of January of a year, in days after 1970-01-01.
fn compute_first_day_of_year(year: i32) -> i32 {
    let before = year - 1;
    before * 365 + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 719_162
}

/// Returns the ISO week of a day: the week of the year in which its Thursday is.
fn compute_week_of_day(day: i32) -> i32 {
    let thursday = day - (day + 3).rem_euclid(7) + 3;
    (thursday - compute_first_day_of_year(compute_date_of_day(thursday).0)) / 7 + 1
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, Int64Array, TimestampMicrosecondArray};
    use arrow::compute::{DatePart, date_part};
    use proptest::prelude::*;

    use super::*;

    const PARTS: [(TimePart, DatePart); 11] = [
        (TimePart::Year, DatePart::Year),
        (TimePart::Quarter, DatePart::Quarter),
        (TimePart::Month, DatePart::Month),
        (TimePart::Week, DatePart::Week),
        (TimePart::Day, DatePart::Day),
        (TimePart::DayOfYear, DatePart::DayOfYear),
        (TimePart::Weekday, DatePart::DayOfWeekSunday0),
        (TimePart::IsoWeekday, DatePart::DayOfWeekMonday1),
        (TimePart::Hour, DatePart::Hour),
        (TimePart::Minute, DatePart::Minute),
        (TimePart::Second, DatePart::Second),
    ];

    fn check(times: &ArrayRef) {
        for (part, stock) in PARTS {
            let found = extract_time_part(times, part).unwrap().unwrap();
            let expected = date_part(times, stock).unwrap();
            let expected = expected.as_primitive::<arrow::datatypes::Int32Type>();
            assert!(found.iter().eq(expected.iter()), "{part:?} of {times:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_are_those_of_arrow(
            days in prop::collection::vec(-90_000_000i32..90_000_000, 1..40),
            near in prop::collection::vec(-800_000i32..800_000, 1..40),
            second in -86_400i64..86_400,
        ) {
            for days in [days, near] {
                let dates: ArrayRef = Arc::new(Date32Array::from(days.clone()));
                check(&dates);
                let seconds = Int64Array::from_iter(
                    days.iter().map(|d| (d % 3 != 0).then_some(i64::from(*d) * 86_399 + second)),
                );
                for (unit, per) in [
                    (TimeUnit::Second, 1i64),
                    (TimeUnit::Millisecond, 1_000),
                    (TimeUnit::Microsecond, 1_000_000),
                ] {
                    let ticks: Int64Array = seconds.unary(|s| s * per - i64::from(s % 7 == 0));
                    check(&cast(&ticks, &DataType::Timestamp(unit, None)).unwrap());
                }
                let ticks: Int64Array = seconds.unary(|s| s % 9_000_000_000 * 1_000_000_000 - 1);
                check(&cast(&ticks, &DataType::Timestamp(TimeUnit::Nanosecond, None)).unwrap());
            }
        }
    }

    #[test]
    fn other_types_and_distant_times_are_left_out() {
        let year = |times: ArrayRef| extract_time_part(&times, TimePart::Year).unwrap();
        let distant = TimestampMicrosecondArray::from(vec![0, i64::MAX]);
        assert!(year(Arc::new(distant)).is_none());
        assert!(year(Arc::new(TimestampMicrosecondArray::from(vec![i64::MIN]))).is_none());
        assert!(year(Arc::new(Date32Array::from(vec![i32::MIN]))).is_none());
        let zoned = TimestampMicrosecondArray::from(vec![0]).with_timezone("Asia/Tokyo");
        assert!(year(Arc::new(zoned)).is_none());
        assert!(year(Arc::new(Int64Array::from(vec![0]))).is_none());
    }
}
