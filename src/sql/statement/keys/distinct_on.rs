//! Supports `SELECT DISTINCT ON (k) .. ORDER BY x` with an order that does not begin with the keys,
//! as in DuckDB.
//!
//! Such a query returns, for each `k`, the first row in the order of `x`, and sorts these rows by
//! `x`, too. DataFusion rejects it. This workaround is obsolete once the test
//! `stock_orders_of_distinct_on_still_begin_with_the_keys` fails.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Distinct, Expr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem,
    SetExpr, TableFactor, Value, WindowSpec, WindowType,
};

use crate::sql::base::syntax::{for_each_expr, for_each_expr_mut, has_expr, has_query};
use crate::sql::statement::expressions::predicates::call_function;
use crate::sql::statement::folding::is_same_name;
use crate::sql::statement::names::order_aliases::{fold_names, may_differ};
use crate::sql::statement::names::select_names::{find_aliased, find_expression_at};
use crate::sql::statement::names::unnest_names::is_unnest;

/// # Errors
/// If a SELECT with DISTINCT ON calls `unnest`, because DataFusion cannot choose one of the rows
/// that the call returns.
pub(in crate::sql::statement) fn check_unnest(query: &Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    if !matches!(select.distinct, Some(Distinct::On(_))) {
        return Ok(());
    }
    let calls_unnest = |expr: &Expr| {
        let is_call = |part: &Expr| matches!(part, Expr::Function(call) if is_unnest(call));
        // A call of `unnest` in a subquery may belong to the subquery, so expressions with
        // subqueries are accepted.
        has_expr(expr, is_call) && !has_query(expr)
    };
    let is_unnested = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            calls_unnest(expr)
        }
        _ => false,
    });
    if is_unnested {
        return plan_err!(
            "unnest in a SELECT with DISTINCT ON is not supported; call it in a subquery, as in SELECT DISTINCT ON (k) * FROM (SELECT k, unnest(x) AS x FROM t)"
        );
    }
    Ok(())
}

/// Rewrites a query with DISTINCT ON and ORDER BY to `SELECT .. QUALIFY row_number() OVER
/// (PARTITION BY k ORDER BY x) = 1 ORDER BY x`. A query that has QUALIFY already, or whose order
/// begins with the keys, stays unchanged.
pub(in crate::sql) fn number_rows(query: &mut Query) {
    let Query { body, order_by: Some(order), .. } = query else { return };
    let (SetExpr::Select(select), OrderByKind::Expressions(sorts)) = (body.as_mut(), &order.kind)
    else {
        return;
    };
    let Some(Distinct::On(keys)) = &select.distinct else { return };
    let begins = keys.len() <= sorts.len()
        && keys.iter().zip(sorts).all(|(key, sort)| {
            let at_position = match key {
                Expr::Value(_) => remove_aliases(key, &select.projection),
                _ => None,
            };
            fold_names(at_position.as_ref().unwrap_or(key)) == fold_names(&sort.expr)
        });
    if begins || select.qualify.is_some() {
        return;
    }
    let table = find_only_table(select);
    let without_aliases = |expr: &Expr| {
        let columns = remove_aliases(expr, &select.projection)?;
        name_columns(columns, &select.projection, table.as_ref())
    };
    // `DISTINCT ON (a)` may refer to an alias `a`. In `DISTINCT ON (a + 1)`, `a` is a column, as in
    // DuckDB.
    let keys = keys.iter().map(|key| match key {
        Expr::Identifier(_) | Expr::Value(_) => without_aliases(key),
        key => name_columns(key.clone(), &select.projection, table.as_ref()),
    });
    let Some(partition_by) = keys.collect::<Option<Vec<Expr>>>() else { return };
    let sorts = sorts.iter().map(|sort| {
        let expr = without_aliases(&sort.expr)?;
        Some(OrderByExpr { expr, ..sort.clone() })
    });
    let Some(order_by) = sorts.collect::<Option<Vec<OrderByExpr>>>() else { return };
    let window = WindowSpec { window_name: None, partition_by, order_by, window_frame: None };
    let mut number = call_function("row_number", Vec::new());
    if let Expr::Function(call) = &mut number {
        call.over = Some(WindowType::WindowSpec(window));
    }
    select.distinct = None;
    select.qualify = Some(Expr::BinaryOp {
        left: Box::new(number),
        op: BinaryOperator::Eq,
        right: Box::new(Expr::value(Value::Number("1".to_owned(), false))),
    });
}

/// Returns the alias or the name of the only table in FROM. Returns `None` if FROM has several
/// tables or none, or if the table has neither alias nor name.
fn find_only_table(select: &Select) -> Option<Ident> {
    let [from] = select.from.as_slice() else { return None };
    if !from.joins.is_empty() {
        return None;
    }
    match &from.relation {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, alias: None, args: None, .. } => {
            name.0.last()?.as_ident().cloned()
        }
        _ => None,
    }
}

/// Replaces the aliases in an expression with the expressions of SELECT. A position such as 2
/// becomes the second expression of SELECT. Returns `None` if SELECT has no expression at the
/// position, or a star before it.
fn remove_aliases(expr: &Expr, columns: &[SelectItem]) -> Option<Expr> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => find_expression_at(columns, number).cloned(),
            _ => Some(expr.clone()),
        },
        _ => {
            let mut written = expr.clone();
            for_each_expr_mut(&mut written, |part| {
                if let Expr::Identifier(name) = &*part
                    && let Some(column) = find_aliased(columns, name)
                {
                    *part = Expr::Nested(Box::new(column.clone()));
                }
            });
            Some(written)
        }
    }
}

/// Qualifies names in an expression, so that they mean the same columns if the expression moves to
/// QUALIFY. In QUALIFY, DataFusion takes an unqualified name for an alias if SELECT has this alias,
/// so such a name is qualified with the only table in FROM. Returns `None` if the table has no
/// name, or if the value of the expression may differ each time that it is computed.
fn name_columns(mut expr: Expr, columns: &[SelectItem], table: Option<&Ident>) -> Option<Expr> {
    let hidden = |name: &Ident| match find_aliased(columns, name) {
        Some(Expr::Identifier(column)) => !is_same_name(column, name),
        found => found.is_some(),
    };
    let mut has_parameters = false;
    let mut has_hidden = false;
    for_each_expr(&expr, |part| {
        has_parameters |= matches!(part, Expr::Lambda(_));
        has_hidden |= matches!(part, Expr::Identifier(name) if hidden(name));
    });
    // A name in a lambda may be a parameter of the lambda, so it cannot be qualified.
    if may_differ(&expr) || has_hidden && (has_parameters || table.is_none()) {
        return None;
    }
    for_each_expr_mut(&mut expr, |part| {
        if let (Expr::Identifier(name), Some(table)) = (&*part, table)
            && hidden(name)
        {
            *part = Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
        }
    });
    Some(expr)
}
