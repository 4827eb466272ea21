//! Extracts parts, such as the year, of dates and of timestamps without a time zone.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, Int32Array, Int64Array, Scalar};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{cast, is_not_null};
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
    /// The day of the week, from 0 for Sunday to 6 for Saturday.
    Weekday,
    /// The day of the week, from 1 for Monday to 7 for Sunday.
    IsoWeekday,
    /// From 0 to 23.
    Hour,
    /// From 0 to 59.
    Minute,
    /// From 0 to 59.
    Second,
    /// The last day of the month, in days since 1970-01-01.
    MonthEnd,
}

/// Maximum distance of a time from 1970 in days, about 246,000 years. Callers leave more distant
/// times to Arrow, which returns null outside the slightly larger range of `chrono`.
const MAX_DAYS: i64 = 90_000_000;
/// Days from 0000-03-01, the start of a cycle of 400 years, to 1970-01-01.
const DAYS_BEFORE_1970: i32 = 719_468;
const CYCLE_DAYS: i32 = 146_097;
/// Number of 400-year cycles whose days are added to a day, so that all days within [`MAX_DAYS`]
/// become positive.
const SHIFT_CYCLES: i32 = 700;
const SECONDS_PER_DAY: i64 = 86_400;

/// Returns a part of every date (`Date32`) or of every timestamp without a time zone; nulls stay
/// null. Returns `None` instead of an array for other types, and if any of the times is more than
/// about 246,000 years from 1970.
///
/// # Errors
/// If Arrow cannot cast the times to integers, which does not occur for the types above.
pub fn extract_time_part(times: &ArrayRef, part: TimePart) -> Result<Option<Int32Array>> {
    let mut parts = compute_parts(times, part)?;
    if parts.is_none() && times.null_count() > 0 {
        parts = compute_parts(&clear_null_slots(times)?, part)?;
    }
    let Some(parts) = parts else { return Ok(None) };
    Ok(Some(Int32Array::try_new(parts.into(), times.nulls().cloned())?))
}

/// Replaces the values of null slots, which may be any number, by 1970-01-01.
fn clear_null_slots(times: &ArrayRef) -> Result<ArrayRef> {
    let start: ArrayRef = match times.data_type() {
        DataType::Date32 => Arc::new(Date32Array::from(vec![0])),
        DataType::Timestamp(..) => cast(&Int64Array::from(vec![0]), times.data_type())?,
        _ => return Ok(times.clone()),
    };
    Ok(zip(&is_not_null(times)?, times, &Scalar::new(start))?)
}

