//! Windows over time: the elements of one list around each time of another list.
//!
//! The window of a time `t` has the elements with times from `t - before` to `t + after`. Times of
//! different units compare exactly. Unsorted lists are sorted first; elements with a null time are
//! in no window. [`window`] returns the elements of each window as a list; [`window_reduce`] and
//! [`window_quantile`] do not build these lists. The run time does not depend on the lengths of the
//! windows, except that quantiles add a logarithmic factor.

mod instants;
mod list_windows;
mod quantiles;
mod time_window;
mod window_extremes;
mod window_ranges;
mod window_reductions;
mod window_sums;

use std::ops::Range;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::buffer::NullBuffer;

use super::align::share_lists;
use super::between::ClosedEnds;
use super::gather::{take_ranges, take_rows};
use super::levels::merge_all_levels;
use super::reduce::Reduction;
use super::sort::{SortOrder, sort, sort_by};
use crate::array::nulls::find_validity;
use crate::array::{Layout, ListAxis, RaggedArray, make_lists_like};
use crate::error::{Error, Result};
use crate::limit::check_size;
use instants::WindowBounds;
use list_windows::ListWindows;

pub use time_window::{TimeWindow, WindowReach};

/// Returns the elements of every window as a list: one list for each time of `at`.
///
/// `times` has the lists of `array`, or only its outer levels, to select whole elements of an outer
/// axis. `at` has the outer levels of `times`. For each innermost list of `times`, `at` has a list
/// of times or, with one level fewer, one time. The window of a null time is null, and so are
/// windows over a null list.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::between::ClosedEnds;
/// use serrate::kernels::window::{WindowReach, TimeWindow, window};
/// // [[10, 20, 30]] at the times [[1, 4, 6]]
/// let axes = vec![Offsets::from_lengths([3])?.into()];
/// let times = RaggedArray::try_new(1, axes, Arc::new(Int32Array::from(vec![1, 4, 6])))?;
/// let a = times.with_leaves(Arc::new(Int32Array::from(vec![10, 20, 30])))?;
/// // Later than the time minus 3, up to and including the time.
/// let past = TimeWindow { before: WindowReach::Exact(3), after: WindowReach::Exact(0), closure: ClosedEnds::Right };
/// let found = window(&a, &times, &times, &past)?;
/// assert_eq!(found.lengths(2)?, [1, 1, 2]);
/// assert_eq!(found.leaves().as_primitive::<Int32Type>().values(), &[10, 20, 20, 30]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the levels of lists do not match, two lists differ in length, the times cannot be compared
/// with each other or with the spans, or the elements of the result, at 8 bytes each, would exceed
/// [`DEFAULT_LIMIT`](crate::dense::DenseOptions::DEFAULT_LIMIT).
pub fn window(
    array: &RaggedArray,
    times: &RaggedArray,
    at: &RaggedArray,
    window: &TimeWindow,
) -> Result<RaggedArray> {
    let target = WindowInput::new(array, times, at)?;
    let ranges = target.find_ranges(window)?;
    let total = ranges.iter().map(Range::len).fold(0, usize::saturating_add);
    check_size("windows", total, u64::BITS as usize)?;
    let lengths = make_lists_like(target.element_lists()?.layout(), ranges.iter().map(Range::len))?;
    let members = ListAxis::try_new(lengths, target.nulls())?;
    let below = take_ranges(&target.array.inner(target.axis)?, ranges)?;
    let (_, inner, leaves) = below.into_parts();
    let mut axes = target.at.axes().to_vec();
    axes.push(members);
    axes.extend(inner);
    RaggedArray::try_new(target.at.len(), axes, leaves)
}

