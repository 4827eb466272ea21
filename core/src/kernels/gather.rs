//! Gathers rows of ragged arrays, each row with all levels of lists below it. For elements of axis
//! `k`, gather rows of [`RaggedArray::inner`]`(k)` and build the result with `replace_axis`.

use std::ops::Range;

use arrow::array::{Array, BooleanArray, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::util::bit_iterator::BitSliceIterator;

use super::filter_values::filter_values;
use crate::array::nulls::find_true_bits;
use crate::array::ranges::{count_values, gather_bits, gather_layout, gather_values, merge_ranges};
use crate::array::{Layout, ListAxis, RaggedArray, make_lists_like};
use crate::error::{Error, Result};

/// Returns the rows of `ranges`, one range after the other; rows may repeat.
///
/// Adjacent ranges are merged. If only one range remains, the result shares all buffers of the
/// array. Null rows stay null, and an empty range gives no rows.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::gather::take_ranges;
/// // [[1, 2], [3]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let found = take_ranges(&a, [1..2, 0..1])?;
/// assert_eq!(found.lengths(1)?, [1, 2]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If a range is outside the rows.
pub fn take_ranges(
    array: &RaggedArray,
    ranges: impl IntoIterator<Item = Range<usize>>,
) -> Result<RaggedArray> {
    let mut outside = None;
    let ranges = ranges.into_iter().inspect(|r| {
        if r.start > r.end || r.end > array.len() {
            outside.get_or_insert(r.start.max(r.end));
        }
    });
    let ranges = merge_ranges(ranges);
    if let Some(at) = outside {
        return Err(Error::OutOfRange {
            axis: 0,
            index: i64::try_from(at).unwrap_or(i64::MAX),
            size: array.len(),
        });
    }
    gather_ranges(array, ranges)
}

/// Takes rows by index, in any order; a null index gives a null row.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Array, Int32Array, UInt64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::gather::take_rows;
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let b = take_rows(&a, &UInt64Array::from(vec![Some(1), None, Some(0)]))?;
/// assert_eq!(b.lengths(1)?, [1, 0, 2]);
/// assert!(b.axis(1)?.nulls().unwrap().is_null(1));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If an index is out of range.
pub fn take_rows(array: &RaggedArray, rows: &UInt64Array) -> Result<RaggedArray> {
    let n = array.len();
    if let Some(row) = rows.iter().flatten().find(|r| usize::try_from(*r).map_or(true, |r| r >= n))
    {
        return Err(Error::OutOfRange {
            axis: 0,
            index: i64::try_from(row).unwrap_or(i64::MAX),
            size: n,
        });
    }
    let Some(axis) = array.axes().first() else {
        return RaggedArray::try_new(rows.len(), Vec::new(), take(array.leaves(), rows, None)?);
    };
    let at = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
    let layout = axis.layout();
    let nulls = rows.nulls().is_some() || axis.nulls().is_some();
    let nulls = nulls.then(|| {
        NullBuffer::from_iter(
            rows.iter().map(|r| r.is_some_and(|r| axis.nulls().is_none_or(|n| n.is_valid(at(r))))),
        )
    });
    let layout = match layout {
        Layout::Uniform { size, .. } if rows.null_count() == 0 => {
            Layout::Uniform { size: *size, lists: rows.len() }
        }
        _ => make_lists_like(layout, rows.iter().map(|r| r.map_or(0, |r| layout.length(at(r)))))?,
    };
    let ranges = merge_ranges(rows.iter().flatten().map(|r| axis.layout().range(at(r))));
    let below = gather_ranges(&array.inner(1)?, ranges)?;
    replace_axis(array, rows.len(), 1, ListAxis::try_new(layout, nulls)?, below)
}

/// Returns the rows for which `keep` is true; null counts as false.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{BooleanArray, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::gather::filter_rows;
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let found = filter_rows(&a, &BooleanArray::from(vec![false, true]))?;
/// assert_eq!(found.leaves().as_ref(), &Int32Array::from(vec![3]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If `keep` does not have one value per row.
pub fn filter_rows(array: &RaggedArray, keep: &BooleanArray) -> Result<RaggedArray> {
    if keep.len() != array.len() {
        return Err(Error::invalid(format!(
            "the mask has {} value(s) for {} row(s); give one value per row",
            keep.len(),
            array.len()
        )));
    }
    let bits = find_true_bits(keep);
    if array.axes().is_empty() {
        let kept = filter_values(array.leaves(), &bits)?;
        return RaggedArray::try_new(kept.len(), Vec::new(), kept);
    }
    let ranges = BitSliceIterator::new(bits.values(), bits.offset(), bits.len());
    gather_ranges(array, merge_ranges(ranges.map(|(start, end)| start..end)))
}

/// Replaces axis `axis` and all deeper levels; the elements of `level` are the rows of `below`.
pub(crate) fn replace_axis(
    outer: &RaggedArray,
    rows: usize,
    axis: usize,
    level: ListAxis,
    below: RaggedArray,
) -> Result<RaggedArray> {
    let (_, inner, leaves) = below.into_parts();
    let mut axes = outer.axes()[..axis - 1].to_vec();
    axes.push(level);
    axes.extend(inner);
    RaggedArray::try_new(rows, axes, leaves)
}

pub(crate) fn find_rows_of_lists(array: &RaggedArray, axis: usize) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..array.len()).collect();
    for level in &array.axes()[..axis - 1] {
        let layout = level.layout();
        let mut next = Vec::with_capacity(layout.children());
        for (list, row) in rows.iter().enumerate() {
            next.resize(next.len() + layout.length(list), *row);
        }
        rows = next;
    }
    rows
}

pub(crate) fn find_row_of_list(array: &RaggedArray, axis: usize, list: usize) -> usize {
    array.axes()[..axis - 1].iter().rev().fold(list, |at, level| level.layout().list_of(at))
}

/// Gathers the rows of `ranges` like [`take_ranges`]. The caller ensures that the ranges are within
/// the array, and has merged adjacent ranges.
pub(super) fn gather_ranges(
    array: &RaggedArray,
    mut ranges: Vec<Range<usize>>,
) -> Result<RaggedArray> {
    match &ranges[..] {
        [] => return array.slice(0, 0),
        [r] => return array.slice(r.start, r.len()),
        _ => {}
    }
    let rows = count_values(&ranges)?;
    let mut axes = Vec::with_capacity(array.axes().len());
    for axis in array.axes() {
        let lists = count_values(&ranges)?;
        let nulls = axis.nulls().map(|n| NullBuffer::new(gather_bits(n.inner(), &ranges, lists)));
        let below = merge_ranges(ranges.iter().map(|r| axis.layout().ranges(r.clone())));
        let layout = gather_layout(axis.layout(), &ranges, &below)?;
        axes.push(ListAxis::try_new(layout, nulls)?);
        ranges = below;
    }
    let leaves = gather_values(array.leaves(), &ranges)?;
    RaggedArray::try_new(rows, axes, leaves)
}
