//! [`NodePlanner`]: plans a logical node of Serrate that has one input.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::error::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

/// Plans the logical nodes of type `N` with this function, which returns the node of the physical
/// plan over an input.
pub(super) struct NodePlanner<N>(
    pub(super) fn(&N, Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan>,
);

#[async_trait]
impl<N: 'static> ExtensionPlanner for NodePlanner<N> {
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
        let (Some(node), [input]) = (node.downcast_ref::<N>(), physical_inputs) else {
            return Ok(None);
        };
        Ok(Some((self.0)(node, Arc::clone(input))))
    }
}
