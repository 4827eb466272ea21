//! Fills null leaves with the valid leaf before or after them.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, UInt64Array};
use arrow::buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use arrow::compute::take;
use arrow::datatypes::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow::util::bit_util;

use super::along_axis::apply_in_lists;
use crate::array::nulls::find_validity;
use crate::array::{Layout, RaggedArray};
use crate::error::Result;
use crate::kernels::allocate::allocate_values;
use crate::kernels::native::reinterpret_values;
use crate::kernels::reduce::{AxisGroups, group_along_axis};

/// Replaces each null leaf with the last valid leaf before it along axis `axis`; nulls before the
/// first valid leaf stay null.
///
/// NaN is a valid value. Shares all buffers if no leaf is null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::running::forward_fill;
/// // [[NULL, 1, NULL], [NULL]]
/// let leaves = Arc::new(Int32Array::from(vec![None, Some(1), None, None]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let expected = Int32Array::from(vec![None, Some(1), Some(1), None]);
/// assert_eq!(forward_fill(&a, 1)?.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis.
pub fn forward_fill(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    fill_gaps(array, axis, false)
}

/// Replaces nulls with the next valid leaf along `axis`; nulls after the last valid leaf stay null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::running::backward_fill;
/// // [[NULL, 1, NULL], [2]]
/// let leaves = Arc::new(Int32Array::from(vec![None, Some(1), None, Some(2)]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let expected = Int32Array::from(vec![Some(1), Some(1), None, Some(2)]);
/// assert_eq!(backward_fill(&a, 1)?.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis.
pub fn backward_fill(array: &RaggedArray, axis: i64) -> Result<RaggedArray> {
    fill_gaps(array, axis, true)
}

fn fill_gaps(array: &RaggedArray, axis: i64, back: bool) -> Result<RaggedArray> {
    let groups = group_along_axis(array, axis)?;
    let nulls = find_validity(array.leaves());
    let Some(nulls) = nulls.filter(|_| !array.leaf_type().is_null()) else {
        return Ok(array.clone());
    };
    if let AxisGroups::Stacked(_) = groups {
        return apply_in_lists(array, axis, |leaves, lists| {
            let nulls = find_validity(leaves);
            nulls.map_or_else(|| Ok(leaves.clone()), |n| fill_lists(leaves, &n, lists, back))
        });
    }
    let AxisGroups::Lists(lists) = groups else { return Ok(array.clone()) };
    array.with_leaves(fill_lists(array.leaves(), &nulls, &lists, back)?)
}

fn fill_lists(
    leaves: &ArrayRef,
    nulls: &NullBuffer,
    lists: &Layout,
    back: bool,
) -> Result<ArrayRef> {
    let mut valid = MutableBuffer::from(nulls.inner().sliced().as_slice().to_vec());
    for_each_gap(nulls, lists, back, |nulls, _| {
        nulls.for_each(|i| bit_util::set_bit(valid.as_slice_mut(), i));
    });
    let valid = NullBuffer::new(BooleanBuffer::new(valid.into(), 0, leaves.len()));
    let valid = Some(valid).filter(|n| n.null_count() > 0);
    macro_rules! by_width {
        ($($width:literal => $t:ty),*) => {
            match leaves.data_type().primitive_width() {
                $(Some($width) => {
                    let same = reinterpret_values(leaves, &<$t>::DATA_TYPE)?;
                    let mut out = allocate_values(leaves.len());
                    out.extend_from_slice(same.as_primitive::<$t>().values());
                    for_each_gap(nulls, lists, back, |nulls, source| {
                        let value = out[source];
                        out[nulls].fill(value);
                    });
                    let out: ArrayRef = Arc::new(PrimitiveArray::<$t>::try_new(out.into(), valid)?);
                    reinterpret_values(&out, leaves.data_type())
                })*
                _ => {
                    let mut sources: Vec<u64> = (0..leaves.len() as u64).collect();
                    for_each_gap(nulls, lists, back, |nulls, source| {
                        sources[nulls].fill(source as u64);
                    });
                    Ok(take(leaves, &UInt64Array::from(sources), None)?)
                }
            }
        };
    }
    by_width!(1 => UInt8Type, 2 => UInt16Type, 4 => UInt32Type, 8 => UInt64Type)
}

/// Calls `each` for each run of nulls in a list, with the indices of the run and the index of the
/// leaf before it (after it if `back` is set), if this leaf is in the same list.
fn for_each_gap(
    nulls: &NullBuffer,
    lists: &Layout,
    back: bool,
    mut each: impl FnMut(Range<usize>, usize),
) {
    let gaps = !nulls.inner();
    let mut list = 0;
    let mut range = if lists.lists() > 0 { lists.range(0) } else { 0..0 };
    for (start, end) in gaps.set_slices() {
        let mut at = start;
        while at < end {
            while range.end <= at {
                list += 1;
                range = lists.range(list);
            }
            let stop = end.min(range.end);
            let source = match back {
                false => at.checked_sub(1).filter(|before| *before >= range.start),
                true => Some(stop).filter(|after| *after < range.end),
            };
            if let Some(source) = source {
                each(at..stop, source);
            }
            at = stop;
        }
    }
}
