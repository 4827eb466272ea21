//! Plans `TIMESTAMP` without a precision as microseconds, as in DuckDB.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, TryCast};
use serrate_core::internal::times::count_nanoseconds;

use super::expression_planners::fold_constant;

/// Custom operators that replace `CAST(x AS TIMESTAMP)`, `TRY_CAST(x AS TIMESTAMP)` and
/// `x AT TIME ZONE 'zone'` in statements. The left side is `x`. The right side is a NULL of the
/// target type, or the zone. DataFusion plans these casts in nanoseconds, which cannot represent
/// years before 1678 or after 2262, and has no hook to change that.
pub(crate) const AS_TIMESTAMP: &str = "AS TIMESTAMP";
pub(crate) const TRY_AS_TIMESTAMP: &str = "TRY AS TIMESTAMP";
pub(crate) const AT_TIME_ZONE: &str = "AT TIME ZONE";

#[derive(Debug)]
pub(crate) struct TimestampPlanner;

impl ExprPlanner for TimestampPlanner {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let BinaryOperator::Custom(word) = &expr.op else {
            return Ok(PlannerResult::Original(expr));
        };
        let planned = match word.as_str() {
            AS_TIMESTAMP => as_timestamp(expr.left, &expr.right.get_type(schema)?, false, schema)?,
            TRY_AS_TIMESTAMP => {
                as_timestamp(expr.left, &expr.right.get_type(schema)?, true, schema)?
            }
            AT_TIME_ZONE => {
                let Expr::Literal(zone, _) = &expr.right else {
                    return plan_err!(
                        "AT TIME ZONE is followed by a column or a computed value; write a string literal such as 'UTC'"
                    );
                };
                let zone = zone.try_as_str().flatten().map(Arc::from);
                let unit = match expr.left.get_type(schema) {
                    Ok(DataType::Timestamp(unit, _)) => unit,
                    _ => TimeUnit::Microsecond,
                };
                make_timestamp_cast(expr.left, DataType::Timestamp(unit, zone), false)
            }
            _ => return Ok(PlannerResult::Original(expr)),
        };
        Ok(PlannerResult::Planned(planned))
    }
}

fn as_timestamp(value: Expr, to: &DataType, safe: bool, schema: &DFSchema) -> Result<Expr> {
    let DataType::Timestamp(unit, zone) = to else {
        return plan_err!("internal error: the type {to} is not a timestamp; please report it");
    };
    if *unit < TimeUnit::Microsecond {
        return Ok(round_down(&value, to, schema)
            .unwrap_or_else(|| make_timestamp_cast(value, to.clone(), safe)));
    }
    let of = |unit| DataType::Timestamp(unit, zone.clone());
    let to = match &value {
        Expr::Literal(text, _) => of(find_unit_of_text(text)),
        _ => of(TimeUnit::Microsecond),
    };
    Ok(match value.get_type(schema) {
        // An integer that is cast to a timestamp is a number of seconds since 1970, as in
        // DataFusion.
        Ok(t) if t.is_integer() => {
            let seconds = make_timestamp_cast(
                make_timestamp_cast(value, DataType::Int64, safe),
                of(TimeUnit::Second),
                safe,
            );
            make_timestamp_cast(seconds, to, safe)
        }
        Ok(t) if t.is_numeric() => {
            return plan_err!(
                "cannot cast {t} to a timestamp, because the unit of the numbers is not known; write to_timestamp(x) if they are seconds since 1970"
            );
        }
        _ => make_timestamp_cast(value, to, safe),
    })
}

/// Returns the constant timestamp `value` in the coarser unit of `to`, rounded down, because Arrow
/// rounds times before 1970 up. Returns `None` unless `value` is constant and `to` has the zone of
/// `value` and a coarser unit. An analyzer rule corrects other casts, but it would be too late for
/// the arguments of table functions, which are computed before it runs.
fn round_down(value: &Expr, to: &DataType, schema: &DFSchema) -> Option<Expr> {
    let DataType::Timestamp(unit, zone) = to else { return None };
    let Expr::Literal(time, _) = fold_constant(value.clone(), schema)? else { return None };
    let (from, of_zone, count) = match time {
        ScalarValue::TimestampMillisecond(count, zone) => (TimeUnit::Millisecond, zone, count?),
        ScalarValue::TimestampMicrosecond(count, zone) => (TimeUnit::Microsecond, zone, count?),
        ScalarValue::TimestampNanosecond(count, zone) => (TimeUnit::Nanosecond, zone, count?),
        _ => return None,
    };
    if *unit >= from || *zone != of_zone {
        return None;
    }
    let ratio = i64::try_from(count_nanoseconds(*unit) / count_nanoseconds(from)).ok()?;
    let count = count.checked_div_euclid(ratio);
    Some(Expr::Literal(
        match unit {
            TimeUnit::Second => ScalarValue::TimestampSecond(count, of_zone),
            _ => ScalarValue::TimestampMillisecond(count, of_zone),
        },
        None,
    ))
}

fn make_timestamp_cast(value: Expr, to: DataType, safe: bool) -> Expr {
    match safe {
        true => Expr::TryCast(TryCast::new(Box::new(value), to)),
        false => Expr::Cast(Cast::new(Box::new(value), to)),
    }
}

/// Returns nanoseconds for the string of a timestamp with more than 6 fractional digits, and
/// microseconds for any other value.
pub(crate) fn find_unit_of_text(value: &ScalarValue) -> TimeUnit {
    let text = value.try_as_str().flatten().unwrap_or_default();
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 6 { TimeUnit::Nanosecond } else { TimeUnit::Microsecond }
}
