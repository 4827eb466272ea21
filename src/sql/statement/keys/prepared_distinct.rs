//! Prepares queries with DISTINCT ON.
//!
//! DataFusion optimizes the query of PREPARE without its functions, so that its rule for DISTINCT
//! ON panics. No upstream issue was found. This workaround is obsolete once the test
//! `stock_distinct_on_still_cannot_be_prepared` fails.

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Distinct, LogicalPlan};
use datafusion::optimizer::OptimizerRule;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;

/// Replaces each DISTINCT ON in the query of PREPARE with the aggregate by which DataFusion's
/// optimizer would replace it.
pub(in crate::sql::statement) fn replace_distinct_on(
    state: &SessionState,
    query: LogicalPlan,
) -> Result<LogicalPlan> {
    let rule = ReplaceDistinctWithAggregate::new();
    let replaced = query.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Distinct(Distinct::On(_)) => rule.rewrite(node, state),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(replaced.data)
}
