//! Differences of leaves along an axis.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, PrimitiveArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, UInt64Type};

use super::shifts::{mark_same_list, shift};
use crate::array::{Layout, RaggedArray, resolve_axis};
use crate::error::{Error, Result};
use crate::kernels::allocate::allocate_values;
use crate::kernels::reduce::{AxisGroups, group_along_axis};

/// Returns every leaf minus the leaf `n` elements before it along axis `axis` (after it for a
/// negative `n`); null if there is no such leaf or one of the two is null.
///
/// Integers and booleans give `Int64`, with an error on overflow; floats keep their type; times
/// give durations.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, Int64Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::running::diff;
/// // [[1, 4, 9], [7]]
/// let leaves = Arc::new(Int32Array::from(vec![1, 4, 9, 7]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([3, 1])?.into()], leaves)?;
/// let expected = Int64Array::from(vec![None, Some(3), Some(5), None]);
/// assert_eq!(diff(&a, 1, 1)?.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the array has no such axis, the leaves cannot be subtracted, or an integer overflows.
pub fn diff(array: &RaggedArray, n: i64, axis: i64) -> Result<RaggedArray> {
    find_diff_type(array.leaf_type())?;
    let leaves = match array.leaf_type() {
        DataType::Dictionary(_, values) => &cast(array.leaves(), values)?,
        _ => array.leaves(),
    };
    let integers = matches!(leaves.data_type(), DataType::Boolean | DataType::Null)
        || leaves.data_type().is_integer();
    let leaves = match leaves.data_type() {
        DataType::Boolean => cast(&cast(leaves, &DataType::Int8)?, &DataType::Int64)?,
        t if integers && *t != DataType::UInt64 => cast(leaves, &DataType::Int64)?,
        DataType::UInt64 => {
            return compute_unsigned_diff(&array.with_leaves(leaves.clone())?, n, axis);
        }
        _ => leaves.clone(),
    };
    let array = array.with_leaves(leaves)?;
    if let Some(found) = subtract_shifted(&array, n, axis)? {
        return array.with_leaves(found);
    }
    let before = shift(&array, n, None, axis)?;
    let found = numeric::sub(array.leaves(), before.leaves()).map_err(|e| match e {
        arrow::error::ArrowError::ArithmeticOverflow(e) => {
            let difference = e.trim_start_matches("Overflow happened on: ");
            Error::Overflow(format!("diff: {difference}"))
        }
        other => other.into(),
    })?;
    array.with_leaves(found)
}

/// Computes the leaves of [`diff`] on a fast path. Returns `None` unless the leaves are floats
/// without nulls, `axis` is the innermost axis, and |`n`| is between 1 and the number of leaves.
fn subtract_shifted(array: &RaggedArray, n: i64, axis: i64) -> Result<Option<ArrayRef>> {
    fn subtract_typed<T: ArrowPrimitiveType>(
        leaves: &ArrayRef,
        lists: &Layout,
        back: bool,
        distance: usize,
    ) -> Result<ArrayRef> {
        let flat: &[T::Native] = leaves.as_primitive::<T>().values();
        let mut out = allocate_values(flat.len());
        let (before, after) = (&flat[..flat.len() - distance], &flat[distance..]);
        if back {
            out.extend(before.iter().zip(after).map(|(v, other)| v.sub_wrapping(*other)));
            out.resize(flat.len(), T::Native::default());
        } else {
            out.resize(distance, T::Native::default());
            out.extend(after.iter().zip(before).map(|(v, other)| v.sub_wrapping(*other)));
        }
        let same_list = mark_same_list(lists, back, distance, flat.len());
        Ok(Arc::new(PrimitiveArray::<T>::try_new(out.into(), Some(NullBuffer::new(same_list)))?))
    }
    let leaves = array.leaves();
    let distance = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    let innermost = resolve_axis(axis, array.ndim(), "the array")? == array.axes().len();
    if !innermost || distance == 0 || distance > leaves.len() || leaves.null_count() > 0 {
        return Ok(None);
    }
    let AxisGroups::Lists(lists) = group_along_axis(array, axis)? else { return Ok(None) };
    Ok(match leaves.data_type() {
        DataType::Float32 => Some(subtract_typed::<Float32Type>(leaves, &lists, n < 0, distance)?),
        DataType::Float64 => Some(subtract_typed::<Float64Type>(leaves, &lists, n < 0, distance)?),
        _ => None,
    })
}

/// Returns the type of the [`diff`] of leaves.
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::datatypes::DataType;
/// use serrate::kernels::running::find_diff_type;
/// assert_eq!(find_diff_type(&DataType::UInt8)?, DataType::Int64);
/// assert!(find_diff_type(&DataType::Utf8).is_err());
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If leaves of this type cannot be subtracted.
#[doc(hidden)]
pub fn find_diff_type(leaf: &DataType) -> Result<DataType> {
    Ok(match leaf {
        DataType::Dictionary(_, values) => return find_diff_type(values),
        DataType::Boolean | DataType::Null => DataType::Int64,
        t if t.is_integer() => DataType::Int64,
        t if t.is_floating() || t.is_decimal() || t.is_temporal() => {
            let none = arrow::array::new_empty_array(t);
            let found = numeric::sub(&none, &none);
            found
                .map_err(|_| Error::type_of("diff", "numbers or times (cast the values first)", t))?
                .data_type()
                .clone()
        }
        t => return Err(Error::type_of("diff", "numbers or times (cast the values first)", t)),
    })
}

/// Computes [`diff`] of unsigned integers in 128 bits, because they may exceed `Int64`. Returns an
/// error if a difference does not fit `Int64`.
fn compute_unsigned_diff(array: &RaggedArray, n: i64, axis: i64) -> Result<RaggedArray> {
    let before = shift(array, n, None, axis)?;
    let (a, b) = (array.leaves().as_primitive::<UInt64Type>(), before.leaves());
    let b = b.as_primitive::<UInt64Type>();
    let found: PrimitiveArray<Int64Type> = arrow::compute::try_binary(a, b, |a, b| {
        i64::try_from(i128::from(a) - i128::from(b))
            .map_err(|_| arrow::error::ArrowError::ArithmeticOverflow(format!("{a} - {b}")))
    })
    .map_err(|e| match e {
        arrow::error::ArrowError::ArithmeticOverflow(e) => Error::Overflow(format!("diff: {e}")),
        other => other.into(),
    })?;
    array.with_leaves(Arc::new(found))
}
