//! Rows in source order: by file name, then by position in the file.
//!
//! Formats that identify rows by position (`.nrt`, safetensors) are written in source order, and
//! LIMIT returns the first rows, for any number of partitions. DataFusion promises neither: it
//! merges partitions in order of arrival, assigns files to idle partitions, and distributes batches
//! round-robin. [`in_source_order`] rewrites a plan to source order, or names what prevents it.

mod fixed_source;
pub(in crate::sql) mod order_rules;
mod ordered_sink;
mod sorted_input;
mod source_order;

use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::{Distribution, LexRequirement};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    ReplaceChildrenOptions,
};

use serrate_core::internal::natural;

use crate::sql::exec::explode::ExplodeExec;

pub(in crate::sql) use self::fixed_source::FixedSource;
pub(in crate::sql) use self::ordered_sink::ordered_sink;
#[cfg(feature = "cli")]
pub(crate) use self::ordered_sink::sum_counts;
use self::sorted_input::SortedExec;
pub use self::source_order::SourceOrderExec;

/// Rewrites a plan so that its partitions, concatenated by index, hold the rows in source order.
///
/// It removes round-robin repartitioning, concatenates merged partitions, and sorts the files of scans by
/// name. It accepts filters, projections, limits, `unnest`, `UNION ALL` (one input after the other) and
/// sorted plans.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::datafusion::physical_plan::ExecutionPlan;
/// use serrate::sql::{SourceOrderExec, in_source_order, session};
/// let ctx = session();
/// let plan = ctx.sql("SELECT [1] AS x UNION ALL SELECT [2]").await?.create_physical_plan().await?;
/// let ordered = in_source_order(&plan)?;
/// let one = SourceOrderExec::new(ordered, None);
/// assert_eq!(one.properties().output_partitioning().partition_count(), 1);
/// let grouped = ctx.sql("SELECT x FROM (VALUES (1), (2)) v(x) GROUP BY x").await?;
/// assert!(in_source_order(&grouped.create_physical_plan().await?).is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If a join, a GROUP BY, a window with keys or hash repartitioning loses the order. The message names the
/// operator.
pub fn in_source_order(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    match rewrite_plan(plan)? {
        Ok(plan) => Ok(plan),
        Err(operator) => plan_err!(
            "the plan returns its rows in no defined order, because it contains {operator}; add ORDER BY"
        ),
    }
}

/// Returns a plan whose rows are in source order and in one partition, or `plan` itself if it has no such order.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::datafusion::physical_plan::collect;
/// use serrate::sql::{prefer_source_order, session};
/// let ctx = session();
/// let frame = ctx.sql("SELECT value FROM generate_series(1, 20000)").await?;
/// let task = frame.task_ctx().into();
/// let plan = prefer_source_order(frame.create_physical_plan().await?)?;
/// let rows = collect(plan, task).await?;
/// assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 20_000);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If DataFusion refuses the new input of a node.
pub fn prefer_source_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let Ok(ordered) = rewrite_plan(&plan)? else { return Ok(plan) };
    Ok(match ordered.output_partitioning().partition_count() {
        1 => ordered,
        _ => Arc::new(SourceOrderExec::new(ordered, None)),
    })
}

/// The plan in source order, or the name of the operator that loses the order.
type OrderedPlan = std::result::Result<Arc<dyn ExecutionPlan>, String>;

fn rewrite_plan(plan: &Arc<dyn ExecutionPlan>) -> Result<OrderedPlan> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        return Ok(Ok(make_ordered_scan(plan, scan)));
    }
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        return match repartition.partitioning() {
            Partitioning::RoundRobinBatch(_) => rewrite_plan(repartition.input()),
            _ => Ok(Err(plan.name().into())),
        };
    }
    if let Some(coalesce) = plan.downcast_ref::<CoalescePartitionsExec>() {
        return Ok(rewrite_plan(coalesce.input())?.map(|input| {
            Arc::new(SourceOrderExec::new(input, coalesce.fetch())) as Arc<dyn ExecutionPlan>
        }));
    }
    if let Some(concat) = plan.downcast_ref::<SourceOrderExec>() {
        return Ok(rewrite_plan(concat.input())?.map(|input| {
            Arc::new(SourceOrderExec::new(input, concat.fetch())) as Arc<dyn ExecutionPlan>
        }));
    }
    let one = plan.output_partitioning().partition_count() == 1;
    let sorted = plan.is::<SortedExec>() || plan.is::<SortPreservingMergeExec>();
    if sorted || (plan.is::<SortExec>() && one) {
        return Ok(Ok(Arc::clone(plan)));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        // An aggregate without group keys over one partition returns one row, which has no order to lose. A
        // plan that is not optimized yet may have several partitions below an aggregate that requires one.
        let one = one || has_single_input(plan);
        return Ok(if aggregate.group_expr().is_empty() && one {
            Ok(Arc::clone(plan))
        } else {
            Err("GROUP BY".into())
        });
    }
    if is_window(plan) && has_window_keys(plan) {
        return Ok(Err("a window function with PARTITION BY or ORDER BY".into()));
    }
    let children = plan.children();
    let through: Vec<bool> = if children.is_empty() {
        // A source other than a scan of files is assumed to have its partitions in order.
        return Ok(Ok(Arc::clone(plan)));
    } else if plan.is::<UnionExec>() || plan.is::<UnnestExec>() || plan.is::<ExplodeExec>() {
        vec![true; children.len()]
    } else if plan.is::<ScalarSubqueryExec>() {
        (0..children.len()).map(|i| i == 0).collect()
    } else if let [child] = children.as_slice() {
        let same = child.output_partitioning().partition_count()
            == plan.output_partitioning().partition_count();
        let kept = plan.maintains_input_order().first().copied().unwrap_or(false);
        vec![kept && (same || has_single_input(plan))]
    } else {
        vec![false]
    };
    if !through.iter().any(|t| *t) {
        return Ok(Err(plan.name().into()));
    }
    let single = has_single_input(plan);
    let mut ordered: Vec<Arc<dyn ExecutionPlan>> = Vec::with_capacity(children.len());
    for (child, through) in children.into_iter().zip(through) {
        ordered.push(if through {
            match rewrite_plan(child)? {
                Ok(child) if single && child.output_partitioning().partition_count() > 1 => {
                    Arc::new(SourceOrderExec::new(child, None))
                }
                Ok(child) => child,
                Err(operator) => return Ok(Err(operator)),
            }
        } else {
            Arc::clone(child)
        });
    }
    Arc::clone(plan)
        .replace_children(ordered, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
        .map(Ok)
}

