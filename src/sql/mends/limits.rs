use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::OrderingRequirements;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, ReplaceChildrenOptions,
};

use crate::sql::rules::PhysicalRule;

/// Wraps DataFusion's `EnsureRequirements` so that it moves no sort below a limit.
///
/// If a sort is above a `GlobalLimitExec`, DataFusion moves the sort below the limit, so that `(SELECT * FROM
/// t LIMIT 3) ORDER BY id` returns the three smallest rows of the table. If a sort is already below the
/// limit, that sort gets the fetch of the limit but not the skip, so `(.. ORDER BY id LIMIT 2 OFFSET 1) ORDER
/// BY id` returns one row. Obsolete once the test `stock_sorts_still_move_below_limits` fails.
#[derive(Debug)]
pub(in crate::sql) struct OpaqueLimits {
    stock: PhysicalRule,
}

impl OpaqueLimits {
    pub(in crate::sql) fn guard(rule: PhysicalRule) -> PhysicalRule {
        match rule.name() {
            "EnsureRequirements" => Arc::new(Self { stock: rule }),
            _ => rule,
        }
    }
}

impl PhysicalOptimizerRule for OpaqueLimits {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let opaque = plan.transform_up(|node| {
            Ok(match node.is::<GlobalLimitExec>() || node.is::<LocalLimitExec>() {
                true => Transformed::yes(Arc::new(OpaqueLimitExec { limit: node }) as _),
                false => Transformed::no(node),
            })
        })?;
        let plan = self.stock.optimize(opaque.data, config)?;
        if !opaque.transformed {
            return Ok(plan);
        }
        let plan = plan.transform_up(|node| {
            Ok(match node.downcast_ref::<OpaqueLimitExec>() {
                Some(opaque) => Transformed::yes(Arc::clone(&opaque.limit)),
                None => Transformed::no(node),
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        self.stock.name()
    }

    fn schema_check(&self) -> bool {
        self.stock.schema_check()
    }
}

/// Hides a limit: keeps the order of its input and has no fetch. Exists only while [`OpaqueLimits`] runs.
#[derive(Debug)]
struct OpaqueLimitExec {
    limit: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for OpaqueLimitExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpaqueLimitExec")
    }
}

impl ExecutionPlan for OpaqueLimitExec {
    fn name(&self) -> &str {
        "OpaqueLimitExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.limit.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.limit.input_distribution_requirements()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let orders = self.limit.children().into_iter().map(|child| child.output_ordering());
        orders.map(|order| order.cloned().map(OrderingRequirements::from)).collect()
    }

    /// Returns `false`, so that the rule does not push an order that a parent requires down to the input.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.limit.benefits_from_input_partitioning()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.limit.children()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(
            &Arc<dyn datafusion::physical_expr::PhysicalExpr>,
        ) -> Result<datafusion::common::tree_node::TreeNodeRecursion>,
    ) -> Result<datafusion::common::tree_node::TreeNodeRecursion> {
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let limit = Arc::clone(&self.limit).replace_children(children, options)?;
        Ok(Arc::new(Self { limit }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.limit.execute(partition, context)
    }
}
