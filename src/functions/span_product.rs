//! Products and quotients of spans (intervals, durations) and numbers, and quotients of two spans.

use std::fmt;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, Float64Array, PrimitiveArray};
use arrow::compute::{cast, try_binary};
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, i256,
};
use arrow::error::ArrowError;
use datafusion::common::{DFSchema, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use serrate_core::internal::times::exact_seconds;

use super::expression_planners::fold_call;
use super::naming::name_operation;
use super::{call_on_arrays, declare};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAYS_PER_MONTH: i128 = 30;
const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;

static OPERATIONS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| {
    [SpanOperation::Product, SpanOperation::Quotient, SpanOperation::Ratio]
        .map(|operation| Arc::new(ScalarUDF::new_from_impl(operation)))
});

/// Returns the functions that [`plan_span_operation`] calls, for plans that are sent to worker processes.
#[cfg(feature = "cluster")]
pub(crate) fn span_operations() -> [Arc<ScalarUDF>; 3] {
    OPERATIONS.clone()
}

pub(super) fn is_span_product(call: &ScalarFunction) -> bool {
    call.func.inner().downcast_ref::<SpanOperation>() == Some(&SpanOperation::Product)
}

/// Plans products and quotients of spans and numbers. Returns `None` for any other operation.
///
/// Obsolete once the test `stock_intervals_are_still_not_multiplied` fails.
pub(super) fn plan_span_operation(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let [product, quotient, ratio] = &*OPERATIONS;
    let is_number = |e: &Expr| e.get_type(schema).is_ok_and(|t| t.is_numeric() || t.is_null());
    let is_span = |e: &Expr| is_span(e, schema);
    let function = match expr.op {
        BinaryOperator::Multiply if is_span(&expr.right) => {
            is_number(&expr.left).then_some(product)
        }
        BinaryOperator::Multiply if is_span(&expr.left) => {
            is_number(&expr.right).then_some(product)
        }
        BinaryOperator::Divide if is_span(&expr.left) => match is_span(&expr.right) {
            true => Some(ratio),
            false => is_number(&expr.right).then_some(quotient),
        },
        _ => None,
    };
    let call = function?.call(vec![expr.left.clone(), expr.right.clone()]);
    // Some functions accept only literal intervals, so constants are folded.
    let is_interval = matches!(call.get_type(schema), Ok(DataType::Interval(_)));
    let folded = match &call {
        Expr::ScalarFunction(call) if is_interval => fold_call(call.clone(), schema),
        _ => None,
    };
    Some(folded.unwrap_or(call))
}

/// Whether the value of an expression is an interval or a duration. Computes no type for a long chain of operators on
/// numbers, which would take quadratic time.
fn is_span(e: &Expr, schema: &DFSchema) -> bool {
    let is_time = |t: &DataType| {
        matches!(t, DataType::Timestamp(..) | DataType::Interval(_) | DataType::Duration(_))
    };
    match e {
        Expr::BinaryExpr(BinaryExpr { left: _, op: Operator::Plus | Operator::Minus, right })
            if !right.get_type(schema).is_ok_and(|t| is_time(&t)) =>
        {
            false
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Plus | Operator::Minus, .. }) => {
            e.get_type(schema).is_ok_and(|t| is_span_type(&t))
        }
        Expr::BinaryExpr(_) => false,
        e => e.get_type(schema).is_ok_and(|t| is_span_type(&t)),
    }
}

