//! Arithmetic, comparisons, functions of one value, and anything else on the values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, make_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, cast_with_options};

use super::promote::{arrow, divided, promote, promote_number};
use super::{HetTensor, HetValue};
use crate::array::{Layout, ListAxis, RaggedArray};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};
use crate::kernels::elementwise::{Op, Operand, Pair, binary, pair_dims};
use crate::kernels::normalize;
use crate::kernels::unary::{Unary, unary};

/// A number, as it is written in a program: it takes the type of the tensor it meets, unless it is of
/// a higher kind (a float with integers is float32).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
}

/// The other side of an operation.
#[derive(Clone, Debug)]
pub enum HetOperand<'a> {
    /// Another tensor of this kind.
    Het(&'a HetTensor),
    /// A dense tensor; one without axes is a number of its type.
    Dense(&'a DenseTensor),
    /// A number.
    Scalar(Scalar),
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

impl From<Scalar> for HetOperand<'_> {
    fn from(scalar: Scalar) -> Self {
        Self::Scalar(scalar)
    }
}

impl From<i64> for HetOperand<'_> {
    fn from(n: i64) -> Self {
        Self::Scalar(Scalar::Int(n))
    }
}

impl From<f64> for HetOperand<'_> {
    fn from(x: f64) -> Self {
        Self::Scalar(Scalar::Float(x))
    }
}

impl HetOperand<'_> {
    /// As a tensor, and the type that it and a tensor of type `with` meet in.
    fn meet(&self, with: DType) -> Result<(HetTensor, DType)> {
        let number = |tensor: Result<DenseTensor>| {
            let tensor = tensor?;
            let dtype = promote_number(with, tensor.dtype());
            Ok((HetTensor::from_dense(&tensor)?, dtype))
        };
        match self {
            Self::Het(het) => Ok(((*het).clone(), promote(with, het.dtype()))),
            Self::Dense(tensor) if tensor.ndim() == 0 => number(Ok((*tensor).clone())),
            Self::Dense(tensor) => {
                Ok((HetTensor::from_dense(tensor)?, promote(with, tensor.dtype())))
            }
            Self::Scalar(Scalar::Bool(v)) => number(DenseTensor::from_bools([], [*v])),
            Self::Scalar(Scalar::Int(v)) => number(DenseTensor::from_vec([], vec![*v])),
            Self::Scalar(Scalar::Float(v)) => {
                let value = DenseTensor::from_vec([], vec![*v])?;
                let dtype = if with.is_float() { with } else { DType::F32 };
                Ok((HetTensor::from_dense(&value)?, dtype))
            }
        }
    }
}

impl HetTensor {
    /// `self op other`, value by value.
    ///
    /// Dims are matched from the last, as numpy does: missing leading dims, and dims that are of size
    /// 1 throughout, are repeated along those of the other side. On all other dims both must have the
    /// same lists. A hole on either side is a hole.
    ///
    /// Types are PyTorch's: int64 with float32 is float32; a number takes the type of the tensor,
    /// unless it is a float and that is not (float32); `/` of integers is float32; comparisons are
    /// booleans, NaN being equal to nothing. Integers that overflow are an error, as is a negative
    /// power of them. Of booleans, `+` and the maximum are OR, `*` and the minimum AND.
    ///
    /// ```
    /// use serrate::dense::DenseTensor;
    /// use serrate::het::{HetTensor, Nested};
    /// use serrate::kernels::elementwise::Op;
    /// let x = HetTensor::from_nested(&Nested::List(vec![
    ///     DenseTensor::from_vec([2, 2], vec![1i64, 2, 3, 4])?.into(),
    ///     DenseTensor::from_vec([1, 2], vec![5i64, 6])?.into(),
    /// ]))?;
    /// let per_column = DenseTensor::from_vec([2], vec![0.5f32, 2.0])?;
    /// let y = x.binary(Op::Mul, &per_column)?;
    /// assert_eq!(y.to_string(), "[tensor([[0.5, 4.0], [1.5, 8.0]]), tensor([[2.5, 12.0]])]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where lists differ in length and neither dim is of size 1; integer overflow, division of
    /// integers by zero in `%`, a number that the type does not have.
    pub fn binary<'a>(&self, op: Op, other: impl Into<HetOperand<'a>>) -> Result<HetValue> {
        let (other, dtype) = other.into().meet(self.dtype())?;
        computed(op, self, &other, dtype)
    }

    /// `other op self`, value by value: [`binary`](Self::binary) the other way round.
    ///
    /// # Errors
    /// As [`binary`](Self::binary).
    pub fn binary_reverse<'a>(&self, op: Op, other: impl Into<HetOperand<'a>>) -> Result<HetValue> {
        let (other, dtype) = other.into().meet(self.dtype())?;
        computed(op, &other, self, dtype)
    }

    /// A function of every value. Roots, exponentials and logarithms of integers are float32, as in
    /// PyTorch.
    ///
    /// # Errors
    /// As [`unary`](fn@unary).
    pub fn unary(&self, function: Unary) -> Result<HetValue> {
        let real =
            matches!(function, Unary::Sqrt | Unary::Exp | Unary::Ln | Unary::Log2 | Unary::Log10);
        let array = if real && !self.dtype().is_float() {
            cast_leaves(&self.array, DType::F32)?
        } else {
            self.array.clone()
        };
        if function == Unary::IsNull {
            return Err(Error::invalid("a tensor has no nulls; its holes do not exist"));
        }
        Self::boxed(unary(function, &array)?)?.into_value()
    }

    /// Softmax along a dim (negatives from the last), over what exists; holes stay. Values that are no
    /// floats become float32.
    ///
    /// # Errors
    /// When there is no such dim.
    pub fn softmax(&self, dim: i64) -> Result<HetValue> {
        let axis = i64::try_from(self.axis_of(dim)?).unwrap_or(i64::MAX);
        let array = cast_leaves(&self.array, divided(self.dtype()))?;
        Self::boxed(normalize::softmax(&array, axis)?)?.into_value()
    }

    /// Values in another type: floats to integers cut towards zero, anything but zero is `true`.
    ///
    /// # Errors
    /// When a value does not fit. There is no bfloat16 here.
    pub fn cast(&self, dtype: DType) -> Result<Self> {
        if dtype == DType::BF16 {
            return Err(Error::invalid(
                "values of bfloat16 are kept as float32; cast a dense tensor",
            ));
        }
        Self::boxed(cast_leaves(&self.array, dtype)?)
    }

    /// Any function of the values, given all of them as one flat array with null at holes, returning
    /// as many. The structure stays.
    ///
    /// # Errors
    /// Those of the function; another number of values; values that are neither numbers nor booleans.
    pub fn apply(&self, f: impl FnOnce(&ArrayRef) -> Result<ArrayRef>) -> Result<HetValue> {
        Self::boxed(self.array.with_leaves(f(self.array.leaves())?)?)?.into_value()
    }
}

