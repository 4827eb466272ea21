//! Sinks whose rows have the order of their source.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::common::internal_err;
use datafusion::datasource::sink::DataSink;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, LexRequirement};
use datafusion::physical_expr_common::sort_expr::OrderingRequirements;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{EvaluationType, SchedulingType};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties,
};
use futures::stream;

use super::{
    SourceOrderExec, fix_memory, pin_sorts, refuse_unordered, requires_order, rewrite_plan,
};
use crate::sql::exec::one_input;

/// Writes its input to a sink that keeps the order of rows.
///
/// Input with ORDER BY is merged to one sorted partition. Other input is rewritten to source order
/// by the rule [`keep_source_order`](super::order_rules::keep_source_order) or, if the session
/// lacks this rule, at execution. If this is impossible, the query fails, unless the format needs
/// no order or an id column identifies the rows.
#[derive(Clone, Debug)]
pub(crate) struct OrderedSinkExec {
    input: Arc<dyn ExecutionPlan>,
    sink: Arc<dyn DataSink>,
    order: Option<LexRequirement>,
    format: &'static str,
    /// Names of id columns. If the input has one of these columns, its rows may be in any order.
    /// `None` if the format needs no order at all.
    ids: Option<&'static [&'static str]>,
    /// Whether [`Self::to_ordered`] has already put the input into the right order and one
    /// partition, so that it does nothing when it is called again.
    settled: bool,
    properties: Arc<PlanProperties>,
}

/// Returns a plan that writes `input` to `sink`. `order` is the order that the query requires. Rows
/// of `input` may be unordered only if `input` has one of the id columns `ids`, which identify the
/// rows, or if `ids` is `None`: the format then needs no order.
pub(in crate::sql) fn build_ordered_sink(
    input: Arc<dyn ExecutionPlan>,
    sink: Arc<dyn DataSink>,
    order: Option<LexRequirement>,
    format: &'static str,
    ids: Option<&'static [&'static str]>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let order = order.filter(|o| requires_order(Some(o)));
    // `order` is `None` also for `SELECT a .. ORDER BY b`: the sink does not receive `b`, so it
    // cannot require this order. `pin_sorts` keeps the sort.
    let input = if order.is_none() { pin_sorts(fix_memory(input)?)? } else { input };
    let sink = OrderedSinkExec::new(input, sink, order, format, ids);
    // DataFusion puts the name of a rule before the errors of the rule, so the order is checked
    // here, before any rule runs.
    sink.check_order()?;
    Ok(Arc::new(sink))
}

impl OrderedSinkExec {
    fn new(
        input: Arc<dyn ExecutionPlan>,
        sink: Arc<dyn DataSink>,
        order: Option<LexRequirement>,
        format: &'static str,
        ids: Option<&'static [&'static str]>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(count_schema()),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        )
        .with_scheduling_type(SchedulingType::Cooperative)
        .with_evaluation_type(EvaluationType::Eager);
        Self { input, sink, order, format, ids, settled: false, properties: Arc::new(properties) }
    }

    /// Replaces the input. A settled node stays settled if the new input has one partition, because
    /// this input may be the old one in a wrapper, for example one that collects metrics.
    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        let settled = self.settled && input.output_partitioning().partition_count() == 1;
        Self {
            settled,
            ..Self::new(input, Arc::clone(&self.sink), self.order.clone(), self.format, self.ids)
        }
    }

    /// Returns an error if the sink needs an order, and the input has neither an order nor an id
    /// column.
    fn check_order(&self) -> Result<()> {
        if self.order.is_some() {
            return Ok(());
        }
        match rewrite_plan(&self.input)? {
            Ok(_) => Ok(()),
            Err(operator) => self.check_ids(&operator),
        }
    }

    /// Returns an error that names `operator`, which loses the order, if the sink needs an order
    /// and the input has no id column.
    fn check_ids(&self, operator: &str) -> Result<()> {
        let Some(ids) = self.ids else { return Ok(()) };
        let schema = self.input.schema();
        let is_id =
            |id: &&str| schema.field_with_name(id).is_ok_and(|f| !f.data_type().is_nested());
        match ids.iter().any(is_id) {
            true => Ok(()),
            false => Err(refuse_unordered(self.format, operator, ids)),
        }
    }

    /// Returns the node with its input in source order and one partition; `None` if nothing
    /// changes.
    pub(super) fn to_ordered(&self) -> Result<Option<Self>> {
        if self.settled {
            return Ok(None);
        }
        let partitions = self.input.output_partitioning().partition_count();
        let input = if self.order.is_some() {
            // The node requires sorted input in a single partition, so there is nothing to merge.
            Arc::clone(&self.input)
        } else {
            match rewrite_plan(&self.input)? {
                Ok(input) if input.output_partitioning().partition_count() == 1 => input,
                Ok(input) => Arc::new(SourceOrderExec::new(input, None)),
                Err(operator) => {
                    self.check_ids(&operator)?;
                    if partitions == 1 {
                        Arc::clone(&self.input)
                    } else {
                        Arc::new(CoalescePartitionsExec::new(Arc::clone(&self.input)))
                    }
                }
            }
        };
        Ok(Some(Self { settled: true, ..self.with_input(input) }))
    }
}

fn count_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]))
}

/// Sums the single column of counts that COPY and INSERT return.
#[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command uses it"))]
pub(crate) fn sum_counts(batch: &RecordBatch) -> u64 {
    let counts = batch.columns().first().and_then(|column| cast(column, &DataType::UInt64).ok());
    counts.map_or(0, |counts| counts.as_primitive::<UInt64Type>().iter().flatten().sum())
}

impl DisplayAs for OrderedSinkExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrderedSinkExec: sink=")?;
        self.sink.fmt_as(t, f)
    }
}

impl ExecutionPlan for OrderedSinkExec {
    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input_distribution_requirements().into_per_child()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![if self.order.is_some() {
            Distribution::SinglePartition
        } else {
            Distribution::UnspecifiedDistribution
        }])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone().map(Into::into)]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    one_input!("OrderedSinkExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!(
                "internal error: OrderedSinkExec has 1 partition, but partition {partition} was requested; please report it"
            );
        }
        if let Some(ordered) = self.to_ordered()? {
            return ordered.execute(partition, context);
        }
        let data = self.input.execute(0, Arc::clone(&context))?;
        let sink = Arc::clone(&self.sink);
        let schema = count_schema();
        let result = Arc::clone(&schema);
        let written = stream::once(async move {
            let rows = sink.write_all(data, &context).await?;
            let count: ArrayRef = Arc::new(UInt64Array::from(vec![rows]));
            Ok(RecordBatch::try_new(schema, vec![count])?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(result, written)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.sink.metrics()
    }
}
