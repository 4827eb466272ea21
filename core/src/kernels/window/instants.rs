//! Converts times and the bounds of windows to numbers that compare exactly.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::buffer::ScalarBuffer;
use arrow::compute::cast;
use arrow::compute::kernels::numeric;
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, IntervalMonthDayNano, TimeUnit, UInt64Type,
};

use super::time_window::{TimeWindow, WindowReach};
use crate::array::Layout;
use crate::error::{Error, Result};
use crate::kernels::between::ClosedEnds;
use crate::kernels::native::reinterpret_values;
use crate::kernels::times::{NANOSECONDS_PER_DAY, compare_exactly, count_nanoseconds};
use crate::kernels::zones::add_intervals;

#[derive(Clone)]
pub(super) enum Instants {
    /// Integers, and the factor that converts them to nanoseconds (1 for numbers that are not
    /// times).
    Scaled(ScalarBuffer<i64>, i128),
    Unsigned(ScalarBuffer<u64>),
    Floats(ScalarBuffer<f64>),
}

impl Instants {
    /// Reads times or numbers; numbers become floats if `as_floats` is set.
    fn new(values: &ArrayRef, as_floats: bool) -> Result<Self> {
        use DataType::{Date32, Date64, Duration, Timestamp};
        let integers = |values: &ArrayRef| -> Result<ScalarBuffer<i64>> {
            let wide = cast(values, &DataType::Int64)?;
            Ok(wide.as_primitive::<Int64Type>().values().clone())
        };
        let scaled = |values: &ArrayRef, scale| -> Result<Self> {
            Ok(Self::Scaled(integers(&reinterpret_values(values, &DataType::Int64)?)?, scale))
        };
        match values.data_type() {
            t if as_floats && t.is_numeric() && !t.is_decimal() => {
                let wide = cast(values, &DataType::Float64)?;
                Ok(Self::Floats(wide.as_primitive::<Float64Type>().values().clone()))
            }
            DataType::Null => Ok(Self::Scaled(vec![0; values.len()].into(), 1)),
            DataType::UInt64 => {
                Ok(Self::Unsigned(values.as_primitive::<UInt64Type>().values().clone()))
            }
            t if t.is_integer() => Ok(Self::Scaled(integers(values)?, 1)),
            Timestamp(unit, _) | Duration(unit) => scaled(values, count_nanoseconds(*unit)),
            Date64 => scaled(values, count_nanoseconds(TimeUnit::Millisecond)),
            Date32 => {
                let days = reinterpret_values(values, &DataType::Int32)?;
                Ok(Self::Scaled(integers(&days)?, NANOSECONDS_PER_DAY))
            }
            other => Err(Error::type_of(
                "the times of windows or of their elements",
                "dates, timestamps, durations or numbers (cast the values first)",
                other,
            )),
        }
    }

    /// Returns value `i` as an integer that compares like the value; times are in nanoseconds.
    #[inline]
    pub(super) fn get(&self, i: usize) -> i128 {
        match self {
            Self::Scaled(values, scale) => i128::from(values[i]) * scale,
            Self::Unsigned(values) => i128::from(values[i]),
            Self::Floats(values) => order_float(values[i]),
        }
    }

    fn get_shifted(&self, i: usize, by: TimeShift) -> i128 {
        match (self, by) {
            (Self::Floats(values), TimeShift::Float(by)) => order_float(values[i] + by),
            (_, TimeShift::Exact(by)) => self.get(i).saturating_add(by),
            (_, TimeShift::Float(_)) => self.get(i),
        }
    }
}

/// Returns an integer that compares like the float: NaN is the greatest, and both zeros are equal.
fn order_float(value: f64) -> i128 {
    if value.is_nan() {
        return i128::from(i64::MAX);
    }
    let bits = (value + 0.0).to_bits().cast_signed();
    i128::from(if bits < 0 { !bits ^ i64::MIN } else { bits })
}

#[derive(Clone, Copy)]
enum TimeShift {
    Exact(i128),
    Float(f64),
}

/// The starts of all windows, or the ends of all windows: the times `from`, shifted by `shift`.
struct WindowEdges {
    from: Instants,
    shift: TimeShift,
}

impl WindowEdges {
    /// Returns the edge of window number `i`.
    fn get(&self, i: usize) -> i128 {
        self.from.get_shifted(i, self.shift)
    }
}

pub(super) struct WindowBounds {
    /// The times of the elements.
    pub(super) times: Instants,
    /// `None` if the windows have no start.
    starts: Option<WindowEdges>,
    /// `None` if the windows have no end.
    ends: Option<WindowEdges>,
    closure: ClosedEnds,
}

