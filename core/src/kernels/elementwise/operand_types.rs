//! The types to which the operands of an operation are cast, and the type of its result.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_empty_array};
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Float64Type,
    Int64Type, TimeUnit, UInt64Type,
};

use super::spans::{choose_span_type, choose_span_types, is_span};
use super::{BinaryOp, SideValues, apply_op};
use crate::array::exact_casts::cast_strictly;
use crate::array::exact_casts::find_int_range;
use crate::error::{Error, Result};
use crate::kernels::dictionary_predicate::value_type;
use crate::kernels::text::is_overflow;
use crate::kernels::time_texts::complete_texts;
use crate::kernels::times::{
    EXACT_SECONDS, INTERVAL_NANOSECONDS, cast_time, convert_all_exactly, count_nanoseconds,
    parse_exact_seconds, to_exact_seconds,
};
use crate::table::promote_types;

/// An operand at planning time: the type of an array, or the value of a literal.
#[derive(Clone, Copy, Debug)]
pub enum OperandType<'a> {
    /// The type of the leaves of an array; the values of the leaves do not affect the types.
    Leaves(&'a DataType),
    /// A literal, as an array of length 1; the value of the literal affects the types.
    Literal(&'a ArrayRef),
}

/// The types that the operands of an operation are cast to, and the type of its result.
///
/// * Two arrays: both widen to a type that holds both, as in NumPy (`uint8` and `int8` to `int16`,
///   `uint64` and `int64` to `float64`, `int32` and `float32` to `float64`). Comparisons of
///   `uint64` and `int64` are exact.
/// * A literal integer takes the type of the leaves if its value is in the range of that type;
///   otherwise both widen as far as the value requires: `uint8` leaves and 300 become `uint16`, -1
///   gives `int16`. `int64` leaves and a literal of 2^63 or more compare exactly.
/// * A literal integer and float leaves compare in the type of the leaves if that type represents
///   every integer up to the literal, otherwise as `float64`. In arithmetic the literal takes the
///   type of the leaves.
/// * A literal float takes the type of float leaves unless it would become infinite. With integer
///   leaves both become `float64`. If a literal float is a whole number below 2^53, its comparison
///   with integer leaves uses the type of the leaves instead, which gives the same result.
/// * Strings of all encodings compare with each other; a literal string is parsed as a date, time,
///   number or boolean for leaves of such a type. A number in a string that would be infinite in
///   the type of float leaves compares as `float64`. Timestamps and durations of different units
///   compare exactly. Two intervals also compare exactly, with months of 30 days. Comparing an
///   interval that has months with a duration is an error. A null takes the type of the other
///   operand.
/// * Decimals and integers compare exactly, as decimals of up to 76 digits; if the other operand is
///   a float, both become `float64`. Arithmetic on decimals has Arrow's precision and scale.
/// * A span (a duration or an interval) times or divided by a number has the type of the span; a
///   span divided by a span is a `float64`.
/// * Arithmetic on times of two units yields the finer unit. A timestamp or duration in seconds or
///   milliseconds plus an interval is in microseconds. A date plus an interval stays a date; the
///   interval must be a whole number of days.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int64Array};
/// use arrow::datatypes::DataType::{UInt8, UInt16};
/// use serrate::kernels::elementwise::{BinaryOp, OperandType, OperationTypes};
/// let literal = |n| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
/// let output = |n| -> serrate::Result<_> {
///     let types = OperationTypes::new(BinaryOp::Add, OperandType::Leaves(&UInt8), OperandType::Literal(&literal(n)))?;
///     Ok(types.output().clone())
/// };
/// assert_eq!(output(200)?, UInt8);
/// assert_eq!(output(300)?, UInt16);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationTypes {
    left: DataType,
    right: DataType,
    output: DataType,
}

