//! Plan nodes of queries that use workers.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{FutureExt, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::losses::keep_loss;
use crate::sql::{SourceOrderExec, display_name, one_input};
use serrate_core::internal::find_panic_text;

/// Implements the methods of a plan node that returns the rows of the node in its field `inner`.
macro_rules! run_inner {
    ($name:literal) => {
        one_input!($name, inner);

        fn fetch(&self) -> Option<usize> {
            self.inner.fetch()
        }

        fn execute(
            &self,
            partition: usize,
            context: Arc<TaskContext>,
        ) -> Result<SendableRecordBatchStream> {
            self.inner.execute(partition, context)
        }
    };
}

/// Returns the rows of all partitions of a task as one partition, because a connection must carry
/// only one. The receiver reads partitions one after another: if a connection carried two, the rows
/// of the second could fill its buffer and block the first.
#[derive(Debug)]
pub(super) struct TaskRowsExec {
    input: Arc<dyn ExecutionPlan>,
    inner: SourceOrderExec,
}

impl TaskRowsExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, fetch: Option<usize>) -> Self {
        Self { inner: SourceOrderExec::new(Arc::clone(&input), fetch), input }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, self.inner.fetch())
    }
}

impl DisplayAs for TaskRowsExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskRowsExec")?;
        match self.inner.fetch() {
            Some(fetch) => write!(f, ": fetch={fetch}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for TaskRowsExec {
    run_inner!("TaskRowsExec");
}

/// Merges the sorted partitions of a task into one sorted partition, because a connection must
/// carry only one (see [`TaskRowsExec`]).
#[derive(Debug)]
pub(super) struct TaskMergeExec {
    input: Arc<dyn ExecutionPlan>,
    inner: SortPreservingMergeExec,
}

impl TaskMergeExec {
    pub(super) fn new(
        order: LexOrdering,
        input: Arc<dyn ExecutionPlan>,
        fetch: Option<usize>,
    ) -> Self {
        let inner = SortPreservingMergeExec::new(order, Arc::clone(&input)).with_fetch(fetch);
        Self { input, inner }
    }

    pub(super) fn sort_order(&self) -> &LexOrdering {
        self.inner.expr()
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(self.inner.expr().clone(), input, self.inner.fetch())
    }
}

impl DisplayAs for TaskMergeExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskMergeExec: [{}]", self.inner.expr())?;
        match self.inner.fetch() {
            Some(fetch) => write!(f, ", fetch={fetch}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for TaskMergeExec {
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    run_inner!("TaskMergeExec");
}

/// Returns the rows of all tasks, in the order of the tasks. Its child is a
/// [`CoalescePartitionsExec`], only because datafusion-distributed divides a plan at such a node.
/// The child never runs, because it would return rows in any order. Instead, this node reads the
/// partitions below the child one after another.
#[derive(Debug)]
pub(super) struct RowsInOrderExec {
    input: Arc<dyn ExecutionPlan>,
    inner: SourceOrderExec,
}

impl RowsInOrderExec {
    /// Returns a node that reads the partitions of `input` one after another, at most `fetch` rows.
    pub(super) fn collect_partitions(input: Arc<dyn ExecutionPlan>, fetch: Option<usize>) -> Self {
        Self::new(Arc::new(CoalescePartitionsExec::new(input)), fetch)
    }

    fn new(input: Arc<dyn ExecutionPlan>, fetch: Option<usize>) -> Self {
        let below = match input.downcast_ref::<CoalescePartitionsExec>() {
            Some(mark) => Arc::clone(mark.input()),
            None => Arc::clone(&input),
        };
        Self { input, inner: SourceOrderExec::new(below, fetch) }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, self.inner.fetch())
    }
}

display_name!(RowsInOrderExec);

impl ExecutionPlan for RowsInOrderExec {
    run_inner!("RowsInOrderExec");
}

/// Runs its input, a part of a plan, on the runtime for queries, so that the runtime of the
/// connections stays free to answer health checks. A panic of the input becomes an error;
/// otherwise, the stream would end as if all rows were sent. An error about the loss of another
/// worker is sent in the form that the session recognizes ([`keep_loss`]).
#[derive(Debug)]
pub(super) struct GuardExec {
    inner: Arc<dyn ExecutionPlan>,
    runtime: Handle,
}

impl GuardExec {
    pub(super) fn new(inner: Arc<dyn ExecutionPlan>, runtime: Handle) -> Self {
        Self { inner, runtime }
    }
}

fn panic_error(panic: &(dyn Any + Send)) -> DataFusionError {
    exec_datafusion_err!(
        "a worker panicked: {}; this is a fault of Serrate, please report it",
        find_panic_text(panic)
    )
}

impl DisplayAs for GuardExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_as(t, f)
    }
}

