//! Elementwise arithmetic, comparisons and logic.

mod compare;
mod extremes;
mod floats;
mod operand_types;
mod pair;
mod power;
// The functions of `spans` are `pub`, because `serrate_core::internal` (feature `sql`) re-exports
// them.
#[cfg_attr(not(feature = "sql"), allow(unreachable_pub))]
pub(crate) mod spans;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum, Scalar};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::{cmp, numeric};
use arrow::compute::{and_kleene, cast, or_kleene};
use arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit};
use arrow::error::ArrowError;
use arrow::util::display::array_value_to_string;

use super::dictionary_predicate::over_values;
use super::time_texts::complete_texts;
use super::times::{NANOSECONDS_PER_DAY, cast_time, count_nanoseconds};
use super::zones;
use crate::array::RaggedArray;
use crate::array::canonical::to_canonical_floats;
use crate::array::exact_casts::{cast_strictly, check_decimal_precision};
use crate::error::{Error, Result};

pub use floats::binary_owned;
pub(crate) use operand_types::find_common_decimal;
pub use operand_types::{OperandType, OperationTypes};
#[cfg(feature = "het")]
pub(crate) use pair::pair_dims;
pub(crate) use pair::{OperandPair, for_each_length, pair_arrays, repeat_values};

/// A binary operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`: truncated for integers, as in SQL; division by an integer zero is an error.
    Div,
    /// `%`: the remainder, with the sign of the left operand as in SQL. `%` by an integer zero is
    /// an error.
    Rem,
    /// `**`: numbers only. Integers give an integer; a negative power of an integer is an error.
    Pow,
    /// The smaller of two values, NaN if either is NaN (NumPy's `minimum`); any comparable type.
    Minimum,
    /// The larger of two values, NaN if either is NaN (NumPy's `maximum`); any comparable type.
    Maximum,
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
    /// `AND` in three-valued logic.
    And,
    /// `OR` in three-valued logic.
    Or,
    /// Exclusive or; null if either side is null.
    Xor,
}

impl BinaryOp {
    /// Returns the SQL symbol or name.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::kernels::elementwise::BinaryOp;
    /// assert_eq!((BinaryOp::NotEq.symbol(), BinaryOp::Pow.symbol(), BinaryOp::And.symbol()), ("<>", "**", "AND"));
    /// ```
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Rem => "%",
            Self::Pow => "**",
            Self::Minimum => "minimum",
            Self::Maximum => "maximum",
            Self::Eq => "=",
            Self::NotEq => "<>",
            Self::Lt => "<",
            Self::LtEq => "<=",
            Self::Gt => ">",
            Self::GtEq => ">=",
            Self::And => "AND",
            Self::Or => "OR",
            Self::Xor => "XOR",
        }
    }

    /// Returns whether the operation is a comparison.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::kernels::elementwise::BinaryOp;
    /// assert!(BinaryOp::LtEq.is_comparison());
    /// assert!(!BinaryOp::Minimum.is_comparison());
    /// ```
    pub fn is_comparison(self) -> bool {
        matches!(self, Self::Eq | Self::NotEq | Self::Lt | Self::LtEq | Self::Gt | Self::GtEq)
    }

    /// Returns whether the operation combines booleans.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::kernels::elementwise::BinaryOp;
    /// assert!(BinaryOp::Xor.is_logical());
    /// assert!(!BinaryOp::Eq.is_logical());
    /// ```
    pub fn is_logical(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Xor)
    }

    /// Returns whether the operation is neither a comparison nor logical.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::kernels::elementwise::BinaryOp;
    /// assert!(BinaryOp::Mul.is_arithmetic() && BinaryOp::Lt.is_comparison() && BinaryOp::And.is_logical());
    /// assert_eq!(BinaryOp::Mul.symbol(), "*");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn is_arithmetic(self) -> bool {
        !self.is_comparison() && !self.is_logical()
    }
}

/// One operand of a [`binary`] operation.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// An array that has the lists of the other operand or only their outer levels. In the second
    /// case, each value applies to all leaves of the list that the other operand has at the
    /// position of the value. A list of one element is repeated to the length of the other list.
    Array(&'a RaggedArray),
    /// A scalar for all leaves: an array of length 1. A number is converted to the type of the
    /// leaves if this type can represent it.
    Scalar(&'a ArrayRef),
}

impl<'a> Operand<'a> {
    /// Returns the type of the operand, which is known at planning time.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array};
    /// use serrate::kernels::elementwise::{Operand, OperandType};
    /// let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    /// assert!(matches!(Operand::Scalar(&one).operand_type(), OperandType::Literal(_)));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn operand_type(&self) -> OperandType<'a> {
        match self {
            Self::Array(a) => OperandType::Leaves(a.leaf_type()),
            Self::Scalar(v) => OperandType::Literal(v),
        }
    }
}

