//! The most frequent value.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, NullArray, make_comparator};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{
    ArrowNativeTypeOp, DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::ReduceTask;
use super::distinct::ValidLeaves;
use super::groups::GroupLists;
use super::numbers::rank_valid;
use super::pick::{Chosen, take_chosen};
use crate::error::Result;
use crate::kernels::bits::Rank;
use crate::kernels::canonical::canonical_floats;
use crate::kernels::native::{native_int, reinterpret_values};

/// [`Reduction::Mode`](super::Reduction::Mode).
pub(super) fn reduce_mode(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    if leaves.data_type().is_null() {
        return Ok(Arc::new(NullArray::new(task.groups.len())));
    }
    // Equal values are then alike: there is one zero, and one NaN, which is greater than any number.
    let leaves = canonical_floats(leaves)?;
    let lists = task.groups.gather_leaves(&leaves)?;
    let chosen = choose_modes(&lists)?;
    take_chosen(&leaves, &lists, &chosen)
}

fn choose_modes(lists: &GroupLists) -> Result<Chosen> {
    macro_rules! by {
        ($t:ty, $leaves:expr) => {
            choose_by_value::<$t>($leaves, lists)
        };
    }
    let leaves = &lists.leaves;
    Ok(match leaves.data_type() {
        DataType::Int8 => by!(Int8Type, leaves),
        DataType::Int16 => by!(Int16Type, leaves),
        DataType::UInt8 => by!(UInt8Type, leaves),
        DataType::UInt16 => by!(UInt16Type, leaves),
        DataType::UInt32 => by!(UInt32Type, leaves),
        DataType::UInt64 => by!(UInt64Type, leaves),
        DataType::Float32 => by!(Float32Type, leaves),
        DataType::Float64 => by!(Float64Type, leaves),
        DataType::Float16 => by!(Float32Type, &cast(leaves, &DataType::Float32)?),
        DataType::Boolean => by!(UInt8Type, &cast(leaves, &DataType::UInt8)?),
        t => match native_int(t) {
            Some(DataType::Int32) => by!(Int32Type, &reinterpret_values(leaves, &DataType::Int32)?),
            Some(_) => by!(Int64Type, &reinterpret_values(leaves, &DataType::Int64)?),
            None => {
                let compare = make_comparator(leaves, leaves, SortOptions::default())?;
                let valid = lists.valid().map(|n| Rank::new(n.inner()));
                choose_most_frequent(lists, valid.as_ref(), |i| i, compare)
            }
        },
    })
}

fn choose_by_value<T: ArrowPrimitiveType>(leaves: &ArrayRef, lists: &GroupLists) -> Chosen {
    let flat = leaves.as_primitive::<T>().values();
    choose_most_frequent(lists, rank_valid(leaves).as_ref(), |i| flat[i], |a, b| a.compare(b))
}

/// Chooses the smallest of the most frequent values of each list: sorts its valid leaves by `key`
/// and takes the first leaf of the longest run of equal keys.
fn choose_most_frequent<K: Copy>(
    lists: &GroupLists,
    valid: Option<&Rank>,
    key: impl Fn(usize) -> K,
    compare: impl Fn(K, K) -> Ordering,
) -> Chosen {
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
