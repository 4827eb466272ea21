use std::fmt;
use std::sync::Arc;

use datafusion::common::Constraints;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};

use crate::sql::exec::{pass_through, same_statistics};

/// Returns the rows of its input, but hides two facts from the nodes above, from which DataFusion
/// draws wrong conclusions: which columns are unique, and which columns are constant within each
/// partition but differ between partitions.
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

impl DisplayAs for PlainOrderExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlainOrderExec")
    }
}

impl ExecutionPlan for PlainOrderExec {
    pass_through!("PlainOrderExec");
    same_statistics!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
