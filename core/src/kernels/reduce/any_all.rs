use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar};
use arrow::buffer::BooleanBuffer;
use arrow::compute::cast;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType, UInt8Type};

use super::fold::{ExtremeFold, Largest, Smallest};
use super::groups::{LeafGroups, compute_counts_of_lists, rank_valid};
use super::{ReduceTask, Reduction};
use crate::array::nulls::find_true_bits;
use crate::error::Result;
use crate::kernels::bits::RankedBitmap;

pub(super) fn reduce_any_all(leaves: &ArrayRef, task: &ReduceTask) -> Result<ArrayRef> {
    let flags = to_booleans(leaves)?;
    let any = task.how == Reduction::Any;
    let LeafGroups::Lists(level) = &task.groups else { return reduce_stacked(&flags, task, any) };
    // For `all`, search for false leaves: a list with a false leaf is false. The result is negated
    // below.
    let found = if any { find_true_bits(&flags) } else { find_false_bits(&flags) };
    let rank = RankedBitmap::new(&found);
    let bits = match rank.total() {
        0 => BooleanBuffer::new_unset(level.layout().lists()),
        _ => {
            let counts = compute_counts_of_lists(level.layout(), Some(&rank));
            BooleanBuffer::collect_bool(counts.len(), |i| counts[i] > 0)
        }
    };
    let bits = if any { bits } else { !&bits };
    Ok(Arc::new(BooleanArray::new(bits, level.nulls().cloned())))
}

fn find_false_bits(flags: &BooleanArray) -> BooleanBuffer {
    let bits = !flags.values();
    match flags.nulls() {
        Some(nulls) => &bits & nulls.inner(),
        None => bits,
    }
}

fn reduce_stacked(flags: &BooleanArray, task: &ReduceTask, any: bool) -> Result<ArrayRef> {
    let bytes = cast(flags, &DataType::UInt8)?;
    let (valid, bytes) = (rank_valid(&bytes), bytes.as_primitive::<UInt8Type>().values());
    let found = if any {
        task.groups.fold::<ExtremeFold<u8, Largest>>(bytes, valid.as_ref())?
    } else {
        task.groups.fold::<ExtremeFold<u8, Smallest>>(bytes, valid.as_ref())?
    };
    Ok(Arc::new(BooleanArray::from_iter(found.into_iter().map(|v| Some(v > 0)))))
}

/// Converts leaves to booleans: nonzero numbers are true, and so is NaN.
fn to_booleans(leaves: &ArrayRef) -> Result<BooleanArray> {
    if let Some(flags) = leaves.as_boolean_opt() {
        return Ok(flags.clone());
    }
    if leaves.data_type().is_null() {
        return Ok(BooleanArray::new_null(leaves.len()));
    }
    let zero = cast(&arrow::array::Int8Array::from(vec![0]), leaves.data_type())?;
    let zeros = cmp::eq(leaves, &Scalar::new(zero.clone()))?;
    let mut zeros = zeros;
    if leaves.data_type().is_floating() {
        // Arrow's comparison distinguishes 0.0 and -0.0, so compare the leaves with -0.0, too.
        let minus = arrow::compute::kernels::numeric::neg(&zero)?;
        zeros = arrow::compute::or(&zeros, &cmp::eq(leaves, &Scalar::new(minus))?)?;
    }
    Ok(arrow::compute::not(&zeros)?)
}