impl OperationTypes {
    /// Determines the types of an operation on two operands.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::elementwise::{BinaryOp, OperandType, OperationTypes};
    /// let number = OperandType::Leaves(&DataType::Int32);
    /// assert_eq!(OperationTypes::new(BinaryOp::Lt, number, number)?.output(), &DataType::Boolean);
    /// assert!(OperationTypes::new(BinaryOp::And, number, number).is_err()); // needs booleans
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the operation does not exist for these types, or a literal string cannot be parsed.
    pub fn new(op: BinaryOp, left: OperandType<'_>, right: OperandType<'_>) -> Result<Self> {
        let (a, b) = (left.data_type()?, right.data_type()?);
        let incompatible = || {
            Error::type_of(
                format!("operator {} with operands of the types {a} and {b}", op.symbol()),
                describe_operands(op, a, b),
                if op.is_logical() && *a == DataType::Boolean { b } else { a },
            )
        };
        let (left, right) = choose_operand_types(op, left, right)?.ok_or_else(incompatible)?;
        let empty = |t: &DataType| SideValues::Each(new_empty_array(t));
        let out = apply_op(op, &empty(&left), &empty(&right), 0).map_err(|_| incompatible())?;
        Ok(Self { output: out.data_type().clone(), left, right })
    }

    /// Returns the type that the left side is cast to.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::elementwise::{BinaryOp, OperandType, OperationTypes};
    /// let (small, signed) = (OperandType::Leaves(&DataType::UInt8), OperandType::Leaves(&DataType::Int8));
    /// let types = OperationTypes::new(BinaryOp::Maximum, small, signed)?;
    /// assert_eq!((types.left(), types.right()), (&DataType::Int16, &DataType::Int16));
    /// assert_eq!(types.output(), &DataType::Int16);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn left(&self) -> &DataType {
        &self.left
    }

    /// Returns the type that the right side is cast to.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::elementwise::{BinaryOp, OperandType, OperationTypes};
    /// let unsigned = OperandType::Leaves(&DataType::UInt8);
    /// let signed = OperandType::Leaves(&DataType::Int8);
    /// assert_eq!(OperationTypes::new(BinaryOp::Add, unsigned, signed)?.right(), &DataType::Int16);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn right(&self) -> &DataType {
        &self.right
    }

    /// Returns the type of the result.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::elementwise::{BinaryOp, OperandType, OperationTypes};
    /// let unsigned = OperandType::Leaves(&DataType::UInt8);
    /// let signed = OperandType::Leaves(&DataType::Int8);
    /// assert_eq!(OperationTypes::new(BinaryOp::Add, unsigned, signed)?.output(), &DataType::Int16);
    /// assert_eq!(OperationTypes::new(BinaryOp::Lt, unsigned, signed)?.output(), &DataType::Boolean);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn output(&self) -> &DataType {
        &self.output
    }
}

/// Describes the operands that an operation expects in place of operands of the types `a` and `b`,
/// for an error message.
fn describe_operands(op: BinaryOp, a: &DataType, b: &DataType) -> &'static str {
    let is_time_and_number = |a: &DataType, b: &DataType| a.is_temporal() && b.is_numeric();
    match op {
        _ if op.is_logical() => "booleans (compare or cast the values first)",
        BinaryOp::Add | BinaryOp::Sub if is_time_and_number(a, b) || is_time_and_number(b, a) => {
            "operands of compatible types (write a number as an interval, as in n * INTERVAL '1 day')"
        }
        _ => "operands of compatible types (cast one side)",
    }
}

impl<'a> OperandType<'a> {
    /// Returns the type of the values.
    pub(crate) fn data_type(&self) -> Result<&'a DataType> {
        match *self {
            Self::Leaves(t) => Ok(t),
            Self::Literal(v) if v.len() == 1 => Ok(v.data_type()),
            Self::Literal(v) => Err(Error::invalid(format!(
                "a scalar operand has {} values; give exactly one",
                v.len()
            ))),
        }
    }
}

