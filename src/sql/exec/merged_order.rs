use std::sync::Arc;

use datafusion::physical_expr::{EquivalenceProperties, LexRequirement};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};

use crate::sql::exec::{display_name, pass_filters, pass_through, same_rows, same_statistics};

/// Returns the rows of its input, but hides the orders that a merge of its partitions would break.
///
/// If the input has several partitions, the node reports only one of the input's orders: the first
/// that satisfies `required` or, without a requirement, the first of all. A merge of the partitions
/// by this order keeps no other order. A single partition is never merged, so the node reports all
/// its orders.
#[derive(Debug)]
pub(in crate::sql) struct MergedOrderExec {
    input: Arc<dyn ExecutionPlan>,
    required: Option<LexRequirement>,
    properties: Arc<PlanProperties>,
}

impl MergedOrderExec {
    pub(in crate::sql) fn new(
        input: Arc<dyn ExecutionPlan>,
        required: Option<LexRequirement>,
    ) -> Self {
        let properties = match input.output_partitioning().partition_count() {
            0 | 1 => Arc::clone(input.properties()),
            _ => {
                let merged = keep_one_order(input.equivalence_properties(), required.as_ref());
                Arc::new(input.properties().as_ref().clone().with_eq_properties(merged))
            }
        };
        Self { input, required, properties }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, self.required.clone())
    }
}

/// Returns the properties that remain of `known`, the properties of a plan, after its partitions
/// are merged by the order that [`MergedOrderExec`] reports for `required`. An order that cannot be
/// compared with `required` is dropped.
pub(in crate::sql) fn keep_one_order(
    known: &EquivalenceProperties,
    required: Option<&LexRequirement>,
) -> EquivalenceProperties {
    let mut without_orders = known.clone();
    without_orders.clear_orderings();
    without_orders.clear_per_partition_constants();
    let Some(required) = required else {
        if let Some(order) = known.oeq_class().iter().next() {
            without_orders.add_ordering(order.clone());
        }
        return without_orders;
    };
    let satisfies = |properties: &EquivalenceProperties| {
        properties.ordering_satisfy_requirement(required.clone()).unwrap_or(false)
    };
    if satisfies(&without_orders) {
        return without_orders;
    }
    for order in known.oeq_class().iter() {
        let mut merged = without_orders.clone();
        merged.add_ordering(order.clone());
        if satisfies(&merged) {
            return merged;
        }
    }
    without_orders
}

display_name!(MergedOrderExec);

impl ExecutionPlan for MergedOrderExec {
    pass_through!("MergedOrderExec");
    pass_filters!();
    same_rows!();
    same_statistics!();
}
