//! Makes `x = ANY(list)` NULL where SQL requires it.
//!
//! DataFusion 55 plans ANY over a list as `array_has`, or as comparisons with the smallest or largest
//! element. Both ignore NULL elements: `7 = ANY([3, NULL])` is false. It plans ALL correctly, and `x =
//! ANY(list)` is `NOT (x <> ALL(list))`. Obsolete once the test `stock_any_is_still_two_valued` fails.

use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, Ident, SelectItem, UnaryOperator, Value,
};

use crate::sql::statement::predicates::call_function;

/// Rewrites `x op ANY(list)` to a negated ALL, and leaves other expressions unchanged.
pub(in crate::sql) fn negate_all(expr: &mut Expr) {
    let Some((left, op, right)) = take_any(expr, |op| negate_comparison(op).is_some()) else {
        return;
    };
    let compare_op = negate_comparison(&op).unwrap_or(op);
    let all = Expr::AllOp { left: Box::new(left), compare_op, right: Box::new(right) };
    *expr = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(all))) };
}

/// Gives a result column `x op ANY(list)` its text as an alias, before the expression is rewritten.
pub(in crate::sql) fn name_any(item: &mut SelectItem) {
    if let SelectItem::UnnamedExpr(expr @ Expr::AnyOp { .. }) = item {
        let alias = Ident::with_quote('"', expr.to_string());
        let expr = std::mem::replace(expr, Expr::value(Value::Null));
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
}

/// Rewrites `x = ANY(list)` in WHERE, where FALSE acts like NULL, to `array_has`, which scans support.
pub(in crate::sql) fn find_in_lists(condition: &mut Expr) {
    let mut open = vec![condition];
    while let Some(expr) = open.pop() {
        if let Some((left, _, right)) = take_any(expr, |op| *op == BinaryOperator::Eq) {
            *expr = call_function("array_has", vec![right, left]);
            continue;
        }
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                open.extend([&mut **left, &mut **right]);
            }
            Expr::Nested(inner) => open.push(inner),
            _ => {}
        }
    }
}

/// Returns `x`, the operator and the list of `x op ANY(list)` if `wanted` accepts the operator. Returns
/// `None` for ANY over a query and for any other expression.
fn take_any(
    expr: &mut Expr,
    wanted: impl Fn(&BinaryOperator) -> bool,
) -> Option<(Expr, BinaryOperator, Expr)> {
    let Expr::AnyOp { left, compare_op, right, .. } = expr else { return None };
    if matches!(**right, Expr::Subquery(_)) || !wanted(compare_op) {
        return None;
    }
    let null = || Expr::value(Value::Null);
    let left = std::mem::replace(&mut **left, null());
    let right = std::mem::replace(&mut **right, null());
    Some((left, compare_op.clone(), right))
}

fn negate_comparison(op: &BinaryOperator) -> Option<BinaryOperator> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    match op {
        Eq => Some(NotEq),
        NotEq => Some(Eq),
        Lt => Some(GtEq),
        GtEq => Some(Lt),
        Gt => Some(LtEq),
        LtEq => Some(Gt),
        _ => None,
    }
}
