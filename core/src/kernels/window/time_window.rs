use arrow::datatypes::IntervalMonthDayNano;

use crate::kernels::between::ClosedEnds;

/// Distance from the time of a window to its start or to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowReach {
    /// The window is unbounded on this side.
    Unbounded,
    /// A number of nanoseconds between two times, or a difference of two integers.
    Exact(i128),
    /// A difference of two floats. If the times are integers, they are compared as floats.
    Float(f64),
    /// Months, days and nanoseconds of the calendar, in the time zone of the times.
    ///
    /// A month has 28 to 31 days.
    Calendar(IntervalMonthDayNano),
}

/// The extent of the window around each time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeWindow {
    /// How far the window reaches before the time.
    pub before: WindowReach,
    /// How far the window reaches after the time.
    pub after: WindowReach,
    /// Whether the window includes elements exactly at its start, at its end, at both or at
    /// neither.
    pub closure: ClosedEnds,
}
