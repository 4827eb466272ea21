use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec,
    SymmetricHashJoinExec,
};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::Stream;
use futures::stream::StreamExt;
use tokio::task::coop;

use crate::sql::exec::pacing::PacedExec;
use crate::sql::exec::{display_name, pass_through, same_statistics};

/// Without this rule, `SELECT count(*) FROM t a JOIN t b ON a.x < b.x` over a large table cannot be
/// cancelled.
///
/// Physical optimizer rule: makes joins yield to the runtime regularly, so that a query can be
/// cancelled.
///
/// DataFusion's leaf nodes yield after a number of batches. But a join makes thousands of batches
/// from one input batch. An operator above the join, such as an aggregation, consumes them without
/// a pause, so the query blocks a worker of the runtime for minutes. A join also blocks a worker if
/// its filter drops all pairs of a batch, or if it returns nothing before it has seen all pairs (a
/// semi join, for example). [`PacedExec`] below the join makes the input batches of the join small.
pub(in crate::sql) fn pace_joins(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        // Indices of the inputs whose rows the join processes batch by batch.
        let paced: &[usize] = if node.is::<HashJoinExec>() || node.is::<NestedLoopJoinExec>() {
            &[1]
        } else if node.is::<SortMergeJoinExec>() || node.is::<PiecewiseMergeJoinExec>() {
            &[0, 1]
        } else if node.is::<CrossJoinExec>() || node.is::<SymmetricHashJoinExec>() {
            &[]
        } else {
            return Ok(Transformed::no(node));
        };
        let mut children: Vec<Arc<dyn ExecutionPlan>> =
            node.children().into_iter().map(Arc::clone).collect();
        for at in paced {
            if let Some(child) = children.get_mut(*at) {
                *child = Arc::new(PacedExec::new(Arc::clone(child)));
            }
        }
        let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        let node = if paced.is_empty() { node } else { node.replace_children(children, keep)? };
        Ok(Transformed::yes(Arc::new(YieldingExec::new(node)) as _))
    })?;
    Ok(plan.data)
}

/// Consumes one unit of the task's Tokio budget per batch, and yields when the budget is used up.
///
/// `CooperativeExec` consumes the unit before it polls its input, so 128 nested nodes use up all
/// 128 units before they poll any input. `YieldingExec` consumes it only for a ready batch.
#[derive(Debug)]
pub(in crate::sql) struct YieldingExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl YieldingExec {
    pub(in crate::sql) fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::clone(input.properties())
            .with_scheduling_type(SchedulingType::Cooperative);
        Self { input, properties: Arc::new(properties) }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input)
    }
}

display_name!(YieldingExec);

impl ExecutionPlan for YieldingExec {
    pass_through!("YieldingExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(YieldingStream { input: self.input.execute(partition, context)? }))
    }

    same_statistics!();
}

struct YieldingStream {
    input: SendableRecordBatchStream,
}

impl Stream for YieldingStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !coop::has_budget_remaining() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = self.input.poll_next_unpin(cx);
        // Consumes a unit for the batch, unless the poll of `input` has used up the budget.
        if next.is_ready()
            && coop::has_budget_remaining()
            && let Poll::Ready(unit) = coop::poll_proceed(cx)
        {
            unit.made_progress();
        }
        next
    }
}

impl RecordBatchStream for YieldingStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
