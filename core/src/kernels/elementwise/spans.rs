//! Products and quotients of spans (intervals, durations) and numbers, and quotients of two spans.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Float64Array, PrimitiveArray};
use arrow::compute::{binary, cast, try_binary};
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, i256,
};
use arrow::error::ArrowError;

use crate::error::{Error, Result};
use crate::kernels::times::{NANOSECONDS_PER_DAY, to_exact_seconds};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAYS_PER_MONTH: i128 = 30;

/// Returns whether values of a type are intervals or durations.
pub fn is_span(t: &DataType) -> bool {
    matches!(t, DataType::Interval(_) | DataType::Duration(_))
}

/// Returns the type that a span or a number is cast to before [`compute_spans`]; `None` for another
/// type.
pub fn choose_span_type(t: &DataType) -> Option<DataType> {
    Some(match t {
        DataType::Interval(_) => INTERVAL,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Duration(_) | DataType::Decimal128(..) | DataType::Decimal256(..) => t.clone(),
        t if t.is_floating() => DataType::Float64,
        t if t.is_integer() || t.is_null() => DataType::Int64,
        _ => return None,
    })
}

/// Returns the types that the operands of a product or quotient with a span are cast to; `None` for
/// other operands.
pub(super) fn choose_span_types(
    divides: bool,
    left: &DataType,
    right: &DataType,
) -> Option<(DataType, DataType)> {
    let is_number = |t: &DataType| t.is_numeric() || t.is_null();
    let computes = match divides {
        true => is_span(left) && (is_span(right) || is_number(right)),
        false => (is_span(left) && is_number(right)) || (is_number(left) && is_span(right)),
    };
    if !computes {
        return None;
    }
    Some((choose_span_type(left)?, choose_span_type(right)?))
}

/// Multiplies a span and a number or, if `divides` is true, divides a span by a number or by
/// another span. The operands have the types of [`choose_span_type`]. If one has length 1, its
/// value applies to all values of the other. Nulls give null. Returns `None` for operands of other
/// types.
///
/// A product and a quotient of a span and a number have the type of the span, rounded to its unit
/// with halves away from zero. The quotient of two spans is a `Float64`; a divisor of length 0
/// gives an infinity or NaN.
///
/// # Errors
/// If a result does not fit its type, for a division by a number that is 0, and for the quotient of
/// an interval with months, which has no fixed length.
pub fn compute_spans(divides: bool, left: &ArrayRef, right: &ArrayRef) -> Result<Option<ArrayRef>> {
    let is_factor = |values: &ArrayRef| {
        matches!(
            values.data_type(),
            DataType::Int64
                | DataType::Float64
                | DataType::Decimal128(..)
                | DataType::Decimal256(..)
        )
    };
    match (is_span(left.data_type()), is_span(right.data_type())) {
        (true, true) if divides => divide_spans(left, right).map(Some),
        (true, false) if is_factor(right) => scale_spans(left, right, divides).map(Some),
        (false, true) if !divides && is_factor(left) => scale_spans(right, left, divides).map(Some),
        _ => Ok(None),
    }
}

fn divide_spans(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    let (left, right) = (to_exact_seconds(left)?, to_exact_seconds(right)?);
    let (left, right) =
        (left.as_primitive::<Decimal128Type>(), right.as_primitive::<Decimal128Type>());
    let divide = |left: i128, right: i128| left as f64 / right as f64;
    let ratios: Float64Array = match (left.len(), right.len()) {
        (a, b) if a == b => binary(left, right, divide)?,
        (len, 1) => match right.is_valid(0) {
            true => left.unary(|left| divide(left, right.value(0))),
            false => PrimitiveArray::new_null(len),
        },
        (_, len) => match left.is_valid(0) {
            true => right.unary(|right| divide(left.value(0), right)),
            false => PrimitiveArray::new_null(len),
        },
    };
    Ok(Arc::new(ratios))
}

fn scale_spans(spans: &ArrayRef, numbers: &ArrayRef, divides: bool) -> Result<ArrayRef> {
    if let DataType::Duration(_) = spans.data_type() {
        let ticks = cast(spans, &DataType::Int64)?;
        let ticks = ticks.as_primitive::<Int64Type>();
        let scaled = scale_by(ticks, numbers, divides, Ratio::scale_ticks)?;
        return Ok(cast(&scaled, spans.data_type())?);
    }
    let intervals = cast(spans, &INTERVAL)?;
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    Ok(Arc::new(scale_by(intervals, numbers, divides, Ratio::scale_interval)?))
}

