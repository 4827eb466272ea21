//! The rows that DELETE and UPDATE change, found by a query over the numbered rows of the table.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, RecordBatch, UInt64Array,
};
use arrow::compute::kernels::merge::merge;
use arrow::compute::{concat_batches, filter, not, sort_to_indices, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, collect};
use futures::TryStreamExt;
use serrate_core::internal::cast_strictly;
use serrate_core::internal::lock_mutex;

/// Name of the column with the position of each row in the table that DELETE or UPDATE changes.
pub(in crate::sql) const ROW: &str = "__serrate_row";

/// The rows of a table with their positions, as the source of a query. The rows are set just before
/// the query runs, while a lock keeps other statements from changing the table.
#[derive(Debug)]
pub(in crate::sql) struct NumberedRows {
    schema: SchemaRef,
    batches: Mutex<Vec<RecordBatch>>,
}

impl NumberedRows {
    pub(in crate::sql) fn new(table: &SchemaRef) -> Arc<Self> {
        let row = Arc::new(Field::new(ROW, DataType::UInt64, false));
        let fields = table.fields().iter().cloned().chain([row]).collect::<Vec<_>>();
        let schema = Arc::new(Schema::new_with_metadata(fields, table.metadata().clone()));
        Arc::new(Self { schema, batches: Mutex::default() })
    }

    pub(in crate::sql) fn to_table(self: &Arc<Self>) -> Result<StreamingTable> {
        let rows = Arc::clone(self) as Arc<dyn PartitionStream>;
        StreamingTable::try_new(Arc::clone(&self.schema), vec![rows])
    }

    fn set_rows(&self, batches: &[RecordBatch]) -> Result<()> {
        let mut numbered = Vec::with_capacity(batches.len());
        let mut next = 0u64;
        for batch in batches {
            let end = next.saturating_add(u64::try_from(batch.num_rows()).unwrap_or(u64::MAX));
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(UInt64Array::from_iter_values(next..end)));
            numbered.push(RecordBatch::try_new(Arc::clone(&self.schema), columns)?);
            next = end;
        }
        *lock_mutex(&self.batches) = numbered;
        Ok(())
    }
}

impl PartitionStream for NumberedRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        // The batches are cloned, because a plan with a correlated subquery reads the rows more
        // than once.
        let batches = lock_mutex(&self.batches).clone();
        let schema = Arc::clone(&self.schema);
        let rows = futures::stream::once(async move {
            MemoryStream::try_new(batches, Arc::clone(&schema), None)
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows.try_flatten()))
    }
}

/// A query for the rows to change, which runs once. Its columns are [`ROW`], then the new values of
/// UPDATE.
#[derive(Clone, Debug)]
pub(in crate::sql) struct ChangeQuery {
    pub(in crate::sql) plan: Arc<dyn ExecutionPlan>,
    pub(in crate::sql) rows: Arc<NumberedRows>,
}

pub(in crate::sql) struct ChangedRows {
    /// The positions of the rows in the table, in ascending order.
    pub(in crate::sql) rows: UInt64Array,
    /// For each column that UPDATE sets, the new values of these rows.
    pub(in crate::sql) values: Vec<ArrayRef>,
}

impl ChangedRows {
    /// Returns a mask over the table rows in `range`, which is true for each row that changes, and
    /// the range of indices in `self.rows` that hold the positions of these changed rows.
    pub(in crate::sql) fn mark_rows(&self, range: Range<usize>) -> (BooleanArray, Range<usize>) {
        let before = |position: usize| {
            let position = u64::try_from(position).unwrap_or(u64::MAX);
            self.rows.values().partition_point(|row| *row < position)
        };
        let found = before(range.start)..before(range.end);
        let mut bits = BooleanBufferBuilder::new(range.len());
        bits.append_n(range.len(), false);
        for row in self.rows.values().get(found.clone()).unwrap_or_default() {
            // A position within `range` fits a `usize`, so the fallback is never used.
            let row = usize::try_from(*row).unwrap_or(range.start);
            bits.set_bit(row.saturating_sub(range.start), true);
        }
        (BooleanArray::new(bits.finish(), None), found)
    }
}

/// Returns a copy of `column` in which each value that `mask` selects is replaced by the next value
/// of `new`.
pub(in crate::sql) fn replace_values(
    column: &ArrayRef,
    mask: &BooleanArray,
    new: &ArrayRef,
) -> Result<ArrayRef> {
    let new = cast_strictly(new, column.data_type())?;
    let kept = filter(column, &not(mask)?)?;
    Ok(merge(mask, &new, &kept)?)
}

impl ChangeQuery {
    pub(in crate::sql) async fn find_rows(
        &self,
        table: &[RecordBatch],
        context: Arc<TaskContext>,
    ) -> Result<ChangedRows> {
        self.rows.set_rows(table)?;
        let found = collect(Arc::clone(&self.plan), context).await;
        self.rows.set_rows(&[])?;
        let found = found?;
        let found = concat_batches(&self.plan.schema(), &found)?;
        let Some((rows, values)) = found.columns().split_first() else {
            return internal_err!(
                "internal error: the query for changed rows has no columns; please report it"
            );
        };
        let order = sort_to_indices(rows, None, None)?;
        let rows = take(rows, &order, None)?.as_primitive::<UInt64Type>().clone();
        // A position that appears twice would mean that the query matched a row twice.
        if rows.null_count() > 0 || !rows.values().is_sorted_by(|a, b| a < b) {
            return internal_err!(
                "internal error: the query for changed rows returns a row twice; please report it"
            );
        }
        let values = values.iter().map(|column| take(column, &order, None));
        Ok(ChangedRows { rows, values: values.collect::<std::result::Result<_, _>>()? })
    }
}