impl WindowBounds {
    pub(super) fn new(times: &ArrayRef, at: &ArrayRef, window: &TimeWindow) -> Result<Self> {
        let (of_times, of_at) = (times.data_type(), at.data_type());
        let is_number = |t: &DataType| (t.is_numeric() && !t.is_decimal()) || t.is_null();
        let are_numbers = is_number(of_times) && is_number(of_at);
        let has_null_type = of_times.is_null() || of_at.is_null();
        if !are_numbers && !has_null_type && !compare_exactly(of_times, of_at) {
            return Err(Error::type_of(
                "the times of windows",
                format!(
                    "a type that compares with {of_times}, the type of the times of the elements (cast the times of the windows first)"
                ),
                of_at,
            ));
        }
        let reaches = [window.before, window.after];
        let as_floats = are_numbers
            && (of_times.is_floating()
                || of_at.is_floating()
                || reaches.iter().any(|reach| matches!(reach, WindowReach::Float(_))));
        Ok(Self {
            times: Instants::new(times, as_floats)?,
            starts: make_edges(at, window.before, as_floats, true)?,
            ends: make_edges(at, window.after, as_floats, false)?,
            closure: window.closure,
        })
    }

    pub(super) fn are_sorted(times: &ArrayRef, lists: &Layout) -> Result<bool> {
        let times = Instants::new(times, times.data_type().is_floating())?;
        Ok((0..lists.lists()).all(|i| lists.range(i).map(|t| times.get(t)).is_sorted()))
    }

    /// Returns a predicate on element indices: whether the element lies before window number `at`.
    pub(super) fn precedes_window(&self, at: usize) -> impl Fn(usize) -> bool + '_ {
        let start = self.starts.as_ref().map(|starts| starts.get(at));
        let is_closed = matches!(self.closure, ClosedEnds::Both | ClosedEnds::Left);
        move |time| match start {
            None => false,
            Some(start) if is_closed => self.times.get(time) < start,
            Some(start) => self.times.get(time) <= start,
        }
    }

    /// Returns a predicate on element indices: whether the element lies in window number `at` or
    /// before it.
    pub(super) fn reaches_window(&self, at: usize) -> impl Fn(usize) -> bool + '_ {
        let end = self.ends.as_ref().map(|ends| ends.get(at));
        let is_closed = matches!(self.closure, ClosedEnds::Both | ClosedEnds::Right);
        move |time| match end {
            None => true,
            Some(end) if is_closed => self.times.get(time) <= end,
            Some(end) => self.times.get(time) < end,
        }
    }
}

/// Returns the starts of the windows around the times `at` if `before` is set, else their ends.
/// `reach` is the distance from each time; an unbounded window gives `None`.
fn make_edges(
    at: &ArrayRef,
    reach: WindowReach,
    as_floats: bool,
    before: bool,
) -> Result<Option<WindowEdges>> {
    let sign = if before { -1 } else { 1 };
    #[expect(clippy::cast_precision_loss, reason = "an integer is a float next to floats")]
    let shift = match reach {
        WindowReach::Unbounded => return Ok(None),
        WindowReach::Calendar(by) => return shift_by_calendar(at, by, before).map(Some),
        WindowReach::Exact(by) if as_floats => TimeShift::Float(sign as f64 * by as f64),
        WindowReach::Exact(by) => TimeShift::Exact(by.saturating_mul(sign)),
        WindowReach::Float(by) => TimeShift::Float(sign as f64 * by),
    };
    Ok(Some(WindowEdges { from: Instants::new(at, as_floats)?, shift }))
}

/// Adds the interval `by` to each time of `at`, like `at + INTERVAL '1 month'` in SQL; subtracts it
/// if `before` is set.
fn shift_by_calendar(at: &ArrayRef, by: IntervalMonthDayNano, before: bool) -> Result<WindowEdges> {
    // Arrow ignores the nanoseconds of the interval for dates, and rounds them to the unit of
    // timestamps. Therefore add only months and days with Arrow.
    let rest = i128::from(by.nanoseconds);
    let whole = IntervalMonthDayNano::new(by.months, by.days, 0);
    let moved = match at.data_type() {
        // Arrow rejects the local times that clocks skip or repeat, so do not use its addition.
        DataType::Timestamp(_, Some(_)) => {
            let whole: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![whole]));
            add_intervals(at, &whole, before)?
        }
        _ => {
            let whole = IntervalMonthDayNanoArray::new_scalar(whole);
            if before { numeric::sub(at, &whole)? } else { numeric::add(at, &whole)? }
        }
    };
    let rest = if before { -rest } else { rest };
    Ok(WindowEdges { from: Instants::new(&moved, false)?, shift: TimeShift::Exact(rest) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_order_as_integers() {
        let values =
            [f64::NEG_INFINITY, -2.5, -1.0, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.0, f64::INFINITY];
        assert!(values.windows(2).all(|w| order_float(w[0]) < order_float(w[1])));
        assert_eq!(order_float(0.0), order_float(-0.0));
        assert_eq!(order_float(-f64::NAN), order_float(f64::NAN));
        assert!(order_float(f64::NAN) > order_float(f64::INFINITY));
    }
}
