//! Rows in source order: by file name, then by position in the file.
//!
//! Formats that identify rows by position (`.nrt`, safetensors) are written in source order, and
//! LIMIT returns the first rows, for any number of partitions. DataFusion promises neither: it
//! merges partitions in order of arrival, assigns files to idle partitions, and distributes batches
//! round-robin. [`in_source_order`] rewrites a plan to source order, or names the operator that
//! prevents it.

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
use datafusion::datasource::source::{DataSource, DataSourceExec};
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
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use serrate_core::internal::make_natural_key;

use crate::sql::base::plan_nodes::replace_inputs;
use crate::sql::exec::explode::ExplodeExec;

pub(in crate::sql) use self::fixed_source::FixedSource;
pub(in crate::sql) use self::ordered_sink::build_ordered_sink;
#[cfg(feature = "cli")]
pub(crate) use self::ordered_sink::sum_counts;
use self::sorted_input::SortedExec;
pub(crate) use self::source_order::SourceOrderExec;

/// Rewrites a plan so that its partitions, concatenated by index, hold the rows in source order: by
/// file, then by position in the file.
///
/// It removes round-robin repartitioning, concatenates merged partitions, and sorts the files of
/// scans by name. It accepts filters, projections, limits, `unnest`, `UNION ALL` (one input after
/// the other) and sorted plans.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::sql::{in_source_order, session};
/// let ctx = session();
/// let plan = ctx.sql("SELECT [1] AS x UNION ALL SELECT [2]").await?.create_physical_plan().await?;
/// let ordered = in_source_order(&plan)?;
/// assert_eq!(ordered.schema(), plan.schema());
/// let grouped = ctx.sql("SELECT x FROM (VALUES (1), (2)) v(x) GROUP BY x").await?;
/// assert!(in_source_order(&grouped.create_physical_plan().await?).is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If a join, a GROUP BY, a window with keys or hash repartitioning loses the order. The message
/// names the operator.
pub fn in_source_order(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    match rewrite_plan(plan)? {
        Ok(plan) => Ok(plan),
        Err(operator) => plan_err!(
            "the plan returns its rows in no defined order, because it contains {operator}; add ORDER BY"
        ),
    }
}

/// Returns a plan with the same rows in source order, in one partition. Returns `plan` itself if an
/// operator in it loses the source order.
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
    Ok(match has_one_partition(&ordered) {
        true => ordered,
        false => Arc::new(SourceOrderExec::new(ordered, None)),
    })
}

/// The plan with its rows in source order (by file, then by position in the file), or the name of
/// the operator that loses this order.
type OrderedPlan = std::result::Result<Arc<dyn ExecutionPlan>, String>;

/// Rewrites a plan so that its rows are in source order (by file, then by position in the file).
/// Changes the nodes from the root down to those that define an order. Returns the name of an
/// operator if it loses the order.
fn rewrite_plan(plan: &Arc<dyn ExecutionPlan>) -> Result<OrderedPlan> {
    match find_order_effect(plan) {
        OrderEffect::Defines(ordered) => Ok(Ok(ordered)),
        OrderEffect::Distributes { input } => rewrite_plan(input),
        OrderEffect::Concatenates { input, fetch } => Ok(rewrite_plan(input)?
            .map(|input| Arc::new(SourceOrderExec::new(input, fetch)) as Arc<dyn ExecutionPlan>)),
        OrderEffect::Keeps { ordered_inputs } => rewrite_inputs(plan, &ordered_inputs),
        OrderEffect::Loses { operator } => Ok(Err(operator)),
    }
}