/// A session finds the metrics of a node by the position of the node in the plan, but only the
/// worker's copy of the plan has a `GuardExec`. Therefore, the `GuardExec` hides itself: it has the
/// name, the properties and the children of `inner`.
impl ExecutionPlan for GuardExec {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.inner.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inner.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let inner = Arc::clone(&self.inner).replace_children(children, options)?;
        Ok(Arc::new(Self::new(inner, self.runtime.clone())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.inner.metrics()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let (sender, receiver) = mpsc::channel(2);
        let inner = Arc::clone(&self.inner);
        let work = self.runtime.spawn(async move {
            if let Err(e) = send_batches(&inner, partition, context, &sender).await {
                let _ = sender.send(Err(keep_loss(e))).await;
            }
        });
        let abort = AbortOnDrop(work.abort_handle());
        let batches = ReceiverStream::new(receiver).map(move |batch| {
            let _ = &abort;
            batch
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// Runs the partition `partition` of `plan`, and sends its batches to `sender` until all are sent
/// or the receiver is dropped. A panic of the plan becomes an error.
async fn send_batches(
    plan: &Arc<dyn ExecutionPlan>,
    partition: usize,
    context: Arc<TaskContext>,
    sender: &mpsc::Sender<Result<RecordBatch>>,
) -> Result<()> {
    let started = catch_unwind(AssertUnwindSafe(|| plan.execute(partition, context)));
    let mut stream = started.map_err(|panic| panic_error(panic.as_ref()))??;
    loop {
        let next = AssertUnwindSafe(stream.next()).catch_unwind().await;
        let Some(batch) = next.map_err(|panic| panic_error(panic.as_ref()))? else {
            return Ok(());
        };
        if sender.send(batch.map_err(keep_loss)).await.is_err() {
            return Ok(());
        }
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) fn find_single_child(node: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    match node.children()[..] {
        [child] => Ok(Arc::clone(child)),
        _ => exec_err!(
            "internal error: the plan node {} must have exactly one input; please report it",
            node.name()
        ),
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;
    use datafusion::physical_expr::EquivalenceProperties;
    use datafusion::physical_plan::Partitioning;
    use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};

    use super::*;

    /// A node that panics at the start of its execution, or at its first batch.
    #[derive(Debug)]
    struct PanickingExec {
        at_start: bool,
        properties: Arc<PlanProperties>,
    }

    impl PanickingExec {
        fn new(at_start: bool) -> Self {
            let properties = PlanProperties::new(
                EquivalenceProperties::new(Arc::new(Schema::empty())),
                Partitioning::UnknownPartitioning(1),
                EmissionType::Incremental,
                Boundedness::Bounded,
            );
            Self { at_start, properties: Arc::new(properties) }
        }
    }

    impl DisplayAs for PanickingExec {
        fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "PanickingExec")
        }
    }

    impl ExecutionPlan for PanickingExec {
        fn name(&self) -> &str {
            "PanickingExec"
        }

        fn properties(&self) -> &Arc<PlanProperties> {
            &self.properties
        }

        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            Vec::new()
        }

        fn apply_expressions(
            &self,
            _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
        ) -> Result<TreeNodeRecursion> {
            Ok(TreeNodeRecursion::Continue)
        }

        fn with_new_children(
            self: Arc<Self>,
            _children: Vec<Arc<dyn ExecutionPlan>>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            Ok(self)
        }

        fn execute(
            &self,
            _partition: usize,
            _context: Arc<TaskContext>,
        ) -> Result<SendableRecordBatchStream> {
            assert!(!self.at_start, "a fault at the start");
            let batches = futures::stream::poll_fn(|_| panic!("a fault in a batch"));
            Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn panics_are_errors() {
        for (at_start, text) in [(true, "a fault at the start"), (false, "a fault in a batch")] {
            let plan = GuardExec::new(Arc::new(PanickingExec::new(at_start)), Handle::current());
            let mut batches = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
            let error = batches.next().await.unwrap().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("a worker panicked"), "{error}");
        }
    }
}
