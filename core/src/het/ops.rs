//! Arithmetic, comparisons, functions of one operand, and custom functions on a [`HetTensor`].

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, make_array};
use arrow::buffer::NullBuffer;

use super::promote::{find_arrow_type, find_division_type, promote_dtypes, promote_number};
use super::{HetTensor, HetValue};
use crate::array::exact_casts::cast_strictly;
use crate::array::{Layout, ListAxis, RaggedArray};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};
use crate::kernels::elementwise::{BinaryOp, Operand, OperandPair, binary, pair_dims};
use crate::kernels::normalize;
use crate::kernels::unary::{UnaryOp, unary};

/// A number as the second operand of an operation on a [`HetTensor`].
///
/// The result has the type of the tensor, unless the number is of a higher category (boolean,
/// integer and float, in ascending order): a float with an integer tensor gives float32.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::{DType, DenseTensor};
/// use serrate::het::{HetTensor, NumberOperand};
/// let x = HetTensor::from_dense(&DenseTensor::from_vec([2], vec![1i64, 2])?)?;
/// assert_eq!(x.add(NumberOperand::Int(1))?.dtype(), DType::I64);
/// assert_eq!(x.add(NumberOperand::Float(0.5))?.dtype(), DType::F32);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NumberOperand {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
}

/// The second operand of an operation on a [`HetTensor`].
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DenseTensor;
/// use serrate::het::{HetOperand, NumberOperand};
/// let weights = DenseTensor::from_vec([2], vec![0.5, 2.0])?;
/// assert!(matches!(HetOperand::from(&weights), HetOperand::Dense(_)));
/// assert!(matches!(HetOperand::from(2), HetOperand::Scalar(NumberOperand::Int(2))));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum HetOperand<'a> {
    /// Another [`HetTensor`].
    Het(&'a HetTensor),
    /// A dense tensor. In type promotion, a tensor without axes counts as a number.
    Dense(&'a DenseTensor),
    /// A number.
    Scalar(NumberOperand),
}

impl<'a> From<&'a HetTensor> for HetOperand<'a> {
    fn from(het: &'a HetTensor) -> Self {
        Self::Het(het)
    }
}

impl<'a> From<&'a DenseTensor> for HetOperand<'a> {
    fn from(tensor: &'a DenseTensor) -> Self {
        Self::Dense(tensor)
    }
}

impl<'a> From<&'a HetValue> for HetOperand<'a> {
    fn from(value: &'a HetValue) -> Self {
        match value {
            HetValue::Het(het) => Self::Het(het),
            HetValue::Dense(tensor) => Self::Dense(tensor),
        }
    }
}

impl From<NumberOperand> for HetOperand<'_> {
    fn from(number: NumberOperand) -> Self {
        Self::Scalar(number)
    }
}

impl From<i64> for HetOperand<'_> {
    fn from(n: i64) -> Self {
        Self::Scalar(NumberOperand::Int(n))
    }
}

impl From<f64> for HetOperand<'_> {
    fn from(x: f64) -> Self {
        Self::Scalar(NumberOperand::Float(x))
    }
}

impl HetOperand<'_> {
    /// Returns the operand as a tensor, and the type to which the operand and a tensor of type
    /// `with` are promoted.
    fn to_common(&self, with: DType) -> Result<(HetTensor, DType)> {
        let number = |tensor: Result<DenseTensor>| {
            let tensor = tensor?;
            let dtype = promote_number(with, tensor.dtype());
            Ok((HetTensor::from_dense(&tensor)?, dtype))
        };
        match self {
            Self::Het(het) => Ok(((*het).clone(), promote_dtypes(with, het.dtype()))),
            Self::Dense(tensor) if tensor.ndim() == 0 => number(Ok((*tensor).clone())),
            Self::Dense(tensor) => {
                Ok((HetTensor::from_dense(tensor)?, promote_dtypes(with, tensor.dtype())))
            }
            Self::Scalar(NumberOperand::Bool(v)) => number(DenseTensor::from_bools([], [*v])),
            Self::Scalar(NumberOperand::Int(v)) => number(DenseTensor::from_vec([], vec![*v])),
            Self::Scalar(NumberOperand::Float(v)) => {
                let value = DenseTensor::from_vec([], vec![*v])?;
                let dtype = if with.is_float() { with } else { DType::F32 };
                Ok((HetTensor::from_dense(&value)?, dtype))
            }
        }
    }
}

