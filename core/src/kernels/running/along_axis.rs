//! Runs an operation along any axis as an operation on lists of leaves.

use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::take;

use crate::array::{Layout, RaggedArray};
use crate::error::Result;
use crate::kernels::reduce::{AxisGroups, group_along_axis};

/// Applies `work` to the leaves and to the lists in which an operation runs along `axis`. For an
/// outer axis, each of these lists has the leaves at the same index of successive elements.
pub(super) fn apply_in_lists(
    array: &RaggedArray,
    axis: i64,
    work: impl FnOnce(&ArrayRef, &Layout) -> Result<ArrayRef>,
) -> Result<RaggedArray> {
    match group_along_axis(array, axis)? {
        AxisGroups::Lists(lists) => array.with_leaves(work(array.leaves(), &lists)?),
        AxisGroups::Stacked(stacked) => {
            let (order, lists) = stacked.order_by_slot()?;
            let found = work(&take(array.leaves(), &order, None)?, &lists)?;
            // Restore the order of the array: `found[i]` is the result of leaf `order[i]`.
            let mut back = vec![0u64; order.len()];
            for (to, from) in order.values().iter().enumerate() {
                back[usize::try_from(*from).unwrap_or(usize::MAX)] = to as u64;
            }
            array.with_leaves(take(&found, &UInt64Array::from(back), None)?)
        }
    }
}