fn scale_by<S: ArrowPrimitiveType>(
    spans: &PrimitiveArray<S>,
    numbers: &ArrayRef,
    divides: bool,
    scale: impl Fn(Ratio, S::Native) -> Option<S::Native> + Copy,
) -> Result<PrimitiveArray<S>> {
    let scaled = match numbers.data_type() {
        DataType::Decimal128(_, digits) => {
            scale_each::<S, Decimal128Type>(spans, numbers, divides, scale, |n| {
                Ratio::from_decimal(i256::from_i128(n), *digits)
            })
        }
        DataType::Decimal256(_, digits) => {
            scale_each::<S, Decimal256Type>(spans, numbers, divides, scale, |n| {
                Ratio::from_decimal(n, *digits)
            })
        }
        DataType::Float64 => {
            scale_each::<S, Float64Type>(spans, numbers, divides, scale, Ratio::from_double)
        }
        _ => scale_each::<S, Int64Type>(spans, numbers, divides, scale, |n| {
            Some(Ratio::from_integer(i256::from_i128(n.into())))
        }),
    };
    scaled.map_err(|e| match e {
        ArrowError::ArithmeticOverflow(message) => Error::invalid(message),
        other => other.into(),
    })
}

fn scale_each<S: ArrowPrimitiveType, N: ArrowPrimitiveType<Native: fmt::Debug>>(
    spans: &PrimitiveArray<S>,
    numbers: &ArrayRef,
    divides: bool,
    scale: impl Fn(Ratio, S::Native) -> Option<S::Native>,
    ratio_of: impl Fn(N::Native) -> Option<Ratio>,
) -> Result<PrimitiveArray<S>, ArrowError> {
    let numbers = numbers.as_primitive::<N>();
    let to_ratio = |number: N::Native| {
        let ratio = ratio_of(number);
        if divides { ratio.and_then(Ratio::invert_ratio) } else { ratio }
    };
    let scale_span = |span: S::Native, ratio: Option<Ratio>, number: N::Native| {
        let verb = if divides { "divide" } else { "multiply" };
        ratio.and_then(|ratio| scale(ratio, span)).ok_or_else(|| {
            ArrowError::ArithmeticOverflow(format!(
                "cannot {verb} a span of time by {number:?}: the result is infinite, NaN or too long (more than 2^31 - 1 months or days, or 2^63 - 1 units of its type); use another number, or a type with a larger unit"
            ))
        })
    };
    match (spans.len(), numbers.len()) {
        (a, b) if a == b => {
            try_binary(spans, numbers, |span, number| scale_span(span, to_ratio(number), number))
        }
        (len, 1) => {
            if numbers.is_null(0) {
                return Ok(PrimitiveArray::new_null(len));
            }
            let number = numbers.value(0);
            let ratio = to_ratio(number);
            spans.try_unary(|span| scale_span(span, ratio, number))
        }
        (_, len) => {
            if spans.is_null(0) {
                return Ok(PrimitiveArray::new_null(len));
            }
            let span = spans.value(0);
            numbers.try_unary(|number| scale_span(span, to_ratio(number), number))
        }
    }
}

/// A quotient with a positive denominator.
#[derive(Clone, Copy)]
struct Ratio {
    numerator: i256,
    denominator: i256,
}

impl Ratio {
    fn from_integer(numerator: i256) -> Self {
        Self { numerator, denominator: i256::ONE }
    }

    fn from_decimal(digits: i256, scale: i8) -> Option<Self> {
        let power = i256::from_i128(10).checked_pow(u32::from(scale.unsigned_abs()))?;
        match scale {
            ..0 => digits.checked_mul(power).map(Self::from_integer),
            _ => Some(Self { numerator: digits, denominator: power }),
        }
    }

