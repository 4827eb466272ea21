//! [`SubqueriesFirstExec`]: runs the scalar subqueries of a statement, and then divides the
//! statement with their values among workers.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{LogicalPlan, Subquery};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, execute_stream};
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};

use super::client::Cluster;
use crate::sql::{
    display_name, insert_values, list_scalar_subqueries, pass_through, remove_nullable_mark,
};

/// A function that plans a part of a statement for workers. Its arguments are the words with which
/// messages name the part, and the part. The plan that it returns has one partition.
pub(super) type PlanPart = Arc<
    dyn Fn(&'static str, LogicalPlan) -> BoxFuture<'static, Result<Arc<dyn ExecutionPlan>>>
        + Send
        + Sync,
>;

/// Runs each scalar subquery of a statement once. Then plans the statement with the values in place
/// of the subqueries, and runs it: every worker gets the values, and none of them runs a subquery.
///
/// `input` is the plan of the statement with its subqueries, in one partition. EXPLAIN shows this
/// plan, but it runs only if the values cannot be inserted into the statement.
pub(super) struct SubqueriesFirstExec {
    input: Arc<dyn ExecutionPlan>,
    statement: Arc<LogicalPlan>,
    plan_part: PlanPart,
    cluster: Cluster,
}

impl SubqueriesFirstExec {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        statement: Arc<LogicalPlan>,
        plan_part: PlanPart,
        cluster: Cluster,
    ) -> Self {
        Self { input, statement, plan_part, cluster }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        let (statement, plan_part) = (Arc::clone(&self.statement), Arc::clone(&self.plan_part));
        Self { input, statement, plan_part, cluster: self.cluster.clone() }
    }

    /// Runs the scalar subqueries, replaces each of them by its value in the statement, and returns
    /// the plan of this statement. If it cannot be planned, returns `self.input`.
    async fn plan_statement(self, context: &Arc<TaskContext>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut values = Vec::new();
        for query in list_scalar_subqueries(&self.statement)? {
            let part = remove_nullable_mark(LogicalPlan::clone(&query.subquery))?;
            let plan = (self.plan_part)("a subquery of the statement", part).await?;
            let value = compute_value(plan, context).await?;
            values.push((query, value));
        }
        let planned = self.plan_with_values(&values).await;
        match planned {
            Ok(plan) => Ok(plan),
            Err(e) => {
                let reason = e.strip_backtrace();
                self.cluster.add_note(format!("the statement runs here, not on workers: {reason}"));
                Ok(self.input)
            }
        }
    }

    async fn plan_with_values(
        &self,
        values: &[(Subquery, ScalarValue)],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let statement = insert_values(LogicalPlan::clone(&self.statement), values)?;
        let plan = (self.plan_part)("the statement", statement).await?;
        // A column may be nullable in the plan with subqueries, but not nullable in the plan with
        // their values. The schemas must not differ in any other way.
        if !self.input.schema().contains(&plan.schema()) {
            return plan_err!(
                "the types of the result columns depend on the values of scalar subqueries; cast the result columns to fixed types"
            );
        }
        Ok(plan)
    }
}

/// Runs `plan`, a scalar subquery, and returns the value in its only row, or NULL if it returns no
/// row. Several rows are an error.
async fn compute_value(
    plan: Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Result<ScalarValue> {
    let schema = plan.schema();
    let mut batches = execute_stream(plan, Arc::clone(context))?;
    let mut value = None;
    while let Some(batch) = batches.try_next().await? {
        if batch.num_rows() == 0 {
            continue;
        }
        if value.is_some() || batch.num_rows() > 1 {
            // DataFusion's own message, which a session without workers reports.
            return exec_err!("Scalar subquery returned more than one row");
        }
        value = Some(ScalarValue::try_from_array(batch.column(0), 0)?);
    }
    match value {
        Some(value) => Ok(value),
        None => ScalarValue::try_from(schema.field(0).data_type()),
    }
}

/// Returns the rows of `batch` with the schema `declared`, in which more columns may be nullable.
fn declare_columns(batch: RecordBatch, declared: &SchemaRef) -> Result<RecordBatch> {
    Ok(batch.with_schema(Arc::clone(declared))?)
}

impl fmt::Debug for SubqueriesFirstExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubqueriesFirstExec").field("input", &self.input).finish_non_exhaustive()
    }
}

display_name!(SubqueriesFirstExec);

impl ExecutionPlan for SubqueriesFirstExec {
    pass_through!("SubqueriesFirstExec", input);

    fn execute(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let own = self.with_input(Arc::clone(&self.input));
        let schema = self.schema();
        let rows = async move {
            let plan = own.plan_statement(&context).await?;
            plan.execute(0, context)
        };
        let declared = Arc::clone(&schema);
        let batches =
            stream::once(rows).try_flatten().map(move |batch| declare_columns(batch?, &declared));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
