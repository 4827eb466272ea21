//! Limits the number of leaves (innermost list elements) per batch.
//!
//! A batch of 8,192 rows of patients can take gigabytes. Scans of `.nrt` limit the leaves of their
//! batches, but filters, joins and repartitioning collect rows up to the session's batch size
//! again, and Parquet scans limit only rows. The rule [`limit_leaves`] lowers the batch size of a
//! plan with lists to about `serrate.leaf_batch_size` leaves, unless the scans of the plan already
//! limit the leaves. It also lowers the batch size of sorts and aggregates if their shares of the
//! memory limit are small; see [`SpillBatches`].

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Statistics;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::array::{leaf_type, list_depth};
use crate::config::SerrateOptions;
use crate::functions::{LIST_KEY, SUM_STATE};
use crate::sql::exec::{pass_through, replace_config};
use crate::sql::order::SourceOrderExec;
use crate::sql::pushdown::spill_batches::{SpillBatches, is_spilling};
use crate::sql::sources::table_provider::TableSource;

/// Physical optimizer rule: lowers the batch size of the subplans that return lists, and of sorts
/// and aggregates with a small share of the memory limit.
///
/// Without this rule, `SELECT * FROM 't.parquet' WHERE id > 5` makes batches of 8,192 rows, however
/// long their lists are.
pub(crate) fn limit_leaves(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut leaves = SerrateOptions::of(config).leaf_batch_size;
    let configured: usize = config.execution.batch_size.get();
    let mut batch_size = configured;
    if let Some(most) = SpillBatches::find_shares(&plan) {
        leaves = leaves.min(most.leaves);
        batch_size = batch_size.min(most.rows);
    }
    let mut rows = batch_size;
    plan.apply(|node| {
        if let Some(scan) = node.downcast_ref::<DataSourceExec>()
            && let Some(per_row) = estimate_leaves_per_row(scan)?
        {
            rows = rows.min(compute_rows_per_batch(leaves, per_row));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let plan = match rows < batch_size {
        // Subplans without lists (`unnest`, GROUP BY) keep the size `batch_size`: with the smaller
        // size `rows`, their batches would be tiny.
        true => raise_batch_size(plan, rows, batch_size)?,
        false => plan,
    };
    match batch_size < configured {
        true => limit_spilled_rows(plan, batch_size),
        false => Ok(plan),
    }
}

/// Lowers the batch size of the outermost sorts and aggregates, and of the plans below them, to
/// `rows`. A [`BatchSizeExec`] above them has lowered it already. Makes these sorts sort each batch
/// alone.
fn limit_spilled_rows(plan: Arc<dyn ExecutionPlan>, rows: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_down(|node| {
        let mut sized = match node.downcast_ref::<BatchSizeExec>() {
            Some(sized) => sized.with_input(Arc::clone(&sized.input)),
            None if is_spilling(&node) => BatchSizeExec::new(Arc::clone(&node), rows),
            None => return Ok(Transformed::no(node)),
        };
        sized.sorts_single_batches = true;
        let sized: Arc<dyn ExecutionPlan> = Arc::new(sized);
        Ok(Transformed::new(sized, true, TreeNodeRecursion::Jump))
    })?;
    Ok(plan.data)
}

/// Whether all batches of a plan come from scans that limit the leaves (innermost list elements)
/// per batch themselves. Such a plan needs no [`BatchSizeExec`], whose overhead exceeds the time of
/// a small query.
fn has_leaf_limits(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    Ok(!plan.exists(|node| Ok(!keeps_leaf_limit(node)))?)
}

/// Whether a node is a scan that limits the leaves of its batches, or a node that does not merge
/// batches of its input.
fn keeps_leaf_limit(node: &Arc<dyn ExecutionPlan>) -> bool {
    match node.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source) {
        Some(source) => {
            let file = source.downcast_ref::<FileScanConfig>().map(FileScanConfig::file_source);
            source.is::<TableSource>() || file.is_some_and(|file| file.file_type() == "nrt")
        }
        None => {
            node.is::<ProjectionExec>()
                || node.is::<CooperativeExec>()
                || node.is::<FilterExec>()
                || node.is::<CoalescePartitionsExec>()
                || node.is::<SourceOrderExec>()
                || node.is::<GlobalLimitExec>()
                || node.is::<LocalLimitExec>()
        }
    }
}

/// Lowers the batch size of a plan that returns lists to `rows`. Inputs without lists keep
/// `batch_size`.
fn lower_batch_size(
    plan: Arc<dyn ExecutionPlan>,
    rows: usize,
    batch_size: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_down(|node| {
        if !node.children().is_empty() && !gives_lists(&node) {
            let input = raise_batch_size(node, rows, batch_size)?;
            let sized: Arc<dyn ExecutionPlan> = Arc::new(BatchSizeExec::new(input, batch_size));
            return Ok(Transformed::new(sized, true, TreeNodeRecursion::Jump));
        }
        // A `FilterExec` keeps the batch size with which it was planned, so this size is lowered
        // here.
        let lowered = match node.downcast_ref::<FilterExec>() {
            Some(filter) if filter.batch_size() > rows => Some(filter.with_batch_size(rows)?),
            _ => None,
        };
        Ok(match lowered {
            Some(filter) => Transformed::yes(Arc::new(filter) as Arc<dyn ExecutionPlan>),
            None => Transformed::no(node),
        })
    })?;
    Ok(plan.data)
}

/// Keeps `batch_size` in a plan without lists, but lowers it to `rows` in each subplan that returns
/// lists.
fn raise_batch_size(
    plan: Arc<dyn ExecutionPlan>,
    rows: usize,
    batch_size: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_down(|node| {
        if node.is::<BatchSizeExec>() {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        if !gives_lists(&node) {
            return Ok(Transformed::no(node));
        }
        let sized = has_leaf_limits(&node)?;
        let mut node = lower_batch_size(node, rows, batch_size)?;
        if !sized {
            node = Arc::new(BatchSizeExec::new(node, rows));
        }
        Ok(Transformed::new(node, true, TreeNodeRecursion::Jump))
    })?;
    Ok(plan.data)
}

/// Whether a plan returns lists, or is a scan that reads lists.
fn gives_lists(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let reads = match plan.downcast_ref::<DataSourceExec>() {
        Some(scan) => estimate_leaves_per_row(scan).is_ok_and(|leaves| leaves.is_some()),
        None => false,
    };
    // Excludes list columns with the metadata key `SUM_STATE`. They are states of partial sums with
    // few elements, so smaller batches would cost more than they save. A column with the metadata
    // key `LIST_KEY` has the bytes of lists.
    let is_long = |f: &Field| {
        let metadata = f.metadata();
        let is_list = is_list(f.data_type()) && !metadata.contains_key(SUM_STATE);
        is_list || metadata.contains_key(LIST_KEY)
    };
    reads || plan.schema().fields().iter().any(|f| is_long(f))
}

fn compute_rows_per_batch(leaves: usize, per_row: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and the quotient is not negative"
    )]
    let rows = (leaves as f64 / per_row.max(f64::MIN_POSITIVE)) as usize;
    rows.max(1)
}

/// Returns the average number of leaves (innermost list elements) per row in the largest list
/// column that a scan reads, or `None` if it is unknown.
pub(in crate::sql) fn estimate_leaves_per_row(scan: &DataSourceExec) -> Result<Option<f64>> {
    let source = scan.data_source();
    if let Some(config) = source.downcast_ref::<FileScanConfig>() {
        let schema = config.file_schema();
        let read: Vec<usize> = match config.file_source().projection() {
            None => (0..schema.fields().len()).collect(),
            Some(exprs) => exprs
                .iter()
                .flat_map(|e| collect_columns(&e.expr))
                .map(|c| c.index())
                .filter(|i| *i < schema.fields().len())
                .collect(),
        };
        let statistics = config.statistics();
        let estimate = find_largest_column(schema, &read, &statistics).or_else(|| {
            estimate_from_files(schema, &read, config, *statistics.num_rows.get_value()?)
        });
        // Whether the size of the values of column `i` is known. If not, the estimate for Parquet
        // is at least `PACKED_PER_ROW`: the compressed size says little about the number of values.
        let known = |i: &usize| {
            let column = statistics.column_statistics.get(*i);
            column.is_some_and(|c| c.byte_size.get_value().is_some())
        };
        let is_column =
            |i: &&usize| schema.fields().get(**i).is_some_and(|f| is_list(f.data_type()));
        let counted = read.iter().filter(is_column).all(known);
        let packed = config.file_source().file_type() == "parquet" && !counted;
        return Ok(estimate.map(|e| if packed { e.max(PACKED_PER_ROW) } else { e }));
    }
    let schema = scan.schema();
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    if !schema.fields().iter().any(|f| is_list(f.data_type())) {
        return Ok(None);
    }
    let statistics = source.partition_statistics(None)?;
    if statistics.num_rows.get_value().is_none() {
        return Ok(Some(UNKNOWN_PER_ROW));
    }
    Ok(find_largest_column(&schema, &all, statistics.as_ref()))
}

/// Minimum estimate of leaves (innermost list elements) per row for a list column of a Parquet file
/// with values of unknown size.
const PACKED_PER_ROW: f64 = 256.0;

/// Assumed number of leaves (innermost list elements) per row if the source has lists and no
/// statistics, such as a MEDS folder.
const UNKNOWN_PER_ROW: f64 = 1024.0;

fn is_list(data_type: &DataType) -> bool {
    list_depth(data_type) > 0
}

/// Assumed number of bytes per leaf (innermost list element) in a compressed file.
const LEAF_ON_DISK: f64 = 2.0;

/// Estimates the number of leaves (innermost list elements) per row from the size of the files,
/// divided equally among the list columns. Returns `None` if there are no rows or no list column is
/// read.
fn estimate_from_files(
    schema: &Schema,
    read: &[usize],
    config: &FileScanConfig,
    rows: usize,
) -> Option<f64> {
    let is = |i: &usize| schema.fields().get(*i).is_some_and(|f| is_list(f.data_type()));
    if rows == 0 || !read.iter().any(is) {
        return None;
    }
    let lists = (0..schema.fields().len()).filter(is).count();
    // A file that is divided into byte ranges is counted once, with its first range.
    let first = |f: &&PartitionedFile| f.range.as_ref().is_none_or(|r| r.start == 0);
    let files = config.file_groups.iter().flat_map(FileGroup::iter).filter(first);
    let bytes: u64 = files.map(|f| f.object_meta.size).sum();
    Some(bytes as f64 / LEAF_ON_DISK / lists as f64 / rows as f64)
}

fn find_largest_column(schema: &Schema, columns: &[usize], statistics: &Statistics) -> Option<f64> {
    let rows = *statistics.num_rows.get_value()?;
    if rows == 0 {
        return None;
    }
    let average = statistics
        .total_byte_size
        .get_value()
        .map(|total| *total as f64 / schema.fields().len().max(1) as f64);
    columns
        .iter()
        .filter_map(|i| {
            let data_type = schema.fields().get(*i)?.data_type();
            if !is_list(data_type) {
                return None;
            }
            let known = statistics.column_statistics.get(*i).and_then(|c| c.byte_size.get_value());
            let bytes = known.map(|b| *b as f64).or(average)?;
            let width = leaf_type(data_type).primitive_width().unwrap_or(8);
            Some(bytes / width as f64 / rows as f64)
        })
        .reduce(f64::max)
}

#[derive(Debug)]
pub(crate) struct BatchSizeExec {
    input: Arc<dyn ExecutionPlan>,
    rows: usize,
    /// Whether sorts do not combine small batches before they sort them.
    sorts_single_batches: bool,
}

impl BatchSizeExec {
    pub(in crate::sql) fn new(input: Arc<dyn ExecutionPlan>, rows: usize) -> Self {
        Self { input, rows, sorts_single_batches: false }
    }

    pub(in crate::sql) fn batch_rows(&self) -> usize {
        self.rows
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input, rows: self.rows, sorts_single_batches: self.sorts_single_batches }
    }
}

impl DisplayAs for BatchSizeExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchSizeExec: rows={}", self.rows)
    }
}

impl ExecutionPlan for BatchSizeExec {
    pass_through!("BatchSizeExec", input);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        // A `BatchSizeExec` above may have lowered the batch size; this node may raise it again.
        let mut config = context.session_config().clone().with_batch_size(self.rows);
        if self.sorts_single_batches {
            // A sort would combine batches of up to 1 MB, sort them as one, and divide the rows
            // into batches again. For each of these, it would reserve memory for the strings of
            // all. If memory is not scarce, combined batches make merges faster.
            config = config.with_sort_in_place_threshold_bytes(0);
        }
        self.input.execute(partition, replace_config(&context, config))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
