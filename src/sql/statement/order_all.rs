use std::ops::ControlFlow;

use datafusion::logical_expr::sqlparser::ast::{
    Expr, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, Value, VisitMut, VisitorMut,
};

/// Rewrites `ORDER BY ALL` to `ORDER BY 1, 2, ..`, which DataFusion also plans for expressions. A query that
/// selects `*` stays unchanged, because the columns of `*` are unknown before planning.
pub(in crate::sql) fn write_out<S: VisitMut>(statement: &mut S) {
    struct OrderAll;
    impl VisitorMut for OrderAll {
        type Break = ();

        fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
            let Query { body, order_by: Some(order), .. } = query else {
                return ControlFlow::Continue(());
            };
            let (OrderByKind::All(options), SetExpr::Select(select)) = (&order.kind, body.as_ref())
            else {
                return ControlFlow::Continue(());
            };
            let is_one = |item: &SelectItem| {
                matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
            };
            if select.projection.iter().all(is_one) {
                let by_number = |number: usize| OrderByExpr {
                    expr: Expr::value(Value::Number(number.to_string(), false)),
                    options: *options,
                    with_fill: None,
                };
                let all = (1..=select.projection.len()).map(by_number);
                order.kind = OrderByKind::Expressions(all.collect());
            }
            ControlFlow::Continue(())
        }
    }
    let _ = statement.visit(&mut OrderAll);
}
