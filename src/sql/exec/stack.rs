//! Plans and evaluates deep expressions on a separate, larger stack.
//!
//! DataFusion protects most recursive walks over logical expressions from stack overflow, but
//! neither the creation nor the evaluation of physical expressions. Threads of a caller's runtime
//! have 2 MB of stack.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use futures::Stream;
use futures::stream::StreamExt;

use crate::sql::base::boxed_methods::boxed_method;
use crate::sql::base::deep_stack::{call_on_deep_stack, run_deep};
use crate::sql::base::plan_nodes::has_node;
use crate::sql::exec::node_planner::NodePlanner;
use crate::sql::exec::plain_rows::PlainRows;
use crate::sql::exec::shared::{SharedRows, is_shared};
use crate::sql::exec::table_rows::TableRows;
use crate::sql::exec::{display_name, pass_through, same_statistics};

/// Maximum depth of expressions that run on the current stack. Debug builds use kilobytes of stack
/// per level.
const MAX_SHALLOW_DEPTH: usize = 64;

#[derive(Debug)]
pub(in crate::sql) struct DeepPlanner {
    /// The planner that the session had before, or `None` for DataFusion's default planner.
    pub(in crate::sql) inner: Option<Arc<dyn QueryPlanner + Send + Sync>>,
}

impl QueryPlanner for DeepPlanner {
    boxed_method!(DeepPlanner: create_physical_plan = plan_deep);
}

impl DeepPlanner {
    async fn plan_deep(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match &self.inner {
            // `inner` may be the planner of another engine, which cannot plan the nodes of Serrate.
            // So DataFusion's planner plans a query with such nodes.
            Some(inner) if !has_own_nodes(logical_plan)? => {
                run_deep(inner.create_physical_plan(logical_plan, session)).await
            }
            _ => {
                let own: Vec<Arc<dyn ExtensionPlanner + Send + Sync>> = vec![
                    Arc::new(NodePlanner(SharedRows::make_exec)),
                    Arc::new(NodePlanner(TableRows::make_exec)),
                    Arc::new(NodePlanner(PlainRows::make_exec)),
                ];
                let planner = DefaultPhysicalPlanner::with_extension_planners(own);
                run_deep(planner.create_physical_plan(logical_plan, session)).await
            }
        }
    }
}

fn has_own_nodes(plan: &LogicalPlan) -> Result<bool> {
    has_node(plan, |node| {
        Ok(is_shared(node) || TableRows::is_node(node) || PlainRows::is_node(node))
    })
}

/// Without this rule, `SELECT a = true = true ..` with 200 comparisons can overflow a stack of 2
/// MB.
///
/// Physical optimizer rule: makes each node that evaluates a deep expression run on a larger stack.
pub(in crate::sql) fn deepen_stacks(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        Ok(match has_deep_expression(&node)? {
            true => Transformed::yes(Arc::new(DeepStackExec::new(node)) as _),
            false => Transformed::no(node),
        })
    })?;
    Ok(plan.data)
}

fn has_deep_expression(node: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(&mut |expr| {
        found |= is_deep(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn is_deep(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let mut open = vec![(expr, 0)];
    while let Some((expr, depth)) = open.pop() {
        if depth > MAX_SHALLOW_DEPTH {
            return true;
        }
        open.extend(expr.children().into_iter().map(|child| (child, depth + 1)));
    }
    false
}

#[derive(Debug)]
pub(in crate::sql) struct DeepStackExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DeepStackExec {
    pub(in crate::sql) fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input }
    }
}

display_name!(DeepStackExec);

impl ExecutionPlan for DeepStackExec {
    pass_through!("DeepStackExec", input);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = call_on_deep_stack(|| self.input.execute(partition, context))?;
        Ok(Box::pin(DeepStream { input }))
    }

    same_statistics!();
}

struct DeepStream {
    input: SendableRecordBatchStream,
}

impl Stream for DeepStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        call_on_deep_stack(|| self.input.poll_next_unpin(cx))
    }
}

impl RecordBatchStream for DeepStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