/// How the order of a node's output depends on the order of its inputs. Source order is by file,
/// then by position in the file.
enum OrderEffect<'a> {
    /// The output of this plan is in source order, regardless of its inputs.
    Defines(Arc<dyn ExecutionPlan>),
    /// The node distributes the rows of its input over partitions in turn. The rewritten plan omits
    /// it.
    Distributes { input: &'a Arc<dyn ExecutionPlan> },
    /// The node merges partitions. A [`SourceOrderExec`] in its place concatenates them in source
    /// order.
    Concatenates { input: &'a Arc<dyn ExecutionPlan>, fetch: Option<usize> },
    /// The output is in source order if certain inputs are in source order: those whose item in
    /// `ordered_inputs` is true.
    Keeps { ordered_inputs: Vec<bool> },
    /// The output has no source order because of this operator, such as `GROUP BY` or
    /// `HashJoinExec`.
    Loses { operator: String },
}

fn find_order_effect(plan: &Arc<dyn ExecutionPlan>) -> OrderEffect<'_> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        return OrderEffect::Defines(make_ordered_scan(plan, scan));
    }
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        return match repartition.partitioning() {
            Partitioning::RoundRobinBatch(_) => {
                OrderEffect::Distributes { input: repartition.input() }
            }
            _ => OrderEffect::Loses { operator: plan.name().into() },
        };
    }
    if let Some(merge) = plan.downcast_ref::<CoalescePartitionsExec>() {
        return OrderEffect::Concatenates { input: merge.input(), fetch: merge.fetch() };
    }
    if let Some(merge) = plan.downcast_ref::<SourceOrderExec>() {
        return OrderEffect::Concatenates { input: merge.input(), fetch: merge.fetch() };
    }
    if is_sorted_output(plan) {
        return OrderEffect::Defines(Arc::clone(plan));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return match has_one_group(plan, aggregate) {
            true => OrderEffect::Defines(Arc::clone(plan)),
            false => OrderEffect::Loses { operator: "GROUP BY".into() },
        };
    }
    if is_window(plan) && has_window_keys(plan) {
        let operator = "a window function with PARTITION BY or ORDER BY".into();
        return OrderEffect::Loses { operator };
    }
    if plan.children().is_empty() {
        // A source other than a scan of files is assumed to have its partitions in order.
        return OrderEffect::Defines(Arc::clone(plan));
    }
    let ordered_inputs = list_ordered_inputs(plan);
    match ordered_inputs.contains(&true) {
        true => OrderEffect::Keeps { ordered_inputs },
        false => OrderEffect::Loses { operator: plan.name().into() },
    }
}

/// Whether all rows of a node, not only those within each partition, are in the order that ORDER BY
/// requires.
fn is_sorted_output(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<SortedExec>()
        || plan.is::<SortPreservingMergeExec>()
        || (plan.is::<SortExec>() && has_one_partition(plan))
}

/// Whether an aggregate returns one row, which has no order to lose. Such an aggregate has no GROUP
/// BY, and it has one partition or requires one: before optimization, its input may still have
/// several.
fn has_one_group(plan: &Arc<dyn ExecutionPlan>, aggregate: &AggregateExec) -> bool {
    let has_one_input = has_one_partition(plan) || has_single_input(plan);
    aggregate.group_expr().is_empty() && has_one_input
}

/// Returns, for each input of a node, whether the rows of the output keep the order of this input.
fn list_ordered_inputs(plan: &Arc<dyn ExecutionPlan>) -> Vec<bool> {
    let inputs = plan.children();
    if keeps_row_order(plan) {
        return vec![true; inputs.len()];
    }
    // The first input has the rows. Every further input is a scalar subquery, which returns one
    // value.
    if plan.is::<ScalarSubqueryExec>() {
        return (0..inputs.len()).map(|at| at == 0).collect();
    }
    let [input] = inputs.as_slice() else { return vec![false; inputs.len()] };
    let is_same_count = input.output_partitioning().partition_count()
        == plan.output_partitioning().partition_count();
    let is_kept = plan.maintains_input_order().first().copied().unwrap_or(false);
    vec![is_kept && (is_same_count || has_single_input(plan))]
}

/// Whether a node returns the rows of its inputs in order, one input after the other, although its
/// `maintains_input_order` promises less.
pub(in crate::sql) fn keeps_row_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<UnionExec>() || plan.is::<UnnestExec>() || plan.is::<ExplodeExec>()
}

/// Rewrites some inputs of a node to source order: those whose item in `ordered_inputs` is true.
fn rewrite_inputs(plan: &Arc<dyn ExecutionPlan>, ordered_inputs: &[bool]) -> Result<OrderedPlan> {
    let needs_one_partition = has_single_input(plan);
    let mut inputs: Vec<Arc<dyn ExecutionPlan>> = Vec::with_capacity(ordered_inputs.len());
    for (input, is_ordered) in plan.children().into_iter().zip(ordered_inputs) {
        if !is_ordered {
            inputs.push(Arc::clone(input));
            continue;
        }
        let ordered = match rewrite_plan(input)? {
            Ok(ordered) => ordered,
            Err(operator) => return Ok(Err(operator)),
        };
        let has_several = ordered.output_partitioning().partition_count() > 1;
        inputs.push(match needs_one_partition && has_several {
            true => Arc::new(SourceOrderExec::new(ordered, None)),
            false => ordered,
        });
    }
    // A new node would compute its properties again.
    if inputs.iter().zip(plan.children()).all(|(new, old)| Arc::ptr_eq(new, old)) {
        return Ok(Ok(Arc::clone(plan)));
    }
    replace_inputs(Arc::clone(plan), inputs).map(Ok)
}

