//! [`NullableColumns`]: a query whose columns may be NULL, for the table that CREATE TABLE .. AS creates.

use std::any::Any;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, DFSchemaRef, plan_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use futures::StreamExt;

use crate::sql::exec::{one_input, same_statistics};

/// Returns the rows of a query and declares all of its columns as nullable.
#[derive(Clone, Debug)]
pub(in crate::sql) struct NullableColumns {
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl NullableColumns {
    pub(in crate::sql) fn plan(input: LogicalPlan) -> Result<LogicalPlan> {
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(Self::try_new(input)?) }))
    }

    fn try_new(input: LogicalPlan) -> Result<Self> {
        let fields = input.schema().iter().map(|(qualifier, field)| {
            (qualifier.cloned(), Arc::new(field.as_ref().clone().with_nullable(true)))
        });
        let metadata = input.schema().metadata().clone();
        let schema = Arc::new(DFSchema::new_with_metadata(fields.collect(), metadata)?);
        Ok(Self { input, schema })
    }

    pub(in crate::sql) fn is_node(plan: &LogicalPlan) -> bool {
        let LogicalPlan::Extension(extension) = plan else { return false };
        let node: &dyn UserDefinedLogicalNode = extension.node.as_ref();
        node.as_any().is::<Self>()
    }
}

impl PartialEq for NullableColumns {
    fn eq(&self, other: &Self) -> bool {
        self.input == other.input
    }
}

impl Eq for NullableColumns {}

impl Hash for NullableColumns {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
    }
}

impl PartialOrd for NullableColumns {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for NullableColumns {
    fn name(&self) -> &str {
        "NullableColumns"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NullableColumns")
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        match <[LogicalPlan; 1]>::try_from(inputs) {
            Ok([input]) => Self::try_new(input),
            Err(inputs) => plan_err!(
                "internal error: NullableColumns has one input, not {}; please report it",
                inputs.len()
            ),
        }
    }
}

#[derive(Debug)]
pub(in crate::sql) struct NullablePlanner;

#[async_trait]
impl ExtensionPlanner for NullablePlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let node: &dyn Any = node.as_any();
        let (true, [input]) = (node.is::<NullableColumns>(), physical_inputs) else {
            return Ok(None);
        };
        Ok(Some(Arc::new(NullableExec::new(Arc::clone(input)))))
    }
}

/// Returns the rows of its input, in the same partitions and order, with columns that may be NULL.
#[derive(Debug)]
pub(in crate::sql) struct NullableExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl NullableExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let schema = to_nullable(&input.schema());
        let known = input.equivalence_properties().clone().with_new_schema(Arc::clone(&schema));
        let known = known.unwrap_or_else(|_| EquivalenceProperties::new(schema));
        let properties = input.properties().as_ref().clone().with_eq_properties(known);
        Self { input, properties: Arc::new(properties) }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input)
    }
}

fn to_nullable(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

impl DisplayAs for NullableExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NullableExec")
    }
}

impl ExecutionPlan for NullableExec {
    fn name(&self) -> &str {
        "NullableExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    one_input!();
    same_statistics!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let named = Arc::clone(&schema);
        let rows = self.input.execute(partition, context)?.map(move |batch| {
            let batch = batch?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let columns = batch.columns().to_vec();
            Ok(RecordBatch::try_new_with_options(Arc::clone(&named), columns, &options)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