/// Returns the types to which the operands of an operation are cast, or `None` if the operation
/// does not accept them.
fn choose_operand_types(
    op: BinaryOp,
    left: OperandType<'_>,
    right: OperandType<'_>,
) -> Result<Option<(DataType, DataType)>> {
    let (a, b) = (left.data_type()?, right.data_type()?);
    if op.is_logical() {
        let fits = |t: &DataType| matches!(t, DataType::Boolean | DataType::Null);
        return Ok((fits(a) && fits(b)).then_some((DataType::Boolean, DataType::Boolean)));
    }
    let chooses = matches!(op, BinaryOp::Minimum | BinaryOp::Maximum);
    let are_numbers = is_number(value_type(a)) && is_number(value_type(b));
    if op == BinaryOp::Pow && !are_numbers && !(a.is_null() || b.is_null()) {
        return Ok(None);
    }
    // Minimum and maximum of strings and times only compare operands, so choose the types as for
    // `<`.
    let op = if chooses && !are_numbers { BinaryOp::Lt } else { op };
    let types = match (left, right) {
        (OperandType::Leaves(a), OperandType::Literal(v)) => combine_with_literal(op, a, v)?,
        (OperandType::Literal(v), OperandType::Leaves(b)) => {
            combine_with_literal(op, b, v)?.map(|(b, a)| (a, b))
        }
        _ => combine_types(op, a, b),
    };
    let Some((x, y)) = types else { return Ok(None) };
    if !chooses {
        return Ok(Some((x, y)));
    }
    // Times may be compared as decimals, but their minimum and maximum are times.
    if is_time(value_type(a)) && x.is_decimal() {
        let time = find_extreme_type(value_type(a), value_type(b));
        return Ok(time.map(|t| (t.clone(), t)));
    }
    Ok(Some((value_type(&x).clone(), value_type(&y).clone())))
}

/// Returns the type of the minimum and maximum of two times, or `None` if they have none.
fn find_extreme_type(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        (t @ DataType::Duration(_), DataType::Interval(_))
        | (DataType::Interval(_), t @ DataType::Duration(_)) => Some(t.clone()),
        // Intervals have no minimum: it depends on the date whether 1 month or 30 days is longer.
        (DataType::Interval(_), DataType::Interval(_)) => None,
        (DataType::Timestamp(u, y), DataType::Timestamp(v, z)) => {
            let zone = y.clone().or_else(|| z.clone());
            Some(DataType::Timestamp(*u.max(v), zone))
        }
        (a, b) => promote_types(a, b),
    }
}

fn is_time(t: &DataType) -> bool {
    t.is_temporal() || matches!(t, DataType::Interval(_))
}

const EXACT_INTEGERS: DataType = DataType::Decimal128(20, 0);

fn combine_types(op: BinaryOp, a: &DataType, b: &DataType) -> Option<(DataType, DataType)> {
    let both = |t: DataType| Some((t.clone(), t));
    let intervals = [a, b].map(|t| matches!(value_type(t), DataType::Interval(_)));
    if op.is_comparison() && intervals == [true, true] {
        // Arrow compares intervals by field (1 day > 36 hours), so compare them in nanoseconds.
        return both(INTERVAL_NANOSECONDS);
    }
    if op.is_comparison() && a == b && !a.is_nested() {
        return both(a.clone());
    }
    let (a, b) = (value_type(a), value_type(b));
    if matches!(op, BinaryOp::Mul | BinaryOp::Div)
        && let Some(types) = choose_span_types(op == BinaryOp::Div, a, b)
    {
        return Some(types);
    }
    if op.is_arithmetic() && (is_time(a) || is_time(b)) {
        return combine_arithmetic_times(a, b);
    }
    if a.is_decimal() || b.is_decimal() {
        return combine_decimals(op, a, b);
    }
    if op.is_comparison()
        && let Some(t) = find_compared_time(a, b)
    {
        return both(t);
    }
    if op.is_comparison()
        && matches!((a, b), (DataType::UInt64, b) | (b, DataType::UInt64) if b.is_signed_integer())
    {
        // Compare as decimals, because different integers above 2^53 can become equal floats.
        return both(EXACT_INTEGERS);
    }
    let common = promote_types(a, b)?;
    let common = if common.is_null() && op.is_arithmetic() { DataType::Int64 } else { common };
    both(common)
}

