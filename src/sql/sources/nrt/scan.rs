//! Scans one file: selects rows, fetches their data, and reads batches.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use serrate_core::internal::build_record_batch;

use super::conditions::{
    RowFilter, ScanConditions, evaluate_all, list_condition_columns, narrow_rows,
};
use super::input::{NrtInput, ReadCounts};
use super::position_fields::ROW;
use super::row_runs::{
    count_run_rows, fill_gaps, find_selected_runs, intersect_runs, take_first_rows,
};
use super::scan_columns::ScanColumns;
use crate::io::nrt::NrtFile;
use crate::sql::base::blocking::run_blocking;

/// Number of rows of the first step that evaluates conditions. Each later step has twice as many
/// rows, up to [`LARGEST_CHOICE`].
const FIRST_CHOICE: usize = 1 << 13;
const LARGEST_CHOICE: usize = 1 << 17;

/// Maximum number of rows between two row ranges that are read together to evaluate conditions.
const CHOICE_GAP: usize = 1 << 10;

/// Maximum number of rows of a fetch. A fetch of only flat columns has this number of rows, unless
/// fewer are left.
const FLAT_ROWS: usize = 1 << 17;

/// Number of parts of a remote file that are fetched in advance. The rows of a part are fetched
/// together.
const READ_AHEAD: usize = 2;

type RowRuns = Vec<Range<usize>>;

#[derive(Clone, Debug)]
pub(super) struct ReadMetrics {
    bytes: Count,
    requests: Count,
}

impl ReadMetrics {
    pub(super) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            bytes: MetricBuilder::new(metrics).counter("bytes_scanned", partition),
            requests: MetricBuilder::new(metrics).counter("requests", partition),
        }
    }
}

/// One open file, with the output columns, the conditions and the settings of the scan.
pub(super) struct NrtScan {
    pub(super) input: NrtInput,
    pub(super) output: ScanColumns,
    pub(super) table: SchemaRef,
    /// Columns with the same value in the whole file.
    pub(super) constants: HashMap<String, ScalarValue>,
    pub(super) filter: RowFilter,
    pub(super) nan_is_null: bool,
    pub(super) batch_size: usize,
    pub(super) leaves: usize,
    /// Number of rows that LIMIT still allows.
    pub(super) left: AtomicUsize,
    pub(super) read: ReadMetrics,
    /// The numbers of read bytes and of requests that have already been added to the metrics.
    pub(super) counted: (AtomicU64, AtomicU64),
}

impl NrtScan {
    /// Returns the rows in `rows` that meet the conditions, as a stream of batches.
    pub(super) fn stream_rows(
        self: Arc<Self>,
        rows: Range<usize>,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        self.count();
        let chooser = Arc::clone(&self);
        let chosen = stream::iter(self.make_choice_steps(rows))
            .then(move |rows| {
                let scan = Arc::clone(&chooser);
                async move { scan.choose_rows(rows).await }
            })
            .boxed();
        let scan = Arc::clone(&self);
        if !self.input.is_remote() {
            return chosen
                .and_then(move |runs| {
                    let scan = Arc::clone(&scan);
                    async move {
                        let file = scan.input.fetch_rows(&[], &[], 0).await?;
                        Ok(scan.stream_batches(file, runs))
                    }
                })
                .try_flatten()
                .boxed();
        }
        let cutter = Arc::clone(&self);
        chosen
            .map_ok(move |runs| {
                stream::iter(cutter.divide_parts(runs).map(Ok::<_, DataFusionError>))
            })
            .try_flatten()
            .map(move |runs| {
                let scan = Arc::clone(&scan);
                async move {
                    let runs = runs?;
                    let spans = scan.output.plan_spans(&runs);
                    let (names, depth) = (scan.output.tensors(), scan.output.depth());
                    let file = scan.input.fetch_rows(&spans, names, depth).await?;
                    scan.count();
                    Ok::<_, DataFusionError>(scan.stream_batches(file, runs))
                }
            })
            .buffered(READ_AHEAD)
            .try_flatten()
            .boxed()
    }

