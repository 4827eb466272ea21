//! Rejects window functions in clauses that are evaluated before windows, and aggregates in GROUP
//! BY.

use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    Expr, GroupByExpr, JoinConstraint, Query, Select, SelectItem, Visit, Visitor,
};

use crate::sql::base::syntax::{break_if, has_expr};
use crate::sql::statement::errors::wording::refuse_clause;
use crate::sql::statement::folding::fold_name;
use crate::sql::statement::names::cast_arguments::is_aggregate;

/// Returns an error if WHERE, GROUP BY or HAVING of a SELECT has a window function, or if GROUP BY
/// has an aggregate. DataFusion would plan the window function, and fail when it runs the query.
pub(in crate::sql) fn check_clauses(select: &Select) -> Result<()> {
    let keys: &[Expr] = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => keys,
        GroupByExpr::All(_) => &[],
    };
    keys.iter().try_for_each(refuse_aggregate)?;
    let clauses = [("WHERE", select.selection.as_slice()), ("GROUP BY", keys)];
    let clauses = clauses.into_iter().chain([("HAVING", select.having.as_slice())]);
    clauses.into_iter().try_for_each(|(clause, expressions)| {
        expressions.iter().try_for_each(|e| find_window(clause, e))
    })
}

/// Returns an error if the ON of a join has a window function.
pub(in crate::sql) fn check_join(condition: &JoinConstraint) -> Result<()> {
    match condition {
        JoinConstraint::On(e) => find_window("the condition of a join", e),
        _ => Ok(()),
    }
}

/// If the planner reports an unknown column that is the alias of a window function, in the WHERE of
/// the same SELECT, returns an error that says what to write instead. Otherwise, returns `None`.
pub(in crate::sql) fn find_window_alias(
    statement: &impl Visit,
    unknown: &DataFusionError,
) -> Option<DataFusionError> {
    let message = unknown.to_string();
    let (_, rest) = message.split_once("No field named ")?;
    let alias = rest.split('.').next()?.trim_matches('"');
    statement.visit(&mut WindowAliasFinder { alias }).is_break().then(|| {
        refuse_clause(format!(
            "WHERE has the alias {alias} of a window function, but windows are computed after it; write the condition after QUALIFY instead of WHERE, or compute the window in a subquery in FROM"
        ))
    })
}

/// Visitor that stops at a SELECT whose WHERE has the alias `alias` of one of its window functions.
struct WindowAliasFinder<'a> {
    alias: &'a str,
}

impl Visitor for WindowAliasFinder<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let Some(condition) = &select.selection else { return ControlFlow::Continue(()) };
        let is_window = |item: &SelectItem| match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                fold_name(alias) == self.alias
                    && expr.visit(&mut WindowFinder { queries: 0 }).is_break()
            }
            _ => false,
        };
        if !select.projection.iter().any(is_window) {
            return ControlFlow::Continue(());
        }
        break_if(has_expr(
            condition,
            |e| matches!(e, Expr::Identifier(name) if fold_name(name) == self.alias),
        ))
    }
}

fn refuse_aggregate(key: &Expr) -> Result<()> {
    match key {
        Expr::Function(call) if call.over.is_none() && is_aggregate(call) => plan_err!(
            "GROUP BY has the aggregate {call}, but aggregates are computed from the groups; group by columns, or compute the aggregate in a subquery in FROM"
        ),
        _ => Ok(()),
    }
}

fn find_window(clause: &str, e: &Expr) -> Result<()> {
    match e.visit(&mut WindowFinder { queries: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(name) => plan_err!(
            "{clause} has the window function {name}(..) OVER, but windows are computed after {clause}; use QUALIFY for a condition, or compute the window in a subquery in FROM"
        ),
    }
}

/// Visitor that stops at the first window function outside of subqueries, and returns its name.
struct WindowFinder {
    /// Number of subqueries around the expression.
    queries: usize,
}

impl Visitor for WindowFinder {
    type Break = String;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<String> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<String> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, e: &Expr) -> ControlFlow<String> {
        match e {
            Expr::Function(call) if self.queries == 0 && call.over.is_some() => {
                ControlFlow::Break(call.name.to_string())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
