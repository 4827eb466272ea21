//! Rejects window functions in clauses that are evaluated before windows.

use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, GroupByExpr, JoinConstraint, Query, Select, Visit, Visitor,
};

/// Returns an error if WHERE, GROUP BY or HAVING of a SELECT has a window function. DataFusion
/// would plan the function, and fail when it runs the query.
pub(in crate::sql) fn check_clauses(select: &Select) -> Result<()> {
    let keys: &[Expr] = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => keys,
        GroupByExpr::All(_) => &[],
    };
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

fn find_window(clause: &str, e: &Expr) -> Result<()> {
    match e.visit(&mut WindowFinder { queries: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(name) => plan_err!(
            "{clause} has the window function {name}(..) OVER, but windows are computed after it; use QUALIFY for a condition, or compute the window in a subquery in FROM"
        ),
    }
}

/// Breaks with the name of the first window function outside of subqueries.
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
