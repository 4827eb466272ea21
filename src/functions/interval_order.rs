//! The order of intervals: by length, with months of 30 days and days of 24 hours as in DuckDB.

use std::cmp::Ordering;

use arrow::datatypes::IntervalMonthDayNano;

const DAYS_PER_MONTH: i128 = 30;
const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;

/// Returns the length of an interval in nanoseconds. Intervals of one length are equal.
pub(crate) fn measure_interval(value: IntervalMonthDayNano) -> i128 {
    let days = i128::from(value.months) * DAYS_PER_MONTH + i128::from(value.days);
    days * NANOSECONDS_PER_DAY + i128::from(value.nanoseconds)
}

/// Orders intervals by length, and equal ones by months, days and nanoseconds. So the least of
/// several intervals is the same whatever the order of the rows.
pub(crate) fn compare_intervals(a: IntervalMonthDayNano, b: IntervalMonthDayNano) -> Ordering {
    measure_interval(a).cmp(&measure_interval(b)).then_with(|| a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_intervals_have_one_order() {
        let [month, days, hours, longer] = [(1, 0, 0), (0, 30, 0), (0, 0, 720), (0, 31, 0)]
            .map(|(m, d, h)| IntervalMonthDayNano::new(m, d, h * 3_600_000_000_000));
        assert_eq!(measure_interval(month), measure_interval(hours));
        let mut sorted = [longer, month, days, hours];
        sorted.sort_by(|a, b| compare_intervals(*a, *b));
        assert_eq!(sorted, [hours, days, month, longer]);
    }
}