/// Returns the types to which the operands of an arithmetic operation are cast if at least one of
/// them is a time. If Arrow has no operation for the types, returns them unchanged.
fn combine_arithmetic_times(a: &DataType, b: &DataType) -> Option<(DataType, DataType)> {
    use DataType::{Duration, Interval, Timestamp};
    use TimeUnit::Microsecond;
    let both = |t: DataType| Some((t.clone(), t));
    match (a, b) {
        // A timestamp without a zone is a local time in the zone of the other operand.
        (Timestamp(u, None), Timestamp(v, Some(z)))
        | (Timestamp(v, Some(z)), Timestamp(u, None)) => {
            both(Timestamp(*u.max(v), Some(Arc::clone(z))))
        }
        (Timestamp(u, _), Timestamp(v, z)) if u != v => {
            let finer = *u.max(v);
            let left = replace_unit(a, finer)?;
            Some((left, Timestamp(finer, z.clone())))
        }
        (Timestamp(u, z), Duration(v)) => {
            let finer = *u.max(v);
            Some((Timestamp(finer, z.clone()), Duration(finer)))
        }
        (Duration(v), Timestamp(u, z)) => {
            let finer = *u.max(v);
            Some((Duration(finer), Timestamp(finer, z.clone())))
        }
        // Use microseconds for coarser timestamps, because the interval may have fractions of their
        // unit. Nanoseconds would cover only the years 1677 to 2262.
        (Timestamp(u, z), Interval(_)) => {
            Some((Timestamp(*u.max(&Microsecond), z.clone()), b.clone()))
        }
        (Interval(_), Timestamp(u, z)) => {
            Some((a.clone(), Timestamp(*u.max(&Microsecond), z.clone())))
        }
        (Duration(u), Interval(_)) | (Interval(_), Duration(u)) => {
            both(Duration(*u.max(&Microsecond)))
        }
        _ if is_time(a) && is_time(b) => {
            let same = if a == b { None } else { promote_types(a, b) };
            match (a, b, same) {
                (Duration(_), Duration(_), Some(t)) => both(t),
                _ => Some((a.clone(), b.clone())),
            }
        }
        _ if a.is_null() => both(b.clone()),
        _ if b.is_null() => both(a.clone()),
        _ => Some((a.clone(), b.clone())),
    }
}

/// Returns the types to which two operands are cast if at least one is a decimal; `None` if no
/// decimal type can represent the values of both.
fn combine_decimals(op: BinaryOp, a: &DataType, b: &DataType) -> Option<(DataType, DataType)> {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    let both = |t: DataType| Some((t.clone(), t));
    match (a, b) {
        _ if a == b => both(a.clone()),
        _ if b.is_null() => both(a.clone()),
        _ if a.is_null() => both(b.clone()),
        // Arrow aligns the scales of decimals of the same width in arithmetic, so they need no
        // cast.
        (Decimal32(..), Decimal32(..))
        | (Decimal64(..), Decimal64(..))
        | (Decimal128(..), Decimal128(..))
        | (Decimal256(..), Decimal256(..))
            if op.is_arithmetic() =>
        {
            Some((a.clone(), b.clone()))
        }
        _ if a.is_floating() || b.is_floating() => both(DataType::Float64),
        _ if op.is_arithmetic() => widen_decimals(a, b),
        _ => both(find_common_decimal(a, b)?),
    }
}

/// Returns the type in which times of the types `a` and `b` are compared. Returns `None` if there
/// is no special rule for these two types, so that the general rules apply.
fn find_compared_time(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{Date32, Date64, Duration, Interval, Timestamp};
    match (a, b) {
        // Dates may exceed the range of nanosecond timestamps, so compare in exact seconds.
        (Timestamp(TimeUnit::Nanosecond, None), Date32 | Date64)
        | (Date32 | Date64, Timestamp(TimeUnit::Nanosecond, None)) => Some(EXACT_SECONDS),
        (Timestamp(..), Date32 | Date64) => Some(a.clone()),
        (Date32 | Date64, Timestamp(..)) => Some(b.clone()),
        (Timestamp(u, y), Timestamp(v, z)) if u != v && share_clock(y.as_deref(), z.as_deref()) => {
            Some(EXACT_SECONDS)
        }
        // If only one operand has a zone, the other is a local time in this zone.
        (Timestamp(u, y), Timestamp(v, z)) => {
            Some(Timestamp(*u.max(v), y.clone().or_else(|| z.clone())))
        }
        (Duration(_), Interval(_)) | (Interval(_), Duration(_)) => Some(EXACT_SECONDS),
        (Duration(u), Duration(v)) if u != v => Some(EXACT_SECONDS),
        _ => None,
    }
}

/// Returns precision and scale of an integer or decimal type.
fn find_decimal_digits(t: &DataType) -> Option<(u8, i8)> {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    if let Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s) | Decimal256(p, s) = t {
        return Some((*p, *s));
    }
    let (low, high) = find_int_range(t)?;
    let digits = low.unsigned_abs().max(high.unsigned_abs()).ilog10() + 1;
    Some((u8::try_from(digits).ok()?, 0))
}

