//! [`ClusterExec`]: runs a plan that is divided among workers, and runs the statement once more if
//! a worker is lost before the first row.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::future::BoxFuture;
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::client::Cluster;
use super::losses::{is_lost, make_loss};
use super::settings::SentSettings;
use crate::sql::{display_name, pass_through, replace_config};

/// A function that plans a statement once more. The new plan has one partition with all rows of the
/// statement.
pub(super) type PlanAgain =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Arc<dyn ExecutionPlan>>> + Send + Sync>;

/// Runs a divided plan, and sends the settings of the session to the workers. If a worker is lost
/// before the first row and `again` is `Some`, runs the plan that `again` returns. In all other
/// cases, the loss of a worker is an error that names the worker.
pub(super) struct ClusterExec {
    input: Arc<dyn ExecutionPlan>,
    settings: String,
    cluster: Cluster,
    again: Option<PlanAgain>,
}

impl ClusterExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, settings: String, cluster: Cluster) -> Self {
        Self { input, settings, cluster, again: None }
    }

    /// Makes this node run the plan that `again` returns if a worker is lost before the first row.
    /// Ignores `again` if the divided plan has several partitions: each partition would run the
    /// whole statement, and return all of its rows.
    pub(super) fn repeat_with(self, again: Option<PlanAgain>) -> Self {
        let partitions = self.input.output_partitioning().partition_count();
        Self { again: again.filter(|_| partitions == 1), ..self }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            input,
            settings: self.settings.clone(),
            cluster: self.cluster.clone(),
            again: self.again.clone(),
        }
    }
}

impl fmt::Debug for ClusterExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterExec").field("input", &self.input).finish_non_exhaustive()
    }
}

display_name!(ClusterExec);

impl ExecutionPlan for ClusterExec {
    pass_through!("ClusterExec", input);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut config = context.session_config().clone();
        let options = config.options_mut();
        if let Some(sent) = options.extensions.get_mut::<SentSettings>() {
            sent.settings.clone_from(&self.settings);
        }
        let input = self.input.execute(partition, replace_config(&context, config))?;
        let (schema, cluster) = (self.schema(), self.cluster.clone());
        let Some(again) = self.again.clone() else {
            let batches = name_lost_workers(input, cluster);
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)));
        };
        let batches = async move {
            let mut input = input;
            match input.next().await {
                Some(Err(e)) if is_lost(&e) => {
                    drop(input);
                    let loss = describe_loss(&e, &cluster).await;
                    cluster.add_note(format!("{loss}; the statement runs again"));
                    again().await?.execute(0, context)
                }
                first => {
                    let batches = stream::iter(first).chain(input);
                    let batches = name_lost_workers(batches, cluster);
                    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)) as _)
                }
            }
        };
        let batches = stream::once(batches).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

/// Replaces errors in `batches` that mean the loss of a worker by errors that name the lost
/// workers. Other errors stay unchanged.
fn name_lost_workers(
    batches: impl Stream<Item = Result<RecordBatch>>,
    cluster: Cluster,
) -> impl Stream<Item = Result<RecordBatch>> {
    batches.then(move |batch| {
        let cluster = cluster.clone();
        async move {
            match batch {
                Err(e) if is_lost(&e) => Err(explain_loss(&e, &cluster).await),
                batch => batch,
            }
        }
    })
}

async fn explain_loss(error: &DataFusionError, cluster: &Cluster) -> DataFusionError {
    make_loss(format!("{}; run the statement again", describe_loss(error, cluster).await))
}

/// Checks all workers after `error`, the loss of a worker, and returns a clause for a message:
/// which workers are lost or, if all of them can be used again, that a connection was lost.
async fn describe_loss(error: &DataFusionError, cluster: &Cluster) -> String {
    cluster.recheck_health().await;
    let text = error.strip_backtrace();
    let cause = text.lines().next().unwrap_or_default();
    match cluster.list_faults() {
        faults if faults.is_empty() => {
            format!("the connection to a worker was lost while the statement ran ({cause})")
        }
        faults => {
            format!("a worker was lost while the statement ran ({})", faults.join(", "))
        }
    }
}
