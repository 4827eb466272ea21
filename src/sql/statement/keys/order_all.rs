use datafusion::logical_expr::sqlparser::ast::{
    Expr, Join, JoinConstraint, JoinOperator, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr,
    TableFactor, Value,
};

use crate::sql::base::syntax::{is_star, parse_query};

/// Rewrites `ORDER BY ALL` to `ORDER BY 1, 2, ..`: DataFusion can plan ALL only if each selected
/// expression is a column, but can plan the position of any expression, such as `a + 1`. A query
/// that selects `*` keeps `ORDER BY ALL`, because the columns of `*` are unknown before planning.
/// If such a query also selects expressions, as in `* REPLACE (a + 1 AS a)`, or if USING or NATURAL
/// of a RIGHT or FULL JOIN merges columns of `*` to an expression such as `coalesce(l.k, r.k)`, the
/// query becomes a subquery in FROM, whose columns have names.
pub(in crate::sql) fn number_columns(query: &mut Query) {
    let Query { body, order_by: Some(order), .. } = query else { return };
    let (OrderByKind::All(options), SetExpr::Select(select)) = (&order.kind, body.as_ref()) else {
        return;
    };
    if !select.projection.iter().any(is_star) {
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
    let has_names = select.projection.iter().all(is_named);
    let merges = select.from.iter().flat_map(|from| &from.joins).any(merges_right);
    if (has_names && !merges) || !select.projection.iter().all(has_heading) {
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

/// Whether a join merges columns with USING or NATURAL, and may return rows that have no match in
/// the left table.
fn merges_right(join: &Join) -> bool {
    let (JoinOperator::FullOuter(by) | JoinOperator::Right(by) | JoinOperator::RightOuter(by)) =
        &join.join_operator
    else {
        return false;
    };
    matches!(by, JoinConstraint::Using(_) | JoinConstraint::Natural)
}
