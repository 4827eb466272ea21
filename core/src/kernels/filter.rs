//! Filtering of arrays by masks.

use arrow::array::{AsArray, BooleanArray, OffsetSizeTrait};
use arrow::buffer::{BooleanBuffer, OffsetBuffer};

use super::align::{align_arrays, check_mask};
use super::bits::RankedBitmap;
use super::filter_values::filter_values_by_rank;
use super::gather::{filter_rows, replace_axis};
use super::reshape::flatten_all;
use crate::array::nulls::find_true_bits;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::error::{Error, Result};

/// Returns the elements where `mask` is true; a null value or list of the mask counts as false.
///
/// The mask has boolean leaves and either the lists of the array (it selects leaves) or only its
/// outer levels (it selects whole elements of an outer axis). Lists are kept: a list without
/// selected elements becomes empty, and a null list stays null. If no value of the mask is false,
/// the result shares all buffers.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, BooleanArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::filter::filter;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let odd = a.with_leaves(Arc::new(BooleanArray::from(vec![true, false, true, false])))?;
/// let b = filter(&a, &odd)?;
/// assert_eq!(b.lengths(1)?, [2, 0]);
/// assert_eq!(b.leaves().as_primitive::<Int32Type>().values(), &[1, 3]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the mask is not boolean, has no levels of lists or more levels than the array, or two valid
/// lists differ in length.
pub fn filter(array: &RaggedArray, mask: &RaggedArray) -> Result<RaggedArray> {
    let axis = find_masked_axis(array, mask)?;
    let (array, mask) = align_arrays(array, mask, axis)?;
    filter_elements(array, find_true_bits(mask.leaves().as_boolean()), axis)
}

/// Returns, in one list per row, the leaves for which `mask` is true, like NumPy's `compress`.
///
/// Equals [`filter`] followed by [`flatten_all`], without building the lists in between. A null row
/// stays null; nulls inside a row are treated as in [`filter`]. The leaves are shared if no mask
/// value is false.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, BooleanArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::filter::compress;
/// // [[[1, 2], [3]], [[4]]]
/// let axes = vec![Offsets::from_lengths([2, 1])?.into(), Offsets::from_lengths([2, 1, 1])?.into()];
/// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3, 4])))?;
/// let odd = a.with_leaves(Arc::new(BooleanArray::from(vec![true, false, true, false])))?;
/// let b = compress(&a, &odd)?;
/// assert_eq!(b.lengths(1)?, [2, 0]);
/// assert_eq!(b.leaves().as_primitive::<Int32Type>().values(), &[1, 3]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`filter`].
pub fn compress(array: &RaggedArray, mask: &RaggedArray) -> Result<RaggedArray> {
    let axis = find_masked_axis(array, mask)?;
    if axis < array.axes().len() {
        return flatten_all(&filter(array, mask)?);
    }
    let (array, mask) = align_arrays(array, mask, axis)?;
    filter_elements(flatten_all(&array)?, find_true_bits(mask.leaves().as_boolean()), 1)
}

fn find_masked_axis(array: &RaggedArray, mask: &RaggedArray) -> Result<usize> {
    check_mask(mask)?;
    let axis = mask.axes().len();
    if axis == 0 || axis > array.axes().len() {
        return Err(Error::invalid(format!(
            "the mask has {axis} level(s) of lists, but the array has {}; the mask needs at least one level, and no more than the array",
            array.axes().len()
        )));
    }
    Ok(axis)
}

fn filter_elements(array: RaggedArray, keep: BooleanBuffer, axis: usize) -> Result<RaggedArray> {
    let rank = RankedBitmap::new(&keep);
    if rank.total() == keep.len() {
        return Ok(array);
    }
    let level = array.axis(axis)?;
    let layout = count_retained(level.layout(), &rank)?;
    let below = if axis == array.axes().len() {
        let leaves = filter_values_by_rank(array.leaves(), &keep, &rank)?;
        RaggedArray::try_new(leaves.len(), Vec::new(), leaves)?
    } else {
        filter_rows(&array.inner(axis)?, &BooleanArray::new(keep, None))?
    };
    let level = ListAxis::try_new(layout, level.nulls().cloned())?;
    replace_axis(&array, array.len(), axis, level, below)
}

/// Returns the offsets of lists that keep only the elements whose bit in `rank` is set.
pub(super) fn count_retained(layout: &Layout, rank: &RankedBitmap) -> Result<Offsets> {
    Ok(match layout {
        Layout::Ragged(Offsets::I32(o)) => Offsets::from(rank_offsets(o, rank)),
        Layout::Ragged(Offsets::I64(o)) => Offsets::from(rank_offsets(o, rank)),
        uniform @ Layout::Uniform { .. } => match uniform.to_offsets()? {
            Offsets::I32(o) => Offsets::from(rank_offsets(&o, rank)),
            Offsets::I64(o) => Offsets::from(rank_offsets(&o, rank)),
        },
    })
}

fn rank_offsets<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    rank: &RankedBitmap,
) -> OffsetBuffer<O> {
    OffsetBuffer::new(rank.count_before_each(offsets).into())
}
