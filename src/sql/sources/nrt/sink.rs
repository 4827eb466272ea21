//! COPY .. TO 'x.nrt'.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::datasource::sink::DataSink;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};

use crate::io::nrt::{NrtSchema, NrtWriter, WriteOptions};
use crate::sql::sources::output::{OutputOptions, make_folder, write_blocking};
use crate::table::RaggedTable;

/// Writes batches in order of arrival as one `.nrt` file.
#[derive(Debug)]
pub(super) struct NrtSink {
    target: PathBuf,
    schema: SchemaRef,
    options: OutputOptions,
}

impl NrtSink {
    pub(super) fn new(target: PathBuf, schema: SchemaRef, options: OutputOptions) -> Self {
        Self { target, schema, options }
    }
}

impl DisplayAs for NrtSink {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NrtSink(file={})", self.target.display())
    }
}

#[async_trait]
impl DataSink for NrtSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        _context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let (target, schema) = (self.target.clone(), Arc::clone(&self.schema));
        let options =
            WriteOptions { overwrite: self.options.overwrite, plain: self.options.has("plain") };
        write_blocking(data, move |batches| {
            // Types are checked before the first row is computed.
            let empty = RaggedTable::try_from_batch(&RecordBatch::new_empty(schema))?;
            make_folder(&target)?;
            let mut writer = NrtWriter::create(&target, &NrtSchema::of_table(&empty), &options)?;
            for batch in batches {
                writer.write(&RaggedTable::try_from_batch(&batch?)?)?;
            }
            let rows = writer.num_rows();
            writer.finish()?;
            Ok(rows)
        })
        .await
    }
}