impl HetTensor {
    /// Computes `self op other` for every value.
    ///
    /// Dims broadcast as in NumPy, aligned at the last dim: a missing leading dim, or a dim in
    /// which all lists have length 1, repeats along the dim of the other operand. On all other
    /// dims, both operands must have lists of the same lengths. A hole (missing value) in either
    /// operand gives a hole.
    ///
    /// Types follow PyTorch: int64 with float32 gives float32; a number takes the type of the
    /// tensor, but a float with a tensor of integers gives float32; `/` of integers gives float32;
    /// comparisons give booleans. Every comparison with NaN is false, except `!=`. Integer overflow
    /// and negative integer exponents are errors. On booleans, `+` and maximum are OR, `*` and
    /// minimum are AND.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// use serrate::kernels::elementwise::BinaryOp;
    /// let x = HetTensor::from_nested(&NestedTensors::List(vec![
    ///     DenseTensor::from_vec([2, 2], vec![1i64, 2, 3, 4])?.into(),
    ///     DenseTensor::from_vec([1, 2], vec![5i64, 6])?.into(),
    /// ]))?;
    /// let per_column = DenseTensor::from_vec([2], vec![0.5f32, 2.0])?;
    /// let y = x.binary(BinaryOp::Mul, &per_column)?;
    /// assert_eq!(y.to_string(), "[tensor([[0.5, 4.0], [1.5, 8.0]]), tensor([[2.5, 12.0]])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If lists of the operands differ in length and neither dim has size 1, an integer operation
    /// overflows, an integer `%` has the divisor 0, or a value does not fit the common type.
    pub fn binary<'a>(&self, op: BinaryOp, other: impl Into<HetOperand<'a>>) -> Result<HetValue> {
        let (other, dtype) = other.into().to_common(self.dtype())?;
        compute_binary(op, self, &other, dtype)
    }

    /// Computes `other op self` for every value: [`binary`](Self::binary) with swapped operands.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::HetTensor;
    /// use serrate::kernels::elementwise::BinaryOp;
    /// let x = HetTensor::from_dense(&DenseTensor::from_vec([2], vec![1i64, 4])?)?;
    /// assert_eq!(x.binary_reverse(BinaryOp::Sub, 10)?.to_string(), "tensor([9, 6])");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`binary`](Self::binary).
    pub fn binary_reverse<'a>(
        &self,
        op: BinaryOp,
        other: impl Into<HetOperand<'a>>,
    ) -> Result<HetValue> {
        let (other, dtype) = other.into().to_common(self.dtype())?;
        compute_binary(op, &other, self, dtype)
    }

    /// Applies a function to every value.
    ///
    /// Roots, exponentials and logarithms of integers give float32.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::het::{HetTensor, NestedTensors};
    /// use serrate::kernels::unary::UnaryOp;
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.unary(UnaryOp::Neg)?.to_string(), "[tensor([-1, -2]), tensor([-3])]");
    /// assert_eq!(x.unary(UnaryOp::Sqrt)?.dtype(), DType::F32);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as for the kernel [`unary`](fn@unary); also if `function` is [`UnaryOp::IsNull`].
    pub fn unary(&self, function: UnaryOp) -> Result<HetValue> {
        let real = matches!(
            function,
            UnaryOp::Sqrt | UnaryOp::Exp | UnaryOp::Ln | UnaryOp::Log2 | UnaryOp::Log10
        );
        let array = if real && !self.dtype().is_float() {
            cast_leaves(&self.array, DType::F32)?
        } else {
            self.array.clone()
        };
        if function == UnaryOp::IsNull {
            return Err(Error::invalid(
                "a HetTensor does not support the function IsNull, because its functions skip nulls (holes); convert it with to_ragged and apply IsNull to the result",
            ));
        }
        Self::from_boxed(unary(function, &array)?)?.into_value()
    }

    /// Computes the softmax along a dim (negative dims count from the end).
    ///
    /// Holes (elements without a value) stay holes. Integers and booleans become float32.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[f64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[5.0, 5.0])?, row(&[7.0])?].into())?;
    /// assert_eq!(x.softmax(1)?.to_string(), "[tensor([0.5, 0.5]), tensor([1.0])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the dim does not exist.
    pub fn softmax(&self, dim: i64) -> Result<HetValue> {
        let axis = i64::try_from(self.resolve_dim(dim)?).unwrap_or(i64::MAX);
        let array = cast_leaves(&self.array, find_division_type(self.dtype()))?;
        Self::from_boxed(normalize::softmax(&array, axis)?)?.into_value()
    }

    /// Converts the values to `dtype`.
    ///
    /// Floats that become integers are truncated towards zero; nonzero numbers become true.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::het::HetTensor;
    /// let x = HetTensor::from_dense(&DenseTensor::from_vec([2], vec![1.5, -2.5])?)?;
    /// assert_eq!(x.cast(DType::I64)?.to_string(), "tensor([1, -2])");
    /// assert!(x.cast(DType::U8).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a value does not fit the type, or the type is bfloat16.
    pub fn cast(&self, dtype: DType) -> Result<Self> {
        if dtype == DType::BF16 {
            return Err(Error::invalid(
                "a HetTensor cannot have the type bfloat16; cast it to float32, or convert it with to_dense and cast the DenseTensor",
            ));
        }
        Self::from_boxed(cast_leaves(&self.array, dtype)?)
    }

    /// Applies `f` to the flat array of all values, in which holes are nulls.
    ///
    /// The result of `f` must have as many values as its argument.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::compute::kernels::numeric::neg;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.apply(|v| Ok(neg(v)?))?.to_string(), "[tensor([-1, -2]), tensor([-3])]");
    /// // The result has fewer values than the tensor.
    /// assert!(x.apply(|v| Ok(v.slice(0, 1))).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the function fails, or its result has another length or is neither numeric nor boolean.
    pub fn apply(&self, f: impl FnOnce(&ArrayRef) -> Result<ArrayRef>) -> Result<HetValue> {
        Self::from_boxed(self.array.with_leaves(f(self.array.leaves())?)?)?.into_value()
    }
}

