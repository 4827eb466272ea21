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
use datafusion::physical_expr::LexRequirement;
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

/// Passes rows to a sink. An error of the write names `target`; an error of the query stays
/// unchanged.
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
        // An error about the memory limit does not name the target, which is not its cause.
        DataFusionError::ResourcesExhausted(_) => return e,
        // DataFusion reports a failed write as this internal error and drops the error of the file
        // system.
        DataFusionError::Internal(text) if text.contains("finalizing writes") => {
            "the file could not be written completely, and the disk may be full; free space on the disk, and run the statement again".to_owned()
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

/// Passes the rows of a query to the sink of another plan. Implementations convert the rows.
#[async_trait]
pub(in crate::sql) trait PassRows: fmt::Debug + Send + Sync + 'static {
    /// Passes `data`, changed or unchanged, to the sink of `plan`, and returns the number of rows.
    async fn pass_rows(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64>;
}

/// Returns a plan that uses `pass` to send the rows of `input`, in the order `order`, to the sink
/// of `plan`. `schema` is the schema of these rows. EXPLAIN and metrics show the sink of `plan`;
/// nothing else of `plan` is used.
pub(in crate::sql) fn wrap_sink(
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    order: Option<LexRequirement>,
    plan: Arc<dyn ExecutionPlan>,
    pass: impl PassRows,
) -> Result<Arc<dyn ExecutionPlan>> {
    find_sink(&plan)?;
    Ok(Arc::new(DataSinkExec::new(input, Arc::new(OuterSink { plan, schema, pass }), order)))
}

/// Returns `plan` with `pass` between its input and its sink: `pass` receives the input rows and
/// sends them to the sink. Returns `plan` unchanged if it has no sink.
pub(in crate::sql) fn wrap_own_sink(
    plan: Arc<dyn ExecutionPlan>,
    pass: impl PassRows,
) -> Arc<dyn ExecutionPlan> {
    let Some(writer) = plan.downcast_ref::<DataSinkExec>() else { return plan };
    let (input, order) = (Arc::clone(writer.input()), writer.sort_order().clone());
    let schema = Arc::clone(writer.sink().schema());
    Arc::new(DataSinkExec::new(input, Arc::new(OuterSink { plan, schema, pass }), order))
}

#[derive(Debug)]
struct OuterSink<P> {
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    pass: P,
}

impl<P: PassRows> DisplayAs for OuterSink<P> {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        find_sink(&self.plan).map_or(Ok(()), |sink| sink.fmt_as(t, f))
    }
}

#[async_trait]
impl<P: PassRows> DataSink for OuterSink<P> {
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
        self.pass.pass_rows(&self.plan, data, context).await
    }
}

/// Returns a plan that writes the same rows and names `target` in errors of the write; returns
/// `plan` itself if there is no local target.
pub(in crate::sql) fn add_target_name(
    plan: Arc<dyn ExecutionPlan>,
    target: Option<PathBuf>,
) -> Arc<dyn ExecutionPlan> {
    match target {
        Some(target) => wrap_own_sink(plan, TargetName(target)),
        None => plan,
    }
}

#[derive(Debug)]
struct TargetName(PathBuf);

#[async_trait]
impl PassRows for TargetName {
    async fn pass_rows(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        write_to_target(plan, &self.0, data, context).await
    }
}
