//! Selects elements along any axis by slices, indices or masks, or by a NumPy index expression.

use std::ops::Range;

use arrow::array::{OffsetSizeTrait, UInt64Array};
use arrow::buffer::OffsetBuffer;

use super::RowArg;
use super::gather::{
    find_row_of_list, find_rows_of_lists, gather_ranges, replace_axis, take_ranges, take_rows,
};
use super::shape::list_axis;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray, make_lists_like};
use crate::error::{Error, Result};
use crate::index::{AxisSpan, Index, list_true_positions, resolve_position};
use crate::with_offsets;

/// Returns the elements `start..stop` by `step` of every list of axis `axis`, with Python's rules.
///
/// `axis` is 1 or more; negative axes count from the innermost. Negative bounds count from the end,
/// out-of-range bounds are clamped, a negative step runs backwards, and a missing bound does not
/// limit the slice.
///
/// `start`, `stop` and `step` are each one number for all rows, or one per row. Null lists stay
/// null. The result shares all buffers if every list stays whole; with a step of 1, whole ranges
/// are copied instead of single elements.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::{RowArg, index::slice};
/// // [[1, 2, 3], [], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([3, 0, 1])?.into()], leaves)?;
/// let last_two = slice(&a, 1, &(-2).into(), &RowArg::NONE, &RowArg::NONE)?;
/// assert_eq!(last_two.lengths(1)?, [2, 0, 1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If there is no such axis, a step is 0, or a per-row argument does not have one value per row.
pub fn slice(
    array: &RaggedArray,
    axis: i64,
    start: &RowArg,
    stop: &RowArg,
    step: &RowArg,
) -> Result<RaggedArray> {
    let axis = list_axis(array, axis)?;
    for (what, arg) in [("start", start), ("stop", stop), ("step", step)] {
        arg.check_rows(what, array.len())?;
    }
    let constant = start.is_constant() && stop.is_constant() && step.is_constant();
    let level = array.axis(axis)?;
    let layout = level.layout();
    let rows = if constant || axis == 1 { None } else { Some(find_rows_of_lists(array, axis)) };
    let zero = |row: usize, at: &str| (step.get(row) == Some(0)).then(|| at.to_owned());
    let refused = match step {
        RowArg::All(_) => zero(0, ""),
        RowArg::Each(_) => (0..array.len()).find_map(|r| zero(r, &format!(" (row {r})"))),
    };
    if let Some(location) = refused {
        return Err(Error::invalid(format!(
            "a slice has a step of 0{location}; use a positive or negative step"
        )));
    }

    if let (RowArg::All(start), RowArg::All(stop), RowArg::All(None | Some(1)), Layout::Ragged(o)) =
        (start, stop, step, layout)
    {
        return slice_by_bounds(
            array,
            axis,
            o,
            SliceBound::from_start(*start),
            SliceBound::from_stop(*stop),
        );
    }
    let lists = layout.lists();
    let mut spans = Vec::with_capacity(lists);
    let mut whole = true;
    for list in 0..lists {
        let row = rows.as_ref().map_or(list, |rows| rows[list]);
        let (size, step) = (layout.length(list), step.get(row).unwrap_or(1));
        let span = AxisSpan::new(start.get(row), stop.get(row), step, size);
        whole &= span.is_whole(size);
        spans.push(span);
    }
    if whole {
        return Ok(array.clone());
    }
    let new = match (layout, spans.first()) {
        (Layout::Uniform { lists, .. }, Some(span)) if constant => {
            Layout::Uniform { size: span.count, lists: *lists }
        }
        _ => make_lists_like(layout, spans.iter().map(|span| span.count))?,
    };
    let elements = array.inner(axis)?;
    let below = if spans.iter().all(|span| span.step == 1) {
        let mut ranges = Vec::with_capacity(lists);
        for (list, span) in spans.iter().enumerate().filter(|(_, span)| span.count > 0) {
            let start = layout.range(list).start + span.first;
            ranges.push(start..start + span.count);
        }
        take_ranges(&elements, ranges)?
    } else {
        let mut positions = Vec::with_capacity(new.children());
        for (list, span) in spans.iter().enumerate() {
            let base = layout.range(list).start as u64;
            positions.extend(span.positions().map(|p| base + p as u64));
        }
        take_rows(&elements, &UInt64Array::from(positions))?
    };
    replace_axis(array, array.len(), axis, ListAxis::try_new(new, level.nulls().cloned())?, below)
}