fn cast_leaves(array: &RaggedArray, dtype: DType) -> Result<RaggedArray> {
    let to = arrow(dtype);
    if *array.leaf_type() == to {
        return Ok(array.clone());
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    array.with_leaves(cast_with_options(array.leaves(), &to, &options)?)
}

/// The same with size 1 for the leading dims it lacks.
fn lead(array: &RaggedArray, dims: usize) -> Result<RaggedArray> {
    let missing = dims.saturating_sub(array.axes().len());
    // A number meets everything as it is.
    if missing == 0 || array.axes().is_empty() {
        return Ok(array.clone());
    }
    let (rows, axes, leaves) = array.clone().into_parts();
    let mut all: Vec<ListAxis> =
        (0..missing).map(|_| Layout::Uniform { size: 1, lists: 1 }.into()).collect();
    all.extend(axes);
    RaggedArray::try_new(rows, all, leaves)
}

fn computed(op: Op, left: &HetTensor, right: &HetTensor, dtype: DType) -> Result<HetValue> {
    let (op, dtype) = match (op, dtype) {
        (Op::Div, d) => (op, divided(d)),
        (Op::Add | Op::Maximum, DType::Bool) => (Op::Or, DType::Bool),
        (Op::Mul | Op::Minimum, DType::Bool) => (Op::And, DType::Bool),
        (Op::And | Op::Or | Op::Xor, _) => (op, DType::Bool),
        _ => (op, dtype),
    };
    let dims = left.ndim().max(right.ndim());
    let a = cast_leaves(&lead(&left.array, dims)?, dtype)?;
    let b = cast_leaves(&lead(&right.array, dims)?, dtype)?;
    let Pair { shape, left, right } = pair_dims(&a, &b)?;
    let (a, b) = (shape.with_leaves(left)?, shape.with_leaves(right)?);
    let mut out = binary(op, Operand::Array(&a), Operand::Array(&b))?;
    if op.is_comparison() && dtype.is_float() {
        out = unordered(op, &a, &b, out)?;
    }
    if op.is_logical() {
        // What does not exist on one side is not known from the other.
        let nulls = NullBuffer::union(a.leaves().nulls(), b.leaves().nulls());
        let leaves = make_array(out.leaves().to_data().into_builder().nulls(nulls).build()?);
        out = out.with_leaves(leaves)?;
    }
    HetTensor::boxed(out)?.into_value()
}

/// A comparison, put right where a side is NaN: nothing is equal to it, less or greater.
fn unordered(op: Op, a: &RaggedArray, b: &RaggedArray, out: RaggedArray) -> Result<RaggedArray> {
    let (x, y) = (unary(Unary::IsNan, a)?, unary(Unary::IsNan, b)?);
    let (x, y) =
        (x.leaves().as_boolean().values().clone(), y.leaves().as_boolean().values().clone());
    let nan = &x | &y;
    if !nan.has_true() {
        return Ok(out);
    }
    let found = out.leaves().as_boolean();
    let bits = if op == Op::NotEq { found.values() | &nan } else { found.values() & &!&nan };
    let leaves = BooleanArray::new(bits, found.nulls().cloned());
    out.with_leaves(Arc::new(leaves))
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl HetTensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// As [`binary`](Self::binary).
            pub fn $name<'a>(&self, other: impl Into<HetOperand<'a>>) -> Result<HetValue> {
                self.binary(Op::$op, other)
            }
        )*}
    };
}

operations! {
    /// `self + other`.
    add => Add;
    /// `self - other`.
    sub => Sub;
    /// `self * other`.
    mul => Mul;
    /// `self / other`, a float always.
    div => Div;
    /// `self ** other`.
    pow => Pow;
    /// The smaller of both, NaN if one is.
    minimum => Minimum;
    /// The larger of both, NaN if one is.
    maximum => Maximum;
    /// `self == other`.
    eq => Eq;
    /// `self != other`.
    ne => NotEq;
    /// `self < other`.
    lt => Lt;
    /// `self <= other`.
    le => LtEq;
    /// `self > other`.
    gt => Gt;
    /// `self >= other`.
    ge => GtEq;
}
