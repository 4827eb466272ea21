use std::sync::Arc;

use datafusion::common::Constraints;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};

use crate::sql::exec::{display_name, pass_through, same_rows, same_statistics};

/// Returns the rows of its input. Hides two properties of columns from the nodes above, because
/// DataFusion draws wrong conclusions from them: that a column is unique, and that it has only one
/// value within each partition, which differs between partitions.
#[derive(Debug)]
pub(in crate::sql) struct PlainOrderExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl PlainOrderExec {
    pub(in crate::sql) fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let known = input.equivalence_properties().clone();
        let mut known = known.with_constraints(Constraints::default());
        known.clear_per_partition_constants();
        let properties = input.properties().as_ref().clone().with_eq_properties(known);
        Self { input, properties: Arc::new(properties) }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input)
    }
}

display_name!(PlainOrderExec);

impl ExecutionPlan for PlainOrderExec {
    pass_through!("PlainOrderExec");
    same_rows!();
    same_statistics!();
}
