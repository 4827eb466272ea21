use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_plan::{ChildSatisfactionOptions, ExecutionPlan};

/// `SELECT e, count(*) FROM (SELECT id AS e, flag FROM t ORDER BY flag) s GROUP BY e ORDER BY 1`
/// fails without this rule if `t` has two partitions and no rows.
///
/// Physical optimizer rule: runs `EnsureRequirements` again if the input of a node is not
/// partitioned by the key that the node requires.
///
/// The rule of DataFusion 55 adds partitions before it removes redundant sorts. A sorted subquery
/// below GROUP BY has one partition, so the rule does not divide its rows by the key if they are
/// few. Once the rule has removed the sort, the input of GROUP BY has the partitions of its source,
/// which are not divided by the key, or divided by another key of the subquery. This has been seen
/// for tables in memory without rows. This workaround is obsolete once the test
/// `stock_removed_sorts_still_leave_partitions` fails.
pub(in crate::sql) fn add_missing_partitions(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    match lacks_partitions(&plan)? {
        true => EnsureRequirements::new().optimize(plan, config),
        false => Ok(plan),
    }
}

fn lacks_partitions(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| {
        let required = node.input_distribution_requirements();
        let options = ChildSatisfactionOptions::new().with_allow_subset(true);
        for (at, child) in node.children().into_iter().enumerate() {
            if !required.child_satisfaction(at, child.as_ref(), options)?.is_satisfied() {
                return Ok(true);
            }
        }
        Ok(false)
    })
}
