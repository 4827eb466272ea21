//! Chooses the number of tasks for each part of a plan, and the partitions that each task reads.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode,
};
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{Distribution, ExecutionPlan, ExecutionPlanProperties};
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedLeafExec,
    ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse,
};

use super::nodes::{TaskMergeExec, TaskRowsExec};
use super::settings::ClusterOptions;
use crate::sql::portable::{plan_division, take_partitions};

fn has_one_partition(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.output_partitioning().partition_count() == 1
}

/// Whether a node must run in a single task, because it needs all rows of an input with one
/// partition. datafusion-distributed gives a leaf with one partition to every task: several tasks
/// would return the same rows of a LIMIT, window or aggregation over this leaf.
fn needs_one_task(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let collects = plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<TaskMergeExec>()
        || plan.is::<TaskRowsExec>();
    if collects {
        return false;
    }
    if has_one_partition(plan) {
        return true;
    }
    // datafusion-distributed sends the build side of some joins to every task: hash joins with one
    // build partition, nested-loop joins and cross joins. If the probe side has one partition,
    // every task gets it as well, and would return all rows of the join.
    let hash = plan.downcast_ref::<HashJoinExec>();
    if hash.is_some_and(|join| join.mode == PartitionMode::CollectLeft)
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
    {
        return plan.children().last().is_some_and(|probe| has_one_partition(probe));
    }
    let required = plan.input_distribution_requirements().into_per_child();
    plan.children().into_iter().zip(required).any(|(child, asks)| {
        has_one_partition(child) && !matches!(asks, Distribution::UnspecifiedDistribution)
    })
}

/// Returns the number of tasks for a node. A node that needs all rows, and a leaf that cannot be
/// divided, have at most one task. For any other leaf, the number depends on its bytes and
/// partitions. Returns `None` for all other nodes.
pub(super) fn count_tasks(
    event: DesiredTaskCountEvent<'_>,
) -> Option<Result<DesiredTaskCountEventResponse>> {
    let one = Some(Ok(DesiredTaskCountEventResponse::maximum(1)));
    if needs_one_task(event.plan) {
        return one;
    }
    if !event.plan.children().is_empty() {
        return None;
    }
    let Ok(Some(division)) = plan_division(event.plan) else { return one };
    let options = event.session_config.options().extensions.get::<ClusterOptions>();
    let per_task = options.map_or(1, |o| o.bytes_per_task).max(1);
    let wanted = match division.bytes {
        Some(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX).div_ceil(per_task),
        None => usize::MAX,
    };
    let tasks = wanted.clamp(1, division.partitions);
    Some(Ok(DesiredTaskCountEventResponse::desired(tasks)))
}

/// Divides a scan, the leaf in `event`, among tasks. Each task gets consecutive partitions, so that
/// the rows of all tasks, in the order of the tasks, have the order of the scan. A scan that cannot
/// be divided stays unchanged. Always returns `Some`: no other handler of the event is asked.
pub(super) fn divide_leaf(
    event: ScaleUpLeafNodeEvent<'_>,
) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    Some(divide_scan(event.plan, event.task_count).map(ScaleUpLeafNodeEventResponse::new))
}

fn divide_scan(leaf: &Arc<dyn ExecutionPlan>, tasks: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let partitions = leaf.output_partitioning().partition_count();
    if tasks < 2 || !matches!(plan_division(leaf), Ok(Some(_))) {
        return Ok(Arc::clone(leaf));
    }
    let most = partitions.div_ceil(tasks).max(1);
    let variants = (0..tasks).map(|task| {
        let start = task * partitions / tasks;
        let end = (task + 1) * partitions / tasks;
        take_partitions(leaf, start..end, most)
    });
    let variants = variants.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(DistributedLeafExec::try_new(Arc::clone(leaf), variants)?))
}
