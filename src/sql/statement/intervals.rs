//! Intervals of a number of units: `INTERVAL (n) DAY`.
//!
//! DataFusion's `INTERVAL` takes literals only, so the number is multiplied by an interval of one unit.

use datafusion::logical_expr::sqlparser::ast::{BinaryOperator, Expr, Interval, Value};

/// Rewrites `INTERVAL (n) DAY` to `(n | 0) * INTERVAL '1' DAY`, and `INTERVAL 2 DAY` to `INTERVAL '2' DAY`, which
/// DataFusion also accepts in the frames of windows. Other expressions stay unchanged.
pub(in crate::sql) fn write_interval(expr: &mut Expr) {
    let Expr::Interval(interval) = expr else { return };
    if interval.leading_field.is_some()
        && let Expr::Value(value) = interval.value.as_mut()
        && let Value::Number(number, _) = &value.value
    {
        value.value = Value::SingleQuotedString(number.clone());
        return;
    }
    if !computes_value(interval) {
        return;
    }
    let one = Expr::value(Value::SingleQuotedString("1".to_owned()));
    let number = std::mem::replace(interval.value.as_mut(), one);
    // The number is an integer, as in DuckDB.
    let number = Expr::BinaryOp {
        left: Box::new(number),
        op: BinaryOperator::BitwiseOr,
        right: Box::new(Expr::value(Value::Number("0".to_owned(), false))),
    };
    *expr = Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(number))),
        op: BinaryOperator::Multiply,
        right: Box::new(Expr::Interval(interval.clone())),
    }));
}

fn computes_value(interval: &Interval) -> bool {
    let has_unit = interval.leading_field.is_some()
        && interval.leading_precision.is_none()
        && interval.last_field.is_none()
        && interval.fractional_seconds_precision.is_none();
    has_unit
        && matches!(
            *interval.value,
            Expr::Nested(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Function(_)
        )
}

/// Whether an expression computes an interval from a number, so that its plan shows another expression.
pub(in crate::sql) fn computes_interval(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Multiply, right } => {
            matches!(**left, Expr::Interval(_)) || matches!(**right, Expr::Interval(_))
        }
        Expr::Interval(interval) => !matches!(*interval.value, Expr::Value(_)),
        _ => false,
    }
}