fn cast_leaves(array: &RaggedArray, dtype: DType) -> Result<RaggedArray> {
    let to = find_arrow_type(dtype);
    if *array.leaf_type() == to {
        return Ok(array.clone());
    }
    array.with_leaves(cast_strictly(array.leaves(), &to)?)
}

fn prepend_dims(array: &RaggedArray, dims: usize) -> Result<RaggedArray> {
    let missing = dims.saturating_sub(array.axes().len());
    // A tensor without dims broadcasts to any shape, so it needs no leading dims.
    if missing == 0 || array.axes().is_empty() {
        return Ok(array.clone());
    }
    let (rows, axes, leaves) = array.clone().into_parts();
    let mut all: Vec<ListAxis> =
        (0..missing).map(|_| Layout::Uniform { size: 1, lists: 1 }.into()).collect();
    all.extend(axes);
    RaggedArray::try_new(rows, all, leaves)
}

fn compute_binary(
    op: BinaryOp,
    left: &HetTensor,
    right: &HetTensor,
    dtype: DType,
) -> Result<HetValue> {
    let (op, dtype) = match (op, dtype) {
        (BinaryOp::Div, d) => (op, find_division_type(d)),
        (BinaryOp::Add | BinaryOp::Maximum, DType::Bool) => (BinaryOp::Or, DType::Bool),
        (BinaryOp::Mul | BinaryOp::Minimum, DType::Bool) => (BinaryOp::And, DType::Bool),
        (BinaryOp::And | BinaryOp::Or | BinaryOp::Xor, _) => (op, DType::Bool),
        _ => (op, dtype),
    };
    let dims = left.ndim().max(right.ndim());
    let a = cast_leaves(&prepend_dims(&left.array, dims)?, dtype)?;
    let b = cast_leaves(&prepend_dims(&right.array, dims)?, dtype)?;
    let OperandPair { shape, left, right } = pair_dims(&a, &b)?;
    let (a, b) = (shape.with_leaves(left)?, shape.with_leaves(right)?);
    let mut out = binary(op, Operand::Array(&a), Operand::Array(&b))?;
    if op.is_comparison() && dtype.is_float() {
        out = correct_nan(op, &a, &b, out)?;
    }
    if op.is_logical() {
        // A hole (null) in either operand gives a hole, unlike SQL's `NULL OR true`, which is true.
        let nulls = NullBuffer::union(a.leaves().nulls(), b.leaves().nulls());
        let leaves = make_array(out.leaves().to_data().into_builder().nulls(nulls).build()?);
        out = out.with_leaves(leaves)?;
    }
    HetTensor::from_boxed(out)?.into_value()
}