/// Computes `left op right` for every leaf.
///
/// If both operands have the same lists, the result shares these lists. A list or leaf that is null
/// in either operand gives null, except that `NULL AND false` is false and `NULL OR true` is true.
///
/// If two lists differ in length and one has a single element, this element, with everything below
/// it, is repeated along the other list: `[[10], [20, 30]]` and `[[1, 2, 3], [4, 5]]` add up to
/// `[[11, 12, 13], [24, 35]]`. Each pair of lists is treated separately, so a row gives the same
/// result in any batch; if all lists of an axis have one element, this is NumPy's broadcasting of
/// an axis of size 1.
///
/// Types: a literal number takes the type of the leaves if it fits, otherwise both widen; two
/// arrays widen as in NumPy ([`OperationTypes`]). Floats follow IEEE 754 in arithmetic. Comparisons
/// use a total order, as SQL does in this crate: all NaN are equal and greater than any number; 0.0
/// equals -0.0. Integer overflow is an error.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, AsArray, Int32Array, UInt16Array, types::UInt16Type};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::elementwise::{BinaryOp, Operand, binary};
/// let leaves = Arc::new(UInt16Array::from(vec![1, 2, 3]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let ten: ArrayRef = Arc::new(Int32Array::from(vec![10]));
/// let b = binary(BinaryOp::Mul, Operand::Array(&a), Operand::Scalar(&ten))?;
/// assert_eq!(b.leaves().as_primitive::<UInt16Type>().values(), &[10, 20, 30]);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If two valid lists differ in length and neither has one element, the types are incompatible,
/// on integer overflow, on division by an integer zero, and for negative powers of integers.
pub fn binary(op: BinaryOp, left: Operand<'_>, right: Operand<'_>) -> Result<RaggedArray> {
    let types = OperationTypes::new(op, left.operand_type(), right.operand_type())?;
    let (shape, left, right) = match (left, right) {
        (Operand::Array(a), Operand::Array(b)) => {
            let OperandPair { shape, left, right } = pair_arrays(a, b)?;
            (shape, SideValues::Each(left), SideValues::Each(right))
        }
        (Operand::Array(a), Operand::Scalar(v)) => {
            (a.clone(), SideValues::Each(a.leaves().clone()), SideValues::One(v.clone()))
        }
        (Operand::Scalar(v), Operand::Array(a)) => {
            (a.clone(), SideValues::One(v.clone()), SideValues::Each(a.leaves().clone()))
        }
        (Operand::Scalar(_), Operand::Scalar(_)) => {
            return Err(Error::invalid(format!(
                "{operator} has two scalars as operands; one side must be an array",
                operator = op.symbol()
            )));
        }
    };
    let left = left.cast_values(types.left())?;
    let right = right.cast_values(types.right())?;
    let leaves = apply_op(op, &left, &right, shape.leaves().len())?;
    shape.with_leaves(leaves)
}

/// Returns `NOT` of every Boolean leaf; null stays null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::BooleanArray;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::elementwise::not;
/// let leaves = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// let expected = BooleanArray::from(vec![Some(false), None, Some(true)]);
/// assert_eq!(not(&a)?.leaves().as_ref(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the leaves are not Boolean.
pub fn not(array: &RaggedArray) -> Result<RaggedArray> {
    let leaves = array.leaves().as_boolean_opt().ok_or_else(|| {
        Error::type_of("NOT", "booleans (compare or cast the values first)", array.leaf_type())
    })?;
    array.with_leaves(Arc::new(arrow::compute::not(leaves)?))
}

/// Negates every leaf; null stays null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::elementwise::neg;
/// let leaves = Arc::new(Int32Array::from(vec![Some(1), None, Some(-3)]));
/// let a = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], leaves)?;
/// assert_eq!(neg(&a)?.leaves().as_ref(), &Int32Array::from(vec![Some(-1), None, Some(3)]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// For unsigned integers, types other than numbers, and the smallest integer of its type.
pub fn neg(array: &RaggedArray) -> Result<RaggedArray> {
    if array.leaf_type().is_unsigned_integer() {
        let expected = "signed numbers (cast unsigned integers to int64 first)";
        return Err(Error::type_of("negation", expected, array.leaf_type()));
    }
    array.with_leaves(numeric::neg(array.leaves()).map_err(|e| add_hint("-", e))?)
}

enum SideValues {
    Each(ArrayRef),
    One(ArrayRef),
}

impl SideValues {
    fn values(&self) -> &ArrayRef {
        let (Self::Each(v) | Self::One(v)) = self;
        v
    }

