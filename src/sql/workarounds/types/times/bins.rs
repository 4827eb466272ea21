//! `date_bin` of timestamps with a width and an origin per value.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::error::{DataFusionError, Result};
use serrate_core::internal::times::{NANOSECONDS_PER_DAY, count_nanoseconds};

/// Number of days in 400 years, after which dates and weekdays repeat.
pub(super) const CYCLE_DAYS: i128 = DAYS_PER_CYCLE as i128;
pub(super) const CYCLE_MONTHS: i32 = 4800;
/// 1800-01-01 in days since 1970: the start of a 400-year cycle that nanoseconds can represent
/// completely.
pub(super) const CYCLE_START_DAYS: i128 = -62_091;

/// [`CYCLE_DAYS`] in 64 bits.
const DAYS_PER_CYCLE: i64 = 146_097;
/// Days from 0000-03-01, the start of a cycle of 400 years, to 1970-01-01.
const DAYS_BEFORE_1970: i64 = 719_468;

/// The width of bins, which is greater than 0.
#[derive(Clone, Copy)]
enum BinWidth {
    Months(i32),
    Nanoseconds(i128),
}

/// Returns an error if the width of the bins of `date_bin` is not positive, or has months and also
/// days or hours.
pub(super) fn check_bin_width(width: IntervalMonthDayNano) -> Result<()> {
    BinWidth::from_interval(width).map(|_| ())
}

impl BinWidth {
    fn from_interval(width: IntervalMonthDayNano) -> Result<Self> {
        let length = i128::from(width.days) * NANOSECONDS_PER_DAY + i128::from(width.nanoseconds);
        match (width.months, length) {
            (0, 1..) => Ok(Self::Nanoseconds(length)),
            (1.., 0) => Ok(Self::Months(width.months)),
            (months, length) => {
                let found = format!(
                    "{months} months, {} days and {} seconds",
                    width.days,
                    width.nanoseconds / 1_000_000_000
                );
                if months != 0 && length != 0 {
                    return exec_err!(
                        "date_bin and time_bucket: the width has {found}, but months have different lengths; write a width of months alone, such as INTERVAL '1 month', or one of days and hours, such as INTERVAL '30 days'"
                    );
                }
                exec_err!(
                    "date_bin and time_bucket: the width has {found}, but must be greater than 0; write a width such as INTERVAL '7 days'"
                )
            }
        }
    }

    /// Returns the start of the bin of `time`. Both, and `origin`, are nanoseconds since 1970.
    fn find_bin(self, time: i128, origin: i128) -> i128 {
        match self {
            Self::Months(months) => find_bin_of_months(time, i64::from(months), origin),
            Self::Nanoseconds(length) => origin + round_down(time - origin, length),
        }
    }

    /// Whether bins of this width repeat every 400 years.
    fn is_in_cycle(self) -> bool {
        match self {
            Self::Months(months) => CYCLE_MONTHS % months == 0,
            Self::Nanoseconds(_) => true,
        }
    }
}

