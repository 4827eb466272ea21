use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};

use super::{Reduction, reduce};
use crate::array::RaggedArray;
use crate::array::nulls::find_true_bits;
use crate::array::nulls::replace_validity;
use crate::error::{Error, Result};
use crate::kernels::align::{align_arrays, check_mask};
use crate::kernels::elementwise::repeat_values;
use crate::kernels::levels::merge_all_levels;

/// Reduces the leaves for which `mask` is true, as if all other leaves were null.
///
/// The mask has the lists of the array, or only its outer levels; null counts as false. The result
/// equals [`reduce`] of [`filter`](super::super::filter::filter)`(array, mask)`, except that leaves
/// keep their indices in the lists. The indices matter along an outer axis, and for
/// [`ArgMin`](Reduction::ArgMin) and [`ArgMax`](Reduction::ArgMax).
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, BooleanArray, Float32Array, types::Float32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::reduce::{Reduction, reduce_where};
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Float32Array::from(vec![1., 2., 3., 4.]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let odd = a.with_leaves(Arc::new(BooleanArray::from(vec![true, false, true, false])))?;
/// let found = reduce_where(&a, &odd, Reduction::Sum, None)?;
/// assert_eq!(found.leaves().as_primitive::<Float32Type>().values(), &[4., 0.]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`filter`](super::super::filter::filter) and [`reduce`].
pub fn reduce_where(
    array: &RaggedArray,
    mask: &RaggedArray,
    how: Reduction,
    axis: Option<i64>,
) -> Result<RaggedArray> {
    check_mask(mask)?;
    let levels = mask.axes().len();
    if levels == 0 || levels > array.axes().len() {
        return Err(Error::invalid(format!(
            "the mask has {levels} level(s) of lists, but the array has {}; give a mask with at least one level, and no more levels than the array",
            array.axes().len()
        )));
    }
    let (array, mask) = align_arrays(array, mask, levels)?;
    let mut keep = find_true_bits(mask.leaves().as_boolean());
    if let Some(below) = merge_all_levels(&array.inner(levels)?)? {
        let flags: ArrayRef = Arc::new(BooleanArray::new(keep, None));
        keep = repeat_values(&flags, below.layout())?.as_boolean().values().clone();
    }
    if how == Reduction::Size {
        // [`Reduction::Size`] counts the selected leaves, null or not, so it is the sum of the
        // mask.
        let ones = array.with_leaves(Arc::new(BooleanArray::new(keep, None)))?;
        return reduce(&ones, Reduction::Sum, axis);
    }
    reduce(&array.with_leaves(mask_leaves(array.leaves(), keep)?)?, how, axis)
}

fn mask_leaves(leaves: &ArrayRef, keep: BooleanBuffer) -> Result<ArrayRef> {
    if leaves.data_type().is_null() {
        return Ok(leaves.clone());
    }
    let keep = NullBuffer::new(keep);
    let nulls = NullBuffer::union(leaves.nulls(), Some(&keep));
    replace_validity(leaves, nulls)
}