fn has_one_partition(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.output_partitioning().partition_count() == 1
}

pub(in crate::sql) fn is_window(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>()
}

/// Whether a window has PARTITION BY or ORDER BY.
pub(in crate::sql) fn has_window_keys(window: &Arc<dyn ExecutionPlan>) -> bool {
    window.required_input_ordering().iter().any(Option::is_some)
}

/// Whether a node has one input and requires it in a single partition.
fn has_single_input(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let required = plan.input_distribution_requirements().into_per_child();
    matches!(required.as_slice(), [Distribution::SinglePartition])
}

/// A file's position in a list of files that is not sorted by name. Source order then follows these
/// positions.
#[derive(Clone, Copy, Debug)]
pub(in crate::sql) struct FileRank(pub(in crate::sql) usize);

/// Returns a scan of the same files, sorted by rank, name and start, with consecutive files in each
/// partition.
fn make_ordered_scan(
    plan: &Arc<dyn ExecutionPlan>,
    scan: &DataSourceExec,
) -> Arc<dyn ExecutionPlan> {
    let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else {
        return Arc::clone(plan);
    };
    let key = |f: &PartitionedFile| {
        let rank = f.extension::<FileRank>().map_or(0, |rank| rank.0);
        (
            rank,
            make_natural_key(f.object_meta.location.as_ref()),
            f.range.as_ref().map_or(0, |r| r.start),
        )
    };
    let files: Vec<&PartitionedFile> =
        config.file_groups.iter().flat_map(FileGroup::iter).collect();
    let is_sorted = files.is_sorted_by_key(|f| key(f));
    if is_sorted && config.preserve_order {
        return Arc::clone(plan);
    }
    let mut builder = FileScanConfigBuilder::from(config.clone()).with_preserve_order(true);
    if !is_sorted {
        let groups = config.file_groups.len().max(1);
        let mut files: Vec<PartitionedFile> = files.into_iter().cloned().collect();
        files.sort_by_cached_key(key);
        let size = files.len().div_ceil(groups).max(1);
        let groups = files.chunks(size).map(|c| FileGroup::new(c.to_vec())).collect();
        builder = builder.with_file_groups(groups).with_output_partitioning(None);
    }
    DataSourceExec::from_data_source(builder.build())
}

/// Keeps the optimizer from repartitioning tables in memory, because DataFusion sorts the batches
/// of such a table by size when it repartitions them.
pub(in crate::sql) fn fix_memory(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let fixed = plan.transform_down(|node| {
        Ok(match find_memory(&node) {
            Some(source) => {
                let fixed = FixedSource(Arc::clone(source));
                Transformed::yes(DataSourceExec::from_data_source(fixed) as Arc<dyn ExecutionPlan>)
            }
            None => Transformed::no(node),
        })
    })?;
    Ok(fixed.data)
}

/// Whether a plan reads a table in memory.
pub(in crate::sql) fn has_memory(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| Ok(find_memory(node).is_some()))
}

fn find_memory(node: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn DataSource>> {
    let source = node.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
    source.filter(|source| source.is::<MemorySourceConfig>())
}

/// Inserts a [`SortedExec`] above each sort that orders the output, so that the optimizer keeps the
/// sort.
pub(in crate::sql) fn pin_sorts(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let pinned = plan.transform_down(|node| {
        let order = node.downcast_ref::<SortExec>().map(|sort| sort.expr().clone()).or_else(|| {
            node.downcast_ref::<SortPreservingMergeExec>().map(|merge| merge.expr().clone())
        });
        if let Some(order) = order {
            let sorted = Arc::new(SortedExec::new(node, order)) as Arc<dyn ExecutionPlan>;
            return Ok(Transformed::new(sorted, true, TreeNodeRecursion::Jump));
        }
        let through = keeps_row_order(&node)
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