/// Reduces the leaves of every window to one value.
///
/// The result has the lists of `at`.
///
/// The function supports count, any, all, sum, mean, minimum, maximum, first, last and median, with
/// the results of [`reduce`](super::reduce::reduce), except that sums of floats are exact before
/// they are rounded. Null leaves are ignored, and an empty window gives the result of an empty
/// list; a null time, and a null list, gives null. See [`window`] for the other arguments.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::between::ClosedEnds;
/// use serrate::kernels::reduce::Reduction;
/// use serrate::kernels::window::{WindowReach, TimeWindow, window_reduce};
/// // [[10, 20, 30]] at the times [[1, 4, 6]]
/// let axes = vec![Offsets::from_lengths([3])?.into()];
/// let times = RaggedArray::try_new(1, axes, Arc::new(Int32Array::from(vec![1, 4, 6])))?;
/// let a = times.with_leaves(Arc::new(Int32Array::from(vec![10, 20, 30])))?;
/// let past = TimeWindow { before: WindowReach::Exact(3), after: WindowReach::Exact(0), closure: ClosedEnds::Right };
/// let found = window_reduce(&a, &times, &times, Reduction::Sum, &past)?;
/// assert_eq!(found.leaves().as_ref(), &Int64Array::from(vec![10, 20, 50]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`window`]; also for unsupported reductions or leaves, and integer sums beyond 64 bits.
pub fn window_reduce(
    array: &RaggedArray,
    times: &RaggedArray,
    at: &RaggedArray,
    how: Reduction,
    window: &TimeWindow,
) -> Result<RaggedArray> {
    let (target, windows) = WindowInput::make_leaf_windows(array, times, at, window)?;
    target.at.with_leaves(windows.reduce_leaves(target.array.leaves(), how)?)
}

/// Returns the `q` quantile of every window, as [`quantile`](super::reduce::quantile) does for a
/// list: null leaves are ignored, and an empty window, a null time and a null list give null.
///
/// The result has the lists of `at`; see [`window`] for the other arguments.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Float64Array, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::between::ClosedEnds;
/// use serrate::kernels::window::{WindowReach, TimeWindow, window_quantile};
/// // [[10, 20, 30]] at the times [[1, 4, 6]]
/// let axes = vec![Offsets::from_lengths([3])?.into()];
/// let times = RaggedArray::try_new(1, axes, Arc::new(Int32Array::from(vec![1, 4, 6])))?;
/// let a = times.with_leaves(Arc::new(Int32Array::from(vec![10, 20, 30])))?;
/// let past = TimeWindow { before: WindowReach::Exact(3), after: WindowReach::Exact(0), closure: ClosedEnds::Right };
/// let found = window_quantile(&a, &times, &times, 0.25, &past)?;
/// assert_eq!(found.leaves().as_ref(), &Float64Array::from(vec![10.0, 20.0, 22.5]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`window`]; also when `q` is not between 0 and 1, or the leaves are not numbers.
pub fn window_quantile(
    array: &RaggedArray,
    times: &RaggedArray,
    at: &RaggedArray,
    q: f64,
    window: &TimeWindow,
) -> Result<RaggedArray> {
    let (target, windows) = WindowInput::make_leaf_windows(array, times, at, window)?;
    target.at.with_leaves(windows.compute_leaf_quantiles(target.array.leaves(), q)?)
}

/// Reduces each leaf together with the `n - 1` leaves before it in its list, like
/// [`window_reduce`]; null if fewer than `least` of these leaves are valid.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Float64Array, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reduce::Reduction;
/// use serrate::kernels::window::rolling;
/// // [[1, 3, 5], [7]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 3, 5, 7]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let found = rolling(&a, 2, Reduction::Mean, 2)?;
/// let expected = Float64Array::from(vec![None, Some(2.0), Some(4.0), None]);
/// assert_eq!(found.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array is flat; otherwise same as [`window_reduce`].
pub fn rolling(array: &RaggedArray, n: usize, how: Reduction, least: usize) -> Result<RaggedArray> {
    let windows = make_rolling_windows(array, n, least)?;
    array.with_leaves(windows.reduce_leaves(array.leaves(), how)?)
}

/// Returns the `q` quantile of each leaf and the `n - 1` leaves before it in its list, as
/// [`quantile`](super::reduce::quantile) does for a list; null if fewer than `least` of these
/// leaves are valid.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Float64Array, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::window::rolling_quantile;
/// // [[1, 9, 5], [7]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 9, 5, 7]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let found = rolling_quantile(&a, 3, 0.5, 2)?;
/// let expected = Float64Array::from(vec![None, Some(5.0), Some(5.0), None]);
/// assert_eq!(found.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array is flat, `q` is not between 0 and 1, or the leaves are not numbers.
pub fn rolling_quantile(
    array: &RaggedArray,
    n: usize,
    q: f64,
    least: usize,
) -> Result<RaggedArray> {
    let windows = make_rolling_windows(array, n, least)?;
    array.with_leaves(windows.compute_leaf_quantiles(array.leaves(), q)?)
}

