//! Finds the types of the nodes of a physical plan, so that rules for other nodes are skipped.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::sync::{Arc, Weak};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

/// Returns the id of a type of nodes. A static list cannot have the ids themselves.
pub(in crate::sql) type NodeType = fn() -> TypeId;

/// The types of the nodes of a plan.
struct KnownNodes {
    /// Keeps the address of the plan from being used for another plan.
    plan: Weak<dyn ExecutionPlan>,
    types: Vec<TypeId>,
}

thread_local! {
    /// The last plan that [`has_nodes`] has searched on this thread. Most rules return the plan
    /// that they receive, so the next rule receives the same plan.
    static LAST: RefCell<Option<KnownNodes>> = const { RefCell::new(None) };
}

impl KnownNodes {
    fn collect_types(plan: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        let mut types = Vec::new();
        plan.apply(|node| {
            let mut node: &dyn ExecutionPlan = node.as_ref();
            while let Some(delegate) = node.downcast_delegate() {
                node = delegate;
            }
            let found = (node as &dyn Any).type_id();
            if !types.contains(&found) {
                types.push(found);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(Self { plan: Arc::downgrade(plan), types })
    }

    fn is_about(&self, plan: &Arc<dyn ExecutionPlan>) -> bool {
        std::ptr::addr_eq(self.plan.as_ptr(), Arc::as_ptr(plan))
    }
}

/// Whether a plan has a node of one of the `wanted` types.
pub(in crate::sql) fn has_nodes(
    plan: &Arc<dyn ExecutionPlan>,
    wanted: &[NodeType],
) -> Result<bool> {
    LAST.with_borrow_mut(|last| {
        if last.as_ref().is_none_or(|known| !known.is_about(plan)) {
            *last = Some(KnownNodes::collect_types(plan)?);
        }
        let has = |known: &KnownNodes| wanted.iter().any(|of| known.types.contains(&of()));
        Ok(last.as_ref().is_some_and(has))
    })
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::limit::GlobalLimitExec;

    use super::*;

    #[test]
    fn types_are_those_of_the_plan() {
        let limit: NodeType = TypeId::of::<GlobalLimitExec>;
        let empty: NodeType = TypeId::of::<EmptyExec>;
        for _ in 0..3 {
            let below: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(Arc::new(Schema::empty())));
            let above: Arc<dyn ExecutionPlan> =
                Arc::new(GlobalLimitExec::new(Arc::clone(&below), 0, Some(1)));
            for _ in 0..2 {
                assert!(has_nodes(&above, &[limit]).unwrap());
                assert!(has_nodes(&above, &[empty]).unwrap());
                assert!(!has_nodes(&below, &[limit]).unwrap());
                assert!(has_nodes(&below, &[limit, empty]).unwrap());
                assert!(!has_nodes(&below, &[]).unwrap());
            }
        }
    }
}
