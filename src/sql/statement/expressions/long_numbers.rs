//! Keeps the digits of number literals that are used as decimals.

use std::ops::ControlFlow;

use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, DataType, Expr, UnaryOperator, Value, VisitMut, VisitorMut,
};

use crate::functions::WITH_DIGITS;

/// Rewrites literals in a statement:
///
/// * The number in `CAST(1.005 AS DECIMAL(10, 2))` becomes a string, because the double closest to
///   1.005 is less than 1.005.
/// * In comparisons, BETWEEN and IN, a number of 16 to 38 digits becomes a custom operator of the
///   number and its text, so that the planner can compare all digits with a decimal.
pub(in crate::sql) fn keep_digits<S: VisitMut>(statement: &mut S) {
    let _ = statement.visit(&mut LongNumberRewriter);
}

struct LongNumberRewriter;

impl VisitorMut for LongNumberRewriter {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast {
                expr,
                data_type: DataType::Decimal(_) | DataType::Numeric(_) | DataType::Dec(_),
                ..
            } => {
                if let Some(digits) = find_decimal(expr) {
                    **expr = Expr::value(Value::SingleQuotedString(digits));
                }
            }
            Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                mark_number(left);
                mark_number(right);
            }
            Expr::Between { expr, low, high, .. } => {
                mark_number(expr);
                mark_number(low);
                mark_number(high);
            }
            Expr::InList { expr, list, .. } => {
                mark_number(expr);
                list.iter_mut().for_each(mark_number);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn mark_number(e: &mut Expr) {
    if let Some(digits) = find_digits(e) {
        let number = std::mem::replace(e, Expr::value(Value::Null));
        *e = Expr::BinaryOp {
            left: Box::new(number),
            op: BinaryOperator::Custom(WITH_DIGITS.to_owned()),
            right: Box::new(Expr::value(Value::SingleQuotedString(digits))),
        };
    }
}

/// Returns the text of a number literal with 16 to 38 digits that DataFusion would plan as a
/// double, or `None` for any other expression.
fn find_digits(e: &Expr) -> Option<String> {
    let (text, digits) = find_plain_double(e)?;
    (16..=38).contains(&digits).then_some(text)
}

/// Returns the text of a number literal that DataFusion would plan as a double, if it has at most
/// 38 digits, the maximum of decimals. Returns `None` for any other expression.
fn find_decimal(e: &Expr) -> Option<String> {
    let (text, digits) = find_plain_double(e)?;
    (digits <= 38).then_some(text)
}

/// Returns the text and the number of digits of a number that is planned as a double, such as
/// `1.005` or `-1.5`. Returns `None` for a number with an exponent, and for any other expression.
fn find_plain_double(e: &Expr) -> Option<(String, usize)> {
    let (minus, value) = match e {
        Expr::Value(value) => ("", &value.value),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(value) => ("-", &value.value),
            _ => return None,
        },
        Expr::Nested(inner) => return find_plain_double(inner),
        _ => return None,
    };
    let Value::Number(number, _) = value else { return None };
    let digits = number.trim_start_matches('0').bytes().filter(u8::is_ascii_digit).count();
    let is_plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    (is_plain && number.parse::<u64>().is_err()).then(|| (format!("{minus}{number}"), digits))
}