fn compute_parts(times: &ArrayRef, part: TimePart) -> Result<Option<Vec<i32>>> {
    Ok(match times.data_type() {
        DataType::Date32 => {
            let days = times.as_primitive::<Date32Type>().values();
            compute_parts_of_ticks::<1, 0>(days.iter().map(|day| i64::from(*day)), part)
        }
        DataType::Timestamp(unit, None) => {
            let ticks = cast(times, &DataType::Int64)?;
            let ticks = ticks.as_primitive::<Int64Type>().values().iter().copied();
            // Pass the ticks of a day and of a second as const generics, because a division by a
            // constant is several times as fast.
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
    })
}

/// Computes a part of each time. `DAY` is the number of ticks in a day, `SECOND` in a second (0 if
/// a tick is a day). Returns `None` if any time is more than [`MAX_DAYS`] from 1970.
fn compute_parts_of_ticks<const DAY: i64, const SECOND: i64>(
    ticks: impl Iterator<Item = i64> + Clone,
    part: TimePart,
) -> Option<Vec<i32>> {
    let (least, greatest) =
        ticks.clone().fold((0, 0), |(least, greatest), t| (t.min(least), t.max(greatest)));
    if least.div_euclid(DAY) < -MAX_DAYS || greatest.div_euclid(DAY) > MAX_DAYS {
        return None;
    }
    // Add `shift` days to make every tick positive, because unsigned division is faster than
    // `div_euclid`.
    let shift = MAX_DAYS.min(i64::MAX / DAY) + 1;
    let from_shift =
        move |t: i64| t.cast_unsigned().wrapping_add(shift.cast_unsigned() * DAY.cast_unsigned());
    let days = ticks
        .clone()
        .map(move |t| narrow_number((from_shift(t) / DAY.cast_unsigned()).cast_signed() - shift));
    let seconds = ticks.map(move |t| match SECOND {
        0 => 0,
        _ => narrow_number((from_shift(t) % DAY.cast_unsigned()).cast_signed() / SECOND.max(1)),
    });
    Some(match part {
        TimePart::Year => days.map(|day| compute_date(day).year).collect(),
        TimePart::Quarter => days.map(|day| (compute_date(day).month + 2) / 3).collect(),
        TimePart::Month => days.map(|day| compute_date(day).month).collect(),
        TimePart::Day => days.map(|day| compute_date(day).day_of_month).collect(),
        TimePart::Week => days.map(compute_week).collect(),
        TimePart::DayOfYear => days.map(|day| compute_date(day).day_of_year).collect(),
        // Day 0 is a Thursday: day 4 of a week from Sunday, day 3 of a week from Monday.
        TimePart::Weekday => days.map(|day| (day + 4).rem_euclid(7)).collect(),
        TimePart::IsoWeekday => days.map(|day| (day + 3).rem_euclid(7) + 1).collect(),
        TimePart::Hour => seconds.map(|second| second / 3600).collect(),
        TimePart::Minute => seconds.map(|second| second / 60 % 60).collect(),
        TimePart::Second => seconds.map(|second| second % 60).collect(),
        TimePart::MonthEnd => days.map(compute_month_end).collect(),
    })
}

#[expect(clippy::cast_possible_truncation, reason = "the number is within MAX_DAYS")]
fn narrow_number(number: i64) -> i32 {
    number as i32
}

/// A date of the proleptic Gregorian calendar. Months and days begin with 1.
struct CivilDate {
    year: i32,
    month: i32,
    day_of_month: i32,
    day_of_year: i32,
}

/// Returns the date `day` days after 1970-01-01. `|day|` is at most [`MAX_DAYS`]. Years begin in
/// March here, so that the leap day is the last day, and a linear formula gives the month. Neri and
/// Schneider, "Euclidean affine functions and their application to calendar algorithms" (2022),
/// prove the constants, which replace divisions by multiplications (1.9 ns instead of 8.6 ns).
#[inline]
fn compute_date(day: i32) -> CivilDate {
    let shifted = (day + DAYS_BEFORE_1970 + SHIFT_CYCLES * CYCLE_DAYS).cast_unsigned();
    let quarters = 4 * shifted + 3;
    let century = quarters / 146_097;
    let day_of_century = quarters % 146_097 / 4;
    let scaled = 2_939_745 * u64::from(4 * day_of_century + 3);
    // The upper half of `scaled` is the year; the lower half is the part of this year that has
    // passed, as a fraction of 2^32.
    let (year_of_century, fraction) = ((scaled >> 32) as u32, (scaled & 0xffff_ffff) as u32);
    let day_from_march = fraction / 2_939_745 / 4;
    let scaled = 2141 * day_from_march + 197_913;
    let (month, day_of_month) = (scaled >> 16, (scaled & 0xffff) / 2141 + 1);
    let is_next_year = day_from_march >= 306;
    let is_leap =
        year_of_century.is_multiple_of(4) && (year_of_century != 0 || century.is_multiple_of(4));
    let year = (100 * century + year_of_century).cast_signed() - 400 * SHIFT_CYCLES;
    let (month, day_of_year) = if is_next_year {
        (month - 12, day_from_march - 305)
    } else {
        (month, day_from_march + 60 + u32::from(is_leap))
    };
    CivilDate {
        year: year + i32::from(is_next_year),
        month: month.cast_signed(),
        day_of_month: day_of_month.cast_signed(),
        day_of_year: day_of_year.cast_signed(),
    }
}

/// Returns the number of the ISO week of the date `day` days after 1970-01-01. A week belongs to
/// the year of its Thursday.
fn compute_week(day: i32) -> i32 {
    let thursday = day - (day + 3).rem_euclid(7) + 3;
    (compute_date(thursday).day_of_year - 1) / 7 + 1
}

/// Returns the last day of the month of the date `day` days after 1970-01-01.
fn compute_month_end(day: i32) -> i32 {
    let date = compute_date(day);
    let is_leap = date.year % 4 == 0 && (date.year % 100 != 0 || date.year % 400 == 0);
    let days_of_month = match date.month {
        2 => 28 + i32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    day - date.day_of_month + days_of_month
}

#[cfg(test)]
mod tests {
    use arrow::array::TimestampMicrosecondArray;
    use arrow::buffer::NullBuffer;
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

    proptest! {
        #[test]
        fn month_ends_are_the_days_before_the_next_month(day in -90_000_000i32..89_999_900) {
            let end = compute_month_end(day);
            prop_assert!((day..day + 31).contains(&end));
            prop_assert_eq!(compute_date(end).month, compute_date(day).month);
            prop_assert_eq!(compute_date(end + 1).day_of_month, 1);
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

    #[test]
    fn values_of_null_slots_are_not_read() {
        let nulls = Some(NullBuffer::from(vec![true, false]));
        let times = TimestampMicrosecondArray::new(vec![0, i64::MAX].into(), nulls.clone());
        let years = extract_time_part(&(Arc::new(times) as ArrayRef), TimePart::Year).unwrap();
        assert_eq!(years, Some(Int32Array::from(vec![Some(1970), None])));
        let dates = Date32Array::new(vec![0, i32::MIN].into(), nulls);
        let years = extract_time_part(&(Arc::new(dates) as ArrayRef), TimePart::Year).unwrap();
        assert_eq!(years, Some(Int32Array::from(vec![Some(1970), None])));
    }
}