/// Returns the decimal type with a precision and a scale, in 128 bits if they suffice; `None`
/// beyond 76 digits.
fn make_decimal_type(precision: u8, scale: i8) -> Option<DataType> {
    match precision {
        0..=DECIMAL128_MAX_PRECISION => Some(DataType::Decimal128(precision, scale)),
        _ => (precision <= DECIMAL256_MAX_PRECISION)
            .then_some(DataType::Decimal256(precision, scale)),
    }
}

/// Returns the decimal type that represents all values of two types exactly. Returns `None` for
/// types other than integers and decimals, and if it would have more than 76 digits.
pub(crate) fn find_common_decimal(a: &DataType, b: &DataType) -> Option<DataType> {
    let ((p, s), (q, t)) = (find_decimal_digits(a)?, find_decimal_digits(b)?);
    let scale = s.max(t);
    let whole = (i16::from(p) - i16::from(s)).max(i16::from(q) - i16::from(t));
    make_decimal_type(u8::try_from(whole + i16::from(scale)).ok()?, scale)
}

/// Converts two types to decimals of the same width, 128 or 256 bits, with the precision and scale
/// of each type. Returns `None` for types other than decimals and integers.
fn widen_decimals(a: &DataType, b: &DataType) -> Option<(DataType, DataType)> {
    let ((p, s), (q, t)) = (find_decimal_digits(a)?, find_decimal_digits(b)?);
    let is_wide = |t: &DataType| matches!(t, DataType::Decimal256(..));
    Some(match is_wide(a) || is_wide(b) {
        true => (DataType::Decimal256(p, s), DataType::Decimal256(q, t)),
        false => (DataType::Decimal128(p, s), DataType::Decimal128(q, t)),
    })
}

/// Returns whether timestamps in the zones `a` and `b` can be compared without converting one to
/// the zone of the other. A timestamp without a zone (`None`) compares with UTC in this way.
fn share_clock(a: Option<&str>, b: Option<&str>) -> bool {
    let utc = |zone: Option<&str>| zone.is_none_or(|z| matches!(z, "UTC" | "+00:00" | "Z"));
    a.is_some() == b.is_some() || (utc(a) && utc(b))
}

fn replace_unit(t: &DataType, unit: arrow::datatypes::TimeUnit) -> Option<DataType> {
    match t {
        DataType::Timestamp(_, z) => Some(DataType::Timestamp(unit, z.clone())),
        _ => None,
    }
}

/// Returns the types that leaves and a literal are cast to, in that order; `None` if they are
/// incompatible.
fn combine_with_literal(
    op: BinaryOp,
    leaf: &DataType,
    literal: &ArrayRef,
) -> Result<Option<(DataType, DataType)>> {
    let given = value_type(literal.data_type());
    let values = value_type(leaf);
    let both = |t: DataType| Ok(Some((t.clone(), t)));
    if matches!(op, BinaryOp::Mul | BinaryOp::Div) && (is_span(values) || is_span(given)) {
        return Ok(choose_span_type(values).zip(choose_span_type(given)));
    }
    if literal.logical_null_count() == 1 && (given.is_null() || given == values) {
        let t =
            if values.is_null() && op.is_arithmetic() { DataType::Int64 } else { values.clone() };
        return if values.is_null() { both(t) } else { Ok(combine_types(op, values, &t)) };
    }
    if given.is_string() && !values.is_string() && op.is_comparison() && !values.is_null() {
        return both(find_type_of_string(values, literal)?);
    }
    if values.is_string() && given.is_string() && op.is_comparison() {
        // Keep dictionaries, because Arrow compares their values without decoding them.
        return Ok(Some((leaf.clone(), values.clone())));
    }
    if let (true, DataType::Timestamp(unit, _) | DataType::Duration(unit)) =
        (op.is_arithmetic(), values)
        && matches!(given, DataType::Duration(_))
        && let spans = DataType::Duration(*unit)
        && convert_all_exactly(&cast(literal, given)?, &spans)?.is_some()
    {
        return Ok(Some((values.clone(), spans)));
    }
    if is_time(values) && is_time(given) && op.is_comparison() && values != given {
        // Use the unit of the leaves if it represents the literal exactly.
        let literal = cast(literal, given)?;
        if let (DataType::Duration(_), DataType::Interval(_)) = (values, given) {
            return match convert_all_exactly(&literal, values)? {
                Some(_) => both(values.clone()),
                None => both(EXACT_SECONDS),
            };
        }
        let there = cast(&literal, values).ok();
        if there.and_then(|v| cast(&v, given).ok()).is_some_and(|v| *v == *literal) {
            return both(values.clone());
        }
        return Ok(combine_types(op, values, given));
    }
    if !is_number(values) || !is_number(given) {
        return Ok(combine_types(op, values, given));
    }
    combine_with_number(op, values, literal)
}

