//! Keeping the elements a mask says.

use arrow::array::{AsArray, BooleanArray, OffsetSizeTrait};
use arrow::buffer::{BooleanBuffer, OffsetBuffer};
use arrow::datatypes::DataType;

use super::align::aligned;
use super::bits::Rank;
use super::gather::{filter_rows, true_bits, with_axis};
use super::kept::kept_of;
use super::reshape::flatten_all;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::error::{Error, Result};

/// The elements for which `mask` is true; null is false, and so is everything under a null list of
/// the mask.
///
/// The mask has Boolean leaves and either the same lists as the array (it picks leaves), or only its
/// outer levels (it picks whole elements of an outer axis, with all they hold). Lists stay: one
/// without a chosen element is empty, a null one is null. A mask without a false shares all buffers.
///
/// ```
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
/// When the mask is not Boolean, has no levels or more than the array, or has a list (not null on
/// either side) of another length.
pub fn filter(array: &RaggedArray, mask: &RaggedArray) -> Result<RaggedArray> {
    let axis = masked_axis(array, mask)?;
    let (array, mask) = aligned(array, mask, axis)?;
    chosen(array, true_bits(mask.leaves().as_boolean()), axis)
}

/// The leaves for which `mask` is true, in one list per row: [`filter`], then
/// [`flatten_all`], without the lists in between, as numpy's `compress`.
///
/// A null row stays null; null lists and values inside a row are as in [`filter`]. Where nothing is
/// false, the leaves are shared.
///
/// ```
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
/// As [`filter`].
pub fn compress(array: &RaggedArray, mask: &RaggedArray) -> Result<RaggedArray> {
    let axis = masked_axis(array, mask)?;
    if axis < array.axes().len() {
        return flatten_all(&filter(array, mask)?);
    }
    let (array, mask) = aligned(array, mask, axis)?;
    chosen(flatten_all(&array)?, true_bits(mask.leaves().as_boolean()), 1)
}

/// The axis whose elements a mask picks.
fn masked_axis(array: &RaggedArray, mask: &RaggedArray) -> Result<usize> {
    if *mask.leaf_type() != DataType::Boolean {
        return Err(Error::type_of("the mask", DataType::Boolean.to_string(), mask.leaf_type()));
    }
    let axis = mask.axes().len();
    if axis == 0 || axis > array.axes().len() {
        return Err(Error::invalid(format!(
            "a mask with {axis} level(s) of lists for an array with {}; it needs at least one and no more than the array",
            array.axes().len()
        )));
    }
    Ok(axis)
}

/// The elements of `axis` whose bits are set.
fn chosen(array: RaggedArray, keep: BooleanBuffer, axis: usize) -> Result<RaggedArray> {
    let rank = Rank::new(&keep);
    if rank.total() == keep.len() {
        return Ok(array);
    }
    let level = array.axis(axis)?;
    let layout = counted(level.layout(), &rank)?;
    let below = if axis == array.axes().len() {
        let leaves = kept_of(array.leaves(), &keep, &rank)?;
        RaggedArray::try_new(leaves.len(), Vec::new(), leaves)?
    } else {
        filter_rows(&array.inner(axis)?, &BooleanArray::new(keep, None))?
    };
    let level = ListAxis::try_new(layout, level.nulls().cloned())?;
    with_axis(&array, array.len(), axis, level, below)
}

/// Lists of the elements whose bits are set.
pub(super) fn counted(layout: &Layout, rank: &Rank) -> Result<Offsets> {
    Ok(match layout {
        Layout::Ragged(Offsets::I32(o)) => Offsets::from(ranked(o, rank)),
        Layout::Ragged(Offsets::I64(o)) => Offsets::from(ranked(o, rank)),
        uniform @ Layout::Uniform { .. } => match uniform.to_offsets()? {
            Offsets::I32(o) => Offsets::from(ranked(&o, rank)),
            Offsets::I64(o) => Offsets::from(ranked(&o, rank)),
        },
    })
}

/// Offsets counted in set bits.
fn ranked<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, rank: &Rank) -> OffsetBuffer<O> {
    OffsetBuffer::new(rank.ranks(offsets).into())
}
