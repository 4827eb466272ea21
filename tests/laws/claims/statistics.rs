//! Statistics that a node calls exact: numbers of rows and of NULL, least and greatest values.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{ScalarValue, Statistics, internal_err};
use datafusion::error::Result;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use serrate::datafusion;

use super::{describe, plain_floats};

/// The statistics of a node, and the counts of its partitions.
///
/// DataFusion 55 computes wrong numbers of rows for two kinds of nodes, so the numbers are not
/// checked above them: nodes with a limit (the statistics of a source in memory ignore the limit,
/// and those of a sort apply it to all partitions together), and partial aggregations (the
/// statistics count each group once). Neither changes an answer, because these nodes appear after
/// the rules that read statistics. Statistics of single partitions are not checked either: a scan
/// moves files between its partitions while it runs, and DataFusion calls the numbers of rows of
/// filtered partitions exact.
#[derive(Debug)]
pub struct Totals {
    node: String,
    claimed: Arc<Statistics>,
    /// Whether the claimed number of rows is checked.
    counts_rows: bool,
    /// Number of partitions that have not ended.
    running: usize,
    counted: Counted,
}

/// Numbers of rows, and of NULL in each column.
#[derive(Debug)]
pub struct Counted {
    rows: usize,
    nulls: Vec<usize>,
}

impl Counted {
    pub fn new(columns: usize) -> Self {
        Self { rows: 0, nulls: vec![0; columns] }
    }

    pub fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows();
        for (nulls, column) in self.nulls.iter_mut().zip(batch.columns()) {
            *nulls += column.logical_null_count();
        }
    }
}

impl Totals {
    /// Returns `None` if the node has no statistics.
    pub fn of(node: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let claimed =
            StatisticsContext::new().compute(node.as_ref(), &StatisticsArgs::new()).ok()?;
        let running = node.output_partitioning().partition_count();
        let counted = Counted::new(node.schema().fields().len());
        let is_inexact = |node: &Arc<dyn ExecutionPlan>| {
            let aggregate = node.downcast_ref::<AggregateExec>();
            let is_partial = aggregate.is_some_and(|of| *of.mode() == AggregateMode::Partial);
            Ok(node.fetch().is_some() || is_partial)
        };
        let counts_rows = !node.exists(is_inexact).ok()?;
        Some(Self { node: describe(node), claimed, counts_rows, running, counted })
    }

    /// Compares the values of a batch with the bounds of their columns.
    pub fn check(&self, batch: &RecordBatch) -> Result<()> {
        for (at, (column, claimed)) in
            batch.columns().iter().zip(&self.claimed.column_statistics).enumerate()
        {
            for (bound, beyond) in
                [(&claimed.min_value, Ordering::Less), (&claimed.max_value, Ordering::Greater)]
            {
                let Precision::Exact(bound) = bound else { continue };
                if let Some(value) = find_beyond(column, bound, beyond)? {
                    return internal_err!(
                        "claims: {} has {value} in column {at} beyond its bound {bound}",
                        self.node
                    );
                }
            }
        }
        Ok(())
    }

    /// Adds a partition that has ended, and compares the sums after the last one.
    pub fn add(&mut self, partition: &Counted) -> Result<()> {
        self.counted.rows += partition.rows;
        for (sum, nulls) in self.counted.nulls.iter_mut().zip(&partition.nulls) {
            *sum += nulls;
        }
        self.running = self.running.saturating_sub(1);
        if self.running > 0 || !self.counts_rows {
            return Ok(());
        }
        let rows = self.counted.rows;
        if let Precision::Exact(claimed) = self.claimed.num_rows
            && claimed != rows
        {
            return internal_err!("claims: {} has {rows} rows, not {claimed}", self.node);
        }
        let columns = self.claimed.column_statistics.iter().zip(&self.counted.nulls);
        for (at, (claimed, nulls)) in columns.enumerate() {
            if let Precision::Exact(claimed) = claimed.null_count
                && claimed != *nulls
            {
                return internal_err!(
                    "claims: {} has {nulls} NULL in column {at}, not {claimed}",
                    self.node
                );
            }
        }
        Ok(())
    }
}

/// Returns the first value less or greater than a bound.
fn find_beyond(
    column: &ArrayRef,
    bound: &ScalarValue,
    beyond: Ordering,
) -> Result<Option<ScalarValue>> {
    let values = plain_floats(column);
    let bound = ScalarValue::try_from_array(&plain_floats(&bound.to_array()?), 0)?;
    for row in (0..values.len()).filter(|row| values.is_valid(*row) && !bound.is_null()) {
        let value = ScalarValue::try_from_array(&values, row)?;
        if value.partial_cmp(&bound) == Some(beyond) {
            return Ok(Some(value));
        }
    }
    Ok(None)
}