    fn is_float(&self) -> bool {
        self.values().data_type().is_floating()
    }

    /// Makes floats canonical, because Arrow's comparisons distinguish -0.0 from 0.0, and NaN with
    /// different bits.
    fn canonicalize_floats(&self) -> Result<Self> {
        let changed = to_canonical_floats(self.values())?;
        Ok(match self {
            Self::Each(_) => Self::Each(changed),
            Self::One(_) => Self::One(changed),
        })
    }

    fn cast_values(self, to: &DataType) -> Result<Self> {
        let cast = |v: ArrayRef| -> Result<ArrayRef> {
            let v = complete_texts(&v, to)?;
            match cast_time(&v, to) {
                _ if v.data_type() == to => Ok(v),
                Some(exact) => exact,
                None => Ok(cast_strictly(&v, to)?),
            }
        };
        Ok(match self {
            Self::Each(v) => Self::Each(cast(v)?),
            Self::One(v) => Self::One(cast(v)?),
        })
    }
}

fn apply_op(op: BinaryOp, left: &SideValues, right: &SideValues, len: usize) -> Result<ArrayRef> {
    let compares = op.is_comparison();
    if compares && let Some(found) = compare::compare_sides(op, left, right)? {
        return Ok(found);
    }
    let (one_left, one_right);
    let (left, right) = if compares && left.is_float() && right.is_float() {
        (one_left, one_right) = (left.canonicalize_floats()?, right.canonicalize_floats()?);
        (&one_left, &one_right)
    } else {
        (left, right)
    };
    if compares && let Some(found) = compare_dictionary(op, left, right)? {
        return Ok(found);
    }
    if let Some(found) = floats::compute_floats(op, left, right) {
        return Ok(found);
    }
    if matches!(op, BinaryOp::Mul | BinaryOp::Div)
        && let Some(found) =
            spans::compute_spans(op == BinaryOp::Div, left.values(), right.values())?
    {
        return Ok(found);
    }
    if matches!(op, BinaryOp::Add | BinaryOp::Sub) {
        check_parts(left.values(), right.values())?;
        check_parts(right.values(), left.values())?;
        if let Some(found) = add_to_zoned(op, left.values(), right.values())? {
            return Ok(found);
        }
    }
    apply_arrow_op(op, left, right, len)
}

/// Compares a dictionary with one value: evaluates the comparison once per value of the dictionary.
/// Returns `None` for other operands.
fn compare_dictionary(
    op: BinaryOp,
    left: &SideValues,
    right: &SideValues,
) -> Result<Option<ArrayRef>> {
    let through = |leaves: &ArrayRef, compare: &dyn Fn(&SideValues) -> Result<ArrayRef>| {
        let answers = over_values(leaves, |v| {
            Ok(compare(&SideValues::Each(v.clone()))?.as_boolean().clone())
        });
        answers.map(|answers| Some(to_array(answers)))
    };
    match (left, right) {
        (SideValues::Each(a), SideValues::One(_)) if a.as_any_dictionary_opt().is_some() => {
            through(a, &|a| apply_op(op, a, right, a.values().len()))
        }
        (SideValues::One(_), SideValues::Each(b)) if b.as_any_dictionary_opt().is_some() => {
            through(b, &|b| apply_op(op, left, b, b.values().len()))
        }
        _ => Ok(None),
    }
}

fn apply_arrow_op(
    op: BinaryOp,
    left: &SideValues,
    right: &SideValues,
    len: usize,
) -> Result<ArrayRef> {
    let scalar;
    let (a, b): (&dyn Datum, &dyn Datum) = match (left, right) {
        (SideValues::Each(a), SideValues::Each(b)) => (a, b),
        (SideValues::Each(a), SideValues::One(b)) => {
            scalar = Scalar::new(b.clone());
            (a, &scalar)
        }
        (SideValues::One(a), SideValues::Each(b)) => {
            scalar = Scalar::new(a.clone());
            (&scalar, b)
        }
        (SideValues::One(a), SideValues::One(b)) => (a, b),
    };
    let done: std::result::Result<ArrayRef, ArrowError> = match op {
        BinaryOp::Add => numeric::add(a, b),
        BinaryOp::Sub => numeric::sub(a, b),
        BinaryOp::Mul => numeric::mul(a, b),
        BinaryOp::Div => numeric::div(a, b),
        BinaryOp::Rem => numeric::rem(a, b),
        BinaryOp::Eq => cmp::eq(a, b).map(to_array),
        BinaryOp::NotEq => cmp::neq(a, b).map(to_array),
        BinaryOp::Lt => cmp::lt(a, b).map(to_array),
        BinaryOp::LtEq => cmp::lt_eq(a, b).map(to_array),
        BinaryOp::Gt => cmp::gt(a, b).map(to_array),
        BinaryOp::GtEq => cmp::gt_eq(a, b).map(to_array),
        BinaryOp::Pow => return power::raise_to_power(left, right, len),
        BinaryOp::Minimum => {
            return extremes::choose_values(extremes::ExtremeChoice::Smaller, left, right, len);
        }
        BinaryOp::Maximum => {
            return extremes::choose_values(extremes::ExtremeChoice::Larger, left, right, len);
        }
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => return apply_logical(op, left, right, len),
    };
    let done = done.map_err(|e| add_hint(op.symbol(), e))?;
    check_decimal_precision(&done).map_err(|e| {
        Error::invalid(format!(
            "{}: a result does not fit its type {}: {e}; cast the operands to decimals with fewer digits, or to DOUBLE",
            op.symbol(),
            done.data_type()
        ))
    })?;
    Ok(done)
}

