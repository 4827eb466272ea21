use std::fmt;
use std::sync::Arc;

use datafusion::physical_expr::{Distribution, LexOrdering};
use datafusion::physical_expr_common::sort_expr::OrderingRequirements;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
};

use crate::sql::exec::{pass_through, same_rows};

/// Requires its input as one partition in a given order, and returns the rows of the input
/// unchanged.
///
/// It marks an ORDER BY of the query in a plan that is not optimized yet. The optimizer may sort
/// elsewhere (below a join, say) or, if rows arrive sorted, not at all, as long as this node gets
/// its order.
#[derive(Debug)]
pub(super) struct SortedExec {
    input: Arc<dyn ExecutionPlan>,
    order: LexOrdering,
}

impl SortedExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, order: LexOrdering) -> Self {
        Self { input, order }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input, order: self.order.clone() }
    }
}

impl DisplayAs for SortedExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SortedExec: expr=[{}]", self.order)
    }
}

impl ExecutionPlan for SortedExec {
    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input_distribution_requirements().into_per_child()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(self.order.clone().into())]
    }

    pass_through!("SortedExec", input);
    same_rows!();

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
