//! Types of operands and results.

use arrow::array::{Array, ArrayRef, AsArray, new_empty_array};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, UInt64Type};

use super::{Op, Side, apply};
use crate::error::{Error, Result};
use crate::kernels::times::{EXACT_SECONDS, INTERVAL_NANOSECONDS, in_unit};
use crate::table::promote_types;

/// One side of an operation as planning knows it.
#[derive(Clone, Copy, Debug)]
pub enum OperandType<'a> {
    /// The leaves of an array, whatever their values.
    Leaves(&'a DataType),
    /// A literal, as an array of length 1: its value decides.
    Literal(&'a ArrayRef),
}

/// To what types the operands of an operation are cast, and the type of the result.
///
/// * Two arrays: both widen to the type that holds both, as numpy promotes arrays (`uint8` and
///   `int8` to `int16`, `uint64` and `int64` to `float64`, `int32` and `float32` to `float64`). `uint64` and
///   `int64` compare exactly.
/// * A literal integer takes the type of the leaves if its value fits there (any float type holds
///   it), else both widen as far as its value needs: `uint8` leaves and 300 meet as `uint16`, -1
///   as `int16`.
/// * A literal float takes the type of float leaves unless it would become infinite. With integer
///   leaves both become `float64`; a comparison with a whole number below 2^53, which comes to the same,
///   stays in integers.
/// * Text compares with text of any kind; a literal text is read as a date, time, number or truth
///   value when the leaves are such. Timestamps and durations of different units compare exactly,
///   and so do intervals: with each other a month is 30 days, with durations months are refused.
///   A null takes the type of the other side. Arithmetic on times is Arrow's: time - time, time ± duration or
///   interval, ...
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int64Array};
/// use arrow::datatypes::DataType::{UInt8, UInt16};
/// use serrate::kernels::elementwise::{Op, OperandType, Types};
/// let literal = |n| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
/// let output = |n| -> serrate::Result<_> {
///     let types = Types::new(Op::Add, OperandType::Leaves(&UInt8), OperandType::Literal(&literal(n)))?;
///     Ok(types.output().clone())
/// };
/// assert_eq!(output(200)?, UInt8);
/// assert_eq!(output(300)?, UInt16);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Types {
    left: DataType,
    right: DataType,
    output: DataType,
}

impl Types {
    /// Decides the types.
    ///
    /// # Errors
    /// When the operation does not exist for these types, or a literal text cannot be read as what
    /// the leaves are.
    pub fn new(op: Op, left: OperandType<'_>, right: OperandType<'_>) -> Result<Self> {
        let (a, b) = (left.data_type()?, right.data_type()?);
        let no = || {
            Error::type_of(
                format!("{} of {a} and {b}", op.symbol()),
                if op.is_logical() { "booleans" } else { "types that go together; cast one side" },
                if op.is_logical() && *a == DataType::Boolean { b } else { a },
            )
        };
        let (left, right) = if op.is_logical() {
            let fits = |t: &DataType| matches!(t, DataType::Boolean | DataType::Null);
            if !fits(a) || !fits(b) {
                return Err(no());
            }
            (DataType::Boolean, DataType::Boolean)
        } else {
            let chooses = matches!(op, Op::Minimum | Op::Maximum);
            let numbers = number(values_of(a)) && number(values_of(b));
            if op == Op::Pow && !numbers && !(a.is_null() || b.is_null()) {
                return Err(no());
            }
            // What is chosen from only has to compare.
            let op = if chooses && !numbers { Op::Lt } else { op };
            let (x, y) = match (left, right) {
                (OperandType::Leaves(a), OperandType::Literal(v)) => {
                    with_literal(op, a, v)?.ok_or_else(no)?
                }
                (OperandType::Literal(v), OperandType::Leaves(b)) => {
                    let (b, a) = with_literal(op, b, v)?.ok_or_else(no)?;
                    (a, b)
                }
                _ => of_two(op, a, b).ok_or_else(no)?,
            };
            match (&x, chooses) {
                // They compare as what is no value of either.
                (t, true) if is_time(values_of(a)) && t.is_decimal() => {
                    let common = match (values_of(a), values_of(b)) {
                        (t @ DataType::Duration(_), DataType::Interval(_))
                        | (DataType::Interval(_), t @ DataType::Duration(_)) => Some(t.clone()),
                        // Which of two is the smaller is not seen from their fields.
                        (DataType::Interval(_), DataType::Interval(_)) => None,
                        (a, b) => promote_types(a, b),
                    };
                    let common = common.ok_or_else(no)?;
                    (common.clone(), common)
                }
                (_, true) => (values_of(&x).clone(), values_of(&y).clone()),
                (_, false) => (x, y),
            }
        };
        let empty = |t: &DataType| Side::Each(new_empty_array(t));
        let out = apply(op, &empty(&left), &empty(&right), 0).map_err(|_| no())?;
        Ok(Self { output: out.data_type().clone(), left, right })
    }

