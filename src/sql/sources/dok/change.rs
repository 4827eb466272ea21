//! Statements that change the entries of a DOK table. Each replaces the file, or leaves it unchanged.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{cast, concat, concat_batches, filter, not, prep_null_mask_filter};
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use crate::dok::DuplicateEntries;
use crate::sql::sources::output::write_unless_cancelled;
use serrate_core::internal::keyed::{self, Contents, Latest};

#[derive(Clone, Debug)]
pub(super) enum Change {
    Insert {
        op: InsertOp,
        duplicates: Option<DuplicateEntries>,
    },
    Delete {
        filters: Vec<Arc<dyn PhysicalExpr>>,
    },
    /// UPDATE with the index and new value of each changed column in `set`, and the conditions of WHERE.
    Update {
        set: Vec<(usize, Arc<dyn PhysicalExpr>)>,
        filters: Vec<Arc<dyn PhysicalExpr>>,
    },
    Truncate,
}

#[derive(Debug)]
pub(super) struct ChangeSink {
    pub(super) path: PathBuf,
    pub(super) schema: SchemaRef,
    pub(super) change: Change,
    /// The version of the file that the table caches.
    pub(super) latest: Latest,
}

impl ChangeSink {
    pub(super) fn plan(self) -> Arc<dyn ExecutionPlan> {
        let nothing = Arc::new(EmptyExec::new(Arc::clone(&self.schema)));
        Arc::new(DataSinkExec::new(nothing, Arc::new(self), None))
    }
}

impl DisplayAs for ChangeSink {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.path.file_name().unwrap_or_default().to_string_lossy();
        let list = |of: &[Arc<dyn PhysicalExpr>]| {
            of.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        match &self.change {
            Change::Insert { op, .. } => write!(f, "DokSink({op}, file={file})"),
            Change::Delete { filters } => {
                write!(f, "DokSink(Delete, file={file}, filter=[{}])", list(filters))
            }
            Change::Update { filters, .. } => {
                write!(f, "DokSink(Update, file={file}, filter=[{}])", list(filters))
            }
            Change::Truncate => write!(f, "DokSink(Truncate, file={file})"),
        }
    }
}

#[async_trait]
impl DataSink for ChangeSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        _context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let (path, schema, change) =
            (self.path.clone(), Arc::clone(&self.schema), self.change.clone());
        let latest = self.latest.clone();
        write_unless_cancelled(data, move |batches, is_cancelled| {
            // Collects all rows before the file is locked, because the query may read the same file.
            let batches = batches.collect::<Result<Vec<RecordBatch>>>()?;
            let rows = concat_batches(&nullable_schema(&schema), &batches)?;
            drop(batches);
            let (version, count) = keyed::change(&path, is_cancelled, |before| {
                apply_change(before, &change, &schema, &rows)
            })?;
            latest.set(version);
            Ok(count)
        })
        .await
    }
}

/// Returns the schema with nullable columns, so that the error of the sink for a NULL can name the row.
pub(super) fn nullable_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Returns the new entries, or `None` if nothing changes, and the number of affected rows.
fn apply_change(
    before: &Contents,
    change: &Change,
    schema: &SchemaRef,
    rows: &RecordBatch,
) -> crate::Result<(Option<Contents>, u64)> {
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    match change {
        Change::Truncate => {
            let none: Vec<ArrayRef> = before.columns()?.iter().map(|c| c.slice(0, 0)).collect();
            Ok((Some(before.rebuilt(&none, 0, None)?), count(before.len())))
        }
        Change::Insert { op: InsertOp::Overwrite, duplicates } => {
            let made = before.rebuilt(rows.columns(), 0, *duplicates)?;
            Ok((Some(made), count(rows.num_rows())))
        }
        Change::Insert { op, duplicates } => {
            if rows.num_rows() == 0 {
                return Ok((None, 0));
            }
            let duplicates = match op {
                InsertOp::Replace => Some(DuplicateEntries::Last),
                _ => *duplicates,
            };
            let columns = before.columns()?;
            let all = columns
                .iter()
                .zip(rows.columns())
                .map(|(old, new)| Ok(concat(&[old, &cast(new, old.data_type())?])?));
            let all = all.collect::<crate::Result<Vec<_>>>()?;
            Ok((Some(before.rebuilt(&all, before.len(), duplicates)?), count(rows.num_rows())))
        }
        Change::Delete { filters } => {
            let columns = before.columns()?;
            let entries = RecordBatch::try_new(Arc::clone(schema), columns)?;
            let gone = select_rows(&entries, filters)?;
            if gone.true_count() == 0 {
                return Ok((None, 0));
            }
            let keep = not(&gone)?;
            let kept = entries.columns().iter().map(|c| Ok(filter(c, &keep)?));
            let kept = kept.collect::<crate::Result<Vec<_>>>()?;
            Ok((Some(before.rebuilt(&kept, 0, None)?), count(gone.true_count())))
        }
        Change::Update { set, filters } => {
            let columns = before.columns()?;
            let entries = RecordBatch::try_new(Arc::clone(schema), columns.clone())?;
            let chosen = select_rows(&entries, filters)?;
            if chosen.true_count() == 0 || set.is_empty() {
                return Ok((None, count(chosen.true_count())));
            }
            let mut out = columns;
            for (at, value) in set {
                // The expression is evaluated only for selected rows, because it may fail for other rows.
                let new = value.evaluate_selection(&entries, &chosen)?;
                let new = new.into_array(entries.num_rows())?;
                if let Some(column) = out.get_mut(*at) {
                    let new = cast(&new, column.data_type())?;
                    *column = zip(&chosen, &new, column)?;
                }
            }
            Ok((Some(before.rebuilt(&out, 0, None)?), count(chosen.true_count())))
        }
    }
}

fn select_rows(entries: &RecordBatch, filters: &[Arc<dyn PhysicalExpr>]) -> Result<BooleanArray> {
    let mut all = BooleanArray::from(vec![true; entries.num_rows()]);
    for condition in filters {
        let mask = condition.evaluate(entries)?.into_array(entries.num_rows())?;
        let mask = mask.as_boolean_opt().ok_or_else(|| {
            DataFusionError::Internal(format!(
                "internal error: the condition {condition} is not boolean; please report it"
            ))
        })?;
        let mask = if mask.null_count() > 0 { prep_null_mask_filter(mask) } else { mask.clone() };
        all = BooleanArray::new(all.values() & mask.values(), None);
    }
    Ok(all)
}