/// Returns the type in which leaves of type `values` compare with a literal string. Returns an
/// error if the string cannot be parsed as a value of type `values`.
fn find_type_of_string(values: &DataType, literal: &ArrayRef) -> Result<DataType> {
    let literal = &complete_texts(literal, values)?;
    let zoned = matches!(values, DataType::Timestamp(_, Some(_)));
    let parsed = match zoned.then(|| cast_time(literal, values)).flatten() {
        Some(parsed) => parsed,
        None => cast_strictly(literal, values).map_err(Error::from),
    };
    match (parsed, values) {
        (Ok(there), DataType::Timestamp(..) | DataType::Date32 | DataType::Date64) => {
            find_type_of_instants(values, literal, &there)
        }
        (Ok(there), DataType::Time32(_) | DataType::Time64(_)) => {
            let exact = cast_strictly(literal, &FINEST_CLOCK)?;
            let there = cast(&there, &FINEST_CLOCK)?;
            Ok(if *there == *exact { values.clone() } else { FINEST_CLOCK })
        }
        // A cast of a string to `EXACT_SECONDS` would parse the string as a time.
        (Ok(_), values) if *values == EXACT_SECONDS => Ok(WIDE_DECIMALS),
        (Ok(there), values) if values.is_floating() => find_type_of_float(values, literal, &there),
        (Ok(_), _) => Ok(values.clone()),
        // The literal may exceed the range of nanosecond timestamps; compare in exact seconds.
        (Err(_), DataType::Timestamp(TimeUnit::Nanosecond, None)) => {
            let wide = DataType::Timestamp(TimeUnit::Microsecond, None);
            cast_strictly(literal, &wide)?;
            Ok(EXACT_SECONDS)
        }
        (Err(e), _) => Err(e),
    }
}

/// Returns the type in which leaves of the float type `values` compare with the number in `text`:
/// `Float64` if the number is beyond the range of `values`, otherwise `values`. `there` is `text`
/// cast to `values`.
fn find_type_of_float(values: &DataType, text: &ArrayRef, there: &ArrayRef) -> Result<DataType> {
    let texts = cast(text, &DataType::Utf8)?;
    let text = texts.as_string::<i32>();
    let overflows = |parsed: &ArrayRef| -> Result<bool> {
        let doubles = cast(parsed, &DataType::Float64)?;
        let x = doubles.as_primitive::<Float64Type>().value(0);
        Ok(text.is_valid(0) && is_overflow(text.value(0), x))
    };
    if !overflows(there)? {
        return Ok(values.clone());
    }
    if overflows(&cast(&texts, &DataType::Float64)?)? {
        return Err(Error::invalid(format!(
            "the number in the string '{}' is beyond the range of Float64; write 'inf' or '-inf' to compare with infinity",
            text.value(0)
        )));
    }
    Ok(DataType::Float64)
}