/// Returns the start of the bin of each timestamp in `times`, with the width and the origin in the
/// same row. The origin is 1970 if `origins` is not given. The start is NULL if one of the three is
/// NULL.
pub(super) fn bin_each(
    widths: &ArrayRef,
    times: &ArrayRef,
    origins: Option<&ArrayRef>,
) -> Result<ArrayRef> {
    let to = times.data_type();
    let unit = read_unit(to)?;
    let widths = cast(widths, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let widths = widths.as_primitive::<IntervalMonthDayNanoType>();
    let counts = cast(times, &DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>();
    let origin_unit = origins.map_or(Ok(unit), |origins| read_unit(origins.data_type()))?;
    let origins = origins.map(|origins| cast(origins, &DataType::Int64)).transpose()?;
    let origins = origins.as_ref().map(|origins| origins.as_primitive::<Int64Type>());
    let per = count_nanoseconds(unit);
    let per_origin = count_nanoseconds(origin_unit);
    let find_start = |row: usize| -> Result<Option<i64>> {
        if widths.is_null(row) {
            return Ok(None);
        }
        // Checks the width even if the time is NULL, as for a literal.
        let width = BinWidth::from_interval(widths.value(row))?;
        let is_null = |values: &Int64Array| values.is_null(row);
        if is_null(counts) || origins.is_some_and(is_null) {
            return Ok(None);
        }
        let (count, origin) = (counts.value(row), origins.map_or(0, |values| values.value(row)));
        let time = i128::from(count) * per;
        if let BinWidth::Months(months) = width
            && unit != TimeUnit::Nanosecond
            && !width.is_in_cycle()
            && !is_in_first_cycle(time)
        {
            return Err(make_stride_error(months));
        }
        let start = width.find_bin(time, i128::from(origin) * per_origin).div_euclid(per);
        i64::try_from(start).map(Some).map_err(|_| make_range_error(count, unit))
    };
    let starts: Int64Array = (0..counts.len()).map(find_start).collect::<Result<_>>()?;
    Ok(cast(&starts, to)?)
}

fn read_unit(t: &DataType) -> Result<TimeUnit> {
    match t {
        DataType::Timestamp(unit, _) => Ok(*unit),
        other => exec_err!(
            "date_bin: the time or the origin has the type {other}; write a timestamp such as TIMESTAMP '2020-01-01'"
        ),
    }
}

/// Whether a time, in nanoseconds since 1970, is in the 400 years that begin with
/// [`CYCLE_START_DAYS`].
fn is_in_first_cycle(time: i128) -> bool {
    let day = time.div_euclid(NANOSECONDS_PER_DAY);
    (CYCLE_START_DAYS..CYCLE_START_DAYS + CYCLE_DAYS).contains(&day)
}

/// Returns the error for a time before 1800 or after 2199 and a width of months that does not
/// divide 400 years.
pub(super) fn make_stride_error(months: i32) -> DataFusionError {
    exec_datafusion_err!(
        "date_bin: for times before 1800 or after 2199, the stride must be a number of months that divides 4800, not {months} months; use a stride such as INTERVAL '1 month' or '1 year'"
    )
}

pub(super) fn make_range_error(count: i64, unit: TimeUnit) -> DataFusionError {
    exec_datafusion_err!(
        "date_bin: the bin of the timestamp {count} (in {unit:?}s since 1970) starts outside the range of timestamps in 64 bits; use times closer to 1970"
    )
}

/// Returns the greatest multiple of `length` that is not greater than `distance`.
fn round_down(distance: i128, length: i128) -> i128 {
    match (i64::try_from(distance), i64::try_from(length)) {
        // A division of 64 bits is several times as fast as one of 128 bits.
        (Ok(distance), Ok(short)) => i128::from(distance.div_euclid(short)) * length,
        _ => distance.div_euclid(length) * length,
    }
}

fn find_bin_of_months(time: i128, width: i64, origin: i128) -> i128 {
    let first = MonthTime::from_nanoseconds(origin);
    let passed = MonthTime::from_nanoseconds(time).month - first.month;
    let months = passed.div_euclid(width) * width;
    let start = first.add_months(months);
    // If the origin is not the first instant of a month, the bin may begin later in the month of
    // `time` than `time`.
    if start > time { first.add_months(months - width) } else { start }
}

/// A time of the proleptic Gregorian calendar.
struct MonthTime {
    /// The number of the month, where March of the year 0 is month 0.
    month: i64,
    /// The day of the month, from 0.
    day: i64,
    /// Nanoseconds since midnight.
    nanoseconds: i128,
}

impl MonthTime {
    /// Makes the time from nanoseconds since 1970. Years begin in March here, so that the leap day
    /// is the last day, and a linear formula gives the month. Hinnant, "chrono-Compatible Low-Level
    /// Date Algorithms", derives the formulas.
    fn from_nanoseconds(time: i128) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the number of days in 2^63 seconds, the longest time, fits 64 bits"
        )]
        let days = time.div_euclid(NANOSECONDS_PER_DAY) as i64 + DAYS_BEFORE_1970;
        let (cycle, day) = (days.div_euclid(DAYS_PER_CYCLE), days.rem_euclid(DAYS_PER_CYCLE));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        Self {
            month: 12 * (400 * cycle + year) + month,
            day: day - (153 * month + 2) / 5,
            nanoseconds: time.rem_euclid(NANOSECONDS_PER_DAY),
        }
    }

    /// Returns the nanoseconds from 1970 to the same day and time of day `months` months later, or
    /// to the last day of that month if the month is too short.
    fn add_months(&self, months: i64) -> i128 {
        let month = self.month + months;
        let first = count_days_before_month(month);
        let last = count_days_before_month(month + 1) - 1;
        let day = (first + self.day).min(last);
        i128::from(day) * NANOSECONDS_PER_DAY + self.nanoseconds
    }
}

/// Returns the days from 1970 to the first day of a month, where March of the year 0 is month 0.
fn count_days_before_month(month: i64) -> i64 {
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12));
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = 365 * year + year / 4 - year / 100 + (153 * month + 2) / 5;
    DAYS_PER_CYCLE * cycle + day - DAYS_BEFORE_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i128 = NANOSECONDS_PER_DAY;

    #[test]
    fn months_are_those_of_the_calendar() {
        // 1970-01-01, 2000-02-29, 2000-03-01, 1900-02-28, 1900-03-01, 0000-03-01
        for (day, month, day_of_month) in [
            (0, 12 * 1969 + 10, 0),
            (11_016, 12 * 1999 + 11, 28),
            (11_017, 12 * 2000, 0),
            (-25_509, 12 * 1899 + 11, 27),
            (-25_508, 12 * 1900, 0),
            (-719_468, 0, 0),
            (-719_469, -1, 28),
        ] {
            let found = MonthTime::from_nanoseconds(i128::from(day) * DAY + 5);
            assert_eq!((found.month, found.day, found.nanoseconds), (month, day_of_month, 5));
            assert_eq!(found.add_months(0), i128::from(day) * DAY + 5);
            assert_eq!(count_days_before_month(month), day - day_of_month);
        }
        for day in (-3_000_000_i64..3_000_000).step_by(97) {
            let found = MonthTime::from_nanoseconds(i128::from(day) * DAY);
            assert_eq!(found.add_months(0), i128::from(day) * DAY, "{day}");
            assert!((28..=31).contains(
                &(count_days_before_month(found.month + 1) - count_days_before_month(found.month))
            ));
        }
    }

    #[test]
    fn bins_begin_before_their_times() {
        let months = BinWidth::Months(1);
        // Bins of a month from 1970-01-31: the one that begins on 1970-02-28 has 1970-03-01.
        assert_eq!(months.find_bin(59 * DAY, 30 * DAY), 58 * DAY);
        assert_eq!(months.find_bin(57 * DAY, 30 * DAY), 30 * DAY);
        assert_eq!(months.find_bin(29 * DAY, 30 * DAY), -DAY);
        assert_eq!(BinWidth::Nanoseconds(7 * DAY).find_bin(-1, 0), -7 * DAY);
        assert_eq!(BinWidth::Nanoseconds(7 * DAY).find_bin(1 << 90, 0) % (7 * DAY), 0);
    }
}