/// A bound of a slice. It is counted from the start or from the end of each list, so that it
/// applies to lists of any length.
#[derive(Clone, Copy)]
enum SliceBound {
    FromStart(usize),
    FromEnd(usize),
}

impl SliceBound {
    fn new(at: i64) -> Self {
        let n = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
        if at < 0 { Self::FromEnd(n) } else { Self::FromStart(n) }
    }

    fn from_start(at: Option<i64>) -> Self {
        at.map_or(Self::FromStart(0), Self::new)
    }

    fn from_stop(at: Option<i64>) -> Self {
        at.map_or(Self::FromEnd(0), Self::new)
    }

    #[inline(always)]
    fn clamp_to(self, size: usize) -> usize {
        match self {
            Self::FromStart(n) => n.min(size),
            Self::FromEnd(n) => size.saturating_sub(n),
        }
    }
}

fn slice_by_bounds(
    array: &RaggedArray,
    axis: usize,
    offsets: &Offsets,
    start: SliceBound,
    stop: SliceBound,
) -> Result<RaggedArray> {
    fn slice_offsets<O: OffsetSizeTrait>(
        offsets: &[O],
        start: SliceBound,
        stop: SliceBound,
    ) -> (Vec<O>, Vec<Range<usize>>) {
        let base = offsets[0].as_usize();
        let (mut ends, mut ranges) =
            (Vec::with_capacity(offsets.len()), Vec::with_capacity(offsets.len()));
        ends.push(O::zero());
        let (mut total, mut pending) = (0, 0..0);
        for list in offsets.windows(2) {
            let (from, to) = (list[0].as_usize() - base, list[1].as_usize() - base);
            let first = start.clamp_to(to - from);
            let kept = stop.clamp_to(to - from).saturating_sub(first);
            total += kept;
            // A slice has at most as many elements as its list, so `total` fits `O`.
            ends.push(O::usize_as(total));
            if kept > 0 {
                if pending.end != from + first {
                    if !pending.is_empty() {
                        ranges.push(pending.clone());
                    }
                    pending.start = from + first;
                }
                pending.end = from + first + kept;
            }
        }
        if !pending.is_empty() {
            ranges.push(pending);
        }
        (ends, ranges)
    }
    let (layout, ranges) = with_offsets!(offsets, o => {
        let (ends, ranges) = slice_offsets(o, start, stop);
        (Offsets::from(OffsetBuffer::new(ends.into())), ranges)
    });
    if layout.children() == offsets.children() {
        return Ok(array.clone());
    }
    let below = gather_ranges(&array.inner(axis)?, ranges)?;
    let level = ListAxis::try_new(layout, array.axis(axis)?.nulls().cloned())?;
    replace_axis(array, array.len(), axis, level, below)
}

/// Returns the first `n` elements of every list of axis `axis`; for a negative `n`, all but the
/// last `-n`.
///
/// A null `n` keeps whole lists. Null and empty lists stay as they are.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::index::head;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// assert_eq!(head(&a, 1, &2.into())?.lengths(1)?, [2, 1]);
/// assert_eq!(head(&a, 1, &(-1).into())?.lengths(1)?, [2, 0]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`slice`](fn@slice).
pub fn head(array: &RaggedArray, axis: i64, n: &RowArg) -> Result<RaggedArray> {
    slice(array, axis, &RowArg::NONE, n, &RowArg::NONE)
}

/// Returns the last `n` elements of every list of axis `axis`; for a negative `n`, all but the
/// first `-n`.
///
/// A null `n` keeps whole lists. Null and empty lists stay as they are.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::index::tail;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let last = tail(&a, 1, &1.into())?;
/// assert_eq!(last.leaves().as_ref(), &Int32Array::from(vec![3, 4]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`slice`](fn@slice).
pub fn tail(array: &RaggedArray, axis: i64, n: &RowArg) -> Result<RaggedArray> {
    // For `n` = 0, a start of -0 would select whole lists, so start past the end of the list.
    let start = |n: i64| if n == 0 { i64::MAX } else { n.checked_neg().unwrap_or(i64::MAX) };
    let start = match n {
        RowArg::All(n) => RowArg::All(n.map(start)),
        RowArg::Each(n) => RowArg::Each(n.unary(start)),
    };
    slice(array, axis, &start, &RowArg::NONE, &RowArg::NONE)
}

