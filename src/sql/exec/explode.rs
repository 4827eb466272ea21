//! [`ExplodeExec`]: the plan node of `ragged_explode('query')`, which turns list elements into
//! rows.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use serrate_core::internal::build_record_batch;

use crate::error::Error;
use crate::sql::exec::one_input;
use crate::table::{Column, LongOptions, RaggedTable};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExplodeOptions {
    /// If true, an empty list becomes one row, with NULL in the columns of its elements. If false,
    /// it becomes no row.
    pub keep_empty: bool,
    /// Whether to add columns `axis1`, `axis2`, .. with the index of each element in its list.
    pub positions: bool,
}

/// Returns one row for each innermost list element of each input row.
#[derive(Debug)]
pub(crate) struct ExplodeExec {
    input: Arc<dyn ExecutionPlan>,
    options: ExplodeOptions,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

pub(in crate::sql) fn explode_batch(
    batch: &RecordBatch,
    options: ExplodeOptions,
) -> crate::Result<RecordBatch> {
    let mut table = RaggedTable::try_from_batch(batch)?;
    if options.positions {
        let mut columns = table.columns().to_vec();
        for axis in 1..table.ndim() {
            let name = format!("axis{axis}");
            if columns.iter().any(|c| c.name() == name) {
                return Err(Error::invalid(format!(
                    "ragged_explode: the query has a column {name:?}, but the option positions adds \
                     one of this name; rename the column of the query"
                )));
            }
            let layout = table.layout(axis)?;
            let lists = (0..layout.lists()).map(|list| layout.length(list) as u64);
            let positions = lists.flat_map(|n| (0..n).map(i64::try_from)).collect::<Result<_, _>>();
            let positions: Vec<i64> = positions.map_err(|e| {
                Error::invalid(format!("ragged_explode: a list is too long for positions in 64 bits; leave the option positions out: {e}"))
            })?;
            columns.push(Column::new(name, axis, Arc::new(Int64Array::from(positions))));
        }
        table = table.with_columns(columns)?;
    }
    table.to_long(&LongOptions { keep_empty: options.keep_empty })
}

impl ExplodeExec {
    pub(crate) fn new(
        input: Arc<dyn ExecutionPlan>,
        options: ExplodeOptions,
        schema: SchemaRef,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            datafusion::physical_plan::Partitioning::UnknownPartitioning(
                input.output_partitioning().partition_count(),
            ),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self {
            input,
            options,
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, self.options, Arc::clone(&self.schema))
    }
}

impl DisplayAs for ExplodeExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExplodeExec")?;
        if self.options.keep_empty {
            write!(f, ": keep_empty")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for ExplodeExec {
    fn maintains_input_order(&self) -> Vec<bool> {
        // Rows stay in order, but the elements of a list column by which the input is sorted are
        // not sorted.
        vec![false]
    }

    one_input!("ExplodeExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (options, schema) = (self.options, Arc::clone(&self.schema));
        let rows = context.session_config().batch_size().max(1);
        let given = Arc::clone(&schema);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let memory = MemoryConsumer::new("ragged_explode").register(context.memory_pool());
        let batches = self
            .input
            .execute(partition, context)?
            .map(move |batch| -> Result<_> {
                let long = explode_batch(&batch?, options)?;
                let columns: Vec<ArrayRef> = given
                    .fields()
                    .iter()
                    .map(|field| {
                        let column = long.column(long.schema().index_of(field.name())?);
                        match column.data_type() == field.data_type() {
                            true => Ok(Arc::clone(column)),
                            false => Ok(cast(column, field.data_type())?),
                        }
                    })
                    .collect::<Result<_>>()?;
                let count = long.num_rows();
                let schema = Arc::clone(&given);
                let long = build_record_batch(schema, columns, count)?;
                metrics.record_output(count);
                // `long` has the exploded rows. Its slices share its memory, which stays reserved
                // until the last slice is returned.
                let held = memory.new_empty();
                held.try_grow(long.get_array_memory_size())?;
                Ok(stream::iter((0..count).step_by(rows).map(move |at| {
                    let _held = &held;
                    Ok::<_, DataFusionError>(long.slice(at, rows.min(count - at)))
                })))
            })
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
