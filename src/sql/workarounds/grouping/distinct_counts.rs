use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::kept_nodes::optimize_below_kept;

/// Keeps the optimizer rule `aggregate_statistics` from answering `count(DISTINCT x)` from
/// statistics.
///
/// DataFusion 55 wrongly declares two numbers of distinct values exact. A literal has 1 distinct
/// value, even if it is NULL or there are no rows. A column of a cross join has as many as in the
/// left input, even if the right input is empty. A single `count(DISTINCT x)` is not affected,
/// because DataFusion plans it as GROUP BY. This workaround is obsolete once the test
/// `stock_distinct_counts_are_still_those_of_statistics` fails.
pub(in crate::sql) fn keep_distinct_counts(
    stock: &dyn PhysicalOptimizerRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    optimize_below_kept(stock, plan, config, |node| Ok(counts_distinct(node)))
}

/// Whether a node is an aggregate without GROUP BY that has an aggregate with DISTINCT.
fn counts_distinct(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        aggregate.group_expr().is_empty()
            && aggregate.aggr_expr().iter().any(|call| call.is_distinct())
    })
}