    /// Converts a float to a quotient; returns `None` for NaN and infinities. To fit 256 bits, the
    /// quotient is inexact in two cases, which do not change the result of an operation:
    ///
    /// * Bits below 2^-120 are dropped. A span of time times such bits is less than a nanosecond.
    /// * A number of at least 2^117 is replaced with a number between 2^116 and 2^117. For both
    ///   numbers, the product with a span other than 0 is too long, and a span divided by the
    ///   number rounds to 0.
    fn from_double(x: f64) -> Option<Self> {
        const MOST_BITS: i32 = 120;
        if !x.is_finite() {
            return None;
        }
        let bits = x.to_bits();
        let fraction = i128::from(bits & ((1 << 52) - 1));
        let (mantissa, exponent) = match i32::try_from((bits >> 52) & 0x7ff).ok()? {
            0 => (fraction, -1074),
            exponent => (fraction | 1 << 52, exponent.saturating_sub(1075)),
        };
        let mantissa = if x < 0.0 { mantissa.checked_neg()? } else { mantissa };
        let below = exponent.saturating_neg().clamp(0, MOST_BITS);
        let dropped = exponent.saturating_neg().saturating_sub(below).clamp(0, 63);
        let above = exponent.clamp(0, 64);
        Some(Self {
            numerator: i256::from_i128((mantissa >> dropped) << above),
            denominator: i256::from_i128(1 << below),
        })
    }

    fn invert_ratio(self) -> Option<Self> {
        if self.numerator == i256::ZERO {
            return None;
        }
        let (numerator, denominator) = match self.numerator.is_negative() {
            true => (self.denominator.checked_neg()?, self.numerator.checked_neg()?),
            false => (self.denominator, self.numerator),
        };
        Some(Self { numerator, denominator })
    }

    fn scale_ticks(self, ticks: i64) -> Option<i64> {
        self.round_product(self.numerator.checked_mul(i256::from_i128(ticks.into()))?)
    }

    /// Divides `product`, a number that is already multiplied by the numerator, by the denominator.
    /// Rounds to the nearest integer, halves away from zero. Returns `None` on overflow.
    fn round_product(self, product: i256) -> Option<i64> {
        let (whole, rest) = self.divide_product(product)?;
        let is_half = rest.checked_abs()?.checked_mul(i256::from_i128(2))? >= self.denominator;
        let rounded = match is_half {
            true => whole.checked_add(rest.signum())?,
            false => whole,
        };
        rounded.to_i128()?.try_into().ok()
    }

    /// Multiplies an interval by the ratio. Fractions of months become days, and fractions of days
    /// become nanoseconds. Returns `None` on overflow.
    fn scale_interval(self, interval: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
        let times = |field: i128| self.numerator.checked_mul(i256::from_i128(field));
        let (months, rest) = self.divide_product(times(interval.months.into())?)?;
        let rest = rest.checked_mul(i256::from_i128(DAYS_PER_MONTH))?;
        let (days, rest) = self.divide_product(times(interval.days.into())?.checked_add(rest)?)?;
        let rest = rest.checked_mul(i256::from_i128(NANOSECONDS_PER_DAY))?;
        let nanoseconds = times(interval.nanoseconds.into())?.checked_add(rest)?;
        Some(IntervalMonthDayNano::new(
            months.to_i128()?.try_into().ok()?,
            days.to_i128()?.try_into().ok()?,
            self.round_product(nanoseconds)?,
        ))
    }

