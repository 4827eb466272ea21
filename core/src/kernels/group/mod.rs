//! Groups the elements of each list by keys, which are in a parallel list: one key per element.
//!
//! A group is a list of its own, so that reductions along the innermost axis aggregate groups. Keys
//! are in ascending order. Null is the last key, as in SQL's GROUP BY; all NaN are one key, and so
//! are both zeros. Elements of a group keep their order. Arrays grouped by the same keys get the
//! same lists. Keys may be structs, which are ordered field by field, to group by several lists.

mod fixed_keys;
pub(super) mod key_codes;
mod list_groups;
mod sorted_keys;
mod text_ranks;

use arrow::compute::take;

use super::align::share_lists;
use super::gather::take_rows;
use crate::array::{ListAxis, RaggedArray, make_lists_like};
use crate::error::{Error, Result};
use sorted_keys::SortedKeys;

pub use fixed_keys::group_on;

/// Returns the distinct keys of every innermost list in ascending order, null last.
///
/// Float keys are canonical: 0.0 for both zeros, and one NaN. A null list stays null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::group::group_keys;
/// // [[7, NULL, 5, 7], []]
/// let leaves = Arc::new(Int32Array::from(vec![Some(7), None, Some(5), Some(7)]));
/// let keys = RaggedArray::try_new(2, vec![Offsets::from_lengths([4, 0])?.into()], leaves)?;
/// let found = group_keys(&keys)?;
/// assert_eq!(found.lengths(1)?, [3, 0]);
/// assert_eq!(found.leaves().as_ref(), &Int32Array::from(vec![Some(5), Some(7), None]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array is flat, or its leaves cannot be compared.
pub fn group_keys(keys: &RaggedArray) -> Result<RaggedArray> {
    SortedKeys::from_keys(keys)?.keys()
}

/// Divides every list into one list per key of [`group_keys`], in the order of these keys.
///
/// `keys` has the lists of the array or only its outer levels, to group whole elements of an outer
/// axis, such as visits by month. A list that is null in either array is null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{AsArray, Int32Array, Int64Array, types::Int64Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::group::group;
/// use serrate::kernels::reduce::sum;
/// // [[1, 2, 3, 4]] by [[7, 5, 5, 7]]
/// let axes = vec![Offsets::from_lengths([4])?.into()];
/// let keys = RaggedArray::try_new(1, axes, Arc::new(Int32Array::from(vec![7, 5, 5, 7])))?;
/// let a = keys.with_leaves(Arc::new(Int64Array::from(vec![1, 2, 3, 4])))?;
/// let found = group(&a, &keys)?;
/// assert_eq!(found.lengths(2)?, [2, 2]);
/// assert_eq!(found.leaves().as_primitive::<Int64Type>().values(), &[2, 3, 1, 4]);
/// assert_eq!(sum(&found, Some(-1))?.leaves().as_ref(), &Int64Array::from(vec![5, 5]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If `keys` is flat or has more levels than the array, lists differ in length, or keys cannot be
/// compared.
pub fn group(array: &RaggedArray, keys: &RaggedArray) -> Result<RaggedArray> {
    let axis = check_levels(array, keys)?;
    let (array, keys) = share_lists(array, keys, axis)?;
    let sorted = SortedKeys::from_keys(&keys)?;
    let level = array.axis(axis)?;
    let layout = make_lists_like(level.layout(), sorted.group_counts().iter().copied())?;
    let groups = ListAxis::try_new(layout, level.nulls().cloned())?;
    let members = make_lists_like(level.layout(), sorted.group_sizes().iter().copied())?.into();
    let order = sorted.leaf_order();
    let below = if !sorted.is_moved() {
        array.inner(axis)?
    } else if axis == array.axes().len() {
        RaggedArray::try_new(order.len(), Vec::new(), take(array.leaves(), order, None)?)?
    } else {
        take_rows(&array.inner(axis)?, order)?
    };
    stack_levels(&array, axis, groups, members, below)
}

/// Returns the axis whose elements are grouped: the innermost axis of the keys. Returns an error if
/// the keys have no level of lists, or more levels than the array.
fn check_levels(array: &RaggedArray, keys: &RaggedArray) -> Result<usize> {
    let (levels, axis) = (array.axes().len(), keys.axes().len());
    if axis == 0 || axis > levels {
        return Err(Error::invalid(format!(
            "the array has {levels} level(s) of lists, but the keys to group by have {axis}; the keys need at least one level, and no more than the array"
        )));
    }
    Ok(axis)
}

/// Builds an array from four parts: the levels of `outer` above axis `axis`; the level `groups` of
/// groups; the level `members` with one list of elements per group; and `below`, whose rows are
/// these elements.
fn stack_levels(
    outer: &RaggedArray,
    axis: usize,
    groups: ListAxis,
    members: ListAxis,
    below: RaggedArray,
) -> Result<RaggedArray> {
    let (_, inner, leaves) = below.into_parts();
    let mut axes = outer.axes()[..axis - 1].to_vec();
    axes.extend([groups, members]);
    axes.extend(inner);
    RaggedArray::try_new(outer.len(), axes, leaves)
}