/// Adds an interval to a timestamp in a zone whose offset changes, or subtracts it: Arrow fails if
/// the result is a local time that does not exist or occurs twice. Returns `None` for all other
/// operands, which Arrow handles.
fn add_to_zoned(op: BinaryOp, left: &ArrayRef, right: &ArrayRef) -> Result<Option<ArrayRef>> {
    let zoned = |v: &ArrayRef| match v.data_type() {
        DataType::Timestamp(_, Some(zone)) => zones::may_change(zone),
        _ => false,
    };
    let interval = |v: &ArrayRef| matches!(v.data_type(), DataType::Interval(_));
    if zoned(left) && interval(right) {
        return zones::add_intervals(left, right, op == BinaryOp::Sub).map(Some);
    }
    let swapped = op == BinaryOp::Add && interval(left) && zoned(right);
    swapped.then(|| zones::add_intervals(right, left, false)).transpose()
}

/// Returns an error if the nanoseconds of an interval are not a multiple of the unit of `instants`,
/// because Arrow would drop the remainder.
fn check_parts(instants: &ArrayRef, intervals: &ArrayRef) -> Result<()> {
    let unit = match instants.data_type() {
        DataType::Date32 | DataType::Date64 => NANOSECONDS_PER_DAY,
        DataType::Timestamp(unit, _) => count_nanoseconds(*unit),
        _ => return Ok(()),
    };
    let parts: ArrayRef = match intervals.data_type() {
        DataType::Interval(IntervalUnit::DayTime) => {
            cast(intervals, &DataType::Interval(IntervalUnit::MonthDayNano))?
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => Arc::clone(intervals),
        _ => return Ok(()),
    };
    let parts = parts.as_primitive::<IntervalMonthDayNanoType>();
    let is_part =
        |i: &usize| parts.is_valid(*i) && i128::from(parts.value(*i).nanoseconds) % unit != 0;
    match (0..parts.len()).find(is_part) {
        None => Ok(()),
        Some(found) => Err(Error::invalid(format!(
            "the interval {} is not a multiple of the unit of {}; cast the times to a finer type, such as TIMESTAMP, first",
            array_value_to_string(parts, found)?,
            instants.data_type()
        ))),
    }
}

fn to_array(values: BooleanArray) -> ArrayRef {
    Arc::new(values)
}

fn apply_logical(
    op: BinaryOp,
    left: &SideValues,
    right: &SideValues,
    len: usize,
) -> Result<ArrayRef> {
    let whole = |side: &SideValues| match side {
        SideValues::Each(v) => v.as_boolean().clone(),
        SideValues::One(v) => {
            let one = v.as_boolean();
            let set = one.is_valid(0) && one.value(0);
            let bits =
                if set { BooleanBuffer::new_set(len) } else { BooleanBuffer::new_unset(len) };
            BooleanArray::new(bits, one.is_null(0).then(|| NullBuffer::new_null(len)))
        }
    };
    let (left, right) = (whole(left), whole(right));
    Ok(to_array(match op {
        BinaryOp::And => and_kleene(&left, &right)?,
        BinaryOp::Xor => {
            let nulls = NullBuffer::union(left.nulls(), right.nulls());
            BooleanArray::new(left.values() ^ right.values(), nulls)
        }
        _ => or_kleene(&left, &right)?,
    }))
}

fn add_hint(op: &str, error: ArrowError) -> Error {
    match error {
        ArrowError::ArithmeticOverflow(e) => Error::invalid(format!(
            "{op}: a result does not fit its type ({e}); cast the values to a wider type first"
        )),
        ArrowError::DivideByZero => Error::invalid(format!(
            "{op}: division by an integer zero; cast the values to Float64, or filter out the zeros first"
        )),
        other => other.into(),
    }
}
