//! Rejects aggregates and window functions in VALUES, UPDATE and DELETE, which compute each row
//! from that row alone.

use datafusion::common::plan_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, WriteOp};

use crate::sql::base::expression_parts::for_each_part;

/// Returns an error if VALUES, or the new values or the condition of UPDATE or DELETE, contain an
/// aggregate or a window function. Without this check, DataFusion would plan the statement and
/// report an error only when it runs.
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
        for_each_part(node, |e| {
            let (kind, name) = match e {
                Expr::AggregateFunction(call) => ("aggregate", call.func.name()),
                Expr::WindowFunction(call) => ("window function", call.fun.name()),
                _ => return Ok(()),
            };
            plan_err!(
                "{statement} computes each row from that row alone, but has the {kind} {name}(..); compute it in a subquery, as in (SELECT max(x) FROM t)"
            )
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}
