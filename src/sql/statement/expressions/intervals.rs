//! Supports intervals with a computed number, `INTERVAL (n) DAY`, and PostgreSQL's forms
//! `'01:30:00'`, `'1 quarter'` and `'2 days ago'`.
//!
//! DataFusion's `INTERVAL` takes literals only, so the number is multiplied by an interval of one
//! unit.

use datafusion::logical_expr::sqlparser::ast::{BinaryOperator, Expr, Interval, Value};

use crate::sql::base::interval_texts::spell_out;

/// Rewrites `INTERVAL (n) DAY` to `(n | 0) * INTERVAL '1' DAY`. `n | 0` is `n`, but an error if `n`
/// is not an integer. Rewrites `INTERVAL 2 DAY` to `INTERVAL '2' DAY`, because DataFusion accepts
/// only the quoted number in the frames of windows. Other expressions stay unchanged.
pub(in crate::sql) fn write_interval(expr: &mut Expr) {
    let Expr::Interval(interval) = expr else { return };
    if interval.leading_field.is_some()
        && let Expr::Value(value) = interval.value.as_mut()
        && let Value::Number(number, _) = &value.value
    {
        value.value = Value::SingleQuotedString(number.clone());
        return;
    }
    if interval.leading_field.is_none()
        && let Expr::Value(value) = interval.value.as_mut()
        && let Value::SingleQuotedString(text) = &mut value.value
        && let Some(units) = spell_out(text)
    {
        *text = units;
        return;
    }
    if !computes_value(interval) {
        return;
    }
    let one = Expr::value(Value::SingleQuotedString("1".to_owned()));
    let number = std::mem::replace(interval.value.as_mut(), one);
    // Adding `| 0` makes numbers other than integers an error: DuckDB accepts only integers.
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

/// Returns the product of an interval and an integer, both literals, as an interval: `INTERVAL '6
/// day'` for `3 * INTERVAL '2 day'`. Returns `None` for any other expression, and if a number in
/// the interval is not an integer.
pub(in crate::sql) fn multiply_interval(expr: &Expr) -> Option<Expr> {
    let Expr::BinaryOp { left, op: BinaryOperator::Multiply, right } = expr else { return None };
    let (interval, number) = match (left.as_ref(), right.as_ref()) {
        (Expr::Interval(interval), Expr::Value(number))
        | (Expr::Value(number), Expr::Interval(interval)) => (interval, number),
        _ => return None,
    };
    let Value::Number(number, _) = &number.value else { return None };
    let number: i64 = number.parse().ok()?;
    let Expr::Value(value) = interval.value.as_ref() else { return None };
    let (Value::SingleQuotedString(text) | Value::Number(text, _)) = &value.value else {
        return None;
    };
    let text = match &interval.leading_field {
        Some(_) => text.clone(),
        None => spell_out(text).unwrap_or_else(|| text.clone()),
    };
    // Numbers and names of units alternate, as in `1 day 2 hours`.
    let words = text.split_whitespace().enumerate().map(|(i, word)| match i % 2 {
        0 => Some(word.parse::<i64>().ok()?.checked_mul(number)?.to_string()),
        _ => Some(word.to_owned()),
    });
    let text = words.collect::<Option<Vec<_>>>()?.join(" ");
    let value = Box::new(Expr::value(Value::SingleQuotedString(text)));
    Some(Expr::Interval(Interval { value, ..interval.clone() }))
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

/// Whether an expression is a product with an interval, as in `n * INTERVAL '1 day'`, or an
/// interval with a computed number, as in `INTERVAL (n) DAY`. Such expressions are rewritten before
/// planning.
pub(in crate::sql) fn computes_interval(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Multiply, right } => {
            matches!(**left, Expr::Interval(_)) || matches!(**right, Expr::Interval(_))
        }
        Expr::Interval(interval) => !matches!(*interval.value, Expr::Value(_)),
        _ => false,
    }
}
