use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Distinct, DistinctOn, LogicalPlan};

use super::dependencies::{is_barrier, may_have_dependencies, remove_dependencies};

/// Analyzer rule: hides from a GROUP BY or DISTINCT with several keys the functional dependencies
/// of a joined table (which columns are unique).
///
/// A join repeats rows, so that a column that is unique in one table determines only the columns of
/// this table. Above a GROUP BY, DataFusion 55 assumes that this column determines all columns:
/// after `SELECT DISTINCT u.y, t.i FROM (SELECT y FROM a GROUP BY y) u JOIN t ..`, DataFusion omits
/// `i` from ORDER BY and GROUP BY, and turns a join by `y` into a semi join, which loses rows. This
/// workaround is obsolete once the test `stock_groups_above_joins_still_lose_rows` fails.
pub(in crate::sql) fn hide_joined_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let input = match &node {
            LogicalPlan::Aggregate(Aggregate { input, group_expr, .. }) if group_expr.len() > 1 => {
                input
            }
            LogicalPlan::Distinct(Distinct::All(input)) if input.schema().fields().len() > 1 => {
                input
            }
            LogicalPlan::Distinct(Distinct::On(DistinctOn { input, on_expr, .. }))
                if on_expr.len() > 1 =>
            {
                input
            }
            _ => return Ok(Transformed::no(node)),
        };
        if !joins_unique_rows(input)? {
            return Ok(Transformed::no(node));
        }
        let input = Arc::new(remove_dependencies(input)?);
        Ok(Transformed::yes(match node {
            LogicalPlan::Aggregate(node) => {
                LogicalPlan::Aggregate(Aggregate::try_new(input, node.group_expr, node.aggr_expr)?)
            }
            LogicalPlan::Distinct(Distinct::On(node)) => {
                LogicalPlan::Distinct(Distinct::On(DistinctOn { input, ..node }))
            }
            _ => LogicalPlan::Distinct(Distinct::All(input)),
        }))
    })?;
    if !plan.transformed {
        return Ok(plan.data);
    }
    // The schemas above a changed node still have the functional dependencies of the old node, so
    // they are computed again.
    plan.data
        .transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes))
        .data()
}

/// Whether a plan's columns come from a join that may repeat rows of a table with unique columns.
fn joins_unique_rows(plan: &LogicalPlan) -> Result<bool> {
    match plan {
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                joins_unique_rows(&join.left)
            }
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                joins_unique_rows(&join.right)
            }
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                Ok(may_have_dependencies(&join.left)? || may_have_dependencies(&join.right)?)
            }
        },
        // The schemas of these two nodes do not say which columns of their inputs are unique.
        LogicalPlan::Union(_) | LogicalPlan::Unnest(_) => Ok(false),
        // For these two nodes, the rule has already hidden which columns of their inputs are
        // unique.
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) => Ok(false),
        plan if is_barrier(plan) => Ok(false),
        plan => {
            let mut found = false;
            for input in plan.inputs() {
                found = found || joins_unique_rows(input)?;
            }
            Ok(found)
        }
    }
}
