//! `x = ANY(list)`, NULL where SQL says so.
//!
//! DataFusion 55 plans ANY over a list as `array_has` and as comparisons with the least and the greatest
//! element, which know no NULL among the elements: `7 = ANY([3, NULL])` is false. ALL is planned with NULL,
//! and ANY is its negation. `stock_any_is_still_two_valued` in `tests/sql/quantified.rs` fails once this
//! file can go.

use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, Ident, SelectItem, UnaryOperator, Value,
};

use crate::sql::statement::predicates::call_function;

/// Makes `x op ANY(list)` what it is the negation of; other expressions stay as they are.
pub(in crate::sql) fn negate_all(expr: &mut Expr) {
    let Some((left, op, right)) = take_any(expr, |op| opposite(op).is_some()) else { return };
    let compare_op = opposite(&op).unwrap_or(op);
    let all = Expr::AllOp { left: Box::new(left), compare_op, right: Box::new(right) };
    *expr = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(all))) };
}

/// Names a column that is `x op ANY(list)` as it is written, before it becomes something else.
pub(in crate::sql) fn name_any(item: &mut SelectItem) {
    if let SelectItem::UnnamedExpr(expr @ Expr::AnyOp { .. }) = item {
        let alias = Ident::with_quote('"', expr.to_string());
        let expr = std::mem::replace(expr, Expr::value(Value::Null));
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
}

/// Makes `x = ANY(list)` in WHERE a call of `array_has`, which files can be asked about, where FALSE and
/// NULL are the same.
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

/// The parts of `x op ANY(list)`, not of ANY over a query, where the operator is wanted.
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

/// The comparison that is true where another is false.
fn opposite(op: &BinaryOperator) -> Option<BinaryOperator> {
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
