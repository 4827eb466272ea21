//! [`ReadyResult`]: the result of a statement until its client reads it.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;

pub(super) struct ReadyResult {
    /// Schema with the types that are sent to clients.
    pub(super) schema: SchemaRef,
    pub(super) parts: Vec<ResultPart>,
}

/// The result of one statement: a plan that runs when the client reads it, or rows in memory.
pub(super) enum ResultPart {
    Plan(Arc<dyn ExecutionPlan>, Arc<TaskContext>),
    Rows(Vec<RecordBatch>),
}