/// Returns the types to which leaves of the numeric type `values` and a literal number are cast;
/// `None` if no type represents both.
fn combine_with_number(
    op: BinaryOp,
    values: &DataType,
    literal: &ArrayRef,
) -> Result<Option<(DataType, DataType)>> {
    let value = LiteralNumber::new(literal)?;
    Ok(match (value, values.is_floating()) {
        (None, _) => combine_types(op, values, values),
        (Some(value), true) => {
            let floats = [DataType::Float16, DataType::Float32, DataType::Float64];
            let from = floats.iter().position(|t| t == values).unwrap_or(0);
            let fits = |t: &DataType| {
                value.is_finite_in(t) && (!op.is_comparison() || value.is_exact_in(t))
            };
            let t = floats[from..].iter().find(|&t| fits(t)).unwrap_or(values);
            Some((t.clone(), t.clone()))
        }
        (Some(LiteralNumber::Int(n)), false) => {
            let t = if can_hold(values, n) {
                Some(values.clone())
            } else {
                let wide = promote_types(values, &find_smallest_type(n));
                // Different integers above 2^53 could be equal as floats, so compare as decimals.
                let rounds = op.is_comparison() && wide.as_ref().is_some_and(DataType::is_floating);
                if rounds { Some(EXACT_INTEGERS) } else { wide }
            };
            t.map(|t| (t.clone(), t))
        }
        (Some(LiteralNumber::Float(x)), false) => {
            // From 2^53 on, several integers convert to the same float, so a comparison as integers
            // could differ from a comparison as floats.
            let exact = |n: i128| n.unsigned_abs() < 1 << f64::MANTISSA_DIGITS;
            let whole =
                to_whole(x).filter(|n| op.is_comparison() && can_hold(values, *n) && exact(*n));
            let t = if whole.is_some() { values.clone() } else { DataType::Float64 };
            Some((t.clone(), t))
        }
    })
}

/// Type in which decimals of the type [`EXACT_SECONDS`] compare with a string of a number.
const WIDE_DECIMALS: DataType = DataType::Decimal256(39, 9);

/// Type in which times of day of all units compare exactly.
const FINEST_CLOCK: DataType = DataType::Time64(TimeUnit::Nanosecond);

/// `there` is `text` cast to `values`. Returns `values` if they represent the time in `text`
/// exactly, else [`EXACT_SECONDS`] or, for timestamps with a zone, a finer timestamp.
fn find_type_of_instants(values: &DataType, text: &ArrayRef, there: &ArrayRef) -> Result<DataType> {
    let zone = match values {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    let exact = parse_exact_seconds(text, zone.clone())?;
    let there = to_exact_seconds(there)?;
    if *there == *exact {
        return Ok(values.clone());
    }
    if zone.is_none() {
        return Ok(EXACT_SECONDS);
    }
    let nanoseconds = exact.as_primitive::<Decimal128Type>().value(0);
    let unit = match nanoseconds % count_nanoseconds(TimeUnit::Microsecond) {
        0 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    };
    Ok(DataType::Timestamp(unit, zone))
}

fn is_number(t: &DataType) -> bool {
    t.is_integer() || t.is_floating()
}

#[derive(Clone, Copy)]
enum LiteralNumber {
    Int(i128),
    Float(f64),
}

impl LiteralNumber {
    fn new(literal: &ArrayRef) -> Result<Option<Self>> {
        let literal = cast(literal, value_type(literal.data_type()))?;
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

    /// Returns false if the value is finite but would become infinite in the float type `t`.
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

    /// Returns whether a comparison in the float type `t` gives the same result as in float64.
    /// Returns true for a literal float, because it is always rounded to the type of the leaves.
    fn is_exact_in(self, t: &DataType) -> bool {
        let digits = match t {
            DataType::Float16 => half::f16::MANTISSA_DIGITS,
            DataType::Float32 => f32::MANTISSA_DIGITS,
            _ => return true,
        };
        match self {
            Self::Int(n) => n.unsigned_abs() <= 1 << digits,
            Self::Float(_) => true,
        }
    }
}

fn to_whole(x: f64) -> Option<i128> {
    #[expect(clippy::cast_possible_truncation, reason = "far below the limits of i128")]
    (x.fract() == 0.0 && x.abs() < 1e30).then_some(x as i128)
}

fn can_hold(t: &DataType, n: i128) -> bool {
    find_int_range(t).is_some_and(|(low, high)| (low..=high).contains(&n))
}

/// Returns an unsigned type unless `n` is negative, and Float64 if no 64-bit type holds `n`.
fn find_smallest_type(n: i128) -> DataType {
    use DataType::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let types = if n < 0 { [Int8, Int16, Int32, Int64] } else { [UInt8, UInt16, UInt32, UInt64] };
    types.into_iter().find(|t| can_hold(t, n)).unwrap_or(DataType::Float64)
}
