use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};

use super::kept_nodes::optimize_below_kept;

/// Keeps the optimizer rule `aggregate_statistics` from answering `min` and `max` over UNION ALL
/// from statistics if an input of the union has no rows.
///
/// In the statistics of DataFusion 55, a literal is its own minimum and maximum, even if there are
/// no rows, and the minimum of a UNION ALL is the least minimum of its inputs. So `SELECT min(x)
/// FROM (SELECT 1 AS x FROM empty UNION ALL SELECT 2 FROM t)` would be 1 instead of 2. This
/// workaround is obsolete once the test `stock_extremes_still_include_literals_without_rows` fails.
pub(in crate::sql) fn keep_empty_inputs(
    stock: &dyn PhysicalOptimizerRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    optimize_below_kept(stock, plan, config, reads_empty_input)
}

/// Whether a node computes `min` or `max` without GROUP BY above a union that has an input without
/// rows.
fn reads_empty_input(node: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let Some(aggregate) = node.downcast_ref::<AggregateExec>() else { return Ok(false) };
    let is_extreme =
        aggregate.aggr_expr().iter().any(|call| matches!(call.fun().name(), "min" | "max"));
    if !aggregate.group_expr().is_empty() || !is_extreme {
        return Ok(false);
    }
    aggregate.input().exists(|below| {
        let is_union = below.is::<UnionExec>() || below.is::<InterleaveExec>();
        Ok(is_union && below.children().into_iter().any(has_no_rows))
    })
}

fn has_no_rows(input: &Arc<dyn ExecutionPlan>) -> bool {
    StatisticsContext::new()
        .compute(input.as_ref(), &StatisticsArgs::new())
        .is_ok_and(|statistics| statistics.num_rows == Precision::Exact(0))
}
