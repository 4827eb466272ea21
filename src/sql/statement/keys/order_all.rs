use datafusion::logical_expr::sqlparser::ast::{
    Expr, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, TableFactor, Value,
};

use crate::sql::base::syntax::parse_query;

/// Rewrites `ORDER BY ALL` to `ORDER BY 1, 2, ..`: DataFusion plans a position for an expression
/// such as `a + 1`, but not ALL. A query that selects `*` keeps `ORDER BY ALL`, because the columns
/// of `*` are unknown before planning. If it also selects expressions, as in
/// `* REPLACE (a + 1 AS a)`, it becomes a subquery, whose columns have names.
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
        return;
    }
    let is_named = |item: &SelectItem| match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
            options.opt_replace.is_none()
        }
        SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => true,
        _ => false,
    };
    // An expression without a name would get another heading as a column of a subquery, so a SELECT
    // list with such an expression stays unchanged.
    let has_heading =
        |item: &SelectItem| is_named(item) || !matches!(item, SelectItem::UnnamedExpr(_));
    if select.projection.iter().all(is_named) || !select.projection.iter().all(has_heading) {
        return;
    }
    let Ok(mut around) = parse_query("SELECT * FROM (SELECT 1) AS __serrate_ordered") else {
        return;
    };
    if let SetExpr::Select(outer) = around.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) =
            outer.from.first_mut().map(|from| &mut from.relation)
    {
        std::mem::swap(&mut subquery.body, body);
        *body = around.body;
    }
}
