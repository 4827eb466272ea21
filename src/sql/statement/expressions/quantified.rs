//! Rewrites ANY and ALL over lists to CASE.
//!
//! DataFusion 55 plans ANY as `array_has`, or as comparisons with the smallest or largest element,
//! which ignore NULL elements: `7 = ANY([3, NULL])` is false instead of NULL. DataFusion calls its
//! own functions, even if the session has registered other functions under the same names. These
//! functions of DataFusion fail for an integer and a list of UInt64, and distinguish 0.0 and -0.0.
//! This workaround is obsolete once the test `stock_any_is_still_two_valued` fails.

use datafusion::logical_expr::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, SelectItem, UnaryOperator, Value,
};

use crate::sql::base::syntax::name_item;
use crate::sql::statement::expressions::predicates::call_function;

/// Rewrites `x op ANY(list)` and `x op ALL(list)` to CASE, and leaves other expressions unchanged.
pub(in crate::sql) fn write_out_quantified(expr: &mut Expr) {
    if let Some((left, op, right)) = take_any(expr, |op| negate_comparison(op).is_some()) {
        *expr = build_any(left, op, right);
        return;
    }
    let Expr::AllOp { left, compare_op, right } = expr else { return };
    let Some(negated) = negate_comparison(compare_op) else { return };
    if matches!(**right, Expr::Subquery(_)) {
        return;
    }
    let null = || Expr::value(Value::Null);
    let left = std::mem::replace(&mut **left, null());
    let right = std::mem::replace(&mut **right, null());
    let any = Expr::Nested(Box::new(build_any(left, negated, right)));
    *expr = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) };
}

/// Returns `value op ANY(list)` as CASE: false for an empty list, true if the comparison is true
/// for an element, NULL if `value`, the list or an element is NULL, and otherwise false.
fn build_any(value: Expr, op: BinaryOperator, list: Expr) -> Expr {
    let nested = |e: Expr| match e {
        simple @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)) => simple,
        other => Expr::Nested(Box::new(other)),
    };
    let (value, list) = (nested(value), nested(list));
    let of_list = |name: &str| call_function(name, vec![list.clone()]);
    let compare = |left: Expr, op: BinaryOperator, right: Expr| Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    };
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq};
    let is_found = match op {
        Eq => call_function("array_has", vec![list.clone(), value.clone()]),
        Lt | LtEq => compare(value.clone(), op, of_list("array_max")),
        Gt | GtEq => compare(value.clone(), op, of_list("array_min")),
        _ => {
            let equals = |name| compare(of_list(name), Eq, value.clone());
            let all_equal = compare(equals("array_min"), And, equals("array_max"));
            let all_equal = Box::new(Expr::Nested(Box::new(all_equal)));
            Expr::UnaryOp { op: UnaryOperator::Not, expr: all_equal }
        }
    };
    let is_null = |e: &Expr| Expr::IsNull(Box::new(e.clone()));
    let boolean = |value: bool| Expr::value(Value::Boolean(value));
    let null = || Expr::value(Value::Null);
    let has_null = call_function("array_position", vec![list.clone(), null()]);
    let zero = Expr::value(Value::Number("0".into(), false));
    let when = |condition, result| CaseWhen { condition, result };
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![
            when(is_null(&list), null()),
            // `cardinality` would count the elements of lists in the list.
            when(compare(of_list("ragged_lengths"), Eq, zero), boolean(false)),
            when(is_null(&value), null()),
            when(is_found, boolean(true)),
            when(Expr::IsNotNull(Box::new(has_null)), null()),
        ],
        else_result: Some(Box::new(boolean(false))),
    }
}

/// Gives a result column `x op ANY(list)` or `x op ALL(list)` its text as alias, because the
/// rewrite to CASE would change its name.
pub(in crate::sql) fn name_quantified(item: &mut SelectItem) {
    if let SelectItem::UnnamedExpr(expr @ (Expr::AnyOp { .. } | Expr::AllOp { .. })) = item {
        let name = expr.to_string();
        name_item(item, name);
    }
}

/// Rewrites `x = ANY(list)` in WHERE to `array_has`, which Parquet scans can evaluate, unlike the
/// CASE that [`write_out_quantified`] makes. `array_has` may be false where ANY is NULL, but WHERE
/// drops the row in both cases.
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

/// Takes `x`, the operator and the list out of `x op ANY(list)` if `wanted` is true for the
/// operator. Otherwise, and for any other expression, returns `None` and changes nothing.
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