fn make_rolling_windows(array: &RaggedArray, n: usize, least: usize) -> Result<ListWindows> {
    let Some(level) = array.axes().last() else {
        return Err(Error::invalid(
            "the array of a rolling window has no lists; nest its values in lists first",
        ));
    };
    let layout = level.layout();
    let lists: Vec<_> = (0..layout.lists()).map(|i| (layout.range(i), layout.range(i))).collect();
    let ranges = lists.iter().flat_map(|(list, _)| {
        let start = list.start;
        list.clone().map(move |i| (i + 1).saturating_sub(n).max(start)..i + 1)
    });
    let mut windows = ListWindows { ranges: ranges.collect(), lists, nulls: None };
    windows.nulls = windows.find_nulls(array.leaves(), least);
    Ok(windows)
}

/// Returns the n-grams of every innermost list: all sequences of `n` adjacent leaves.
///
/// Null lists stay null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::window::ngrams;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let found = ngrams(&a, 2)?;
/// assert_eq!(found.lengths(1)?, [2, 0]);
/// assert_eq!(found.leaves().as_primitive::<Int32Type>().values(), &[1, 2, 2, 3]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array is flat, `n` is 0, or the leaves of the result, at 8 bytes each, would exceed
/// [`DEFAULT_LIMIT`](crate::dense::DenseOptions::DEFAULT_LIMIT).
pub fn ngrams(array: &RaggedArray, n: usize) -> Result<RaggedArray> {
    let Some((level, outer)) = array.axes().split_last() else {
        return Err(Error::invalid(
            "the array to split into n-grams has no lists; nest its values in lists first",
        ));
    };
    if n == 0 {
        return Err(Error::invalid("the length n of the n-grams is 0; give a length of 1 or more"));
    }
    let layout = level.layout();
    let count = |i: usize| (layout.length(i) + 1).saturating_sub(n);
    let total: usize = (0..layout.lists()).map(count).sum();
    check_size("n-grams", total.saturating_mul(n), u64::BITS as usize)?;
    let starts = (0..layout.lists()).flat_map(|i| {
        let start = layout.range(i).start;
        start..start + count(i)
    });
    let leaves = starts.flat_map(|start| start as u64..(start + n) as u64);
    let leaves =
        arrow::compute::take(array.leaves(), &UInt64Array::from_iter_values(leaves), None)?;
    let grams = make_lists_like(layout, (0..layout.lists()).map(count))?;
    let members = make_lists_like(layout, std::iter::repeat_n(n, total))?;
    let mut axes = outer.to_vec();
    axes.extend([ListAxis::try_new(grams, level.nulls().cloned())?, members.into()]);
    RaggedArray::try_new(array.len(), axes, leaves)
}

/// Returns, for every time `t` of `at`, the element with the latest time that is not later than
/// `t`: the last such element if several have this time.
///
/// The result is null if there is no such element, or if the element is null. See [`window`] for
/// the arguments.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::window::asof;
/// // [[10, 20, 30]] at the times [[1, 4, 6]]
/// let lists = |leaves: Vec<i32>| -> serrate::Result<_> {
///     let axes = vec![Offsets::from_lengths([3])?.into()];
///     RaggedArray::try_new(1, axes, Arc::new(Int32Array::from(leaves)))
/// };
/// let found = asof(&lists(vec![10, 20, 30])?, &lists(vec![1, 4, 6])?, &lists(vec![0, 5, 6])?)?;
/// assert_eq!(found.leaves().as_ref(), &Int32Array::from(vec![None, Some(20), Some(30)]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`window`].
pub fn asof(array: &RaggedArray, times: &RaggedArray, at: &RaggedArray) -> Result<RaggedArray> {
    let target = WindowInput::new(array, times, at)?;
    let past = TimeWindow {
        before: WindowReach::Unbounded,
        after: WindowReach::Exact(0),
        closure: ClosedEnds::Right,
    };
    let ranges = target.find_ranges(&past)?;
    let nulls = target.nulls();
    let last = ranges.iter().enumerate().map(|(i, range)| {
        let valid = !range.is_empty() && nulls.as_ref().is_none_or(|n| n.is_valid(i));
        valid.then(|| range.end as u64 - 1)
    });
    let rows: UInt64Array = last.collect();
    let below = take_rows(&target.array.inner(target.axis)?, &rows)?;
    let (_, inner, leaves) = below.into_parts();
    let mut axes = target.at.axes().to_vec();
    axes.extend(inner);
    RaggedArray::try_new(target.at.len(), axes, leaves)
}

