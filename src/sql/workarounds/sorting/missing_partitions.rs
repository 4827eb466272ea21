use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_plan::{
    Distribution, ExecutionPlan, ExecutionPlanProperties, Partitioning,
};

/// `SELECT e, count(*) FROM (SELECT id AS e, flag FROM t ORDER BY flag) s GROUP BY e ORDER BY 1`
/// fails without this rule if `t` has two partitions and no rows.
///
/// Physical optimizer rule: runs `EnsureRequirements` again if the input of a node is not
/// partitioned by the key that the node requires.
///
/// The rule of DataFusion 55 adds partitions before it removes redundant sorts. A sorted subquery
/// below GROUP BY has one partition, so the rule does not divide its rows by the key if they are
/// few. Once the rule has removed the sort, the input of GROUP BY has the partitions of its source,
/// which are not divided by the key. This has been seen for tables in memory without rows. Obsolete
/// once the test `stock_removed_sorts_still_leave_partitions` fails.
pub(in crate::sql) fn add_missing_partitions(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    match lacks_partitions(&plan)? {
        true => EnsureRequirements::new().optimize(plan, config),
        false => Ok(plan),
    }
}

#[expect(deprecated, reason = "nodes of DataFusion 55 may still require HashPartitioned")]
fn lacks_partitions(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut lacks = false;
    plan.apply(|node| {
        let required = node.input_distribution_requirements().into_per_child();
        lacks = required.iter().zip(node.children()).any(|(required, child)| {
            let by_key = matches!(
                required,
                Distribution::KeyPartitioned(_) | Distribution::HashPartitioned(_)
            );
            let partitions = match child.output_partitioning() {
                Partitioning::UnknownPartitioning(n) | Partitioning::RoundRobinBatch(n) => *n,
                _ => 1,
            };
            by_key && partitions > 1
        });
        Ok(if lacks { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(lacks)
}
