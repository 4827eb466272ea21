//! [`TableRows`]: the rows of the table that CREATE TABLE .. AS creates.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::compute::cast;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::StreamExt;
use serrate_core::internal::build_record_batch;

use crate::functions::make_elements_nullable;
use crate::sql::exec::{
    display_name, find_logical_node, one_logical_input, pass_through, same_statistics,
};

/// Returns the rows of its input, in source order (by file, then by position in the file) if they
/// have one. Columns become nullable, because later statements may insert NULL, except those that
/// the statement declares NOT NULL. A NULL in such a column is an error. Unless the statement
/// declares the columns, the elements of lists become nullable, too.
#[derive(Clone, Debug)]
pub(in crate::sql) struct TableRows {
    input: LogicalPlan,
    /// For each column, whether the statement declares it NOT NULL; `None` if the statement
    /// declares no columns.
    required: Option<Vec<bool>>,
    schema: DFSchemaRef,
}

impl TableRows {
    /// Returns a plan of this node over `input`. `required` says for each column whether the
    /// statement declares it NOT NULL; it is `None` if the statement declares no columns.
    pub(in crate::sql) fn plan(
        input: LogicalPlan,
        required: Option<Vec<bool>>,
    ) -> Result<LogicalPlan> {
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(Self::try_new(input, required)?) }))
    }

    fn try_new(input: LogicalPlan, required: Option<Vec<bool>>) -> Result<Self> {
        let fields = input.schema().iter().enumerate().map(|(at, (qualifier, field))| {
            (qualifier.cloned(), declare_field(field, required.as_deref(), at))
        });
        let metadata = input.schema().metadata().clone();
        let schema = Arc::new(DFSchema::new_with_metadata(fields.collect(), metadata)?);
        Ok(Self { input, required, schema })
    }

    fn with_logical_input(&self, input: LogicalPlan) -> Result<Self> {
        Self::try_new(input, self.required.clone())
    }

    /// Returns the node of the physical plan that runs this node over `input`.
    pub(super) fn make_exec(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(TableRowsExec::new(input, self.required.clone()))
    }

    pub(in crate::sql) fn is_node(plan: &LogicalPlan) -> bool {
        find_logical_node::<Self>(plan).is_some()
    }
}

impl PartialEq for TableRows {
    fn eq(&self, other: &Self) -> bool {
        self.input == other.input && self.required == other.required
    }
}

impl Eq for TableRows {}

impl Hash for TableRows {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
        self.required.hash(state);
    }
}

impl PartialOrd for TableRows {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for TableRows {
    one_logical_input!("TableRows");

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }
}

/// Runs [`TableRows`]. The rule
/// [`keep_source_order`](crate::sql::order::order_rules::keep_source_order) orders its input.
#[derive(Debug)]
pub(in crate::sql) struct TableRowsExec {
    input: Arc<dyn ExecutionPlan>,
    required: Option<Vec<bool>>,
    properties: Arc<PlanProperties>,
}

impl TableRowsExec {
    fn new(input: Arc<dyn ExecutionPlan>, required: Option<Vec<bool>>) -> Self {
        let schema = declare_schema(&input.schema(), required.as_deref());
        let known = input.equivalence_properties().clone().with_new_schema(Arc::clone(&schema));
        let known = known.unwrap_or_else(|_| EquivalenceProperties::new(schema));
        let properties = input.properties().as_ref().clone().with_eq_properties(known);
        Self { input, required, properties: Arc::new(properties) }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, self.required.clone())
    }
}

fn declare_schema(schema: &SchemaRef, required: Option<&[bool]>) -> SchemaRef {
    let fields = schema.fields().iter().enumerate();
    let fields = fields.map(|(at, field)| declare_field(field, required, at));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// Returns the field of the table for column `at` of the query; see [`TableRows`].
fn declare_field(field: &FieldRef, required: Option<&[bool]>, at: usize) -> FieldRef {
    match required {
        None => as_nullable(field),
        Some(required) => {
            let is_required = required.get(at).copied().unwrap_or(false);
            Arc::new(field.as_ref().clone().with_nullable(!is_required))
        }
    }
}

/// Returns a nullable copy of a field. The elements of lists and maps become nullable, too, except
/// in extension types such as tensors, which keep the type of their elements.
fn as_nullable(field: &FieldRef) -> FieldRef {
    let field = field.as_ref().clone().with_nullable(true);
    Arc::new(match field.extension_type_name() {
        Some(_) => field,
        None => {
            let data_type = make_elements_nullable(field.data_type());
            field.with_data_type(data_type)
        }
    })
}

display_name!(TableRowsExec);

impl ExecutionPlan for TableRowsExec {
    pass_through!("TableRowsExec");
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
            let columns = batch.columns().iter().zip(named.fields());
            // Types can differ only in the nullability of elements, so the cast copies no values.
            let columns = columns.map(|(column, field)| match column.data_type() {
                same if same == field.data_type() => Ok(Arc::clone(column)),
                _ => cast(column, field.data_type()),
            });
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            Ok(build_record_batch(Arc::clone(&named), columns, batch.num_rows())?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
