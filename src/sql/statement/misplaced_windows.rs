//! Rejects window functions in clauses that are evaluated before windows, and window functions and
//! aggregates in statements that compute each row alone.

use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, GroupByExpr, JoinConstraint, Query, Select, Visit, Visitor,
};
use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan, WriteOp};

/// Checks WHERE, GROUP BY and HAVING of a SELECT. DataFusion plans window functions there, and
/// fails when it runs the query.
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

/// Checks the condition of a join.
pub(in crate::sql) fn check_join(condition: &JoinConstraint) -> Result<()> {
    match condition {
        JoinConstraint::On(e) => find_window("the condition of a join", e),
        _ => Ok(()),
    }
}

/// Checks VALUES, and the values and the condition of UPDATE and DELETE. DataFusion plans
/// aggregates and window functions there, and fails when it runs the statement.
pub(in crate::sql) fn check_row_values(node: &LogicalPlan) -> Result<()> {
    let (statement, input) = match node {
        LogicalPlan::Values(_) => ("VALUES", node),
        LogicalPlan::Dml(change) if change.op == WriteOp::Update => {
            ("UPDATE", change.input.as_ref())
        }
        LogicalPlan::Dml(change) if change.op == WriteOp::Delete => {
            ("DELETE", change.input.as_ref())
        }
        _ => return Ok(()),
    };
    input.apply(|node| {
        node.apply_expressions(|e| {
            e.apply(|e| {
                let (kind, name) = match e {
                    PlannedExpr::AggregateFunction(call) => ("aggregate", call.func.name()),
                    PlannedExpr::WindowFunction(call) => ("window function", call.fun.name()),
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                plan_err!(
                    "{statement} computes each row alone, but has the {kind} {name}(..); compute it in a subquery, as in (SELECT max(x) FROM t)"
                )
            })
        })
    })?;
    Ok(())
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
