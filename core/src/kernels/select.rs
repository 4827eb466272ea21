//! Functions that choose one of two values, replace nulls, or cast leaves.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum, Scalar};
use arrow::compute::kernels::zip::zip;
use arrow::compute::is_not_null;
use arrow::datatypes::DataType;

use super::align::check_mask;
use super::elementwise::{
    BinaryOp, Operand, OperandPair, OperandType, OperationTypes, pair_arrays,
};
use super::times::cast_time;
use super::zones::{local_to_instants, may_change};
use crate::array::RaggedArray;
use crate::array::exact_casts::{cast_nearest, cast_strictly};
use crate::array::nulls::find_true_bits;
use crate::error::{Error, Result};

/// Returns the common type of the two operands of [`where_`] and [`fill_null`].
///
/// A literal takes the type of the other operand if its value fits; otherwise both operands are
/// widened, as in [`binary`](super::elementwise::binary).
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::datatypes::DataType;
/// use serrate::kernels::elementwise::OperandType;
/// use serrate::kernels::select::common_type;
/// let (a, b) = (OperandType::Leaves(&DataType::Int32), OperandType::Leaves(&DataType::Float32));
/// assert_eq!(common_type(a, b)?, DataType::Float64);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the types are incompatible.
pub fn common_type(a: OperandType<'_>, b: OperandType<'_>) -> Result<DataType> {
    // Use the types of `minimum`, which also returns one of its two operands.
    OperationTypes::new(BinaryOp::Minimum, a, b).map(|types| types.output().clone()).map_err(|e| {
        match e {
            Error::Type { expected, found, .. } => {
                Error::Type { what: "a choice of two values".into(), expected, found }
            }
            other => other,
        }
    })
}

/// Returns the leaf of `yes` if the mask is true, otherwise (also if it is null) the leaf of `no`,
/// like CASE in SQL.
///
/// Mask and operands are broadcast like the operands of [`binary`](super::elementwise::binary):
/// each has the same lists, only their outer levels, or lists of one element; an operand may also
/// be a scalar. A list that is null in the mask or in an operand is null in the result.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, AsArray, BooleanArray, Int32Array, types::Int32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::elementwise::Operand;
/// use serrate::kernels::select::where_;
/// let axes = vec![Offsets::from_lengths([2, 1])?.into()];
/// let a = RaggedArray::try_new(2, axes, Arc::new(Int32Array::from(vec![1, 2, 3])))?;
/// let mask = a.with_leaves(Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])))?;
/// let zero: ArrayRef = Arc::new(Int32Array::from(vec![0]));
/// let b = where_(&mask, Operand::Array(&a), Operand::Scalar(&zero))?;
/// assert_eq!(b.leaves().as_primitive::<Int32Type>().values(), &[1, 0, 0]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the mask is not boolean, the types are incompatible, or lists differ in length.
pub fn where_(mask: &RaggedArray, yes: Operand<'_>, no: Operand<'_>) -> Result<RaggedArray> {
    check_mask(mask)?;
    let to = common_type(yes.operand_type(), no.operand_type())?;
    // First find `shape`, the common lists of the mask and both operands. Then broadcast the operands to it.
    let mut shape = mask.clone();
    for side in [yes, no] {
        if let Operand::Array(a) = side {
            let OperandPair { shape: all, left, .. } = pair_arrays(&shape, a)?;
            shape = all.with_leaves(left)?;
        }
    }
    let broadcast = |side: Operand<'_>| match side {
        Operand::Array(a) => {
            Ok(ChoiceSide::Each(cast_leaves(&pair_arrays(&shape, a)?.right, &to)?))
        }
        Operand::Scalar(v) => Ok::<_, Error>(ChoiceSide::One(Scalar::new(cast_leaves(v, &to)?))),
    };
    let (yes, no) = (broadcast(yes)?, broadcast(no)?);
    let bits = BooleanArray::new(find_true_bits(shape.leaves().as_boolean()), None);
    shape.with_leaves(zip(&bits, yes.as_datum(), no.as_datum())?)
}

enum ChoiceSide {
    Each(ArrayRef),
    One(Scalar<ArrayRef>),
}

impl ChoiceSide {
    fn as_datum(&self) -> &dyn Datum {
        match self {
            Self::Each(v) => v,
            Self::One(v) => v,
        }
    }
}

fn cast_leaves(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if values.data_type() == to {
        return Ok(values.clone());
    }
    if let Some(cast) = cast_time(values, to) {
        return cast;
    }
    Ok(cast_strictly(values, to)?)
}

/// Replaces null leaves with `value`.
///
/// Null lists stay null. Shares all buffers if nothing changes.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int32Array};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::{elementwise::Operand, select::fill_null};
/// let leaves = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let zero: ArrayRef = Arc::new(Int32Array::from(vec![0]));
/// let found = fill_null(&a, Operand::Scalar(&zero))?;
/// assert_eq!(found.leaves().as_ref(), &Int32Array::from(vec![1, 0, 3]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the types are incompatible or lists differ in length.
pub fn fill_null(array: &RaggedArray, value: Operand<'_>) -> Result<RaggedArray> {
    let to = common_type(OperandType::Leaves(array.leaf_type()), value.operand_type())?;
    if array.leaves().logical_null_count() == 0
        && to == *array.leaf_type()
        && matches!(value, Operand::Scalar(_))
    {
        return Ok(array.clone());
    }
    let valid = array.with_leaves(std::sync::Arc::new(is_not_null(array.leaves())?))?;
    where_(&valid, Operand::Array(array), value)
}

/// Casts the leaves and shares the lists.
///
/// Floats are truncated to integers, as in Arrow. If `to` is a timestamp with a time zone, dates
/// and timestamps without a zone are read as local times in this zone.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{Int32Array, UInt8Array};
/// # use arrow::datatypes::DataType;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::select::cast;
/// let leaves = Arc::new(Int32Array::from(vec![1, 300, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// assert!(cast(&a, &DataType::UInt8, false).is_err());
/// let found = cast(&a, &DataType::UInt8, true)?;
/// assert_eq!(found.leaves().as_ref(), &UInt8Array::from(vec![Some(1), None, Some(3)]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the type cannot represent a value (300 as uint8, a string that is not a number); with
/// `or_null` such values become null instead. Also when there is no conversion between the types.
pub fn cast(array: &RaggedArray, to: &DataType, or_null: bool) -> Result<RaggedArray> {
    if array.leaf_type() == to {
        return Ok(array.clone());
    }
    // Arrow rejects the local times that clocks skip or repeat, so do not use its cast.
    if let (DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64, Some(zone)) =
        (array.leaf_type(), find_zone(to))
        && may_change(zone)
    {
        return array.with_leaves(local_to_instants(array.leaves(), to, or_null)?);
    }
    array.with_leaves(cast_nearest(array.leaves(), to, or_null)?)
}

fn find_zone(t: &DataType) -> Option<&str> {
    match t {
        DataType::Timestamp(_, zone) => zone.as_deref(),
        _ => None,
    }
}
