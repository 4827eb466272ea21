//! Supports several `string_agg(x, ',' ORDER BY ..)` with different orders in one SELECT.
//!
//! DataFusion 55 rejects them, but supports several `array_agg` with different orders. This
//! workaround is obsolete once the test `stock_orders_of_texts_still_conflict` fails.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Ident, ObjectName, Select, SelectItem, Value, ValueWithSpan, Visit,
    VisitMut, Visitor, VisitorMut,
};

use crate::sql::base::syntax::{name_item, to_plain_name};
use crate::sql::statement::expressions::predicates::call_function;

/// If the `string_agg` calls of a SELECT have different orders, rewrites each
/// `string_agg(x, ',' ORDER BY k)` to `array_to_string(array_agg(x ORDER BY k) FILTER (WHERE x IS
/// NOT NULL), ',')`. Result columns keep their names.
pub(in crate::sql) fn sort_texts_apart(select: &mut Select) {
    let mut orders = TextOrders::default();
    for item in &select.projection {
        let _ = Visit::visit(item, &mut orders);
    }
    let _ = Visit::visit(&select.having, &mut orders);
    if orders.0.len() < 2 {
        return;
    }
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && has_order(expr)
        {
            let name = expr.to_string();
            name_item(item, name);
        }
        let _ = VisitMut::visit(item, &mut SortedLists);
    }
    let _ = VisitMut::visit(&mut select.having, &mut SortedLists);
}

fn has_order(expr: &Expr) -> bool {
    let mut orders = TextOrders::default();
    let _ = Visit::visit(expr, &mut orders);
    !orders.0.is_empty()
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

/// Collects the different orders of the `string_agg` calls in a SELECT.
#[derive(Default)]
struct TextOrders(HashSet<String>);

impl Visitor for TextOrders {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(call) = expr {
            self.0.extend(find_written_order(call));
        }
        ControlFlow::Continue(())
    }
}

struct SortedLists;

impl VisitorMut for SortedLists {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(call) = expr
            && find_written_order(call).is_some()
            && let Some(text) = join_sorted(call.clone())
        {
            *expr = text;
        }
        ControlFlow::Continue(())
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
