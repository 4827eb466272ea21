//! Aggregates in ORDER BY that SELECT computes, too: `SELECT id, avg(x) AS x .. ORDER BY avg(x)`.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::logical_expr::sqlparser::ast::{
    Expr, OrderByKind, Query, SelectItem, SetExpr, Value, visit_expressions,
};

use crate::sql::statement::cast_arguments::is_aggregate;
use crate::sql::statement::set_names::add_identifiers;

/// Replaces keys of ORDER BY that are aggregates or window functions of the SELECT list with their positions, if they
/// mention an alias of the list.
///
/// An alias cannot be meant within an aggregate that is in the list itself. DataFusion replaces it there all the
/// same, and then fails.
pub(in crate::sql) fn order_by_positions(query: &mut Query) {
    let Query { body, order_by: Some(order), .. } = query else { return };
    let (SetExpr::Select(select), OrderByKind::Expressions(keys)) =
        (body.as_ref(), &mut order.kind)
    else {
        return;
    };
    let aliases = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
        _ => None,
    });
    let aliases: HashSet<String> = aliases.collect();
    if aliases.is_empty() {
        return;
    }
    for key in keys {
        let mut names = HashSet::new();
        add_identifiers(&key.expr, &mut names);
        if names.is_disjoint(&aliases) || !aggregates(&key.expr) {
            continue;
        }
        let is_key = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => {
                *e == key.expr
            }
            _ => false,
        };
        // Positions are wrong behind `*`, which stands for several columns.
        let is_one = |item: &SelectItem| {
            matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
        };
        if let Some(at) = select.projection.iter().position(is_key)
            && select.projection.iter().take(at).all(is_one)
        {
            let position = at.saturating_add(1).to_string();
            key.expr = Expr::value(Value::Number(position, false));
        }
    }
}

fn aggregates(expr: &Expr) -> bool {
    let is_call = |e: &Expr| match e {
        Expr::Function(call) if is_aggregate(call) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    visit_expressions(expr, is_call).is_break()
}
