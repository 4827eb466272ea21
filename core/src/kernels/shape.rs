//! Computes lengths of lists, and counts and shapes of rows.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::ArrowNativeType;

use super::bits::RankedBitmap;
use super::levels::merge_all_levels;
use crate::array::nulls::find_validity;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray, resolve_axis};
use crate::error::{Error, Result};
use crate::with_offsets;

fn to_i64(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Returns the length of every list of axis `axis` (1 or more, negative axes count from the
/// innermost): one `Int64` per row for axis 1, lists of lengths with `axis - 1` levels for deeper
/// axes.
///
/// Null elements count; a null list has a null length. Outer levels are shared with the input.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Array, AsArray, Int32Array, types::Int64Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::shape::lengths;
/// // [[1, 2], [], [3]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
/// let n = lengths(&a, 1)?;
/// assert_eq!(n.leaves().as_primitive::<Int64Type>().values(), &[2, 0, 1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis, or `axis` is 0.
pub fn lengths(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    let axis = list_axis(array, axis)?;
    let level = array.axis(axis)?;
    let values: ScalarBuffer<i64> = match level.layout() {
        Layout::Uniform { size, lists } => vec![to_i64(*size); *lists].into(),
        Layout::Ragged(offsets) => with_offsets!(offsets, o => {
            o.windows(2).map(|w| to_i64((w[1] - w[0]).as_usize())).collect()
        }),
    };
    let leaves = Int64Array::try_new(values, level.nulls().cloned())?;
    RaggedArray::try_new(array.len(), array.axes()[..axis - 1].to_vec(), Arc::new(leaves))
}

/// Returns the number of valid leaves of every row; null for a null row.
///
/// Unlike [`lengths`], which counts elements of one level including nulls, this counts values of
/// all levels together, like SQL's `count`.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::shape::count;
/// // [[1, NULL], [3]]
/// let leaves = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// assert_eq!(count(&a)?, Int64Array::from(vec![1, 1]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Never: there is one number per row.
pub fn count(array: &RaggedArray) -> Result<Int64Array> {
    let nulls = find_validity(array.leaves());
    let Some(lists) = merge_all_levels(array)? else {
        let valid = |i| nulls.as_ref().is_none_or(|n| n.is_valid(i));
        return Ok((0..array.len()).map(|i| i64::from(valid(i))).collect());
    };
    let layout = lists.layout();
    let values: ScalarBuffer<i64> = match &nulls {
        None => (0..layout.lists()).map(|i| to_i64(layout.length(i))).collect(),
        Some(n) => {
            let rank = RankedBitmap::new(n.inner());
            let count =
                |r: Range<usize>| to_i64(rank.count_before(r.end) - rank.count_before(r.start));
            (0..layout.lists()).map(|i| count(layout.range(i))).collect()
        }
    };
    Ok(Int64Array::try_new(values, lists.nulls().cloned())?)
}

/// Returns the shape of every row as a list of `ndim - 1` numbers: its length, then the size of
/// each deeper axis if it is uniform (a FixedSizeList) and -1 if it is ragged.
///
/// A null row gives null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, types::Int64Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::shape::row_shapes;
/// // [[[1], [2, 3]], [[4]]]
/// let axes = vec![Offsets::from_lengths([2, 1])?.into(), Offsets::from_lengths([1, 2, 1])?.into()];
/// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3, 4])))?;
/// let shapes = row_shapes(&a)?;
/// assert_eq!(shapes.leaves().as_primitive::<Int64Type>().values(), &[2, -1, 1, -1]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no lists.
pub fn row_shapes(array: &RaggedArray) -> Result<RaggedArray> {
    let deeper: Vec<i64> = array
        .axes()
        .iter()
        .skip(1)
        .map(|a| match a.layout() {
            Layout::Ragged(_) => -1,
            Layout::Uniform { size, .. } => to_i64(*size),
        })
        .collect();
    collect_shapes(array, |_, own, out| {
        out.push(own);
        out.extend_from_slice(&deeper);
    })
}

/// Returns the padded shape of every row as a list of `ndim - 1` numbers: its length, then the
/// length of its longest list on each deeper axis (0 if it has none).
///
/// A null row gives null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::shape::row_max_shapes;
/// // [[[1], [2, 3]], [[4]]]
/// let axes = vec![Offsets::from_lengths([2, 1])?.into(), Offsets::from_lengths([1, 2, 1])?.into()];
/// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3, 4])))?;
/// let found = row_max_shapes(&a)?;
/// assert_eq!(found.leaves().as_ref(), &Int64Array::from(vec![2, 2, 1, 1]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no lists.
pub fn row_max_shapes(array: &RaggedArray) -> Result<RaggedArray> {
    // For each level, the length of the longest list of each row.
    let mut columns: Vec<Vec<i64>> = Vec::new();
    let mut window: Vec<usize> = match array.axes().first() {
        Some(axis) => list_ends(axis.layout()),
        None => Vec::new(),
    };
    for axis in array.axes().iter().skip(1) {
        let layout = axis.layout();
        let mut longest = Vec::with_capacity(array.len());
        let mut start = 0;
        for end in &window {
            let n = (start..*end).map(|i| layout.length(i)).max().unwrap_or(0);
            longest.push(to_i64(n));
            start = *end;
        }
        columns.push(longest);
        for end in &mut window {
            *end = layout.ranges(0..*end).end;
        }
    }
    collect_shapes(array, |row, own, out| {
        out.push(own);
        out.extend(columns.iter().map(|c| c[row]));
    })
}

fn list_ends(layout: &Layout) -> Vec<usize> {
    (0..layout.lists()).map(|i| layout.range(i).end).collect()
}

fn collect_shapes(
    array: &RaggedArray,
    mut push: impl FnMut(usize, i64, &mut Vec<i64>),
) -> Result<RaggedArray> {
    let level = array.axis(1)?;
    let each = array.axes().len();
    let nulls: Option<NullBuffer> = level.nulls().cloned();
    let valid = |i| nulls.as_ref().is_none_or(|n| n.is_valid(i));
    let mut values = Vec::with_capacity(array.len().saturating_mul(each));
    for row in (0..array.len()).filter(|r| valid(*r)) {
        push(row, to_i64(level.layout().length(row)), &mut values);
    }
    let offsets = Offsets::from_lengths((0..array.len()).map(|i| if valid(i) { each } else { 0 }))?;
    let leaves: ArrayRef = Arc::new(Int64Array::from(values));
    RaggedArray::try_new(array.len(), vec![ListAxis::try_new(offsets, nulls)?], leaves)
}

/// Converts `axis` to an index of an axis of lists, 1 or more; a negative `axis` counts from the
/// innermost. Returns an error for axis 0 and for an axis that the array does not have.
pub(crate) fn list_axis(array: &RaggedArray, axis: i64) -> Result<usize> {
    match resolve_axis(axis, array.ndim(), "the array")? {
        0 if array.ndim() == 1 => Err(Error::invalid(
            "the array has no lists, but an axis of lists is needed; nest the values in lists first",
        )),
        0 => Err(Error::invalid(format!(
            "axis {axis} is the rows, but an axis of lists is needed; use an axis from 1 to {}, or from -1 (the innermost) to -{}",
            array.ndim() - 1,
            array.ndim() - 1
        ))),
        axis => Ok(axis),
    }
}
