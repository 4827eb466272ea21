//! Products of intervals and numbers, which DataFusion does not compute.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
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
use datafusion::scalar::ScalarValue;

use super::naming::name_operation;
use super::planner::{fold_constant, is_constant};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAYS_PER_MONTH: i128 = 30;
const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;

static INTERVAL_PRODUCT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(IntervalProduct { signature }))
});

/// Returns the function that [`plan_product`] calls, for plans that are sent to worker processes.
#[cfg(feature = "cluster")]
pub(crate) fn interval_product() -> Arc<ScalarUDF> {
    Arc::clone(&INTERVAL_PRODUCT)
}

/// Whether a call is one that [`plan_product`] plans.
pub(super) fn is_interval_product(call: &ScalarFunction) -> bool {
    call.func.inner().is::<IntervalProduct>()
}

/// Plans the product of an interval and a number. Returns `None` for any other operation.
///
/// Obsolete once the test `stock_intervals_are_still_not_multiplied` fails.
pub(super) fn plan_product(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    if expr.op != BinaryOperator::Multiply {
        return None;
    }
    let is_number = |e: &Expr| e.get_type(schema).is_ok_and(|t| t.is_numeric() || t.is_null());
    let is_product = match is_interval(&expr.right, schema) {
        true => is_number(&expr.left),
        false => is_interval(&expr.left, schema) && is_number(&expr.right),
    };
    if !is_product {
        return None;
    }
    let product = INTERVAL_PRODUCT.call(vec![expr.left.clone(), expr.right.clone()]);
    let folded = (is_constant(&expr.left) && is_constant(&expr.right))
        .then(|| fold_constant(product.clone(), schema));
    Some(folded.flatten().unwrap_or(product))
}

/// Whether the value of an expression is an interval. Computes no type for a long chain of operators on numbers, which
/// would take quadratic time.
fn is_interval(e: &Expr, schema: &DFSchema) -> bool {
    match e {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus | Operator::Minus, right }) => {
            is_interval(right, schema) && is_interval(left, schema)
        }
        Expr::BinaryExpr(_) => false,
        e => matches!(e.get_type(schema), Ok(DataType::Interval(_))),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalProduct {
    signature: Signature,
}

impl ScalarUDFImpl for IntervalProduct {
    fn name(&self) -> &str {
        "interval_product"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [left, right] => name_operation(left, "*", right),
            _ => plan_err!("internal error: interval_product takes 2 arguments; please report it"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let coerced = types.iter().map(|t| match t {
            DataType::Interval(_) => Ok(INTERVAL),
            DataType::UInt64 => Ok(DataType::Decimal128(20, 0)),
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                Ok(DataType::Decimal128(*precision, *scale))
            }
            DataType::Decimal128(..) | DataType::Decimal256(..) => Ok(t.clone()),
            t if t.is_floating() => Ok(DataType::Float64),
            t if t.is_integer() || t.is_null() => Ok(DataType::Int64),
            t => plan_err!("cannot multiply an interval by a {t}; multiply it by a number"),
        });
        coerced.collect()
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return exec_err!(
                "internal error: interval_product takes 2 arguments; please report it"
            );
        };
        let is_one = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_one { 1 } else { args.number_rows };
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let products = match left.data_type() {
            DataType::Interval(_) => multiply_intervals(&left, &right)?,
            _ => multiply_intervals(&right, &left)?,
        };
        Ok(match is_one {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&products, 0)?),
            false => ColumnarValue::Array(products),
        })
    }
}

/// Multiplies months, days and nanoseconds exactly. A fraction of a month counts as days, a fraction of a day
/// as nanoseconds, and nanoseconds are rounded.
fn multiply_intervals(intervals: &ArrayRef, numbers: &ArrayRef) -> Result<ArrayRef> {
    let intervals = cast(intervals, &INTERVAL)?;
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let products = match numbers.data_type() {
        DataType::Int64 => multiply_by::<Int64Type>(intervals, numbers, |n| {
            Some(Ratio::of_integer(i256::from_i128(n.into())))
        })?,
        DataType::Decimal128(_, scale) => multiply_by::<Decimal128Type>(intervals, numbers, |n| {
            Ratio::of_decimal(i256::from_i128(n), *scale)
        })?,
        DataType::Decimal256(_, scale) => {
            multiply_by::<Decimal256Type>(intervals, numbers, |n| Ratio::of_decimal(n, *scale))?
        }
        DataType::Float64 => multiply_by::<Float64Type>(intervals, numbers, Ratio::of_double)?,
        other => {
            return exec_err!(
                "internal error: interval_product multiplies by a {other}; please report it"
            );
        }
    };
    Ok(Arc::new(products))
}

