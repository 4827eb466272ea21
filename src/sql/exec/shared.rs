//! Rows that are computed once and read several times: the logical node [`SharedRows`] and its
//! plan, [`SharedExec`].

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::DFSchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::{Distribution, EquivalenceProperties};
use datafusion::physical_expr_common::sort_expr::OrderingRequirements;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements, Partitioning,
    PlanProperties, execute_stream,
};
use futures::lock::Mutex;
use futures::stream::{StreamExt, TryStreamExt, iter};
use serrate_core::internal::build_record_batch;

use crate::sql::exec::{display_name, find_logical_node, one_input, one_logical_input};

/// The rows that several [`SharedExec`] nodes return; `None` until the first one has computed them.
#[derive(Debug, Default)]
pub(in crate::sql) struct SharedResult(Mutex<Option<SharedBatches>>);

#[derive(Debug)]
struct SharedBatches {
    batches: Vec<RecordBatch>,
    _memory: MemoryReservation,
}

impl SharedResult {
    async fn rows(
        &self,
        input: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> Result<Vec<RecordBatch>> {
        // The first node that runs holds this lock while it computes the rows, and the other nodes
        // wait for it. If the first node fails or is cancelled, the next node computes the rows.
        let mut kept = self.0.lock().await;
        if let Some(kept) = kept.as_ref() {
            return Ok(kept.batches.clone());
        }
        let memory = MemoryConsumer::new("SharedExec").register(context.memory_pool());
        let mut rows = execute_stream(input, Arc::clone(&context))?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            memory.try_grow(batch.get_array_memory_size())?;
            batches.push(batch);
        }
        *kept = Some(SharedBatches { batches: batches.clone(), _memory: memory });
        Ok(batches)
    }
}

/// Returns the rows of its input in one partition. Of all nodes with the same [`SharedResult`],
/// only the node that is executed first reads its input. The other nodes return the same rows.
#[derive(Debug)]
pub(in crate::sql) struct SharedExec {
    input: Arc<dyn ExecutionPlan>,
    result: Arc<SharedResult>,
    /// The order that all nodes with this result require of their inputs, or `None` for any order.
    /// A node does not declare this order for its output, because its rows may come from the input
    /// of another node.
    order: Option<OrderingRequirements>,
    properties: Arc<PlanProperties>,
}

impl SharedExec {
    pub(in crate::sql) fn new(input: Arc<dyn ExecutionPlan>, result: Arc<SharedResult>) -> Self {
        let order = input.output_ordering().cloned().map(OrderingRequirements::from);
        Self::new_ordered(input, result, order)
    }

    fn new_ordered(
        input: Arc<dyn ExecutionPlan>,
        result: Arc<SharedResult>,
        order: Option<OrderingRequirements>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { input, result, order, properties: Arc::new(properties) }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new_ordered(input, Arc::clone(&self.result), self.order.clone())
    }
}

display_name!(SharedExec);

impl ExecutionPlan for SharedExec {
    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input_distribution_requirements().into_per_child()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone()]
    }

    one_input!("SharedExec");

    fn execute(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let (input, result) = (Arc::clone(&self.input), Arc::clone(&self.result));
        let named = Arc::clone(&schema);
        let rows = futures::stream::once(async move {
            let batches = result.rows(input, context).await?;
            // Gives the batches the schema of this node. Batches that another node has read may
            // have another nullability.
            let batches = batches.into_iter().map(move |batch| {
                let (schema, columns) = (Arc::clone(&named), batch.columns().to_vec());
                let batch = build_record_batch(schema, columns, batch.num_rows())?;
                Ok::<_, DataFusionError>(batch)
            });
            Ok::<_, DataFusionError>(iter(batches))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten())))
    }
}

/// The rows of a plan, which all nodes with the same `id` in a statement share.
#[derive(Clone, Debug)]
pub(in crate::sql) struct SharedRows {
    pub(in crate::sql) id: u64,
    /// The result that all nodes with this `id` share; `None` until
    /// [`share_results`](crate::sql::workarounds::subqueries::shared_rows::share_results) sets it.
    pub(in crate::sql) result: Option<Arc<SharedResult>>,
    pub(in crate::sql) input: LogicalPlan,
}

impl SharedRows {
    pub(in crate::sql) fn plan(input: LogicalPlan, id: u64) -> LogicalPlan {
        let node = Arc::new(Self { id, result: None, input });
        LogicalPlan::Extension(Extension { node })
    }

    fn with_logical_input(&self, input: LogicalPlan) -> Result<Self> {
        Ok(Self { id: self.id, result: self.result.clone(), input })
    }

    /// Returns the node of the physical plan that runs this node over `input`.
    pub(super) fn make_exec(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(SharedExec::new(input, self.result.clone().unwrap_or_default()))
    }

    pub(in crate::sql) fn from_plan(plan: &LogicalPlan) -> Option<&Self> {
        find_logical_node(plan)
    }
}

impl PartialEq for SharedRows {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.input == other.input
    }
}

impl Eq for SharedRows {}

impl Hash for SharedRows {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
        self.input.hash(state);
    }
}

impl PartialOrd for SharedRows {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.id.cmp(&other.id) {
            Ordering::Equal => self.input.partial_cmp(&other.input),
            order => Some(order),
        }
    }
}

impl UserDefinedLogicalNodeCore for SharedRows {
    one_logical_input!("SharedRows");

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }
}

pub(in crate::sql) fn is_shared(plan: &LogicalPlan) -> bool {
    SharedRows::from_plan(plan).is_some()
}
