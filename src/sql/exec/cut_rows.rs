use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{TryStreamExt, stream};

use crate::functions::count_repeated_bytes;
use crate::sql::exec::{pass_through, same_statistics};

/// Maximum number of bytes that the repeated constants of a plan node ([`RepeatedConstants`]) take
/// in one batch. A batch of one row may exceed it.
const BATCH_BYTES: usize = 64 << 20;

/// Constants in the expressions of a plan node, such as long literal lists, which the node repeats
/// for each row of a batch.
#[derive(Clone, Debug, Default)]
pub(in crate::sql) struct RepeatedConstants {
    /// Number of bytes per row of the constants that are known at planning.
    pub(in crate::sql) bytes: usize,
    /// Whether the constants that are known at planning include strings.
    pub(in crate::sql) has_text: bool,
    /// Constants that are known only at execution: results of subqueries.
    pub(in crate::sql) results: Vec<Arc<dyn PhysicalExpr>>,
}

impl RepeatedConstants {
    /// Returns the number of rows for which the constants that are known at planning take
    /// [`BATCH_BYTES`], at least 1.
    pub(in crate::sql) fn count_fitting_rows(&self) -> usize {
        fit_rows(self.bytes)
    }

    fn count_rows_for(&self, batch: &RecordBatch) -> usize {
        let bytes = self.results.iter().map(|result| match result.evaluate(batch) {
            Ok(ColumnarValue::Scalar(value)) => count_repeated_bytes(&value),
            // An array is not a constant, so it is not repeated. An error is ignored here, because
            // the node above evaluates the same expression and reports the error.
            Ok(ColumnarValue::Array(_)) | Err(_) => 0,
        });
        fit_rows(bytes.fold(self.bytes, usize::saturating_add))
    }
}

fn fit_rows(bytes: usize) -> usize {
    (BATCH_BYTES / bytes.max(1)).max(1)
}

/// Divides the batches of its input, so that the constants that the node above repeats for each row
/// take at most [`BATCH_BYTES`], or the batch has one row.
#[derive(Debug)]
pub(in crate::sql) struct CutRowsExec {
    input: Arc<dyn ExecutionPlan>,
    constants: RepeatedConstants,
}

impl CutRowsExec {
    pub(in crate::sql) fn new(input: Arc<dyn ExecutionPlan>, constants: RepeatedConstants) -> Self {
        Self { input, constants }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, self.constants.clone())
    }
}

impl DisplayAs for CutRowsExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.constants.results.is_empty() {
            true => write!(f, "CutRowsExec: rows={}", self.constants.count_fitting_rows()),
            false => write!(f, "CutRowsExec"),
        }
    }
}

impl ExecutionPlan for CutRowsExec {
    pass_through!("CutRowsExec", input);

    same_statistics!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let constants = self.constants.clone();
        let input = self.input.execute(partition, context)?;
        let schema = input.schema();
        let pieces = input
            .map_ok(move |batch| {
                let rows = constants.count_rows_for(&batch);
                stream::iter(cut_batch(batch, rows).map(Ok::<RecordBatch, DataFusionError>))
            })
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, pieces)))
    }
}

/// Returns the rows of a batch in batches of at most `rows` rows.
pub(in crate::sql) fn cut_batch(
    batch: RecordBatch,
    rows: usize,
) -> impl Iterator<Item = RecordBatch> + Send {
    let all = batch.num_rows();
    // A batch without rows stays one batch.
    (0..all.max(1)).step_by(rows).map(move |at| batch.slice(at, rows.min(all - at)))
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn batches_are_cut_into_pieces_of_all_rows() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..7));
        let batch = RecordBatch::try_from_iter([("x", numbers)]).unwrap();
        for (rows, lengths) in [(3, vec![3, 3, 1]), (7, vec![7]), (9, vec![7]), (1, vec![1; 7])] {
            let pieces: Vec<RecordBatch> = cut_batch(batch.clone(), rows).collect();
            assert_eq!(pieces.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), lengths);
            let last = pieces.last().unwrap().column(0).as_primitive::<Int64Type>().clone();
            assert_eq!(last.values().last(), Some(&6));
        }
        assert_eq!(cut_batch(batch.slice(0, 0), 2).count(), 1);
    }
}