    /// Divides `product` by the denominator. Returns the quotient, rounded towards zero, and the
    /// remainder; `None` only for a denominator of 0.
    fn divide_product(self, product: i256) -> Option<(i256, i256)> {
        Some((product.checked_div(self.denominator)?, product.checked_rem(self.denominator)?))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{DurationSecondArray, Int64Array};

    use super::*;

    #[test]
    fn one_value_applies_to_all() {
        let array = |values: Vec<Option<i64>>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
        let spans: ArrayRef = Arc::new(DurationSecondArray::from(vec![Some(10), None, Some(-3)]));
        let compute = |divides: bool, left: &ArrayRef, right: &ArrayRef| {
            compute_spans(divides, left, right).unwrap().unwrap()
        };
        let two = array(vec![Some(2)]);
        let halves = DurationSecondArray::from(vec![Some(5), None, Some(-2)]);
        assert_eq!(compute(true, &spans, &two).as_ref(), &halves);
        let doubles = DurationSecondArray::from(vec![Some(20), None, Some(-6)]);
        assert_eq!(compute(false, &two, &spans).as_ref(), &doubles);
        let nothing = compute(false, &spans, &array(vec![None]));
        assert_eq!((nothing.len(), nothing.null_count()), (3, 3));
        assert_eq!(nothing.data_type(), spans.data_type());
        let four: ArrayRef = Arc::new(DurationSecondArray::from(vec![4]));
        let ratios = Float64Array::from(vec![Some(2.5), None, Some(-0.75)]);
        assert_eq!(compute(true, &spans, &four).as_ref(), &ratios);
        let scaled = DurationSecondArray::from(vec![Some(4), None, Some(12)]);
        let numbers = array(vec![Some(1), None, Some(3)]);
        assert_eq!(compute(false, &four, &numbers).as_ref(), &scaled);
        assert!(compute_spans(true, &numbers, &spans).unwrap().is_none());
        assert!(compute_spans(true, &spans, &array(vec![Some(0)])).is_err());
    }

    fn product_of(
        months: i32,
        days: i32,
        nanoseconds: i64,
        by: Option<Ratio>,
    ) -> Option<(i32, i32, i64)> {
        let interval = IntervalMonthDayNano::new(months, days, nanoseconds);
        let product = by.and_then(|by| by.scale_interval(interval))?;
        Some((product.months, product.days, product.nanoseconds))
    }

    #[test]
    fn fractions_pass_to_smaller_units() {
        let double = Ratio::from_double;
        assert_eq!(product_of(1, 0, 0, double(0.5)), Some((0, 15, 0)));
        assert_eq!(product_of(1, 0, 0, double(-2.25)), Some((-2, -7, -43_200_000_000_000)));
        assert_eq!(product_of(0, 1, 0, double(0.1)), Some((0, 0, 8_640_000_000_000)));
        assert_eq!(product_of(0, 1, 0, double(1.0 / 3.0)), Some((0, 0, 28_800_000_000_000)));
        assert_eq!(product_of(0, 0, 1_000_000_000, double(0.00001)), Some((0, 0, 10_000)));
        assert_eq!(product_of(0, 0, 1, double(0.5)), Some((0, 0, 1)));
        assert_eq!(product_of(0, 0, -1, double(0.5)), Some((0, 0, -1)));
        assert_eq!(product_of(0, 0, 3, double(0.4)), Some((0, 0, 1)));
        let third = Ratio::from_decimal(i256::from_i128(333), 3);
        assert_eq!(product_of(0, 1000, 1000, third), Some((0, 333, 333)));
        let thousand = Ratio::from_decimal(i256::from_i128(1), -3);
        assert_eq!(product_of(1, 2, 3, thousand), Some((1000, 2000, 3000)));
    }

    #[test]
    fn extreme_factors() {
        let double = Ratio::from_double;
        for tiny in [0.0, -0.0, f64::MIN_POSITIVE, 5e-324, -1e-300] {
            assert_eq!(product_of(i32::MAX, i32::MIN, i64::MAX, double(tiny)), Some((0, 0, 0)));
        }
        assert_eq!(product_of(0, 0, i64::MAX, double(1.0)), Some((0, 0, i64::MAX)));
        assert_eq!(product_of(0, 0, i64::MIN, double(1.0)), Some((0, 0, i64::MIN)));
        assert_eq!(product_of(0, 0, i64::MIN, double(-1.0)), None);
        assert_eq!(product_of(0, 0, 0, double(f64::MAX)), Some((0, 0, 0)));
        for large in [f64::MAX, -1e30, f64::INFINITY, f64::NAN] {
            assert_eq!(product_of(1, 1, 1, double(large)), None);
        }
        let most = Ratio::from_integer(i256::from_i128(i64::MAX.into()));
        assert_eq!(product_of(0, 2, 0, Some(most)), None);
        assert_eq!(product_of(0, 0, 1, Some(most)), Some((0, 0, i64::MAX)));
        let digits = i256::from_i128(10).checked_pow(75);
        let one = digits.and_then(|digits| Ratio::from_decimal(digits, 75));
        assert_eq!(product_of(0, 1, 0, one), Some((0, 1, 0)));
    }

    #[test]
    fn quotients_are_rounded_to_a_unit() {
        let by = |n: f64| Ratio::from_double(n).and_then(Ratio::invert_ratio);
        let quotient = |ticks: i64, n: f64| by(n).and_then(|ratio| ratio.scale_ticks(ticks));
        assert_eq!(quotient(7, 2.0), Some(4));
        assert_eq!(quotient(-7, 2.0), Some(-4));
        assert_eq!(quotient(7, -2.0), Some(-4));
        assert_eq!(quotient(10, 3.0), Some(3));
        assert_eq!(quotient(1, 0.25), Some(4));
        assert_eq!(quotient(1, 0.0), None);
        assert_eq!(quotient(i64::MAX, 0.5), None);
        assert_eq!(product_of(1, 0, 0, by(2.0)), Some((0, 15, 0)));
        assert_eq!(product_of(0, 0, 1, by(5e-324)), None);
    }
}
