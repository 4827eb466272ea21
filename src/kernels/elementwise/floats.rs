//! Arithmetic on floats: written once, into room for all of it or in place.

use std::ops::{Add, Div, Mul, Sub};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float32Type, Float64Type};

use super::{Op, Operand, OperandType, Side, Types, binary};
use crate::array::RaggedArray;
use crate::error::Result;
use crate::kernels::room::{unary, with_room};

/// A float as it is computed with.
trait Float:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
}

impl Float for f32 {}
impl Float for f64 {}

/// Runs `$call` with the closure of an operation, when it is one of the four.
macro_rules! with_function {
    ($op:expr, $call:ident($($argument:expr),*)) => {
        match $op {
            Op::Add => $call($($argument),*, |a, b| a + b),
            Op::Sub => $call($($argument),*, |a, b| a - b),
            Op::Mul => $call($($argument),*, |a, b| a * b),
            Op::Div => $call($($argument),*, |a, b| a / b),
            _ => None,
        }
    };
}

/// `left op right` of two sides of one type; `None` for what is left to Arrow.
pub(super) fn arithmetic(op: Op, left: &Side, right: &Side) -> Option<ArrayRef> {
    fn of<T: ArrowPrimitiveType<Native: Float>>(
        op: Op,
        left: &Side,
        right: &Side,
    ) -> Option<ArrayRef> {
        let a = left.values().as_primitive_opt::<T>()?;
        let b = right.values().as_primitive_opt::<T>()?;
        let found = match (left, right) {
            (Side::Each(_), Side::Each(_)) => with_function!(op, pairs(a, b)),
            (Side::Each(_), Side::One(_)) => with_function!(op, by_one(a, b)),
            (Side::One(_), Side::Each(_)) => with_function!(op, one_by(a, b)),
            (Side::One(_), Side::One(_)) => None,
        }?;
        Some(Arc::new(found))
    }
    match left.values().data_type() {
        DataType::Float32 => of::<Float32Type>(op, left, right),
        DataType::Float64 => of::<Float64Type>(op, left, right),
        _ => None,
    }
}

fn pairs<T: ArrowPrimitiveType>(
    a: &PrimitiveArray<T>,
    b: &PrimitiveArray<T>,
    f: impl Fn(T::Native, T::Native) -> T::Native,
) -> Option<PrimitiveArray<T>> {
    if a.len() != b.len() {
        return None;
    }
    let mut out = with_room(a.len());
    out.extend(a.values().iter().zip(b.values()).map(|(a, b)| f(*a, *b)));
    Some(PrimitiveArray::new(out.into(), NullBuffer::union(a.nulls(), b.nulls())))
}

fn by_one<T: ArrowPrimitiveType>(
    a: &PrimitiveArray<T>,
    one: &PrimitiveArray<T>,
    f: impl Fn(T::Native, T::Native) -> T::Native,
) -> Option<PrimitiveArray<T>> {
    let b = valid(one)?;
    Some(unary(a, |a| f(a, b)))
}

fn one_by<T: ArrowPrimitiveType>(
    one: &PrimitiveArray<T>,
    b: &PrimitiveArray<T>,
    f: impl Fn(T::Native, T::Native) -> T::Native,
) -> Option<PrimitiveArray<T>> {
    let a = valid(one)?;
    Some(unary(b, |b| f(a, b)))
}

fn valid<T: ArrowPrimitiveType>(one: &PrimitiveArray<T>) -> Option<T::Native> {
    (one.len() == 1 && one.is_valid(0)).then(|| one.value(0))
}

/// [`binary`] that may write its result where the leaves of `left` are.
///
/// Arithmetic of floats with one value does so when nothing else shares these leaves: what `v * 2` made
/// is changed in place by the `+ 1` behind it, which takes a fifth of the time of a result of its own.
/// Everything else is [`binary`].
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, AsArray, Float32Array, types::Float32Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::elementwise::{Op, Operand, binary, binary_owned};
/// let leaves = Arc::new(Float32Array::from(vec![1., 2., 3.]));
/// let v = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let number = |n| -> ArrayRef { Arc::new(Float32Array::from(vec![n])) };
/// let twice = binary(Op::Mul, Operand::Array(&v), Operand::Scalar(&number(2.)))?;
/// let before = twice.leaves().as_primitive::<Float32Type>().values().as_ptr();
/// let odd = binary_owned(Op::Add, twice, Operand::Scalar(&number(1.)))?;
/// let values = odd.leaves().as_primitive::<Float32Type>().values();
/// assert_eq!(values, &[3., 5., 7.]);
/// assert_eq!(values.as_ptr(), before);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// As [`binary`].
pub fn binary_owned(op: Op, left: RaggedArray, right: Operand<'_>) -> Result<RaggedArray> {
    let Operand::Scalar(value) = right else {
        return binary(op, Operand::Array(&left), right);
    };
    let types = Types::new(op, OperandType::Leaves(left.leaf_type()), OperandType::Literal(value))?;
    if types.left() == left.leaf_type() && types.output() == left.leaf_type() {
        let one = Side::One(value.clone()).cast(types.right())?;
        return match left.leaf_type() {
            DataType::Float32 => in_place::<Float32Type>(op, left, &one, right),
            DataType::Float64 => in_place::<Float64Type>(op, left, &one, right),
            _ => binary(op, Operand::Array(&left), right),
        };
    }
    binary(op, Operand::Array(&left), right)
}

fn in_place<T: ArrowPrimitiveType<Native: Float>>(
    op: Op,
    left: RaggedArray,
    one: &Side,
    right: Operand<'_>,
) -> Result<RaggedArray> {
    let four = matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Div);
    let one = one.values().as_primitive_opt::<T>().and_then(|one| valid(one)).filter(|_| four);
    let Some(one) = one else { return binary(op, Operand::Array(&left), right) };
    let (rows, axes, leaves) = left.into_parts();
    let own = leaves.as_primitive::<T>().clone();
    // The last of the others that hold the values, if there are no more.
    drop(leaves);
    let found = with_function!(op, changed(own, one));
    let leaves = found.ok_or_else(|| crate::Error::invalid("no operation on floats"))?;
    RaggedArray::try_new(rows, axes, Arc::new(leaves))
}

fn changed<T: ArrowPrimitiveType>(
    values: PrimitiveArray<T>,
    one: T::Native,
    f: impl Fn(T::Native, T::Native) -> T::Native,
) -> Option<PrimitiveArray<T>> {
    Some(values.unary_mut(|v| f(v, one)).unwrap_or_else(|shared| unary(&shared, |v| f(v, one))))
}