/// Returns the element at `index` of every list of axis `axis` and drops the axis.
///
/// A null list gives null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::index::pick;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// assert_eq!(pick(&a, 1, -1)?.leaves().as_ref(), &Int32Array::from(vec![3, 4]));
/// assert!(pick(&a, 1, 1).is_err());
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the index is out of range for a valid list; otherwise same as [`slice`](fn@slice).
pub fn pick(array: &RaggedArray, axis: i64, index: i64) -> Result<RaggedArray> {
    let axis = list_axis(array, axis)?;
    let level = array.axis(axis)?;
    let layout = level.layout();
    let positions = (0..layout.lists()).map(|list| {
        if level.nulls().is_some_and(|n| n.is_null(list)) {
            return Ok(None);
        }
        let range = layout.range(list);
        match resolve_position(index, range.len()) {
            Some(i) => Ok(Some((range.start + i) as u64)),
            None => Err(Error::OutOfRangeIn {
                row: find_row_of_list(array, axis, list),
                axis,
                index,
                size: range.len(),
            }),
        }
    });
    let positions: UInt64Array = positions.collect::<Result<_>>()?;
    let (_, below, leaves) = take_rows(&array.inner(axis)?, &positions)?.into_parts();
    let mut axes = array.axes()[..axis - 1].to_vec();
    axes.extend(below);
    RaggedArray::try_new(array.len(), axes, leaves)
}

/// Takes from every list of axis `axis` the elements at the indices `positions`, in the order of
/// `positions`.
///
/// Indices may repeat, and negative indices count from the end. All lists get the same length. A
/// null list stays null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::index::take;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let ends = take(&a, 1, &[0, -1])?;
/// assert_eq!(ends.leaves().as_primitive::<Int32Type>().values(), &[1, 3, 4, 4]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If an index is out of range for a valid list; otherwise same as [`slice`](fn@slice).
pub fn take(array: &RaggedArray, axis: i64, positions: &[i64]) -> Result<RaggedArray> {
    take_positions(array, axis, positions, None)
}

/// Returns, from every list of axis `axis`, the elements at the indices where `keep` is true.
///
/// A null list stays null. See [`filter`](super::filter::filter) for a separate mask per list.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::index::mask;
/// // [[1, 2], [3, 4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 2])?.into()], leaves)?;
/// let second = mask(&a, 1, &[false, true])?;
/// assert_eq!(second.leaves().as_ref(), &Int32Array::from(vec![2, 4]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If a valid list does not have as many elements as `keep`; otherwise same as [`slice`](fn@slice).
pub fn mask(array: &RaggedArray, axis: i64, keep: &[bool]) -> Result<RaggedArray> {
    take_positions(array, axis, &list_true_positions(keep), Some(keep.len()))
}

fn take_positions(
    array: &RaggedArray,
    axis: i64,
    positions: &[i64],
    length: Option<usize>,
) -> Result<RaggedArray> {
    let axis = list_axis(array, axis)?;
    let level = array.axis(axis)?;
    let layout = level.layout();
    let null = |list: usize| level.nulls().is_some_and(|n| n.is_null(list));
    let row = |list: usize| find_row_of_list(array, axis, list);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for list in (0..layout.lists()).filter(|l| !null(*l)) {
        let range = layout.range(list);
        if let Some(length) = length.filter(|n| *n != range.len()) {
            return Err(Error::invalid(format!(
                "the mask has {length} value(s), but the list has {} element(s) on axis {axis} in row {}; give one mask value per element",
                range.len(),
                row(list)
            )));
        }
        for index in positions {
            let at = resolve_position(*index, range.len()).ok_or_else(|| Error::OutOfRangeIn {
                row: row(list),
                axis,
                index: *index,
                size: range.len(),
            })?;
            ranges.push(range.start + at..range.start + at + 1);
        }
    }
    let new = match level.nulls() {
        None => Layout::Uniform { size: positions.len(), lists: layout.lists() },
        Some(_) => {
            let length = |list| if null(list) { 0 } else { positions.len() };
            make_lists_like(layout, (0..layout.lists()).map(length))?
        }
    };
    let below = take_ranges(&array.inner(axis)?, ranges)?;
    replace_axis(array, array.len(), axis, ListAxis::try_new(new, level.nulls().cloned())?, below)
}

