//! Statistics that a node calls exact: numbers of rows and of NULL, least and greatest values.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics, internal_err};
use datafusion::error::Result;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use serrate::datafusion;

use super::{describe, plain_floats};

/// What one partition has returned, beside its statistics.
#[derive(Debug)]
pub struct Counted {
    node: String,
    claimed: Arc<Statistics>,
    /// Statistics of the partition and of the whole node: the bounds of both hold for each row.
    bounds: Vec<Arc<Statistics>>,
    rows: usize,
    nulls: Vec<usize>,
}

impl Counted {
    pub fn of(node: &Arc<dyn ExecutionPlan>, partition: usize) -> Result<Self> {
        let mut counted = Self::beside(node, Some(partition))?;
        counted.bounds.push(Self::beside(node, None)?.claimed);
        Ok(counted)
    }

    fn beside(node: &Arc<dyn ExecutionPlan>, partition: Option<usize>) -> Result<Self> {
        let args = StatisticsArgs::new().with_partition(partition);
        let claimed = StatisticsContext::new().compute(node.as_ref(), &args)?;
        let nulls = vec![0; node.schema().fields().len()];
        let bounds = vec![Arc::clone(&claimed)];
        Ok(Self { node: describe(node), claimed, bounds, rows: 0, nulls })
    }

    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows();
        for (at, column) in batch.columns().iter().enumerate() {
            self.nulls[at] += column.logical_null_count();
            for claimed in &self.bounds {
                let Some(claimed) = claimed.column_statistics.get(at) else { continue };
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
        }
        Ok(())
    }

    /// Compares the counts at the end of the rows.
    pub fn end(self) -> Result<Self> {
        if let Precision::Exact(claimed) = self.claimed.num_rows
            && claimed != self.rows
        {
            return internal_err!("claims: {} has {} rows, not {claimed}", self.node, self.rows);
        }
        for (at, (claimed, nulls)) in
            self.claimed.column_statistics.iter().zip(&self.nulls).enumerate()
        {
            if let Precision::Exact(claimed) = claimed.null_count
                && claimed != *nulls
            {
                return internal_err!(
                    "claims: {} has {nulls} NULL in column {at}, not {claimed}",
                    self.node
                );
            }
        }
        Ok(self)
    }
}

/// The sum of all partitions, checked when the last one has ended.
#[derive(Debug)]
pub struct Totals {
    partitions: usize,
    all: Option<Counted>,
}

impl Totals {
    pub fn of(node: &Arc<dyn ExecutionPlan>) -> Self {
        let partitions = node.output_partitioning().partition_count();
        Self { partitions, all: Counted::beside(node, None).ok() }
    }

    pub fn add(&mut self, partition: Counted) -> Result<()> {
        let Some(all) = self.all.as_mut() else { return Ok(()) };
        all.rows += partition.rows;
        for (sum, nulls) in all.nulls.iter_mut().zip(&partition.nulls) {
            *sum += nulls;
        }
        self.partitions = self.partitions.saturating_sub(1);
        match self.partitions {
            0 => self.all.take().map_or(Ok(()), |all| all.end().map(drop)),
            _ => Ok(()),
        }
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
