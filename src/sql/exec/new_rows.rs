use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Schema;
use arrow::row::{RowConverter, SortField};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use futures::StreamExt;
use serrate_core::internal::lock_mutex;
use serrate_core::internal::to_canonical_floats;

use crate::functions::to_canonical_intervals;
use crate::sql::exec::{display_name, pass_through};

/// Bytes that a set of rows needs per row in addition to the encoded row.
const BYTES_PER_ROW: usize = 32;

/// The rows that the `NewRowsExec` nodes of a recursive query have returned; `None` before any of
/// these nodes runs.
#[derive(Debug, Default)]
pub(in crate::sql) struct SeenRows(Mutex<Option<DistinctRows>>);

#[derive(Debug)]
struct DistinctRows {
    converter: RowConverter,
    rows: HashSet<Box<[u8]>>,
    memory: MemoryReservation,
}

impl DistinctRows {
    fn new(schema: &Schema, context: &TaskContext) -> Result<Self> {
        let fields = schema.fields().iter().map(|field| SortField::new(field.data_type().clone()));
        Ok(Self {
            converter: RowConverter::new(fields.collect())?,
            rows: HashSet::new(),
            memory: MemoryConsumer::new("NewRowsExec").register(context.memory_pool()),
        })
    }

    /// Returns the rows of a batch that are not in this set and differ from all earlier rows of the
    /// batch, and adds them to the set.
    fn keep_new(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter();
        let columns = columns.map(|column| to_canonical_intervals(&to_canonical_floats(column)?));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let encoded = self.converter.convert_columns(&columns)?;
        let mut is_new = Vec::with_capacity(batch.num_rows());
        for row in &encoded {
            let row: &[u8] = row.as_ref();
            is_new.push(!self.rows.contains(row));
            if is_new.last() == Some(&true) {
                self.memory.try_grow(row.len() + BYTES_PER_ROW)?;
                self.rows.insert(row.into());
            }
        }
        Ok(filter_record_batch(batch, &BooleanArray::from(is_new))?)
    }
}

/// Drops each row of its input that equals an earlier row of the input, or a row that another node
/// with the same [`SeenRows`] has already returned. The other rows keep their order.
///
/// The node treats -0.0 and 0.0 as equal, all NaN as equal, and intervals of the same length (such
/// as 1 month and 30 days) as equal.
#[derive(Debug)]
pub(in crate::sql) struct NewRowsExec {
    input: Arc<dyn ExecutionPlan>,
    seen: Arc<SeenRows>,
    /// If true, this node runs before the other nodes with the same [`SeenRows`], and first forgets
    /// the rows that these nodes returned in an earlier run.
    starts: bool,
}

impl NewRowsExec {
    pub(in crate::sql) fn new(
        input: Arc<dyn ExecutionPlan>,
        seen: Arc<SeenRows>,
        starts: bool,
    ) -> Self {
        Self { input, seen, starts }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, Arc::clone(&self.seen), self.starts)
    }
}

display_name!(NewRowsExec);

impl ExecutionPlan for NewRowsExec {
    pass_through!("NewRowsExec", input);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        if self.starts {
            let mut seen = lock_mutex(&self.seen.0);
            *seen = Some(DistinctRows::new(&schema, &context)?);
        }
        let seen = Arc::clone(&self.seen);
        let rows = self.input.execute(partition, context)?.map(move |batch| {
            let batch = batch?;
            let mut seen = lock_mutex(&seen.0);
            match seen.as_mut() {
                Some(seen) => seen.keep_new(&batch),
                None => datafusion::common::internal_err!(
                    "internal error: the recursive part of a query runs before its first part; please report it"
                ),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
