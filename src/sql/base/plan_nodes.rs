//! Helpers for the nodes of logical and physical plans.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::{DmlStatement, LogicalPlan};
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

/// Whether `test` accepts a node of a plan or of its subqueries.
pub(in crate::sql) fn has_node(
    plan: &LogicalPlan,
    test: impl Fn(&LogicalPlan) -> Result<bool>,
) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found = found || test(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Rewrites the INSERT, UPDATE, DELETE or TRUNCATE of a plan, also below EXPLAIN ANALYZE, which
/// executes its statement. Other plans stay unchanged.
pub(in crate::sql) fn rewrite_change(
    plan: LogicalPlan,
    rewrite: impl FnOnce(DmlStatement) -> Result<DmlStatement>,
) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Dml(change) => Ok(LogicalPlan::Dml(rewrite(change)?)),
        LogicalPlan::Analyze(mut analyze) => {
            if let LogicalPlan::Dml(change) = analyze.input.as_ref() {
                analyze.input = Arc::new(LogicalPlan::Dml(rewrite(change.clone())?));
            }
            Ok(LogicalPlan::Analyze(analyze))
        }
        plan => Ok(plan),
    }
}

/// Whether every row that a join returns contains a row of one of its inputs: of the left input if
/// `left` is true, and of the right input otherwise.
pub(in crate::sql) fn keeps_side(join: JoinType, left: bool) -> bool {
    match join {
        JoinType::Inner => true,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left,
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => !left,
        JoinType::Full => false,
    }
}

/// Replaces the inputs of a node, and recomputes its properties, such as its order.
pub(in crate::sql) fn replace_inputs(
    node: Arc<dyn ExecutionPlan>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    node.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}
