use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::sql::base::plan_nodes::replace_inputs;

/// Applies `refuse_filters` to each input of the joins whose dynamic filter may never be complete.
///
/// In DataFusion 55, each partition of a hash join with a collected build side reads the probe side
/// only after all partitions have reported their build side. Such a join may be in the probe side
/// of another join, which is partitioned. If a partition of this outer join has no build rows, the
/// outer join never polls the same partition of the inner join. So this partition never reports,
/// and the other partitions of the inner join wait forever. Upstream counts a dropped partition as
/// reported, but only for joins whose two sides are partitioned
/// (<https://github.com/apache/datafusion/pull/21666>). This workaround is obsolete once the test
/// `stock_joins_below_partitioned_joins_still_hang` in `tests/sql/dynamic_filters.rs` fails.
pub(super) fn refuse_waiting_filters(
    plan: Arc<dyn ExecutionPlan>,
    refuse_filters: &dyn Fn(Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    rewrite_node(plan, false, refuse_filters)
}

/// Rewrites `node` and its inputs as [`refuse_waiting_filters`] does. `may_skip` is true if a node
/// above may read only some partitions of `node`.
fn rewrite_node(
    node: Arc<dyn ExecutionPlan>,
    may_skip: bool,
    refuse_filters: &dyn Fn(Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let refuses = may_skip && waits_for_partitions(&node);
    let mut inputs = Vec::with_capacity(node.children().len());
    let mut changed = refuses;
    for (number, input) in node.children().into_iter().enumerate() {
        let found = rewrite_node(
            Arc::clone(input),
            may_skip_input(&node, number, may_skip),
            refuse_filters,
        )?;
        changed |= !Arc::ptr_eq(&found, input);
        inputs.push(if refuses { refuse_filters(found) } else { found });
    }
    match changed {
        true => replace_inputs(node, inputs),
        false => Ok(node),
    }
}

fn waits_for_partitions(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<HashJoinExec>().is_some_and(|join| {
        *join.partition_mode() == PartitionMode::CollectLeft
            && join.right().output_partitioning().partition_count() > 1
    })
}

fn may_skip_input(node: &Arc<dyn ExecutionPlan>, number: usize, may_skip: bool) -> bool {
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return match (join.partition_mode(), number) {
            (PartitionMode::Partitioned, 1) => true,
            (PartitionMode::CollectLeft, 0) => false,
            _ => may_skip,
        };
    }
    let reads_all = node.is::<RepartitionExec>()
        || node.is::<CoalescePartitionsExec>()
        || node.is::<SortPreservingMergeExec>();
    node.is::<SortMergeJoinExec>() || may_skip && !reads_all
}
