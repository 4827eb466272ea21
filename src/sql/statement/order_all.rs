use datafusion::logical_expr::sqlparser::ast::{
    Expr, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, Value,
};

/// Rewrites `ORDER BY ALL` to `ORDER BY 1, 2, ..`, which DataFusion also plans for expressions. A query that
/// selects `*` stays unchanged, because the columns of `*` are unknown before planning.
pub(in crate::sql) fn number_columns(query: &mut Query) {
    let Query { body, order_by: Some(order), .. } = query else { return };
    let (OrderByKind::All(options), SetExpr::Select(select)) = (&order.kind, body.as_ref()) else {
        return;
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
}
