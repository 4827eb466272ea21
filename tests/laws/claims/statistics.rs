//! Checks the statistics that a node claims to be exact: numbers of rows and of NULL, minima and
//! maxima.

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

/// The claimed statistics of a node, and the counts of its rows.
///
/// The number of rows is not checked above two kinds of nodes for which DataFusion 55 computes it
/// wrongly: nodes with a limit (the statistics of a source in memory ignore the limit, and those of
/// a sort apply it to all partitions together), and partial aggregations (the statistics count each
/// group once). This changes no result, because these nodes are added after the rules that read
/// statistics. Statistics of single partitions are not checked either: a scan moves files between
/// its partitions while it runs, and DataFusion claims exact numbers of rows even for filtered
/// partitions.
#[derive(Debug)]
pub struct Totals {
    node: String,
    claimed: Arc<Statistics>,
    /// Whether the claimed number of rows is checked.
    counts_rows: bool,
    /// Number of partitions that still return rows.
    running: usize,
    counted: Counted,
}

/// Number of rows, and number of NULL in each column.
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
    /// Returns the check for a node, or `None` if DataFusion cannot compute its statistics.
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

    /// Returns an error if a value of a batch is less than the claimed minimum of its column or
    /// greater than the maximum.
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

    /// Adds the counts of a partition that has ended. After the last partition, compares the sums
    /// with the claimed numbers.
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

/// Returns the first value whose comparison with `bound` gives `beyond`, or `None` if there is no
/// such value.
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
