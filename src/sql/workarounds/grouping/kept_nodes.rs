use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// Applies a rule of DataFusion to the largest subplans in which `is_kept` accepts no node. The
/// rule itself visits all nodes of the plan that it receives.
pub(super) fn optimize_below_kept(
    stock: &dyn PhysicalOptimizerRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
    is_kept: fn(&Arc<dyn ExecutionPlan>) -> Result<bool>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if !plan.exists(is_kept)? {
        return stock.optimize(plan, config);
    }
    plan.map_children(|child| {
        optimize_below_kept(stock, child, config, is_kept).map(Transformed::yes)
    })
    .data()
}
