//! Shifts leaves along an axis.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, MutableArrayData, PrimitiveArray, UInt64Array,
    make_array,
};
use arrow::buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use arrow::compute::take;
use arrow::datatypes::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow::util::bit_util;

use crate::array::nulls::replace_validity;
use crate::array::{Layout, RaggedArray};
use crate::error::{Error, Result};
use crate::kernels::allocate::allocate_values;
use crate::kernels::argument_casts::cast_exactly;
use crate::kernels::elementwise::for_each_length;
use crate::kernels::native::reinterpret_values;
use crate::kernels::reduce::{AxisGroups, group_along_axis};

/// Replaces each leaf with the leaf `n` elements before it along axis `axis` (after it for negative
/// `n`).
///
/// If there is no such leaf, takes the value of `fill` (a flat array of one value), or null without
/// `fill`. Along an outer axis, takes the leaf at the same index of the element that lies `n`
/// elements before.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Array, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::running::shift;
/// // [[1, 2, 3], [4]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let b = shift(&a, 1, None, -1)?;
/// let expected = Int32Array::from(vec![None, Some(1), Some(2), None]);
/// assert_eq!(b.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis, or `fill` is not one value of the type of the leaves.
pub fn shift(
    array: &RaggedArray,
    n: i64,
    fill: Option<&ArrayRef>,
    axis: i64,
) -> Result<RaggedArray> {
    let fill = match fill {
        Some(fill) if fill.len() != 1 => {
            return Err(Error::invalid(format!(
                "shift: the fill has {} values; give exactly one value",
                fill.len()
            )));
        }
        Some(fill) => Some(cast_exactly("the fill of shift", fill, array.leaf_type())?),
        None => None,
    };
    let leaves = array.leaves();
    let distance = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    let (found, has_source) = match group_along_axis(array, axis)? {
        AxisGroups::Lists(_) if distance == 0 || leaves.is_empty() => return Ok(array.clone()),
        AxisGroups::Lists(lists) => shift_lists(leaves, &lists, n < 0, distance)?,
        AxisGroups::Stacked(stacked) => {
            let from = stacked.shift_leaves(n)?;
            let has_source = BooleanBuffer::from_iter(from.iter().map(|i| i.is_some()));
            (take(leaves, &UInt64Array::from(from), None)?, has_source)
        }
    };
    let found = match fill {
        Some(fill) if fill.is_valid(0) => {
            let has_source = arrow::array::BooleanArray::new(has_source, None);
            let fill = arrow::array::Scalar::new(fill);
            arrow::compute::kernels::zip::zip(&has_source, &found, &fill)?
        }
        _ => found,
    };
    array.with_leaves(found)
}

/// Shifts all leaves towards the end, or the start if `back` is set; leaves that enter another list
/// become null. Also returns, for each leaf of the result, whether it comes from the same list.
fn shift_lists(
    leaves: &ArrayRef,
    lists: &Layout,
    back: bool,
    distance: usize,
) -> Result<(ArrayRef, BooleanBuffer)> {
    let same_list = mark_same_list(lists, back, distance, leaves.len());
    let moved = shift_values(leaves, back, distance.min(leaves.len()))?;
    if moved.data_type().is_null() {
        return Ok((moved, same_list));
    }
    let nulls = NullBuffer::union(moved.nulls(), Some(&NullBuffer::new(same_list.clone())));
    Ok((replace_validity(&moved, nulls)?, same_list))
}

/// Returns, for each leaf, whether the leaf `distance` leaves before it (after it if `back` is set)
/// is in the same list.
pub(super) fn mark_same_list(
    lists: &Layout,
    back: bool,
    distance: usize,
    len: usize,
) -> BooleanBuffer {
    let mut bits = MutableBuffer::from_len_zeroed(len.div_ceil(8));
    bits.as_slice_mut().fill(u8::MAX);
    let mut start = 0;
    for_each_length(lists, |n| {
        let without_source = n.min(distance);
        let first = if back { start + n - without_source } else { start };
        (first..first + without_source).for_each(|i| bit_util::unset_bit(bits.as_slice_mut(), i));
        start += n;
    });
    BooleanBuffer::new(bits.into(), 0, len)
}

/// Shifts leaves by `far` towards the end, or the start if `back` is set. The `far` leaves at the
/// other side get unspecified values.
fn shift_values(leaves: &ArrayRef, back: bool, far: usize) -> Result<ArrayRef> {
    let len = leaves.len();
    macro_rules! by_width {
        ($($width:literal => $t:ty),*) => {
            match leaves.data_type().primitive_width() {
                $(Some($width) if leaves.null_count() == 0 => {
                    let same = reinterpret_values(leaves, &<$t>::DATA_TYPE)?;
                    let flat = same.as_primitive::<$t>().values();
                    let mut out = allocate_values(len);
                    if back {
                        out.extend_from_slice(&flat[far..]);
                        out.resize(len, Default::default());
                    } else {
                        out.resize(far, Default::default());
                        out.extend_from_slice(&flat[..len - far]);
                    }
                    let out: ArrayRef = Arc::new(PrimitiveArray::<$t>::new(out.into(), None));
                    return reinterpret_values(&out, leaves.data_type());
                })*
                _ => {}
            }
        };
    }
    by_width!(1 => UInt8Type, 2 => UInt16Type, 4 => UInt32Type, 8 => UInt64Type);
    let data = leaves.to_data();
    let mut out = MutableArrayData::new(vec![&data], true, len);
    if back {
        out.try_extend(0, far, len)?;
        out.try_extend_nulls(far)?;
    } else {
        out.try_extend_nulls(far)?;
        out.try_extend(0, 0, len - far)?;
    }
    Ok(make_array(out.freeze()))
}