fn multiply_by<T: ArrowPrimitiveType>(
    intervals: &PrimitiveArray<IntervalMonthDayNanoType>,
    numbers: &ArrayRef,
    ratio_of: impl Fn(T::Native) -> Option<Ratio>,
) -> Result<PrimitiveArray<IntervalMonthDayNanoType>>
where
    T::Native: std::fmt::Debug,
{
    let product = |interval: IntervalMonthDayNano, number: T::Native| {
        let product = ratio_of(number).and_then(|ratio| ratio.scale_interval(interval));
        product.ok_or_else(|| {
            ArrowError::ArithmeticOverflow(format!(
                "the product of the interval of {} months, {} days and {} nanoseconds and the number {number:?} is not an interval, which has fewer than 2^31 months and days and 2^63 nanoseconds; multiply by a smaller number, or in a larger unit",
                interval.months, interval.days, interval.nanoseconds
            ))
        })
    };
    Ok(try_binary(intervals, numbers.as_primitive::<T>(), product)?)
}

/// A quotient with a positive denominator.
#[derive(Clone, Copy)]
struct Ratio {
    numerator: i256,
    denominator: i256,
}

impl Ratio {
    fn of_integer(numerator: i256) -> Self {
        Self { numerator, denominator: i256::ONE }
    }

    fn of_decimal(digits: i256, scale: i8) -> Option<Self> {
        let power = i256::from_i128(10).checked_pow(u32::from(scale.unsigned_abs()))?;
        match scale {
            ..0 => digits.checked_mul(power).map(Self::of_integer),
            _ => Some(Self { numerator: digits, denominator: power }),
        }
    }

    /// Returns a double as a quotient. Omits bits below 2^-120, which change no product by a nanosecond, and
    /// limits the exponent, because the products of all larger numbers overflow.
    fn of_double(x: f64) -> Option<Self> {
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

    fn scale_interval(self, interval: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
        let times = |field: i128| self.numerator.checked_mul(i256::from_i128(field));
        let (months, rest) = self.divide_product(times(interval.months.into())?)?;
        let rest = rest.checked_mul(i256::from_i128(DAYS_PER_MONTH))?;
        let (days, rest) = self.divide_product(times(interval.days.into())?.checked_add(rest)?)?;
        let rest = rest.checked_mul(i256::from_i128(NANOSECONDS_PER_DAY))?;
        let nanoseconds = times(interval.nanoseconds.into())?.checked_add(rest)?;
        let (whole, rest) = self.divide_product(nanoseconds)?;
        let is_half = rest.checked_abs()?.checked_mul(i256::from_i128(2))? >= self.denominator;
        let nanoseconds = match is_half {
            true => whole.checked_add(rest.signum())?,
            false => whole,
        };
        Some(IntervalMonthDayNano::new(
            months.to_i128()?.try_into().ok()?,
            days.to_i128()?.try_into().ok()?,
            nanoseconds.to_i128()?.try_into().ok()?,
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
        let double = Ratio::of_double;
        assert_eq!(product_of(1, 0, 0, double(0.5)), Some((0, 15, 0)));
        assert_eq!(product_of(1, 0, 0, double(-2.25)), Some((-2, -7, -43_200_000_000_000)));
        assert_eq!(product_of(0, 1, 0, double(0.1)), Some((0, 0, 8_640_000_000_000)));
        assert_eq!(product_of(0, 1, 0, double(1.0 / 3.0)), Some((0, 0, 28_800_000_000_000)));
        assert_eq!(product_of(0, 0, 1_000_000_000, double(0.00001)), Some((0, 0, 10_000)));
        assert_eq!(product_of(0, 0, 1, double(0.5)), Some((0, 0, 1)));
        assert_eq!(product_of(0, 0, -1, double(0.5)), Some((0, 0, -1)));
        assert_eq!(product_of(0, 0, 3, double(0.4)), Some((0, 0, 1)));
        let third = Ratio::of_decimal(i256::from_i128(333), 3);
        assert_eq!(product_of(0, 1000, 1000, third), Some((0, 333, 333)));
        let thousand = Ratio::of_decimal(i256::from_i128(1), -3);
        assert_eq!(product_of(1, 2, 3, thousand), Some((1000, 2000, 3000)));
    }

    #[test]
    fn extreme_factors() {
        let double = Ratio::of_double;
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
        let most = Ratio::of_integer(i256::from_i128(i64::MAX.into()));
        assert_eq!(product_of(0, 2, 0, Some(most)), None);
        assert_eq!(product_of(0, 0, 1, Some(most)), Some((0, 0, i64::MAX)));
        let digits = i256::from_i128(10).checked_pow(75);
        let one = digits.and_then(|digits| Ratio::of_decimal(digits, 75));
        assert_eq!(product_of(0, 1, 0, one), Some((0, 1, 0)));
    }
}
