//! A sink that passes all rows of a query to a function, which writes them to a file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::datasource::sink::DataSink;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};

use crate::config::SerrateOptions;
use crate::sql::sources::file_output::write_blocking;

/// A function that writes rows to a file or folder, on a thread for blocking work. It receives the
/// batches, the target, the schema and `max_dense_bytes`, and returns the number of rows.
type WriteRows = dyn Fn(&mut dyn Iterator<Item = Result<RecordBatch>>, &Path, &SchemaRef, u64) -> Result<u64>
    + Send
    + Sync;

/// A sink that writes the rows of a COPY to one file or folder, its target.
#[derive(Clone)]
pub(in crate::sql) struct TargetSink {
    /// Start of the line in EXPLAIN, such as `NrtSink(file=`.
    label: &'static str,
    target: PathBuf,
    schema: SchemaRef,
    write: Arc<WriteRows>,
}

impl TargetSink {
    pub(in crate::sql) fn new(
        label: &'static str,
        target: PathBuf,
        schema: SchemaRef,
        write: impl Fn(
            &mut dyn Iterator<Item = Result<RecordBatch>>,
            &Path,
            &SchemaRef,
            u64,
        ) -> Result<u64>
        + Send
        + Sync
        + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { label, target, schema, write: Arc::new(write) })
    }
}

impl fmt::Debug for TargetSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{})", self.label, self.target.display())
    }
}

impl DisplayAs for TargetSink {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

#[async_trait]
impl DataSink for TargetSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let limit = SerrateOptions::of(context.session_config().options()).max_dense_bytes;
        let Self { target, schema, write, .. } = self.clone();
        write_blocking(data, move |batches| write(batches, &target, &schema, limit)).await
    }
}
