//! Replaces the inputs of nodes of physical plans.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

/// Replaces the inputs of a node, and computes its properties, such as its order, again.
pub(in crate::sql) fn replace_inputs(
    node: Arc<dyn ExecutionPlan>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    node.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}