/// The arguments of a window function, brought to the same lists: the shared levels of `array`,
/// `times` and `at` are equal, and the times of each list ascend.
struct WindowInput {
    axis: usize,
    array: RaggedArray,
    times: RaggedArray,
    at: RaggedArray,
}

impl WindowInput {
    fn new(array: &RaggedArray, times: &RaggedArray, at: &RaggedArray) -> Result<Self> {
        let (levels, axis, given) = (array.axes().len(), times.axes().len(), at.axes().len());
        if axis == 0 || axis > levels {
            return Err(Error::invalid(format!(
                "the array has {levels} level(s) of lists, but the times of its elements have {axis}; give times with at least one level, and no more levels than the array"
            )));
        }
        if given != axis && given + 1 != axis {
            return Err(Error::invalid(format!(
                "the times of the windows have {given} level(s) of lists, but the times of the elements have {axis}; give times of windows with the same number of levels, or one level fewer"
            )));
        }
        let (_, times) = share_lists(array, times, axis)?;
        let (times, at) = share_lists(&times, at, axis - 1)?;
        let (array, times) = share_lists(array, &times, axis)?;
        let mut target = Self { axis, array, times, at };
        if !target.are_times_sorted()? {
            target.array = sort_by(&target.array, &target.times, SortOrder::ASCENDING)?;
            target.times = sort(&target.times, SortOrder::ASCENDING)?;
        }
        if target.time_layout().lists() != target.element_lists()?.layout().lists() {
            return Err(Error::invalid(format!(
                "{} list(s) of window times are given for {} list(s) of elements; give one list of times per list of elements",
                target.time_layout().lists(),
                target.element_lists()?.layout().lists()
            )));
        }
        Ok(target)
    }

    fn make_leaf_windows(
        array: &RaggedArray,
        times: &RaggedArray,
        at: &RaggedArray,
        window: &TimeWindow,
    ) -> Result<(Self, ListWindows)> {
        let target = Self::new(array, times, at)?;
        let elements = target.find_ranges(window)?;
        let layout = target.element_lists()?.layout();
        let needles = target.time_layout();
        // If elements are lists, `to_leaves` converts a range of them to the range of their leaves.
        let below = merge_all_levels(&target.array.inner(target.axis)?)?;
        let to_leaves = |range: Range<usize>| match &below {
            Some(lists) => lists.layout().ranges(range),
            None => range,
        };
        let lists = (0..layout.lists()).map(|i| (to_leaves(layout.range(i)), needles.range(i)));
        let windows = ListWindows {
            lists: lists.collect(),
            ranges: elements.into_iter().map(to_leaves).collect(),
            nulls: target.nulls(),
        };
        Ok((target, windows))
    }

    fn element_lists(&self) -> Result<&ListAxis> {
        self.times.axis(self.axis)
    }

    /// Returns the offsets of the window times `at`: range `i` has the times of the windows over
    /// list `i` of the elements. If `at` has a single time per list, every range has the length 1.
    fn time_layout(&self) -> Layout {
        match self.at.axes().get(self.axis - 1) {
            Some(lists) => lists.layout().clone(),
            None => Layout::Uniform { size: 1, lists: self.at.leaves().len() },
        }
    }

    fn are_times_sorted(&self) -> Result<bool> {
        let leaves: &ArrayRef = self.times.leaves();
        if leaves.logical_null_count() > 0 {
            return Ok(false);
        }
        WindowBounds::are_sorted(leaves, self.element_lists()?.layout())
    }

    fn find_ranges(&self, window: &TimeWindow) -> Result<Vec<Range<usize>>> {
        let bounds = WindowBounds::new(self.times.leaves(), self.at.leaves(), window)?;
        let times = find_validity(self.times.leaves());
        let (lists, needles) = (self.element_lists()?.layout(), self.time_layout());
        let nulls = self.nulls();
        Ok(window_ranges::find_ranges(&bounds, lists, times.as_ref(), &needles, nulls.as_ref()))
    }

    /// Returns the validity of the windows: a window is null if its time or its list of elements is
    /// null.
    fn nulls(&self) -> Option<NullBuffer> {
        let own = find_validity(self.at.leaves());
        let lists = self.times.axes().last().and_then(ListAxis::nulls).map(|nulls| {
            let needles = self.time_layout();
            let each = (0..needles.lists())
                .flat_map(|i| std::iter::repeat_n(nulls.is_valid(i), needles.length(i)));
            NullBuffer::from_iter(each)
        });
        NullBuffer::union(own.as_ref(), lists.as_ref())
    }
}