/// Wraps every element of axis `axis - 1` in a list: a new axis `axis` (1 up to the number of axes)
/// of size 1.
///
/// A null element becomes the single element of its list. Copies nothing.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::index::new_axis;
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// assert_eq!(a.shape(), [Some(2), None]);
/// assert_eq!(new_axis(&a, 1)?.shape(), [Some(2), Some(1), None]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If `axis` is 0 or greater than the number of axes.
pub fn new_axis(array: &RaggedArray, axis: usize) -> Result<RaggedArray> {
    let lists = axis.checked_sub(1).and_then(|outer| array.axis_len(outer).ok());
    let lists = lists.ok_or_else(|| Error::NoSuchAxis {
        what: "the array with a new axis".into(),
        axis: i64::try_from(axis).unwrap_or(i64::MAX),
        ndim: array.ndim() + 1,
    })?;
    let mut axes = array.axes().to_vec();
    axes.insert(axis - 1, Layout::Uniform { size: 1, lists }.into());
    RaggedArray::try_new(array.len(), axes, array.leaves().clone())
}

/// Indexes axis 1 with the first [`Index`], axis 2 with the second, and so on, like `x[:, i, j]` in
/// NumPy.
///
/// All elements of an axis without an [`Index`] are kept. An integer gives null for a null list,
/// and is an error for an empty list; the other kinds of index keep null lists.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::index::parse_index;
/// use serrate::kernels::index::get;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let last = get(&a, &parse_index("-1")?)?;
/// assert_eq!(last.leaves().as_primitive::<Int32Type>().values(), &[3, 4]);
/// let error = get(&a, &parse_index("2")?).unwrap_err();
/// assert_eq!(error.to_string(), "index 2 is out of range for axis 1 of size 1 in row 1");
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the index is for more axes than the array has, or an integer is out of range for a valid
/// list. Also when an array or mask is combined with another array, mask or integer, because NumPy
/// would pair their elements; index in two steps instead. Messages count the axes of `array`, even
/// if an earlier index drops one of them.
pub fn get(array: &RaggedArray, index: &[Index]) -> Result<RaggedArray> {
    let lists = array.ndim() - 1;
    let what = format!("an array with {lists} axes of lists (the first index is axis 1)");
    let items = Index::expand_axes(index, lists, &what)?;
    let arrays = items.iter().filter(|i| matches!(i, Index::Array(_) | Index::Mask(_))).count();
    let integers = items.iter().filter(|i| matches!(i, Index::At(_))).count();
    if arrays > 0 && arrays + integers > 1 {
        return Err(Error::invalid(
            "ragged arrays do not support an index that combines an array or mask with another array, mask or integer, because their elements would have to be paired; index in two steps",
        ));
    }
    let mut out = array.clone();
    // Axis `axis` of `array` is axis `now` of `out`; they differ once an index drops or adds one.
    let (mut axis, mut now) = (1usize, 1usize);
    for item in &items {
        let at = i64::try_from(now).unwrap_or(i64::MAX);
        let next = match item {
            Index::Rest => continue,
            Index::NewAxis => {
                out = new_axis(&out, now)?;
                now += 1;
                continue;
            }
            item if *item == Index::ALL => Ok(None),
            Index::Slice { start, stop, step } => {
                slice(&out, at, &(*start).into(), &(*stop).into(), &(*step).into()).map(Some)
            }
            Index::Array(positions) => take(&out, at, positions.as_flat()?).map(Some),
            Index::Mask(keep) => mask(&out, at, keep.as_flat()?).map(Some),
            Index::At(i) => pick(&out, at, *i).map(Some),
        };
        let next = next.map_err(|e| match e {
            Error::OutOfRangeIn { row, index, size, .. } => {
                Error::OutOfRangeIn { row, axis, index, size }
            }
            other => other,
        })?;
        out = next.unwrap_or(out);
        axis += 1;
        now += usize::from(!matches!(item, Index::At(_)));
    }
    Ok(out)
}
