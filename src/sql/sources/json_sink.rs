//! The JSON writer of COPY and INSERT.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::common::file_options::json_writer::JsonWriterOptions;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::json::JsonSink;
use datafusion::datasource::file_format::write::BatchSerializer;
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::file_format::write::orchestration::spawn_writer_tasks_and_join;
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use datafusion_datasource::file_sink_config::FileSink;
use object_store::ObjectStore;

/// Returns a plan that writes NULL as `null`. DataFusion's sink omits the key of a NULL, so that a
/// column that is always NULL is lost when the file is read (test
/// `stock_null_is_still_omitted_from_json`).
pub(in crate::sql) fn write_nulls(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let Some(writer) = plan.downcast_ref::<DataSinkExec>() else { return plan };
    let Some(stock) = writer.sink().downcast_ref::<JsonSink>() else { return plan };
    let sink =
        JsonNullSink { conf: stock.config().clone(), options: stock.writer_options().clone() };
    let order = writer.sort_order().clone();
    Arc::new(DataSinkExec::new(Arc::clone(writer.input()), Arc::new(sink), order))
}

/// DataFusion's sink for JSON with a serializer that writes NULL as `null`.
struct JsonNullSink {
    conf: FileSinkConfig,
    options: JsonWriterOptions,
}

impl fmt::Debug for JsonNullSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NullSink").finish_non_exhaustive()
    }
}

impl DisplayAs for JsonNullSink {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonSink")
    }
}

#[async_trait]
impl FileSink for JsonNullSink {
    fn config(&self) -> &FileSinkConfig {
        &self.conf
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        file_stream_rx: DemuxedStreamReceiver,
        object_store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        spawn_writer_tasks_and_join(
            context,
            Arc::new(JsonLines),
            self.options.compression.into(),
            self.options.compression_level,
            object_store,
            demux_task,
            file_stream_rx,
        )
        .await
    }
}

#[async_trait]
impl DataSink for JsonNullSink {
    fn schema(&self) -> &SchemaRef {
        self.conf.output_schema()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        FileSink::write_all(self, data, context).await
    }
}

struct JsonLines;

impl BatchSerializer for JsonLines {
    fn serialize(&self, batch: RecordBatch, _initial: bool) -> Result<Bytes> {
        let mut lines = Vec::with_capacity(4096);
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        builder.build::<_, LineDelimited>(&mut lines).write(&batch)?;
        Ok(Bytes::from(lines))
    }
}
