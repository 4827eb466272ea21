//! [`NestExec`]: the plan node of `ragged_nest('query', 'key', ..)`, which groups rows into lists.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, make_comparator};
use arrow::compute::{SortOptions, concat_batches, partition};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, col};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr,
};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use serrate_core::internal::{build_record_batch, to_canonical_floats, trim_extent};

use crate::config::SerrateOptions;
use crate::sql::base::blocking::run_blocking;
use crate::sql::exec::cut_batches::{BatchSize, cut_batches, find_deepest_axis};
use crate::sql::exec::one_input;
use crate::table::{NestOptions, RaggedTable, UnsortedRows};

/// Groups the rows of a long table (one row per innermost element) into ragged rows, whose columns
/// are lists. Sorted input is streamed, with at most one ragged row and one batch in memory; other
/// input is first sorted, by a stable sort.
#[derive(Debug)]
pub(crate) struct NestExec {
    input: Arc<dyn ExecutionPlan>,
    keys: Vec<String>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

pub(in crate::sql) fn nest_batch(
    long: &RecordBatch,
    keys: &[String],
) -> crate::Result<RaggedTable> {
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    RaggedTable::nest(long, &keys, &NestOptions { unsorted: UnsortedRows::Sort })
}

impl NestExec {
    /// Creates a node that groups the rows of `input` by the columns `keys`, and returns the
    /// columns of `schema`. A key that `input` lacks is an error.
    pub(crate) fn try_new(
        input: Arc<dyn ExecutionPlan>,
        keys: Vec<String>,
        schema: SchemaRef,
    ) -> Result<Self> {
        for key in &keys {
            input.schema().index_of(key)?;
        }
        let sorted = is_sorted(&input, &keys)?;
        let emission = if sorted { EmissionType::Incremental } else { EmissionType::Final };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            emission,
            input.boundedness(),
        );
        Ok(Self {
            input,
            keys,
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            input,
            keys: self.keys.clone(),
            schema: Arc::clone(&self.schema),
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

/// Whether the plan `input` declares that its rows are sorted by the columns `keys` in ascending
/// order, with NULL first or last.
fn is_sorted(input: &Arc<dyn ExecutionPlan>, keys: &[String]) -> Result<bool> {
    let schema = input.schema();
    let of = |nulls_first: bool| {
        keys.iter()
            .map(|key| {
                let options = SortOptions { descending: false, nulls_first };
                Ok(PhysicalSortExpr::new(col(key, &schema)?, options))
            })
            .collect::<Result<Vec<_>>>()
    };
    let known = input.equivalence_properties();
    Ok(known.ordering_satisfy(of(true)?)?
        || known.ordering_satisfy(of(false)?)?
        || begins_with_keys(input, keys))
}

/// The function by which ORDER BY sorts floats: -0.0 is 0.0 in it, and all NaN are one.
const FLOAT_KEY: &str = "float_key";

/// Whether the order of `input` begins with the keys, or with [`FLOAT_KEY`] of them, in ascending
/// order, with NULL first for all of them or last for all.
fn begins_with_keys(input: &Arc<dyn ExecutionPlan>, keys: &[String]) -> bool {
    let Some(order) = input.output_ordering() else { return false };
    let nulls_first = order.first().options.nulls_first;
    let options = SortOptions { descending: false, nulls_first };
    let is_by = |(by, key): (&PhysicalSortExpr, &String)| {
        by.options == options && find_key_column(&by.expr) == Some(key.as_str())
    };
    order.len() >= keys.len() && order.iter().zip(keys).all(is_by)
}

fn find_key_column(by: &Arc<dyn PhysicalExpr>) -> Option<&str> {
    let column = match by.downcast_ref::<ScalarFunctionExpr>() {
        Some(call) if call.name() == FLOAT_KEY => call.args().first()?,
        _ => by,
    };
    column.downcast_ref::<Column>().map(Column::name)
}

impl DisplayAs for NestExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sorted = is_sorted(&self.input, &self.keys).unwrap_or(false);
        write!(f, "NestExec: keys=[{}], sorted={sorted}", self.keys.join(", "))
    }
}

impl ExecutionPlan for NestExec {
    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input_distribution_requirements().into_per_child()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    one_input!("NestExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = self.input.output_partitioning().partition_count();
        if partition != 0 || partitions != 1 {
            return internal_err!(
                "internal error: NestExec has 1 partition and needs an input with 1, but \
                 partition {partition} was requested and the input has {partitions}; please report it"
            );
        }
        let settings = SerrateOptions::of(context.session_config().options());
        let long = self.input.execute(0, Arc::clone(&context))?;
        let input = self.input.schema();
        // Drops the schema metadata, which may differ between batches of a query.
        let input: SchemaRef = Arc::new(Schema::new(input.fields().clone()));
        let held = MemoryConsumer::new("ragged_nest").register(context.memory_pool());
        let state = NestInput {
            key: input.index_of(self.keys.first().map_or("", String::as_str))?,
            keys: self.keys.clone(),
            long: Some(long),
            pending: Vec::new(),
            held,
            streams: is_sorted(&self.input, &self.keys)?,
            size: BatchSize {
                rows: context.session_config().batch_size(),
                leaves: settings.leaf_batch_size,
            },
            input,
        };
        let (schema, size) = (Arc::clone(&self.schema), state.size);
        let tables = stream::try_unfold(state, NestInput::next);
        let given = Arc::clone(&schema);
        let out = tables
            .map_ok(move |table| {
                let rows = 0..table.num_rows();
                let names = given.fields().iter().map(|f| f.name().as_str());
                let columns: Vec<usize> = names
                    .filter_map(|n| table.columns().iter().position(|c| c.name() == n))
                    .collect();
                let schema = Arc::clone(&given);
                let axis = find_deepest_axis(&table, &columns);
                stream::iter(cut_batches(Arc::new(table), columns, schema, axis, rows, size))
            })
            .try_flatten();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let counted = out.inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Input rows that are not nested yet, and the stream of further rows.
struct NestInput {
    long: Option<SendableRecordBatchStream>,
    input: SchemaRef,
    keys: Vec<String>,
    key: usize,
    pending: Vec<RecordBatch>,
    held: MemoryReservation,
    /// Whether nested rows are returned before the input ends. The input must then be sorted by the
    /// keys.
    streams: bool,
    size: BatchSize,
}

impl NestInput {
    async fn next(mut self) -> Result<Option<(RaggedTable, Self)>> {
        loop {
            let next = match &mut self.long {
                Some(long) => long.next().await.transpose()?,
                None if self.pending.is_empty() => return Ok(None),
                None => None,
            };
            let whole = match next {
                Some(batch) if batch.num_rows() == 0 => continue,
                Some(batch) => {
                    self.held.try_grow(batch.get_array_memory_size())?;
                    self.pending.push(batch);
                    if !self.streams || self.count() < self.size.leaves || !self.has_new_key()? {
                        continue;
                    }
                    self.take_complete()?
                }
                // Rows whose key is NULL are nested alone if they come last, because `nest_batch`
                // would put them first.
                None if self.ends_in_null() => {
                    self.long = None;
                    self.take_complete()?
                }
                None => {
                    self.long = None;
                    let all = concat_batches(&self.input, &std::mem::take(&mut self.pending))?;
                    self.held.free();
                    all
                }
            };
            let keys = self.keys.clone();
            let table = run_blocking(move || nest_batch(&whole, &keys)).await?;
            return Ok(Some((table, self)));
        }
    }

    fn count(&self) -> usize {
        self.pending.iter().map(RecordBatch::num_rows).sum()
    }

    /// Whether the last pending row differs from the first pending row in the first key column.
    fn has_new_key(&self) -> Result<bool> {
        let (Some(first), Some(last)) = (self.pending.first(), self.pending.last()) else {
            return Ok(false);
        };
        let options = SortOptions::default();
        let [first_key, last_key] = [first, last].map(|b| to_canonical_floats(b.column(self.key)));
        let compare = make_comparator(&first_key?, &last_key?, options)?;
        Ok(compare(0, last.num_rows().saturating_sub(1)) != Ordering::Equal)
    }

    /// Whether the input is sorted and, in the first key column, the pending rows begin with a
    /// value and end with NULL.
    fn ends_in_null(&self) -> bool {
        let (Some(first), Some(last)) = (self.pending.first(), self.pending.last()) else {
            return false;
        };
        let [first_key, last_key] = [first, last].map(|batch| batch.column(self.key));
        self.streams && first_key.is_valid(0) && last_key.is_null(last.num_rows().saturating_sub(1))
    }

    /// Removes and returns the pending rows before the last value of the first key column. The rows
    /// with this value stay, because the next batch may have more of them.
    fn take_complete(&mut self) -> Result<RecordBatch> {
        let all = concat_batches(&self.input, &std::mem::take(&mut self.pending))?;
        let runs = partition(&[to_canonical_floats(all.column(self.key))?])?.ranges();
        let cut = runs.last().map_or(0, |r| r.start);
        let rest = all.slice(cut, all.num_rows() - cut);
        // Copies the rows, because a slice would keep the whole batch in memory.
        let own = rest.columns().iter().map(trim_extent).collect();
        let rest = build_record_batch(rest.schema(), own, rest.num_rows())?;
        self.held.try_resize(rest.get_array_memory_size())?;
        self.pending.push(rest);
        Ok(all.slice(0, cut))
    }
}
