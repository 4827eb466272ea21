//! Intervals that are computed from numbers: `n * INTERVAL '1 day'` and `INTERVAL (n) DAY`.
//!
//! DataFusion multiplies no intervals, and its `INTERVAL` takes literals only. The number becomes the text of an
//! interval, `'3 day'`, which is cast.

use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Interval, Value, ValueWithSpan,
};

/// Rewrites an interval that is computed from a number to a cast. Other expressions stay unchanged.
pub(in crate::sql) fn write_interval(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Multiply, right } => {
            let (number, (count, unit)) = match (simple_interval(left), simple_interval(right)) {
                (Some(interval), None) => (right, interval),
                (None, Some(interval)) => (left, interval),
                _ => return,
            };
            let number = std::mem::replace(number.as_mut(), Expr::value(Value::Null));
            let number = Expr::BinaryOp {
                left: Box::new(Expr::Nested(Box::new(number))),
                op: BinaryOperator::Multiply,
                right: Box::new(Expr::value(Value::Number(count.to_string(), false))),
            };
            *expr = cast_to_interval(number, &unit);
        }
        Expr::Interval(Interval {
            value,
            leading_field: Some(unit),
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        }) if matches!(
            **value,
            Expr::Nested(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Function(_)
        ) =>
        {
            let number = std::mem::replace(value.as_mut(), Expr::value(Value::Null));
            let unit = unit.to_string();
            // The number becomes an integer, as in DuckDB: `number | 0` casts it.
            let number = Expr::BinaryOp {
                left: Box::new(number),
                op: BinaryOperator::BitwiseOr,
                right: Box::new(Expr::value(Value::Number("0".to_owned(), false))),
            };
            *expr = cast_to_interval(number, &unit);
        }
        _ => {}
    }
}

/// Whether [`write_interval`] rewrites an expression.
pub(in crate::sql) fn computes_interval(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Multiply, right } => {
            simple_interval(left).is_some() != simple_interval(right).is_some()
        }
        Expr::Interval(interval) => !matches!(*interval.value, Expr::Value(_)),
        _ => false,
    }
}

/// Returns the count and the unit of an interval literal of one unit, such as `INTERVAL '2 days'`.
fn simple_interval(expr: &Expr) -> Option<(i64, String)> {
    let Expr::Interval(Interval {
        value,
        leading_field,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }) = expr
    else {
        return None;
    };
    let Expr::Value(ValueWithSpan { value, .. }) = value.as_ref() else { return None };
    let text = match value {
        Value::SingleQuotedString(text) | Value::Number(text, _) => text.trim(),
        _ => return None,
    };
    let (count, unit) = match leading_field {
        Some(unit) => (text, unit.to_string()),
        None => {
            let (count, unit) = text.split_once(char::is_whitespace)?;
            (count, unit.trim().to_owned())
        }
    };
    let is_word = unit.chars().all(|c| c.is_ascii_alphabetic());
    (is_word && !unit.is_empty()).then_some((count.parse().ok()?, unit))
}

/// Returns `CAST((number) || ' unit' AS INTERVAL)`.
fn cast_to_interval(number: Expr, unit: &str) -> Expr {
    let text = Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(number))),
        op: BinaryOperator::StringConcat,
        right: Box::new(Expr::value(Value::SingleQuotedString(format!(" {unit}")))),
    };
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(text),
        data_type: DataType::Interval { fields: None, precision: None },
        array: false,
        format: None,
    }
}
