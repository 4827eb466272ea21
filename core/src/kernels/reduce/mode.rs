use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, NullArray, make_comparator};
use arrow::compute::SortOptions;
use arrow::datatypes::ArrowNativeTypeOp;

use super::ReduceTask;
use super::distinct::ValidLeaves;
use super::groups::{GroupLists, rank_valid};
use super::pick::{ChosenLeaves, take_chosen};
use crate::array::canonical::to_canonical_floats;
use crate::error::Result;
use crate::kernels::bits::RankedBitmap;
use crate::kernels::native::dispatch_native;

pub(super) fn reduce_mode(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    if leaves.data_type().is_null() {
        return Ok(Arc::new(NullArray::new(task.groups.len())));
    }
    // After this conversion, both zeros compare equal, and all NaN compare equal and greatest.
    let leaves = to_canonical_floats(leaves)?;
    let lists = task.groups.gather_leaves(&leaves)?;
    let chosen = choose_modes(&lists)?;
    take_chosen(&leaves, &lists, &chosen)
}

fn choose_modes(lists: &GroupLists) -> Result<ChosenLeaves> {
    let leaves = &lists.leaves;
    Ok(dispatch_native!(leaves, values, T => choose_by_value::<T>(values, lists), {
        let compare = make_comparator(leaves, leaves, SortOptions::default())?;
        let valid = lists.valid().map(|n| RankedBitmap::new(n.inner()));
        choose_most_frequent(lists, valid.as_ref(), |i| i, compare)
    }))
}

fn choose_by_value<T: ArrowPrimitiveType>(leaves: &ArrayRef, lists: &GroupLists) -> ChosenLeaves {
    let flat = leaves.as_primitive::<T>().values();
    choose_most_frequent(lists, rank_valid(leaves).as_ref(), |i| flat[i], |a, b| a.compare(b))
}

/// Chooses a leaf of each list: one that has the most frequent key. If several keys are equally
/// frequent, chooses the smallest of them.
fn choose_most_frequent<K: Copy>(
    lists: &GroupLists,
    valid: Option<&RankedBitmap>,
    key: impl Fn(usize) -> K,
    compare: impl Fn(K, K) -> Ordering,
) -> ChosenLeaves {
    let layout = lists.lists.layout();
    let mut sorted: Vec<(K, usize)> = Vec::new();
    let choose = |list: usize| {
        sorted.clear();
        ValidLeaves { valid, list: layout.range(list) }.for_each(|i| sorted.push((key(i), i)));
        sorted.sort_unstable_by(|a, b| compare(a.0, b.0).then(a.1.cmp(&b.1)));
        let mut best: Option<&[(K, usize)]> = None;
        for run in sorted.chunk_by(|a, b| compare(a.0, b.0).is_eq()) {
            if best.is_none_or(|best| run.len() > best.len()) {
                best = Some(run);
            }
        }
        Some(best?.first()?.1)
    };
    (0..layout.lists()).map(choose).collect()
}