fn is_window(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>()
}

/// Whether a window has PARTITION BY or ORDER BY.
fn has_window_keys(window: &Arc<dyn ExecutionPlan>) -> bool {
    window.required_input_ordering().iter().any(Option::is_some)
}

/// Whether a node has one input and requires it in a single partition.
fn has_single_input(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let required = plan.input_distribution_requirements().into_per_child();
    matches!(required.as_slice(), [Distribution::SinglePartition])
}

/// The position of a file in the table's list of files, if this list is not sorted by name.
#[derive(Clone, Copy, Debug)]
pub(in crate::sql) struct FileRank(pub(in crate::sql) usize);

/// Returns a scan of the same files, sorted by rank, name and start, with consecutive files in each partition.
fn make_ordered_scan(
    plan: &Arc<dyn ExecutionPlan>,
    scan: &DataSourceExec,
) -> Arc<dyn ExecutionPlan> {
    let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else {
        return Arc::clone(plan);
    };
    let key = |f: &PartitionedFile| {
        let rank = f.extension::<FileRank>().map_or(0, |rank| rank.0);
        (rank, natural(f.object_meta.location.as_ref()), f.range.as_ref().map_or(0, |r| r.start))
    };
    let files: Vec<&PartitionedFile> =
        config.file_groups.iter().flat_map(FileGroup::iter).collect();
    let mut builder = FileScanConfigBuilder::from(config.clone()).with_preserve_order(true);
    if !files.is_sorted_by_key(|f| key(f)) {
        let groups = config.file_groups.len().max(1);
        let mut files: Vec<PartitionedFile> = files.into_iter().cloned().collect();
        files.sort_by_cached_key(key);
        let size = files.len().div_ceil(groups).max(1);
        let groups = files.chunks(size).map(|c| FileGroup::new(c.to_vec())).collect();
        builder = builder.with_file_groups(groups).with_output_partitioning(None);
    }
    DataSourceExec::from_data_source(builder.build())
}

/// Keeps the optimizer from repartitioning tables in memory, which would sort their batches by size.
pub(in crate::sql) fn fix_memory(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let fixed = plan.transform_down(|node| {
        let source = node.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
        Ok(match source.filter(|source| source.is::<MemorySourceConfig>()) {
            Some(source) => {
                let fixed = FixedSource(Arc::clone(source));
                Transformed::yes(DataSourceExec::from_data_source(fixed) as Arc<dyn ExecutionPlan>)
            }
            None => Transformed::no(node),
        })
    })?;
    Ok(fixed.data)
}

/// Inserts a node above each sort that orders the output, so that the optimizer keeps the sort.
pub(in crate::sql) fn pin_sorts(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let pinned = plan.transform_down(|node| {
        let order = node.downcast_ref::<SortExec>().map(|sort| sort.expr().clone()).or_else(|| {
            node.downcast_ref::<SortPreservingMergeExec>().map(|merge| merge.expr().clone())
        });
        if let Some(order) = order {
            let sorted = Arc::new(SortedExec::new(node, order)) as Arc<dyn ExecutionPlan>;
            return Ok(Transformed::new(sorted, true, TreeNodeRecursion::Jump));
        }
        let through = node.is::<UnionExec>()
            || node.is::<UnnestExec>()
            || node.is::<ExplodeExec>()
            || node.is::<ScalarSubqueryExec>()
            || matches!(node.maintains_input_order().as_slice(), [true]);
        let next = if through { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Jump };
        Ok(Transformed::new(node, false, next))
    })?;
    Ok(pinned.data)
}

pub(in crate::sql) fn pin_order(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.output_ordering().cloned() {
        Some(order) => Arc::new(SortedExec::new(plan, order)),
        None => plan,
    }
}

fn refuse_unordered(format: &str, operator: &str, ids: &[&str]) -> DataFusionError {
    let ids = ids.iter().map(|i| format!("`{i}`")).collect::<Vec<_>>().join(" or ");
    let or_id = match ids.as_str() {
        "" => String::new(),
        ids => format!(", or keep the id column {ids} in its result"),
    };
    DataFusionError::Plan(format!(
        "a {format} file identifies rows by their position, but this query returns rows in no defined order because of {operator}; end the query with ORDER BY{or_id}"
    ))
}

fn requires_order(order: Option<&LexRequirement>) -> bool {
    order.is_some_and(|o| o.iter().next().is_some())
}