fn is_span_type(t: &DataType) -> bool {
    matches!(t, DataType::Interval(_) | DataType::Duration(_))
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum SpanOperation {
    /// The product of a span and a number, in either order.
    Product,
    /// A span divided by a number.
    Quotient,
    /// A span divided by a span, as Float64.
    Ratio,
}

fn operand_type(t: &DataType) -> Result<DataType> {
    Ok(match t {
        DataType::Interval(_) => INTERVAL,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Duration(_) | DataType::Decimal128(..) | DataType::Decimal256(..) => t.clone(),
        t if t.is_floating() => DataType::Float64,
        t if t.is_integer() || t.is_null() => DataType::Int64,
        t => {
            return plan_err!("cannot multiply or divide a span of time by a {t}; use a number");
        }
    })
}

impl ScalarUDFImpl for SpanOperation {
    declare!(Signature::user_defined(Volatility::Immutable));

    fn name(&self) -> &str {
        match self {
            Self::Product => "span_product",
            Self::Quotient => "span_quotient",
            Self::Ratio => "span_ratio",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match (args, self) {
            ([left, right], Self::Product) => name_operation(left, "*", right),
            ([left, right], _) => name_operation(left, "/", right),
            _ => plan_err!(
                "internal error: {} has {} arguments instead of 2; please report it",
                self.name(),
                args.len()
            ),
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        types.iter().map(operand_type).collect()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match self {
            Self::Ratio => Ok(DataType::Float64),
            _ => Ok(types.iter().find(|t| is_span_type(t)).cloned().unwrap_or(INTERVAL)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[left, right]| {
            let divides = *self == Self::Quotient;
            match (self, is_span_type(left.data_type())) {
                (Self::Ratio, _) => divide_spans(&left, &right),
                (_, true) => scale_spans(&left, &right, divides),
                (_, false) => scale_spans(&right, &left, divides),
            }
        })
    }
}

/// Divides spans without months, whose lengths are exact. A span of length 0 as divisor yields an infinity or NaN, as
/// for floats.
fn divide_spans(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    let (left, right) = (exact_seconds(left)?, exact_seconds(right)?);
    let (left, right) =
        (left.as_primitive::<Decimal128Type>(), right.as_primitive::<Decimal128Type>());
    let ratios: Float64Array =
        arrow::compute::binary(left, right, |left, right| left as f64 / right as f64)?;
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
    match numbers.data_type() {
        DataType::Int64 => scale_each::<S, Int64Type>(spans, numbers, divides, scale, |n| {
            Some(Ratio::from_integer(i256::from_i128(n.into())))
        }),
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
        other => {
            exec_err!("internal error: a span of time is multiplied by a {other}; please report it")
        }
    }
}

fn scale_each<S: ArrowPrimitiveType, N: ArrowPrimitiveType<Native: fmt::Debug>>(
    spans: &PrimitiveArray<S>,
    numbers: &ArrayRef,
    divides: bool,
    scale: impl Fn(Ratio, S::Native) -> Option<S::Native>,
    ratio_of: impl Fn(N::Native) -> Option<Ratio>,
) -> Result<PrimitiveArray<S>> {
    let scaled = |span: S::Native, number: N::Native| {
        let ratio = ratio_of(number);
        let ratio = if divides { ratio.and_then(Ratio::invert_ratio) } else { ratio };
        let verb = if divides { "divide" } else { "multiply" };
        ratio.and_then(|ratio| scale(ratio, span)).ok_or_else(|| {
            ArrowError::ArithmeticOverflow(format!(
                "cannot {verb} a span of time by {number:?}: the result is infinite, NaN or too long (more than 2^31 - 1 months or days, or 2^63 - 1 units of its type); use another number, or a type with a larger unit"
            ))
        })
    };
    Ok(try_binary(spans, numbers.as_primitive::<N>(), scaled)?)
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

    /// Returns a double as a quotient. Drops bits below 2^-120, which cannot change a product by a
    /// nanosecond, and caps the exponent, because products of numbers above the cap overflow.
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

    /// Divides by the denominator, and rounds to the nearest integer; halves away from zero.
    fn round_product(self, product: i256) -> Option<i64> {
        let (whole, rest) = self.divide_product(product)?;
        let is_half = rest.checked_abs()?.checked_mul(i256::from_i128(2))? >= self.denominator;
        let rounded = match is_half {
            true => whole.checked_add(rest.signum())?,
            false => whole,
        };
        rounded.to_i128()?.try_into().ok()
    }

    /// Multiplies an interval by this quotient. Fractions of months become days. Fractions of days
    /// become nanoseconds, and only these are rounded.
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

    /// Divides by the denominator. Returns the quotient, rounded towards zero, and the remainder.
    fn divide_product(self, product: i256) -> Option<(i256, i256)> {
        Some((product.checked_div(self.denominator)?, product.checked_rem(self.denominator)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
