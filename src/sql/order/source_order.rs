use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, EvaluationType, SchedulingType,
};
use datafusion::physical_plan::limit::LimitStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::Semaphore;

use crate::memory::memory_limit;
use crate::sql::exec::one_input;

/// Maximum number of bytes that all partitions prefetch together. If an eighth of the memory limit
/// is less, that is the maximum instead.
const MAX_PREFETCH_BYTES: usize = 256 << 20;

/// Maximum number of batches that a partition prefetches.
const PREFETCHED_BATCHES: usize = 1024;

/// Concatenates the partitions of its input, in the order of their index, to a single partition.
///
/// All partitions run concurrently, and prefetch at most 256 MiB of batches together, or an eighth
/// of the memory limit if that is less. With a limit they run one after the other, so that no
/// partition is read after the limit is reached.
#[derive(Debug)]
pub(crate) struct SourceOrderExec {
    input: Arc<dyn ExecutionPlan>,
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SourceOrderExec {
    /// Creates a node over `input` that returns at most `fetch` rows.
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, fetch: Option<usize>) -> Self {
        let mut equivalences = input.equivalence_properties().clone();
        equivalences.clear_orderings();
        equivalences.clear_per_partition_constants();
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        )
        .with_evaluation_type(EvaluationType::Eager)
        .with_scheduling_type(SchedulingType::Cooperative);
        Self {
            input,
            fetch,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    pub(super) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, self.fetch)
    }
}

/// Runs a partition in a separate task, which pauses while `share` bytes of its batches are not
/// consumed.
fn prefetch_partition(
    input: &Arc<dyn ExecutionPlan>,
    partition: usize,
    context: &Arc<TaskContext>,
    share: usize,
) -> SendableRecordBatchStream {
    let schema = input.schema();
    let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&schema), PREFETCHED_BATCHES);
    let (input, context) = (Arc::clone(input), Arc::clone(context));
    let sender = builder.tx();
    // A permit stands for 1 KiB. A batch larger than the share takes all permits of the share.
    let permits = u32::try_from(share >> 10).unwrap_or(u32::MAX).max(1);
    let permits_of = move |batch: &RecordBatch| {
        let kibibytes = u32::try_from(batch.get_array_memory_size() >> 10).unwrap_or(u32::MAX);
        kibibytes.clamp(1, permits)
    };
    let free = Arc::new(Semaphore::new(permits as usize));
    let taken = Arc::clone(&free);
    builder.spawn(async move {
        let mut batches = input.execute(partition, context)?;
        while let Some(batch) = batches.next().await {
            if let Ok(batch) = &batch
                && let Ok(permit) = taken.acquire_many(permits_of(batch)).await
            {
                permit.forget();
            }
            // The task ends after an error, or when the receiver is closed because it needs no more
            // batches.
            let failed = batch.is_err();
            if sender.send(batch).await.is_err() || failed {
                break;
            }
        }
        Ok(())
    });
    let read =
        builder.build().inspect_ok(move |batch| free.add_permits(permits_of(batch) as usize));
    Box::pin(RecordBatchStreamAdapter::new(schema, read))
}

impl DisplayAs for SourceOrderExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceOrderExec")?;
        match self.fetch {
            Some(fetch) => write!(f, ": fetch={fetch}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for SourceOrderExec {
    one_input!("SourceOrderExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!(
                "internal error: SourceOrderExec has 1 partition, but partition {partition} was requested; please report it"
            );
        }
        let partitions = self.input.output_partitioning().partition_count();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let schema = self.schema();
        let stream: SendableRecordBatchStream = if partitions == 1 {
            self.input.execute(0, context)?
        } else if self.fetch.is_some() {
            let input = Arc::clone(&self.input);
            let one_by_one = stream::iter(0..partitions)
                .map(move |p| input.execute(p, Arc::clone(&context)))
                .try_flatten();
            Box::pin(RecordBatchStreamAdapter::new(schema, one_by_one))
        } else {
            let share = MAX_PREFETCH_BYTES.min(memory_limit() / 8) / partitions;
            let ahead: Vec<SendableRecordBatchStream> = (0..partitions)
                .map(|p| prefetch_partition(&self.input, p, &context, share))
                .collect();
            Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(ahead).flatten()))
        };
        Ok(match self.fetch {
            Some(fetch) => Box::pin(LimitStream::new(stream, 0, Some(fetch), metrics)),
            None => stream,
        })
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    /// Returns `false`, because a limit below this node would apply to each partition separately.
    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(Self::new(Arc::clone(&self.input), fetch)))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