/// Corrects `out`, the result of the comparison `a op b`, where an operand is NaN: by IEEE 754,
/// `!=` is true and all other comparisons are false. The kernel treats NaN as equal to itself and
/// greater than any number.
fn correct_nan(
    op: BinaryOp,
    a: &RaggedArray,
    b: &RaggedArray,
    out: RaggedArray,
) -> Result<RaggedArray> {
    let (x, y) = (unary(UnaryOp::IsNan, a)?, unary(UnaryOp::IsNan, b)?);
    let (x, y) =
        (x.leaves().as_boolean().values().clone(), y.leaves().as_boolean().values().clone());
    let nan = &x | &y;
    if !nan.has_true() {
        return Ok(out);
    }
    let found = out.leaves().as_boolean();
    let bits = if op == BinaryOp::NotEq { found.values() | &nan } else { found.values() & &!&nan };
    let leaves = BooleanArray::new(bits, found.nulls().cloned());
    out.with_leaves(Arc::new(leaves))
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl HetTensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// Same as [`binary`](Self::binary).
            pub fn $name<'a>(&self, other: impl Into<HetOperand<'a>>) -> Result<HetValue> {
                self.binary(BinaryOp::$op, other)
            }
        )*}
    };
}

operations! {
    /// Computes `self + other`; on booleans, OR. A hole (missing value) in either operand gives a
    /// hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.add(10)?.to_string(), "[tensor([11, 12]), tensor([13])]");
    /// assert_eq!(x.add(&x)?.to_string(), "[tensor([2, 4]), tensor([6])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    add => Add;
    /// Computes `self - other`. A hole (missing value) in either operand gives a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.sub(1)?.to_string(), "[tensor([0, 1]), tensor([2])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    sub => Sub;
    /// Computes `self * other`; on booleans, AND. A hole (missing value) in either operand gives a
    /// hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// let weights = DenseTensor::from_vec([2, 1], vec![10i64, 100])?;
    /// assert_eq!(x.mul(&weights)?.to_string(), "[tensor([10, 20]), tensor([300])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    mul => Mul;
    /// Computes `self / other`; the result is always a float. A hole (missing value) in either
    /// operand gives a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.div(2)?.to_string(), "[tensor([0.5, 1.0]), tensor([1.5])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    div => Div;
    /// Computes `self ** other`; a negative power of an integer is an error. A hole (missing value)
    /// in either operand gives a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.pow(2)?.to_string(), "[tensor([1, 4]), tensor([9])]");
    /// assert!(x.pow(-1).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pow => Pow;
    /// Returns the smaller of two values, or NaN if either is NaN; on booleans, AND. A hole
    /// (missing value) in either operand gives a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.minimum(2)?.to_string(), "[tensor([1, 2]), tensor([2])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    minimum => Minimum;
    /// Returns the larger of two values, or NaN if either is NaN; on booleans, OR. A hole (missing
    /// value) in either operand gives a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.maximum(2)?.to_string(), "[tensor([2, 2]), tensor([3])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    maximum => Maximum;
    /// Computes `self == other`; false if either is NaN. A hole (missing value) in either operand
    /// gives a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.eq(2)?.to_string(), "[tensor([false, true]), tensor([false])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    eq => Eq;
    /// Computes `self != other`; true if either is NaN. A hole (missing value) in either operand
    /// gives a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.ne(2)?.to_string(), "[tensor([true, false]), tensor([true])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ne => NotEq;
    /// Computes `self < other`; false if either is NaN. A hole (missing value) in either operand
    /// gives a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.lt(2)?.to_string(), "[tensor([true, false]), tensor([false])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    lt => Lt;
    /// Computes `self <= other`; false if either is NaN. A hole (missing value) in either operand
    /// gives a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.le(2)?.to_string(), "[tensor([true, true]), tensor([false])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    le => LtEq;
    /// Computes `self > other`; false if either is NaN. A hole (missing value) in either operand
    /// gives a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.gt(2)?.to_string(), "[tensor([false, false]), tensor([true])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    gt => Gt;
    /// Computes `self >= other`; false if either is NaN. A hole (missing value) in either operand
    /// gives a hole.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, NestedTensors};
    /// let row = |v: &[i64]| DenseTensor::from_vec([v.len()], v.to_vec()).map(NestedTensors::from);
    /// let x = HetTensor::from_nested(&vec![row(&[1, 2])?, row(&[3])?].into())?;
    /// assert_eq!(x.ge(2)?.to_string(), "[tensor([false, true]), tensor([true])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ge => GtEq;
}