    /// Divides rows into ranges. The scan evaluates the conditions for one range after another.
    /// Without conditions, returns one range.
    fn make_choice_steps(
        &self,
        rows: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + Send + use<> {
        let (mut next, end) = (rows.start, rows.end);
        let mut size = if self.filter.is_empty() { usize::MAX } else { FIRST_CHOICE };
        std::iter::from_fn(move || {
            let step = next..next.saturating_add(size).min(end);
            next = step.end;
            size = size.saturating_mul(2).min(LARGEST_CHOICE.max(size));
            (!step.is_empty()).then_some(step)
        })
    }

    /// Returns the rows that meet all conditions, with dynamic filters in their current state, and
    /// at most as many rows as LIMIT still allows.
    async fn choose_rows(self: &Arc<Self>, rows: Range<usize>) -> Result<RowRuns> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return Ok(Vec::new());
        }
        let now = self.group_conditions()?;
        let mut runs = vec![narrow_rows(&now.rows, rows)];
        runs.retain(|r| !r.is_empty());
        if !now.file.is_empty() && !is_file_wanted(&now, &self.constants)? {
            runs.clear();
        }
        if !now.rows.is_empty() && !runs.is_empty() {
            runs = self.find_rows_meeting(&now.rows, runs).await?;
        }
        if !now.values.is_empty() && !runs.is_empty() {
            runs = self.find_rows_meeting(&now.values, runs).await?;
        }
        let left = self.left.load(Ordering::Relaxed);
        if count_run_rows(&runs) > left {
            runs = take_first_rows(runs, left);
        }
        self.left.fetch_sub(count_run_rows(&runs), Ordering::Relaxed);
        Ok(runs)
    }

    fn group_conditions(&self) -> Result<ScanConditions> {
        let own = |name: &str| self.input.find_column(name).is_some();
        self.filter
            .group_conditions(|name| self.constants.contains_key(name) && !own(name), !own(ROW))
    }

    /// Reads the columns of `conditions` and returns the rows of `runs` that meet all conditions.
    async fn find_rows_meeting(
        self: &Arc<Self>,
        conditions: &[Arc<dyn PhysicalExpr>],
        runs: RowRuns,
    ) -> Result<RowRuns> {
        let fields = list_condition_columns(conditions).into_iter().filter_map(|name| {
            let constant =
                self.constants.get(&name).filter(|_| self.table.index_of(&name).is_err());
            match constant {
                Some(value) => Some(Arc::new(Field::new(name, value.data_type(), true))),
                None => self.table.field_with_name(&name).ok().cloned().map(Arc::new),
            }
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let wanted =
            ScanColumns::try_new(&self.input, schema, &self.constants, &[], self.nan_is_null)?;
        let spans = fill_gaps(&runs, CHOICE_GAP);
        let file = self.input.fetch_rows(&spans, wanted.tensors(), wanted.depth()).await?;
        let read = spans.clone();
        let batch = self.run(move |_| wanted.build_batch(&file, &read)).await?;
        self.count();
        Ok(intersect_runs(&runs, &find_selected_runs(&spans, &evaluate_all(conditions, &batch)?)))
    }

    /// Divides row ranges into parts. The rows of a part are fetched together, and have about as
    /// many leaves (innermost list elements) as a batch.
    fn divide_parts(&self, runs: RowRuns) -> impl Iterator<Item = RowRuns> + Send + use<> {
        let rows = self.input.num_rows().max(1);
        let depth = self.output.depth();
        let leaves = if depth == 0 { 0 } else { self.input.axis_len(depth).unwrap_or(0) };
        // A part has on average 3/4 of the leaves of a batch, so that most parts become only one
        // batch.
        let size = match (leaves, self.leaves / 4 * 3) {
            (0, _) => FLAT_ROWS,
            (leaves, target) => {
                let fitting = target as u128 * rows as u128 / leaves as u128;
                usize::try_from(fitting).unwrap_or(FLAT_ROWS).clamp(1, FLAT_ROWS)
            }
        };
        let mut queue = VecDeque::from(runs);
        std::iter::from_fn(move || {
            let mut part = Vec::new();
            let mut room = size;
            while room > 0
                && let Some(run) = queue.pop_front()
            {
                let taken = run.len().min(room);
                room -= taken;
                if taken < run.len() {
                    queue.push_front(run.start + taken..run.end);
                }
                part.push(run.start..run.start + taken);
            }
            (!part.is_empty()).then_some(part)
        })
    }

    /// Returns the rows `runs` as batches. `file` is a local file, or holds the fetched data of all
    /// these rows.
    fn stream_batches(
        self: &Arc<Self>,
        file: NrtFile,
        runs: RowRuns,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let scan = Arc::clone(self);
        let queue = VecDeque::from(runs);
        stream::try_unfold(queue, move |mut queue| {
            let (scan, file) = (Arc::clone(&scan), file.clone());
            async move {
                if queue.is_empty() {
                    return Ok(None);
                }
                let next = scan.run(move |scan| {
                    let group = scan.take_group(&file, &mut queue)?;
                    Ok((scan.output.build_batch(&file, &group)?, queue))
                });
                let next = next.await?;
                scan.count();
                Ok(Some(next))
            }
        })
        .boxed()
    }

    /// Removes the row ranges of the next batch from `queue`: as many rows as the maximum numbers
    /// of rows and of leaves (innermost list elements) per batch allow, but at least one.
    fn take_group(&self, file: &NrtFile, queue: &mut VecDeque<Range<usize>>) -> Result<RowRuns> {
        let depth = self.output.depth();
        let mut group = Vec::new();
        let (mut rows, mut leaves) = (self.batch_size.max(1), self.leaves);
        while rows > 0
            && let Some(run) = queue.pop_front()
        {
            let mut taken = run.len().min(rows);
            if depth > 0 {
                taken = file.rows_within(run.start..run.start + taken, depth, leaves)?;
                let before = file.elements_before(run.start, depth)?;
                let held = file.elements_before(run.start + taken, depth)?.saturating_sub(before);
                if held > leaves && !group.is_empty() {
                    queue.push_front(run);
                    break;
                }
                leaves = leaves.saturating_sub(held);
            }
            rows -= taken;
            group.push(run.start..run.start + taken);
            if taken < run.len() {
                queue.push_front(run.start + taken..run.end);
                if depth > 0 {
                    break;
                }
            }
        }
        Ok(group)
    }

    /// Runs `f`. If reads of the file may block on the disk, `f` runs on a thread for blocking
    /// work.
    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if !self.input.may_block() {
            return f(self);
        }
        let scan = Arc::clone(self);
        run_blocking(move || f(&scan)).await
    }

    /// Adds the bytes and requests since the last call to the metrics.
    fn count(&self) {
        let ReadCounts { bytes, requests } = self.input.count_reads();
        let add = |counter: &Count, seen: &AtomicU64, now: u64| {
            let before = seen.fetch_max(now, Ordering::Relaxed);
            counter.add(usize::try_from(now.saturating_sub(before)).unwrap_or(usize::MAX));
        };
        add(&self.read.bytes, &self.counted.0, bytes);
        add(&self.read.requests, &self.counted.1, requests);
    }
}

/// Whether the conditions on columns that are constant in the whole file are true.
pub(super) fn is_file_wanted(
    now: &ScanConditions,
    constants: &HashMap<String, ScalarValue>,
) -> Result<bool> {
    if now.file.is_empty() {
        return Ok(true);
    }
    let (fields, values): (Vec<_>, Vec<_>) = list_condition_columns(&now.file)
        .into_iter()
        .filter_map(|name| {
            let value = constants.get(&name)?;
            let field = Field::new(name, value.data_type(), true);
            Some(value.to_array().map(|array| (field, array)))
        })
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = build_record_batch(schema, values, 1)?;
    Ok(evaluate_all(&now.file, &batch)?.iter().next().flatten().unwrap_or(false))
}
