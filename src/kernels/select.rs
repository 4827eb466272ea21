//! One of two values, what stands for null, and other types, leaf by leaf.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum, Scalar};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{CastOptions, cast_with_options, is_not_null};
use arrow::datatypes::DataType;

use super::elementwise::{Op, Operand, OperandType, Pair, Types, pair};
use super::gather::true_bits;
use crate::array::RaggedArray;
use crate::error::{Error, Result};

/// Type of what [`where_`] and [`fill_null`] choose from two sides.
///
/// A literal takes the type of the other side where it fits, else both widen, as in
/// [`binary`](super::elementwise::binary).
///
/// # Errors
/// When the two do not go together.
pub fn common_type(a: OperandType<'_>, b: OperandType<'_>) -> Result<DataType> {
    // What is compared to be the smaller is what could be chosen.
    Types::new(Op::Minimum, a, b).map(|types| types.output().clone()).map_err(|e| match e {
        Error::Type { expected, found, .. } => {
            Error::Type { what: "a choice of two values".into(), expected, found }
        }
        other => other,
    })
}

/// The leaf of `yes` where the mask is true, else the leaf of `no`; where the mask is null, `no`, as
/// in SQL's CASE.
///
/// Mask and sides meet as operands of [`binary`](super::elementwise::binary) do: lists of the same
/// lengths, only the outer levels of another, a list of one element, or one value for all. A list that
/// is null in one of them is null.
///
/// ```
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
/// When the mask is not Boolean, the sides are of types that do not go together, or lists differ in
/// length.
pub fn where_(mask: &RaggedArray, yes: Operand<'_>, no: Operand<'_>) -> Result<RaggedArray> {
    if *mask.leaf_type() != DataType::Boolean {
        return Err(Error::type_of("the mask", DataType::Boolean.to_string(), mask.leaf_type()));
    }
    let to = common_type(yes.operand_type(), no.operand_type())?;
    // All lists there are, first, then everything over them.
    let mut shape = mask.clone();
    for side in [yes, no] {
        if let Operand::Array(a) = side {
            let Pair { shape: all, left, .. } = pair(&shape, a)?;
            shape = all.with_leaves(left)?;
        }
    }
    let over = |side: Operand<'_>| match side {
        Operand::Array(a) => Ok(Side::Each(as_type(&pair(&shape, a)?.right, &to)?)),
        Operand::Scalar(v) => Ok::<_, Error>(Side::One(Scalar::new(as_type(v, &to)?))),
    };
    let (yes, no) = (over(yes)?, over(no)?);
    let bits = BooleanArray::new(true_bits(shape.leaves().as_boolean()), None);
    shape.with_leaves(zip(&bits, yes.datum(), no.datum())?)
}

enum Side {
    Each(ArrayRef),
    One(Scalar<ArrayRef>),
}

impl Side {
    fn datum(&self) -> &dyn Datum {
        match self {
            Self::Each(v) => v,
            Self::One(v) => v,
        }
    }
}

fn as_type(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if values.data_type() == to {
        return Ok(values.clone());
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(values, to, &options)?)
}

/// The leaves, with `value` in place of those that are null. Null lists stay null: they have no
/// leaves.
///
/// Without a null leaf, and where no wider type is needed, all buffers are shared.
///
/// # Errors
/// When types do not go together or lists differ in length.
pub fn fill_null(array: &RaggedArray, value: Operand<'_>) -> Result<RaggedArray> {
    let to = common_type(OperandType::Leaves(array.leaf_type()), value.operand_type())?;
    if array.leaves().logical_null_count() == 0
        && to == *array.leaf_type()
        && matches!(value, Operand::Scalar(_))
    {
        return Ok(array.clone());
    }
    let there = array.with_leaves(std::sync::Arc::new(is_not_null(array.leaves())?))?;
    where_(&there, Operand::Array(array), value)
}

/// The leaves in another type; the lists are shared.
///
/// A float becomes an integer by cutting its fraction, as in Arrow and SQL engines' casts.
///
/// # Errors
/// When a value has no place in the type (300 as uint8, a text that is no number); with `or_null`
/// such values become null. When there is no such conversion at all.
pub fn cast(array: &RaggedArray, to: &DataType, or_null: bool) -> Result<RaggedArray> {
    if array.leaf_type() == to {
        return Ok(array.clone());
    }
    let options = CastOptions { safe: or_null, ..CastOptions::default() };
    array.with_leaves(cast_with_options(array.leaves(), to, &options)?)
}
