//! Lengths, counts and shapes, per row.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::ArrowNativeType;

use super::bits::Rank;
use super::reshape::leaf_lists;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray, resolve_axis};
use crate::error::{Error, Result};
use crate::with_offsets;

fn int(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Length of every list of axis `axis` (1.., negatives from the innermost): one `Int64` per row for
/// axis 1, lists of lengths with `axis - 1` levels below that.
///
/// Null elements count, they take up a place; the length of a null list is null. The outer levels
/// are shared with the input.
///
/// ```
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
/// When the array has no such axis, or `axis` is 0.
pub fn lengths(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    let axis = list_axis(array, axis)?;
    let level = array.axis(axis)?;
    let values: ScalarBuffer<i64> = match level.layout() {
        Layout::Uniform { size, lists } => vec![int(*size); *lists].into(),
        Layout::Ragged(offsets) => with_offsets!(offsets, o => {
            o.windows(2).map(|w| int((w[1] - w[0]).as_usize())).collect()
        }),
    };
    let leaves = Int64Array::try_new(values, level.nulls().cloned())?;
    RaggedArray::try_new(array.len(), array.axes()[..axis - 1].to_vec(), Arc::new(leaves))
}

/// Number of leaves of every row that are not null; null for a null row.
///
/// [`lengths`] counts places, null or not, of one level; this counts values, of all levels
/// together, as SQL's `count` does.
pub fn count(array: &RaggedArray) -> Result<Int64Array> {
    let nulls = array.leaves().logical_nulls().filter(|n| n.null_count() > 0);
    let Some(lists) = leaf_lists(array)? else {
        let valid = |i| nulls.as_ref().is_none_or(|n| n.is_valid(i));
        return Ok((0..array.len()).map(|i| i64::from(valid(i))).collect());
    };
    let layout = lists.layout();
    let values: ScalarBuffer<i64> = match &nulls {
        None => (0..layout.lists()).map(|i| int(layout.length(i))).collect(),
        Some(n) => {
            let rank = Rank::new(n.inner());
            let count = |r: Range<usize>| int(rank.rank(r.end) - rank.rank(r.start));
            (0..layout.lists()).map(|i| count(layout.range(i))).collect()
        }
    };
    Ok(Int64Array::try_new(values, lists.nulls().cloned())?)
}

/// Shape of every row, as a list of `ndim - 1` numbers: its own length, then for each deeper axis
/// its size where it is uniform (a FixedSizeList) and -1 where it is ragged. Null for a null row.
pub fn row_shapes(array: &RaggedArray) -> Result<RaggedArray> {
    let deeper: Vec<i64> = array
        .axes()
        .iter()
        .skip(1)
        .map(|a| match a.layout() {
            Layout::Ragged(_) => -1,
            Layout::Uniform { size, .. } => int(*size),
        })
        .collect();
    shapes(array, |_, own, out| {
        out.push(own);
        out.extend_from_slice(&deeper);
    })
}

/// Extent of every row, as a list of `ndim - 1` numbers: its own length, then for each deeper axis
/// the longest list the row has there (0 when it has none): the shape of the row when padded. Null
/// for a null row.
pub fn row_max_shapes(array: &RaggedArray) -> Result<RaggedArray> {
    // Per level the longest list of each row.
    let mut columns: Vec<Vec<i64>> = Vec::new();
    let mut window: Vec<usize> = match array.axes().first() {
        Some(axis) => ends(axis.layout()),
        None => Vec::new(),
    };
    for axis in array.axes().iter().skip(1) {
        let layout = axis.layout();
        let mut longest = Vec::with_capacity(array.len());
        let mut start = 0;
        for end in &window {
            let n = (start..*end).map(|i| layout.length(i)).max().unwrap_or(0);
            longest.push(int(n));
            start = *end;
        }
        columns.push(longest);
        for end in &mut window {
            *end = layout.ranges(0..*end).end;
        }
    }
    shapes(array, |row, own, out| {
        out.push(own);
        out.extend(columns.iter().map(|c| c[row]));
    })
}

/// Where each list ends among the children.
fn ends(layout: &Layout) -> Vec<usize> {
    (0..layout.lists()).map(|i| layout.range(i).end).collect()
}

fn shapes(
    array: &RaggedArray,
    mut push: impl FnMut(usize, i64, &mut Vec<i64>),
) -> Result<RaggedArray> {
    let level = array.axis(1)?;
    let each = array.axes().len();
    let nulls: Option<NullBuffer> = level.nulls().cloned();
    let valid = |i| nulls.as_ref().is_none_or(|n| n.is_valid(i));
    let mut values = Vec::with_capacity(array.len().saturating_mul(each));
    for row in (0..array.len()).filter(|r| valid(*r)) {
        push(row, int(level.layout().length(row)), &mut values);
    }
    let offsets = Offsets::from_lengths((0..array.len()).map(|i| if valid(i) { each } else { 0 }))?;
    let leaves: ArrayRef = Arc::new(Int64Array::from(values));
    RaggedArray::try_new(array.len(), vec![ListAxis::try_new(offsets, nulls)?], leaves)
}

/// An axis of lists by number, negatives from the innermost; axis 0 is refused.
pub(crate) fn list_axis(array: &RaggedArray, axis: i64) -> Result<usize> {
    match resolve_axis(axis, array.ndim(), "the array")? {
        0 => Err(Error::invalid(format!(
            "axis {axis} is the rows, which this does not cross; axes of lists are 1 to {} or, from the innermost, -1 to -{}",
            array.ndim() - 1,
            array.ndim() - 1
        ))),
        axis => Ok(axis),
    }
}
