use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::Stream;
use futures::stream::StreamExt;
use serrate_core::internal::holds_type;

#[cfg(feature = "cluster")]
use crate::sql::exec::compact_texts::CompactTextsExec;
use crate::sql::exec::{display_name, pass_through, same_statistics};

/// Physical optimizer rule: if the first input of a hash join or a cross join has lists, makes the
/// join reserve memory for the copy that it makes of this input.
///
/// Without this rule, a hash join of lists takes up to twice the memory limit: it reserves memory
/// for the batches of its first input, and then copies all of them to one batch, without a
/// reservation for the copy.
pub(in crate::sql) fn reserve_copies(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        if !node.is::<HashJoinExec>() && !node.is::<CrossJoinExec>() {
            return Ok(Transformed::no(node));
        }
        let mut children: Vec<Arc<dyn ExecutionPlan>> =
            node.children().into_iter().map(Arc::clone).collect();
        match children.first_mut() {
            Some(first) if has_lists(&first.schema()) => {
                *first = Arc::new(CopiedExec::new(Arc::clone(first)));
            }
            _ => return Ok(Transformed::no(node)),
        }
        let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        Ok(Transformed::yes(node.replace_children(children, keep)?))
    })?;
    Ok(plan.data)
}

/// Removes from a plan the nodes that [`reserve_copies`] and [`compact_texts`] insert, because
/// worker processes run plans without these nodes.
///
/// [`compact_texts`]: crate::sql::exec::compact_texts::compact_texts
#[cfg(feature = "cluster")]
pub(crate) fn remove_memory_nodes(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let copied = node.downcast_ref::<CopiedExec>().map(|copied| &copied.input);
        let compact = || node.downcast_ref::<CompactTextsExec>().map(CompactTextsExec::get_input);
        Ok(match copied.or_else(compact).map(Arc::clone) {
            Some(input) => Transformed::yes(input),
            None => Transformed::no(node),
        })
    })?;
    Ok(plan.data)
}

fn has_lists(schema: &SchemaRef) -> bool {
    schema.fields().iter().any(|field| is_with_lists(field.data_type()))
}

fn is_with_lists(data_type: &DataType) -> bool {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map};
    holds_type(data_type, |t| {
        matches!(
            t,
            List(_) | LargeList(_) | FixedSizeList(..) | ListView(_) | LargeListView(_) | Map(..)
        )
    })
}

/// Returns the batches of its input. Until all batches are consumed, reserves memory for the copy
/// of them that the join above makes. Reserves nothing for a single batch, which the join does not
/// copy.
#[derive(Debug)]
pub(in crate::sql) struct CopiedExec {
    input: Arc<dyn ExecutionPlan>,
}

impl CopiedExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input)
    }
}

display_name!(CopiedExec);

impl ExecutionPlan for CopiedExec {
    pass_through!("CopiedExec", input);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let memory = MemoryConsumer::new("HashJoinInput").register(context.memory_pool());
        Ok(Box::pin(CopiedStream {
            input: self.input.execute(partition, context)?,
            counter: RecordBatchMemoryCounter::new(),
            batches: 0,
            memory,
        }))
    }

    same_statistics!();
}

struct CopiedStream {
    input: SendableRecordBatchStream,
    counter: RecordBatchMemoryCounter,
    batches: usize,
    memory: MemoryReservation,
}

impl Stream for CopiedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.input.poll_next_unpin(cx));
        let Some(Ok(batch)) = &next else { return Poll::Ready(next) };
        self.counter.count_batch(batch);
        self.batches += 1;
        if self.batches > 1
            && let Err(e) = self.memory.try_resize(self.counter.memory_usage())
        {
            return Poll::Ready(Some(Err(e)));
        }
        Poll::Ready(next)
    }
}

impl RecordBatchStream for CopiedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
