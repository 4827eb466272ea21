//! Rows with other metadata of their columns: the logical node [`PlainRows`] and its plan,
//! [`PlainRowsExec`].

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::stream::StreamExt;

use crate::sql::exec::{display_name, find_logical_node, one_input, one_logical_input};

/// The metadata of a column.
pub(in crate::sql) type ColumnMetadata = HashMap<String, String>;

/// The rows of `input`. The schema has no metadata, and each column that of `schema`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::sql) struct PlainRows {
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl PlainRows {
    /// Returns the rows of `input`, whose columns get `metadata`, in their order.
    pub(in crate::sql) fn plan(
        input: LogicalPlan,
        metadata: &[ColumnMetadata],
    ) -> Result<LogicalPlan> {
        let node = Arc::new(Self::try_new(input, metadata)?);
        Ok(LogicalPlan::Extension(Extension { node }))
    }

    fn try_new(input: LogicalPlan, metadata: &[ColumnMetadata]) -> Result<Self> {
        let fields = input.schema().iter().zip(metadata);
        let fields = fields.map(|((table, field), own)| (table.cloned(), set_metadata(field, own)));
        let schema = DFSchema::new_with_metadata(fields.collect(), HashMap::new())?;
        Ok(Self { schema: Arc::new(schema), input })
    }

    fn with_logical_input(&self, input: LogicalPlan) -> Result<Self> {
        Self::try_new(input, &list_metadata(self.schema.as_arrow()))
    }

    /// Returns the node of the physical plan that runs this node over `input`.
    pub(super) fn make_exec(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(PlainRowsExec::new(input, &list_metadata(self.schema.as_arrow())))
    }

    pub(in crate::sql) fn is_node(plan: &LogicalPlan) -> bool {
        find_logical_node::<Self>(plan).is_some()
    }
}

fn set_metadata(field: &FieldRef, metadata: &ColumnMetadata) -> FieldRef {
    Arc::new(field.as_ref().clone().with_metadata(metadata.clone()))
}

fn list_metadata(schema: &Schema) -> Vec<ColumnMetadata> {
    schema.fields().iter().map(|field| field.metadata().clone()).collect()
}

impl PartialOrd for PlainRows {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for PlainRows {
    one_logical_input!("PlainRows");

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }
}

/// Runs [`PlainRows`].
#[derive(Debug)]
pub(in crate::sql) struct PlainRowsExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl PlainRowsExec {
    fn new(input: Arc<dyn ExecutionPlan>, metadata: &[ColumnMetadata]) -> Self {
        let schema = input.schema();
        let fields = schema.fields().iter().zip(metadata);
        let fields: Vec<FieldRef> = fields.map(|(field, own)| set_metadata(field, own)).collect();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::new(Schema::new(fields))),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, properties: Arc::new(properties) }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, &list_metadata(&self.schema()))
    }
}

display_name!(PlainRowsExec);

impl ExecutionPlan for PlainRowsExec {
    one_input!("PlainRowsExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema: SchemaRef = self.schema();
        let plain = Arc::clone(&schema);
        let rows = self.input.execute(partition, context)?.map(move |batch| {
            let batch = batch?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let (schema, columns) = (Arc::clone(&plain), batch.columns().to_vec());
            let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
            Ok::<_, DataFusionError>(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