    /// What the left side is cast to.
    pub fn left(&self) -> &DataType {
        &self.left
    }

    /// What the right side is cast to.
    pub fn right(&self) -> &DataType {
        &self.right
    }

    /// Type of the result.
    pub fn output(&self) -> &DataType {
        &self.output
    }
}

impl<'a> OperandType<'a> {
    fn data_type(&self) -> Result<&'a DataType> {
        match *self {
            Self::Leaves(t) => Ok(t),
            Self::Literal(v) if v.len() == 1 => Ok(v.data_type()),
            Self::Literal(v) => {
                Err(Error::invalid(format!("a scalar operand with {} values", v.len())))
            }
        }
    }
}

/// Types without lists of values behind them.
fn values_of(t: &DataType) -> &DataType {
    match t {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

fn is_time(t: &DataType) -> bool {
    t.is_temporal() || matches!(t, DataType::Interval(_))
}

/// What `u64` and `i64` compare as.
const EXACT_INTEGERS: DataType = DataType::Decimal128(20, 0);

/// Two arrays.
fn of_two(op: Op, a: &DataType, b: &DataType) -> Option<(DataType, DataType)> {
    use DataType::{
        Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Duration, Interval, Timestamp,
    };
    use TimeUnit::Nanosecond;
    let both = |t: DataType| Some((t.clone(), t));
    let intervals = [a, b].map(|t| matches!(values_of(t), DataType::Interval(_)));
    if op.is_comparison() && intervals == [true, true] {
        // Arrow compares them field by field: 1 day is more than 36 hours there.
        return both(INTERVAL_NANOSECONDS);
    }
    if op.is_comparison() && a == b && !a.is_nested() {
        return both(a.clone());
    }
    let (a, b) = (values_of(a), values_of(b));
    if op.is_arithmetic() {
        match (a, b) {
            (Timestamp(u, _), Timestamp(v, z)) if u != v => {
                let finer = *u.max(v);
                let left = cast_unit(a, finer)?;
                return Some((left, Timestamp(finer, z.clone())));
            }
            (Timestamp(u, _), Duration(_)) => return Some((a.clone(), Duration(*u))),
            (Duration(_), Timestamp(u, _)) => return Some((Duration(*u), b.clone())),
            (Duration(_), Interval(_)) => return both(a.clone()),
            (Interval(_), Duration(_)) => return both(b.clone()),
            _ if is_time(a) && is_time(b) => {
                let same = if a == b { None } else { promote_types(a, b) };
                return match (a, b, same) {
                    (Duration(_), Duration(_), Some(t)) => both(t),
                    _ => Some((a.clone(), b.clone())),
                };
            }
            _ if is_time(a) || is_time(b) => {
                return match (a.is_null(), b.is_null()) {
                    (true, _) => both(b.clone()),
                    (_, true) => both(a.clone()),
                    _ => Some((a.clone(), b.clone())),
                };
            }
            _ => {}
        }
    }
    if a.is_decimal() || b.is_decimal() {
        let number = |t: &DataType| t.is_decimal() || t.is_numeric() || t.is_null();
        return match (a, b) {
            _ if a == b => both(a.clone()),
            // Arrow aligns their scales itself.
            (Decimal32(..), Decimal32(..))
            | (Decimal64(..), Decimal64(..))
            | (Decimal128(..), Decimal128(..))
            | (Decimal256(..), Decimal256(..))
                if op.is_arithmetic() =>
            {
                Some((a.clone(), b.clone()))
            }
            _ if number(a) && number(b) => both(DataType::Float64),
            _ => None,
        };
    }
    if op.is_comparison() {
        match (a, b) {
            // Dates without a place among the nanoseconds are dates all the same.
            (Timestamp(Nanosecond, None), Date32 | Date64)
            | (Date32 | Date64, Timestamp(Nanosecond, None)) => return both(EXACT_SECONDS),
            (Timestamp(..), Date32 | Date64) => return both(a.clone()),
            (Date32 | Date64, Timestamp(..)) => return both(b.clone()),
            (Timestamp(u, y), Timestamp(v, z))
                if u != v && one_clock(y.as_deref(), z.as_deref()) =>
            {
                return both(EXACT_SECONDS);
            }
            (Timestamp(u, z), Timestamp(v, _)) => return both(Timestamp(*u.max(v), z.clone())),
            (Duration(_), Interval(_)) | (Interval(_), Duration(_)) => return both(EXACT_SECONDS),
            (Duration(u), Duration(v)) if u != v => return both(EXACT_SECONDS),
            _ => {}
        }
    }
    if op.is_comparison()
        && matches!((a, b), (DataType::UInt64, b) | (b, DataType::UInt64) if b.is_signed_integer())
    {
        // No integer type holds both, and floats are equal beyond 2^53 that are not.
        return both(EXACT_INTEGERS);
    }
    let common = promote_types(a, b)?;
    // Nothing is known of nulls but that they are nothing.
    let common = if common.is_null() && op.is_arithmetic() { DataType::Int64 } else { common };
    both(common)
}

/// Whether the instants of two time zones compare as they are: a time without one is that of UTC.
fn one_clock(a: Option<&str>, b: Option<&str>) -> bool {
    let utc = |zone: Option<&str>| zone.is_none_or(|z| matches!(z, "UTC" | "+00:00" | "Z"));
    a.is_some() == b.is_some() || (utc(a) && utc(b))
}

fn cast_unit(t: &DataType, unit: arrow::datatypes::TimeUnit) -> Option<DataType> {
    match t {
        DataType::Timestamp(_, z) => Some(DataType::Timestamp(unit, z.clone())),
        _ => None,
    }
}

/// Leaves and a literal, in that order; `None` when they do not go together.
fn with_literal(
    op: Op,
    leaf: &DataType,
    literal: &ArrayRef,
) -> Result<Option<(DataType, DataType)>> {
    let given = values_of(literal.data_type());
    let values = values_of(leaf);
    let both = |t: DataType| Ok(Some((t.clone(), t)));
    if literal.logical_null_count() == 1 && (given.is_null() || given == values) {
        let t =
            if values.is_null() && op.is_arithmetic() { DataType::Int64 } else { values.clone() };
        return if values.is_null() { both(t) } else { Ok(of_two(op, values, &t)) };
    }
    if given.is_string() && !values.is_string() && op.is_comparison() && !values.is_null() {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        match (cast_with_options(literal, values, &options), values) {
            (Ok(_), _) => return both(values.clone()),
            // A year that nanoseconds have no place for is one all the same.
            (Err(_), DataType::Timestamp(TimeUnit::Nanosecond, None)) => {
                let wide = DataType::Timestamp(TimeUnit::Microsecond, None);
                cast_with_options(literal, &wide, &options)?;
                return both(EXACT_SECONDS);
            }
            (Err(e), _) => return Err(e.into()),
        }
    }
    if values.is_string() && given.is_string() && op.is_comparison() {
        // A dictionary compares through its values, without being unpacked.
        return Ok(Some((leaf.clone(), values.clone())));
    }
    if is_time(values) && is_time(given) && op.is_comparison() && values != given {
        // In the unit of the leaves if that says the same.
        let literal = cast(literal, given)?;
        if let (DataType::Duration(_), DataType::Interval(_)) = (values, given) {
            return match in_unit(&literal, values)? {
                Some(_) => both(values.clone()),
                None => both(EXACT_SECONDS),
            };
        }
        let there = cast(&literal, values).ok();
        if there.and_then(|v| cast(&v, given).ok()).is_some_and(|v| *v == *literal) {
            return both(values.clone());
        }
        return Ok(of_two(op, values, given));
    }
    if !number(values) || !number(given) {
        return Ok(of_two(op, values, given));
    }
    let value = Number::new(literal)?;
    Ok(match (value, values.is_floating()) {
        (None, _) => of_two(op, values, values),
        (Some(value), true) => {
            let floats = [DataType::Float16, DataType::Float32, DataType::Float64];
            let from = floats.iter().position(|t| t == values).unwrap_or(0);
            let t = floats[from..].iter().find(|t| value.is_finite_in(t)).unwrap_or(values);
            Some((t.clone(), t.clone()))
        }
        (Some(Number::Int(n)), false) => {
            let t = if holds(values, n) {
                Some(values.clone())
            } else {
                promote_types(values, &least(n))
            };
            t.map(|t| (t.clone(), t))
        }
        (Some(Number::Float(x)), false) => {
            // Beyond that, several integers are the float that is compared with.
            let exact = |n: i128| n.unsigned_abs() < 1 << f64::MANTISSA_DIGITS;
            let whole = whole(x).filter(|n| op.is_comparison() && holds(values, *n) && exact(*n));
            let t = if whole.is_some() { values.clone() } else { DataType::Float64 };
            Some((t.clone(), t))
        }
    })
}

fn number(t: &DataType) -> bool {
    t.is_integer() || t.is_floating()
}

/// The value of a literal.
#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    /// `None` for a null.
    fn new(literal: &ArrayRef) -> Result<Option<Self>> {
        let literal = cast(literal, values_of(literal.data_type()))?;
        if literal.is_null(0) {
            return Ok(None);
        }
        Ok(Some(match literal.data_type() {
            DataType::UInt64 => Self::Int(literal.as_primitive::<UInt64Type>().value(0).into()),
            t if t.is_integer() => {
                let wide = cast(&literal, &DataType::Int64)?;
                Self::Int(wide.as_primitive::<Int64Type>().value(0).into())
            }
            _ => {
                let wide = cast(&literal, &DataType::Float64)?;
                Self::Float(wide.as_primitive::<Float64Type>().value(0))
            }
        }))
    }

    /// Whether it stays finite (or was not before) in a float type.
    fn is_finite_in(self, t: &DataType) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "only the magnitude matters")]
        let x = match self {
            Self::Int(n) => n as f64,
            Self::Float(x) => x,
        };
        let largest = match t {
            DataType::Float16 => f64::from(half::f16::MAX),
            DataType::Float32 => f64::from(f32::MAX),
            _ => f64::MAX,
        };
        !x.is_finite() || x.abs() <= largest
    }
}

/// A float without a fraction as an integer.
fn whole(x: f64) -> Option<i128> {
    #[expect(clippy::cast_possible_truncation, reason = "far below the limits of i128")]
    (x.fract() == 0.0 && x.abs() < 1e30).then_some(x as i128)
}

/// Whether an integer type holds a value.
fn holds(t: &DataType, n: i128) -> bool {
    let (low, high) = match t {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, i128::from(u64::MAX)),
        _ => return false,
    };
    (low..=high).contains(&n)
}

/// The smallest type that holds a value: unsigned when it is not negative.
fn least(n: i128) -> DataType {
    use DataType::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let types = if n < 0 { [Int8, Int16, Int32, Int64] } else { [UInt8, UInt16, UInt32, UInt64] };
    types.into_iter().find(|t| holds(t, n)).unwrap_or(DataType::Float64)
}
