//! Checks the claims of a physical plan while it runs: what its nodes promise about their rows.
//!
//! For example, a planner omits a sort if the input claims to have that order. A wrong claim
//! changes the result only if the rest of the statement depends on it, so few statements show it;
//! this check finds the wrong claim itself. Within each partition, it checks the claimed orders,
//! the columns claimed to be constant or equal, and the columns claimed to have no NULL ([`rows`]).
//! Across partitions, it checks the claimed hash partitioning ([`homes`]) and the statistics that
//! are claimed to be exact ([`statistics`]).

mod homes;
mod rows;
mod statistics;

use std::fmt;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use datafusion::common::Statistics;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, displayable,
};
use futures::{StreamExt, future, stream};
use homes::Homes;
use rows::RowClaims;
use serrate::datafusion;
use statistics::{Counted, Totals};

/// An extension of the session configuration. In sessions that have it, plans check the claims of
/// their nodes.
#[derive(Debug)]
pub struct CheckClaims;

/// Returns the plan with a [`ClaimsExec`] above each node.
pub fn wrap_checked(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        Ok(Transformed::yes(Arc::new(ClaimsExec::new(node)) as Arc<dyn ExecutionPlan>))
    })?;
    Ok(plan.data)
}

/// A plan node that returns the rows of its input, or an error at the first row for which a claim
/// of the input does not hold.
#[derive(Debug)]
struct ClaimsExec {
    input: Arc<dyn ExecutionPlan>,
    /// The keys and counts of all partitions, shared by the streams of this node.
    seen: Arc<Seen>,
}

#[derive(Debug)]
struct Seen {
    homes: Mutex<Option<Homes>>,
    totals: Mutex<Option<Totals>>,
}

impl ClaimsExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let homes = Mutex::new(Homes::of(&input));
        let totals = Mutex::new(Totals::of(&input));
        Self { input, seen: Arc::new(Seen { homes, totals }) }
    }
}

impl DisplayAs for ClaimsExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClaimsExec")
    }
}

impl ExecutionPlan for ClaimsExec {
    fn name(&self) -> &str {
        "ClaimsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children).unwrap();
        Ok(Arc::new(Self::new(input)))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&input_stats[0]))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let mut claims = RowClaims::of(&self.input);
        let mut counted = Counted::new(self.schema().fields().len());
        let seen = Arc::clone(&self.seen);
        let schema = rows.schema();
        // `None` stands for the end of the rows. If a limit above stops reading earlier, the totals
        // are not checked.
        let ended = rows.map(|batch| batch.map(Some)).chain(stream::iter([Ok(None)]));
        let checked = ended.filter_map(move |batch| {
            let checked = batch.and_then(|batch| {
                let mut totals = seen.totals.lock().unwrap();
                let Some(batch) = batch else {
                    totals.as_mut().map_or(Ok(()), |totals| totals.add(&counted))?;
                    return Ok(None);
                };
                claims.check(&batch)?;
                totals.as_ref().map_or(Ok(()), |totals| totals.check(&batch))?;
                let mut homes = seen.homes.lock().unwrap();
                homes.as_mut().map_or(Ok(()), |homes| homes.check(&batch, partition))?;
                counted.add(&batch);
                Ok(Some(batch))
            });
            future::ready(checked.transpose())
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, checked)))
    }
}

/// Returns the line that EXPLAIN prints for a node.
fn describe(node: &Arc<dyn ExecutionPlan>) -> String {
    displayable(node.as_ref()).one_line().to_string().trim().to_owned()
}

fn values_of(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<ArrayRef> {
    Ok(plain_floats(&expr.evaluate(batch)?.into_array(batch.num_rows())?))
}

/// Returns the array with 0.0 for -0.0 and one bit pattern for all NaN, because comparisons treat
/// these as equal.
fn plain_floats(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float16 => {
            Arc::new(array.as_primitive::<Float16Type>().unary::<_, Float16Type>(|v| {
                if v.is_nan() { half::f16::NAN } else { v + half::f16::ZERO }
            }))
        }
        DataType::Float32 => Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(
            |v| {
                if v.is_nan() { f32::NAN } else { v + 0.0 }
            },
        )),
        DataType::Float64 => Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(
            |v| {
                if v.is_nan() { f64::NAN } else { v + 0.0 }
            },
        )),
        _ => Arc::clone(array),
    }
}
