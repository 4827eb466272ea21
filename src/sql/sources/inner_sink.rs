//! Finds the sink in the plan of one of DataFusion's writers. Serrate's sinks convert rows and pass
//! them to this sink, and name the target in its errors.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::common::{exec_datafusion_err, internal_err};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::TryStreamExt;

pub(in crate::sql) fn find_sink(plan: &Arc<dyn ExecutionPlan>) -> Result<&dyn DataSink> {
    match plan.downcast_ref::<DataSinkExec>() {
        Some(plan) => Ok(plan.sink()),
        None => internal_err!(
            "internal error: {} has no sink, so it cannot be written; please report it",
            plan.name()
        ),
    }
}

/// Passes rows to the sink of a plan. An error of the write names the file or folder `target`; an
/// error of the query stays unchanged.
pub(in crate::sql) async fn write_to_target(
    plan: &Arc<dyn ExecutionPlan>,
    target: &Path,
    data: SendableRecordBatchStream,
    context: &Arc<TaskContext>,
) -> Result<u64> {
    let (data, of_query) = watch_errors(data);
    let written = find_sink(plan)?.write_all(data, context).await;
    written.map_err(|e| match of_query.load(Ordering::Relaxed) {
        true => e,
        false => name_target(target, e),
    })
}

/// Returns the same stream, and a flag that is set if the query fails, but not if the write fails.
fn watch_errors(data: SendableRecordBatchStream) -> (SendableRecordBatchStream, Arc<AtomicBool>) {
    let failed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&failed);
    let schema = data.schema();
    let data = data.inspect_err(move |_| seen.store(true, Ordering::Relaxed));
    (Box::pin(RecordBatchStreamAdapter::new(schema, data)), failed)
}

fn name_target(target: &Path, e: DataFusionError) -> DataFusionError {
    let said = match e.find_root() {
        // The memory limit does not depend on the target.
        DataFusionError::ResourcesExhausted(_) => return e,
        // DataFusion reports a failed write as this internal error and drops the error of the file system.
        DataFusionError::Internal(text) if text.contains("finalizing writes") => {
            "the file could not be written to the end; the disk may be full".to_owned()
        }
        DataFusionError::Execution(text) => {
            let text = text.strip_prefix("Error writing to object store: ").unwrap_or(text);
            text.strip_prefix("Generic LocalFileSystem error: ").unwrap_or(text).to_owned()
        }
        root => {
            let mut cause: &dyn std::error::Error = root;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            cause.to_string()
        }
    };
    exec_datafusion_err!("{}: {said}", target.display())
}

/// Returns a plan that writes the same rows and names `target` in errors of the write; returns
/// `plan` itself if there is no local target.
pub(in crate::sql) fn add_target_name(
    plan: Arc<dyn ExecutionPlan>,
    target: Option<PathBuf>,
) -> Arc<dyn ExecutionPlan> {
    let (Some(target), Some(writer)) = (target, plan.downcast_ref::<DataSinkExec>()) else {
        return plan;
    };
    let (input, order) = (Arc::clone(writer.input()), writer.sort_order().clone());
    let schema = Arc::clone(writer.sink().schema());
    let sink = NamedTargetSink { plan, schema, target };
    Arc::new(DataSinkExec::new(input, Arc::new(sink), order))
}

/// Passes rows to the sink of `plan`, and names the target in errors of the write.
#[derive(Debug)]
struct NamedTargetSink {
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    target: PathBuf,
}

impl DisplayAs for NamedTargetSink {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        find_sink(&self.plan).map_or(Ok(()), |sink| sink.fmt_as(t, f))
    }
}

#[async_trait]
impl DataSink for NamedTargetSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn metrics(&self) -> Option<MetricsSet> {
        find_sink(&self.plan).ok()?.metrics()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        write_to_target(&self.plan, &self.target, data, context).await
    }
}
