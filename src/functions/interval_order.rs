//! The order of intervals: by length, with months of 30 days and days of 24 hours as in DuckDB.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::datatypes::{
    DataType, IntervalDayTime, IntervalDayTimeType, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit,
};
use datafusion::error::Result;
use serrate_core::internal::holds_type;
use serrate_core::internal::times::NANOSECONDS_PER_DAY;

const DAYS_PER_MONTH: i128 = 30;
const NANOSECONDS_PER_MONTH: i128 = DAYS_PER_MONTH * NANOSECONDS_PER_DAY;
const MILLISECONDS_PER_DAY: i128 = 86_400_000;

/// Returns the length of an interval in nanoseconds. Intervals of the same length count as equal.
pub(crate) fn measure_interval(value: IntervalMonthDayNano) -> i128 {
    let days = i128::from(value.months) * DAYS_PER_MONTH + i128::from(value.days);
    days * NANOSECONDS_PER_DAY + i128::from(value.nanoseconds)
}

/// Orders intervals by length, and equal ones by months, days and nanoseconds. So the least of
/// several intervals is the same whatever the order of the rows.
pub(crate) fn compare_intervals(a: IntervalMonthDayNano, b: IntervalMonthDayNano) -> Ordering {
    measure_interval(a).cmp(&measure_interval(b)).then_with(|| a.cmp(&b))
}

/// Replaces each interval, also in lists and structs, with the interval of the same length that has
/// as many whole months as possible, then days. Equal intervals become identical. Nulls stay null.
pub(crate) fn to_canonical_intervals(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = values.as_primitive::<IntervalMonthDayNanoType>();
            Arc::new(intervals.unary::<_, IntervalMonthDayNanoType>(carry_to_months)) as ArrayRef
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let intervals = values.as_primitive::<IntervalDayTimeType>();
            Arc::new(intervals.unary::<_, IntervalDayTimeType>(carry_to_days))
        }
        t if !has_interval(t) => Arc::clone(values),
        _ => {
            let data = values.to_data();
            let children = data
                .child_data()
                .iter()
                .map(|child| Ok(to_canonical_intervals(&make_array(child.clone()))?.to_data()));
            let children = children.collect::<Result<Vec<_>>>()?;
            make_array(data.into_builder().child_data(children).build()?)
        }
    })
}

/// Whether values of a type are, or contain, intervals that can be equal although their months,
/// days and nanoseconds differ, such as 1 month and 30 days.
fn has_interval(t: &DataType) -> bool {
    // An interval in months has only a number of months, so equal intervals are identical.
    holds_type(t, |t| matches!(t, DataType::Interval(unit) if *unit != IntervalUnit::YearMonth))
}

fn carry_to_months(value: IntervalMonthDayNano) -> IntervalMonthDayNano {
    let length = measure_interval(value);
    let months = clip_to_i32(length / NANOSECONDS_PER_MONTH);
    let rest = length - i128::from(months) * NANOSECONDS_PER_MONTH;
    let days = clip_to_i32(rest / NANOSECONDS_PER_DAY);
    let rest = rest - i128::from(days) * NANOSECONDS_PER_DAY;
    // `rest` is shorter than a day, unless `days` was clipped to the range of i32. `months` and
    // `days` are then at their limits and no shorter than those of `value`, so `rest` is no longer
    // than `value.nanoseconds`. In both cases, `rest` fits an i64, and the fallback is never used.
    IntervalMonthDayNano::new(months, days, i64::try_from(rest).unwrap_or(value.nanoseconds))
}

fn carry_to_days(value: IntervalDayTime) -> IntervalDayTime {
    let length = i128::from(value.days) * MILLISECONDS_PER_DAY + i128::from(value.milliseconds);
    let days = clip_to_i32(length / MILLISECONDS_PER_DAY);
    IntervalDayTime::new(days, clip_to_i32(length - i128::from(days) * MILLISECONDS_PER_DAY))
}

fn clip_to_i32(number: i128) -> i32 {
    i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX })
}

#[cfg(test)]
mod tests {
    use arrow::array::{IntervalMonthDayNanoArray, ListArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn equal_intervals_have_one_canonical_form() {
        let new = IntervalMonthDayNano::new;
        let day: i64 = 86_400_000_000_000;
        let groups = [
            vec![new(1, 0, 0), new(0, 30, 0), new(0, 29, day), new(2, -30, 0)],
            vec![new(-1, 0, 0), new(0, -30, 0), new(1, -60, 0)],
            vec![new(0, 0, 0), new(1, -30, 0), new(0, 1, -day)],
            vec![new(i32::MAX, 30, 0), new(i32::MAX, 29, day)],
            vec![new(i32::MAX, i32::MAX, i64::MAX)],
            vec![new(i32::MIN, i32::MIN, i64::MIN)],
            vec![new(i32::MIN, -30, 5), new(i32::MIN, -29, 5 - day)],
        ];
        let mut forms = Vec::new();
        for group in &groups {
            let form = carry_to_months(group[0]);
            assert_eq!(measure_interval(form), measure_interval(group[0]));
            assert!(group.iter().all(|value| carry_to_months(*value) == form), "{group:?}");
            assert!(!forms.contains(&form));
            forms.push(form);
        }
        let days = IntervalDayTime::new;
        assert_eq!(carry_to_days(days(0, 86_400_001)), days(1, 1));
        assert_eq!(carry_to_days(days(i32::MAX, 86_400_001)), days(i32::MAX, 86_400_001));
        let leaves: ArrayRef =
            Arc::new(IntervalMonthDayNanoArray::from(vec![Some(new(0, 60, 0)), None]));
        let item = Arc::new(Field::new_list_field(leaves.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([2]);
        let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, leaves, None));
        let found = to_canonical_intervals(&lists).unwrap();
        let found = found.as_list::<i32>().value(0);
        let found: Vec<_> = found.as_primitive::<IntervalMonthDayNanoType>().iter().collect();
        assert_eq!(found, [Some(new(2, 0, 0)), None]);
    }

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
