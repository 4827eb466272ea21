use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use futures::Stream;

use crate::sql::exec::{display_name, pass_through};

/// If the node above takes longer than this for one piece of a batch, the next pieces have fewer
/// rows.
const SLOW_PIECE: Duration = Duration::from_millis(20);
/// If the node above takes less than this for one piece of a batch, the next pieces have more rows.
const FAST_PIECE: Duration = Duration::from_millis(2);
/// Maximum number of rows in a piece of a batch. Pieces grow while the join above is fast. But each
/// row of the next piece may match far more rows of the other input, so this maximum limits the
/// time that a piece takes.
const MAX_PIECE_ROWS: usize = 2048;

/// Splits the batches of its input so that the node above processes each piece within about
/// [`SLOW_PIECE`]. Yields to Tokio before a piece if so much time has passed since the last yield.
#[derive(Debug)]
pub(in crate::sql) struct PacedExec {
    input: Arc<dyn ExecutionPlan>,
}

impl PacedExec {
    pub(in crate::sql) fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input)
    }
}

display_name!(PacedExec);

impl ExecutionPlan for PacedExec {
    pass_through!("PacedExec", input);

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        Ok(Box::pin(PacedStream::new(input)))
    }
}

struct PacedStream {
    input: SendableRecordBatchStream,
    /// The rows of the last batch that are not returned yet, or `None` if there are none.
    rest: Option<RecordBatch>,
    size: usize,
    /// Time when the last piece was returned, to measure how long the node above takes for it.
    /// `None` if no piece was returned since the last measurement.
    given: Option<Instant>,
    yielded: Instant,
}

impl PacedStream {
    fn new(input: SendableRecordBatchStream) -> Self {
        Self { input, rest: None, size: 1, given: None, yielded: Instant::now() }
    }

    fn next_size(size: usize, took: Duration) -> usize {
        if took < FAST_PIECE {
            return size.saturating_mul(4).min(MAX_PIECE_ROWS);
        }
        match took.as_nanos().checked_div(SLOW_PIECE.as_nanos()) {
            None | Some(0) => size,
            Some(times) => (size / usize::try_from(times).unwrap_or(usize::MAX).max(2)).max(1),
        }
    }
}

impl Stream for PacedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(given) = self.given.take() {
            self.size = Self::next_size(self.size, given.elapsed());
        }
        if self.yielded.elapsed() >= SLOW_PIECE {
            self.yielded = Instant::now();
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => {
                let next = self.input.as_mut().poll_next(cx);
                if next.is_pending() {
                    self.yielded = Instant::now();
                }
                match ready!(next) {
                    Some(Ok(batch)) => batch,
                    end => return Poll::Ready(end),
                }
            }
        };
        let rows = batch.num_rows().min(self.size);
        let piece = batch.slice(0, rows);
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        self.given = Some(Instant::now());
        Poll::Ready(Some(Ok(piece)))
    }
}

impl RecordBatchStream for PacedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::StreamExt;

    use super::*;

    #[test]
    fn pieces_shrink_with_the_time_they_take() {
        let ms = Duration::from_millis;
        assert_eq!(PacedStream::next_size(1, ms(0)), 4);
        assert_eq!(PacedStream::next_size(1024, ms(1)), MAX_PIECE_ROWS);
        assert_eq!(PacedStream::next_size(MAX_PIECE_ROWS, ms(0)), MAX_PIECE_ROWS);
        assert_eq!(PacedStream::next_size(100, ms(10)), 100);
        assert_eq!(PacedStream::next_size(100, ms(21)), 50);
        assert_eq!(PacedStream::next_size(100, ms(200)), 10);
        assert_eq!(PacedStream::next_size(100, Duration::MAX), 1);
        assert_eq!(PacedStream::next_size(1, ms(50)), 1);
    }

    #[tokio::test]
    async fn pieces_are_the_batches() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false)]));
        let given = [0i64, 1, 5, 0, 8192, 20_000];
        let starts = given.iter().scan(0i64, |at, n| {
            *at += n;
            Some(*at - n)
        });
        let batches: Vec<Result<RecordBatch>> = starts
            .zip(given)
            .map(|(start, n)| {
                let values: Int64Array = (start..start + n).collect();
                Ok(RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(values)])?)
            })
            .collect();
        let input = RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches));
        let mut paced = PacedStream::new(Box::pin(input));
        let mut found: Vec<i64> = Vec::new();
        let mut sizes = Vec::new();
        while let Some(piece) = paced.next().await {
            let piece = piece.unwrap();
            assert!(piece.num_rows() <= MAX_PIECE_ROWS);
            sizes.push(piece.num_rows());
            found.extend(piece.column(0).as_primitive::<Int64Type>().values());
            if found.len() == 6 {
                std::thread::sleep(SLOW_PIECE * 3);
            }
        }
        assert_eq!(found, (0..28_198).collect::<Vec<i64>>());
        assert!(sizes.len() > given.len(), "{sizes:?}");
    }
}
