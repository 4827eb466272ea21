//! Statements that change the entries of a DOK table (a sparse tensor or a dictionary). Each
//! replaces the file of the table, or leaves it unchanged.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{cast, concat, filter, not};
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use tokio::runtime::Handle;

use crate::dok::DuplicateEntries;
use crate::sql::exec::change_query::{ChangeQuery, ChangedRows, replace_values};
use crate::sql::sources::file_output::{collect_rows, write_unless_cancelled};
use serrate_core::internal::keyed::{self, KeyedContents, LatestVersion};

#[derive(Clone, Debug)]
pub(super) enum DokChange {
    Insert {
        op: InsertOp,
        duplicates: Option<DuplicateEntries>,
    },
    Delete {
        query: ChangeQuery,
    },
    /// UPDATE of the columns `set`.
    Update {
        set: Vec<usize>,
        query: ChangeQuery,
    },
    Truncate,
}

#[derive(Debug)]
pub(super) struct ChangeSink {
    pub(super) path: PathBuf,
    pub(super) schema: SchemaRef,
    pub(super) change: DokChange,
    /// The version of the file that the table caches. The sink sets it to the version that it
    /// writes.
    pub(super) latest: LatestVersion,
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
        match &self.change {
            DokChange::Insert { op, .. } => write!(f, "DokSink({op}, file={file})"),
            DokChange::Delete { .. } => write!(f, "DokSink(Delete, file={file})"),
            DokChange::Update { .. } => write!(f, "DokSink(Update, file={file})"),
            DokChange::Truncate => write!(f, "DokSink(Truncate, file={file})"),
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
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let (path, schema, change) =
            (self.path.clone(), Arc::clone(&self.schema), self.change.clone());
        let latest = self.latest.clone();
        let (runtime, context) = (Handle::current(), Arc::clone(context));
        write_unless_cancelled(data, move |batches, is_cancelled| {
            // Collects all rows before the file is locked, because the query may read the same
            // file.
            let rows =
                collect_rows(batches, &make_nullable_schema(&schema), "the change of a DOK file")?;
            let (version, count) = keyed::change_file(&path, is_cancelled, |before| {
                // `find` may block on the query, because this closure runs on a thread for blocking
                // work. The file stays locked until the closure returns.
                let find = |query: &ChangeQuery, entries: &RecordBatch| {
                    let entries = std::slice::from_ref(entries);
                    Ok(runtime.block_on(query.find_rows(entries, Arc::clone(&context)))?)
                };
                apply_change(before, &change, &schema, &rows, &find)
            })?;
            latest.set(version);
            Ok(count)
        })
        .await
    }
}

/// Returns the schema with nullable columns, so that the error of the sink for a NULL can name the
/// row.
pub(super) fn make_nullable_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Returns the new entries, or `None` if nothing changes, and the number of affected rows.
fn apply_change(
    before: &KeyedContents,
    change: &DokChange,
    schema: &SchemaRef,
    rows: &RecordBatch,
    find: &dyn Fn(&ChangeQuery, &RecordBatch) -> crate::Result<ChangedRows>,
) -> crate::Result<(Option<KeyedContents>, u64)> {
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    match change {
        DokChange::Truncate => {
            let none: Vec<ArrayRef> = before.columns()?.iter().map(|c| c.slice(0, 0)).collect();
            Ok((Some(before.rebuild_entries(&none, 0, None)?), count(before.len())))
        }
        DokChange::Insert { op: InsertOp::Overwrite, duplicates } => {
            let made = before.rebuild_entries(rows.columns(), 0, *duplicates)?;
            Ok((Some(made), count(rows.num_rows())))
        }
        DokChange::Insert { op, duplicates } => {
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
            Ok((
                Some(before.rebuild_entries(&all, before.len(), duplicates)?),
                count(rows.num_rows()),
            ))
        }
        DokChange::Delete { query } => {
            let entries = RecordBatch::try_new(Arc::clone(schema), before.columns()?)?;
            let deleted = find(query, &entries)?;
            if deleted.rows.is_empty() {
                return Ok((None, 0));
            }
            let keep = not(&deleted.mark_rows(0..entries.num_rows()).0)?;
            let kept = entries.columns().iter().map(|c| Ok(filter(c, &keep)?));
            let kept = kept.collect::<crate::Result<Vec<_>>>()?;
            Ok((Some(before.rebuild_entries(&kept, 0, None)?), count(deleted.rows.len())))
        }
        DokChange::Update { set, query } => {
            let columns = before.columns()?;
            let entries = RecordBatch::try_new(Arc::clone(schema), columns.clone())?;
            let changed = find(query, &entries)?;
            if changed.rows.is_empty() || set.is_empty() {
                return Ok((None, count(changed.rows.len())));
            }
            let (chosen, _) = changed.mark_rows(0..entries.num_rows());
            let mut out = columns;
            for (at, values) in set.iter().zip(&changed.values) {
                if let Some(column) = out.get_mut(*at) {
                    *column = replace_values(column, &chosen, values)?;
                }
            }
            Ok((Some(before.rebuild_entries(&out, 0, None)?), count(changed.rows.len())))
        }
    }
}
