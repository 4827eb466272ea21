use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

/// Keeps the optimizer rule `aggregate_statistics` from answering `count(DISTINCT x)` from
/// statistics.
///
/// The number of distinct values that DataFusion 55 takes for exact is 1 for a literal, although
/// the literal is NULL or there are no rows, and that of the left input for a cross join, although
/// the right input may be empty. A single `count(DISTINCT x)` is not affected, because DataFusion
/// plans it as GROUP BY. Obsolete once the test
/// `stock_distinct_counts_are_still_those_of_statistics` fails.
pub(in crate::sql) fn keep_distinct_counts(
    stock: &dyn PhysicalOptimizerRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if !plan.exists(|node| Ok(counts_distinct(node)))? {
        return stock.optimize(plan, config);
    }
    plan.map_children(|child| keep_distinct_counts(stock, child, config).map(Transformed::yes))
        .data()
}

/// Whether a node is an aggregate without GROUP BY that has an aggregate with DISTINCT.
fn counts_distinct(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        aggregate.group_expr().is_empty()
            && aggregate.aggr_expr().iter().any(|call| call.is_distinct())
    })
}
