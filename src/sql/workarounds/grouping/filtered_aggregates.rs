use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};

use super::kept_nodes::optimize_below_kept;

/// Keeps the optimizer rule `aggregate_statistics` from replacing an aggregate with FILTER by an
/// aggregate of a subquery.
///
/// The rule computes an aggregate without GROUP BY from the statistics of its input. To find that
/// input, it walks from the final aggregate to the first partial aggregate without FILTER. If the
/// aggregate has FILTER, the rule finds the partial aggregate of a subquery, and
/// `SELECT max(c) FILTER (WHERE c > 9) FROM (SELECT count(*) c FROM t)` returns the count. This
/// workaround is obsolete once the test `stock_statistics_still_replace_filtered_aggregates` fails.
pub(in crate::sql) fn keep_filtered_aggregates(
    stock: &dyn PhysicalOptimizerRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    optimize_below_kept(stock, plan, config, |node| Ok(is_filtered_final(node)))
}

/// Whether a node is a final aggregate without GROUP BY whose partial aggregate has FILTER.
fn is_filtered_final(node: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(last) = node.downcast_ref::<AggregateExec>() else { return false };
    if last.mode().input_mode() != AggregateInputMode::Partial || !last.group_expr().is_empty() {
        return false;
    }
    let mut below = last.input();
    loop {
        if let Some(first) = below.downcast_ref::<AggregateExec>() {
            return first.filter_expr().iter().any(Option::is_some);
        }
        match below.children().as_slice() {
            [input] => below = input,
            _ => return false,
        }
    }
}
