//! DELETE and UPDATE of tables in memory, which change all rows of a statement or none.
//!
//! DataFusion's tables evaluate a condition batch by batch, and keep the changes of earlier batches
//! if the evaluation fails (test `stock_deletes_that_fail_still_change_rows`).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::compute::{filter_record_batch, not};
use arrow::datatypes::SchemaRef;
use datafusion::common::{internal_err, plan_err};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::datasource::{MemTable, TableProvider};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use crate::sql::base::boxed_methods::boxed_method;
use crate::sql::exec::change_query::{ChangeQuery, ChangedRows, replace_values};

/// Returns the plan of an UPDATE of the columns `set` of a [`MemTable`] or, if `set` is `None`, of
/// a DELETE. Returns an error if the table lacks one of the columns.
pub(in crate::sql) fn plan_memory_change(
    table: Arc<dyn TableProvider>,
    query: ChangeQuery,
    set: Option<&[String]>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = table.schema();
    let set = set.map(|names| find_column_indices(&schema, names)).transpose()?;
    let nothing = Arc::new(EmptyExec::new(Arc::clone(&schema)));
    let sink = MemoryChange { table, schema, query, set };
    Ok(Arc::new(DataSinkExec::new(nothing, Arc::new(sink), None)))
}

pub(in crate::sql) fn find_column_indices(
    schema: &SchemaRef,
    names: &[String],
) -> Result<Vec<usize>> {
    let index_of = |name: &String| match schema.index_of(name) {
        Ok(column) => Ok(column),
        Err(_) => {
            let known: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            plan_err!("the table has no column {name}; its columns are {}", known.join(", "))
        }
    };
    names.iter().map(index_of).collect()
}

#[derive(Debug)]
struct MemoryChange {
    table: Arc<dyn TableProvider>,
    schema: SchemaRef,
    query: ChangeQuery,
    /// The columns that UPDATE sets, or `None` for DELETE.
    set: Option<Vec<usize>>,
}

impl DisplayAs for MemoryChange {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryChange({})", if self.set.is_some() { "Update" } else { "Delete" })
    }
}

impl DataSink for MemoryChange {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    boxed_method!(MemoryChange: write_all = replace_rows);
}

impl MemoryChange {
    async fn replace_rows(
        &self,
        _data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let Some(table) = self.table.downcast_ref::<MemTable>() else {
            return internal_err!("internal error: the table is not in memory; please report it");
        };
        // The locks are held until the rows are replaced, so that no other statement changes the
        // table.
        let mut partitions = Vec::with_capacity(table.batches.len());
        for partition in &table.batches {
            partitions.push(partition.write().await);
        }
        let before: Vec<RecordBatch> =
            partitions.iter().flat_map(|partition| partition.iter().cloned()).collect();
        let changed = self.query.find_rows(&before, Arc::clone(context)).await?;
        let mut start = 0usize;
        let mut after = Vec::with_capacity(partitions.len());
        for partition in &partitions {
            let mut batches = Vec::with_capacity(partition.len());
            for batch in partition.iter() {
                let end = start.saturating_add(batch.num_rows());
                let batch = self.change_batch(batch, start..end, &changed)?;
                if batch.num_rows() > 0 {
                    batches.push(batch);
                }
                start = end;
            }
            after.push(batches);
        }
        if !changed.rows.is_empty() {
            *table.sort_order.lock() = Vec::new();
        }
        for (partition, batches) in partitions.iter_mut().zip(after) {
            **partition = batches;
        }
        Ok(u64::try_from(changed.rows.len()).unwrap_or(u64::MAX))
    }
}

impl MemoryChange {
    /// Applies the change to a batch whose rows have the positions `range` in the table.
    fn change_batch(
        &self,
        batch: &RecordBatch,
        range: Range<usize>,
        changed: &ChangedRows,
    ) -> Result<RecordBatch> {
        let (mask, found) = changed.mark_rows(range);
        if found.is_empty() {
            return Ok(batch.clone());
        }
        let Some(set) = &self.set else {
            return Ok(filter_record_batch(batch, &not(&mask)?)?);
        };
        let mut columns = batch.columns().to_vec();
        for (column, values) in set.iter().zip(&changed.values) {
            if let Some(column) = columns.get_mut(*column) {
                let values = values.slice(found.start, found.len());
                *column = replace_values(column, &mask, &values)?;
            }
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}
