//! Supports several `string_agg(x, ',' ORDER BY ..)` with different orders in one SELECT.
//!
//! DataFusion 55 rejects them, but supports several `array_agg` with different orders. This
//! workaround is obsolete once the test `stock_orders_of_texts_still_conflict` fails.

use std::collections::HashSet;

use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Ident, ObjectName, Select, SelectItem, Value, ValueWithSpan, Visit,
};

use crate::sql::base::syntax::{
    for_each_expr, for_each_expr_mut, has_expr, name_item, to_plain_name,
};
use crate::sql::statement::expressions::predicates::call_function;

/// If the `string_agg` calls of a SELECT have different orders, rewrites each
/// `string_agg(x, ',' ORDER BY k)` to `array_to_string(array_agg(x ORDER BY k) FILTER (WHERE x IS
/// NOT NULL), ',')`. Result columns keep their names.
pub(in crate::sql) fn sort_texts_apart(select: &mut Select) {
    let mut orders = HashSet::new();
    add_orders(&select.projection, &mut orders);
    add_orders(&select.having, &mut orders);
    if orders.len() < 2 {
        return;
    }
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && has_order(expr)
        {
            let name = expr.to_string();
            name_item(item, name);
        }
        for_each_expr_mut(item, sort_list);
    }
    for_each_expr_mut(&mut select.having, sort_list);
}

fn has_order(expr: &Expr) -> bool {
    has_expr(expr, |e| matches!(e, Expr::Function(call) if find_written_order(call).is_some()))
}

/// Returns the ORDER BY of a `string_agg` with a literal separator as text; `None` for other calls.
fn find_written_order(call: &Function) -> Option<String> {
    let name = to_plain_name(&call.name)?;
    let FunctionArguments::List(list) = &call.args else { return None };
    let [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(separator)))] =
        list.args.as_slice()
    else {
        return None;
    };
    let ValueWithSpan { value: Value::SingleQuotedString(_), .. } = separator else { return None };
    let is_aggregate = ["string_agg", "listagg"].contains(&name.as_str())
        && call.over.is_none()
        && call.within_group.is_empty()
        && call.null_treatment.is_none();
    let order = list.clauses.iter().find(|c| matches!(c, FunctionArgumentClause::OrderBy(_)))?;
    is_aggregate.then(|| order.to_string())
}

/// Adds the orders of the `string_agg` calls in a part of a SELECT to `orders`.
fn add_orders<V: Visit>(part: &V, orders: &mut HashSet<String>) {
    for_each_expr(part, |expr| {
        if let Expr::Function(call) = expr {
            orders.extend(find_written_order(call));
        }
    });
}

fn sort_list(expr: &mut Expr) {
    if let Expr::Function(call) = expr
        && find_written_order(call).is_some()
        && let Some(text) = join_sorted(call.clone())
    {
        *expr = text;
    }
}

fn join_sorted(mut call: Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &mut call.args else { return None };
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(separator)) = list.args.pop()? else {
        return None;
    };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(text))) = list.args.first() else {
        return None;
    };
    let is_text = Expr::IsNotNull(Box::new(Expr::Nested(Box::new(text.clone()))));
    call.name = ObjectName::from(vec![Ident::new("array_agg")]);
    call.filter = Some(Box::new(match call.filter.take() {
        Some(filter) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(filter)),
            op: BinaryOperator::And,
            right: Box::new(is_text),
        },
        None => is_text,
    }));
    Some(call_function("array_to_string", vec![Expr::Function(call), separator]))
}
