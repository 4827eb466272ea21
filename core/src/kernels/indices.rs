//! Converts masks to lists of the indices of their true values, and such lists to masks.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, BooleanBufferBuilder, Int64Array};

use super::CountArgument;
use super::align::check_mask;
use super::argument_casts::cast_arg_integers;
use super::bits::RankedBitmap;
use super::filter::count_retained;
use super::gather::{find_row_of_list, replace_axis};
use super::scatter::new_lists;
use crate::array::nulls::find_true_bits;
use crate::array::{ListAxis, RaggedArray};
use crate::error::{Error, Result};
use crate::index::resolve_position;
use crate::limit::check_size;

/// Returns, per innermost list of a mask, the indices of its true values, ascending, as `Int64`.
///
/// Null counts as false; a null list stays null. Shares the outer lists of the mask.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, BooleanArray, types::Int64Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::indices::indices_from_mask;
/// // [[true, false, true], [true]]
/// let leaves = Arc::new(BooleanArray::from(vec![true, false, true, true]));
/// let mask = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let at = indices_from_mask(&mask)?;
/// assert_eq!(at.leaves().as_primitive::<Int64Type>().values(), &[0, 2, 0]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the leaves are not boolean or there are no lists.
pub fn indices_from_mask(mask: &RaggedArray) -> Result<RaggedArray> {
    check_mask(mask)?;
    let axis = mask.axes().len();
    let level = mask.axis(axis)?;
    let bits = find_true_bits(mask.leaves().as_boolean());
    let layout = count_retained(level.layout(), &RankedBitmap::new(&bits))?;
    let mut out: Vec<i64> = Vec::with_capacity(layout.children());
    let mut lists = 0..level.layout().lists();
    let mut range = 0..0;
    for at in bits.set_indices() {
        while at >= range.end {
            match lists.next() {
                Some(list) => range = level.layout().range(list),
                None => break,
            }
        }
        out.push(i64::try_from(at - range.start).unwrap_or(i64::MAX));
    }
    let level = ListAxis::try_new(layout, level.nulls().cloned())?;
    let below = RaggedArray::try_new(out.len(), Vec::new(), Arc::new(Int64Array::from(out)))?;
    replace_axis(mask, mask.len(), axis, level, below)
}

/// Returns lists of `sizes` booleans that are true at the indices in the innermost lists of
/// `indices`.
///
/// `sizes` is one size for all lists or one per list (an array of integers with the outer lists of
/// the indices, or fewer levels). Indices count from 0, negative indices from the end, and may
/// repeat; null indices are ignored. A null list or a null size gives a null list.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{BooleanArray, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::{CountArgument, indices::mask_from_indices};
/// // [[0, 2], [1]]
/// let leaves = Arc::new(Int64Array::from(vec![0, 2, 1]));
/// let at = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let mask = mask_from_indices(&at, CountArgument::All(3))?;
/// let expected = BooleanArray::from(vec![true, false, true, false, true, false]);
/// assert_eq!(mask.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If an index is out of range ([`Error::OutOfRangeAt`], with row, list, position, index and size),
/// indices or sizes are not integers, or the result exceeds
/// [`DEFAULT_LIMIT`](crate::dense::DenseOptions::DEFAULT_LIMIT).
pub fn mask_from_indices(indices: &RaggedArray, sizes: CountArgument<'_>) -> Result<RaggedArray> {
    const WHAT: &str = "mask_from_indices";
    let (layout, nulls) = new_lists(WHAT, indices, sizes)?;
    check_size(WHAT, layout.children(), 1)?;
    let axis = indices.axes().len();
    let from = indices.axis(axis)?.layout();
    let at = cast_arg_integers("the indices", indices.leaves())?;
    let mut bits = BooleanBufferBuilder::new(layout.children());
    bits.append_n(layout.children(), false);
    for list in (0..from.lists()).filter(|l| nulls.as_ref().is_none_or(|n| n.is_valid(*l))) {
        let target = layout.range(list);
        for (position, i) in from.range(list).enumerate().filter(|(_, i)| at.is_valid(*i)) {
            let index = at.value(i);
            let place =
                resolve_position(index, target.len()).ok_or_else(|| Error::OutOfRangeAt {
                    what: WHAT,
                    row: find_row_of_list(indices, axis, list),
                    list,
                    position,
                    index,
                    size: target.len(),
                })?;
            bits.set_bit(target.start + place, true);
        }
    }
    let leaves = BooleanArray::new(bits.finish(), None);
    let below = RaggedArray::try_new(leaves.len(), Vec::new(), Arc::new(leaves))?;
    replace_axis(indices, indices.len(), axis, ListAxis::try_new(layout, nulls)?, below)
}
