//! Encodes record batches as Flight messages of bounded size.
//!
//! Serrate encodes messages itself, because the encoder of arrow-flight 59.3 declares LargeList as
//! List (test `stock_encoder_still_declares_large_lists_as_lists`) and measures a slice by its
//! whole buffers, although other slices share these buffers.

use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_flight::{FlightData, SchemaAsIpc};
use tonic::Status;

use super::status::to_invalid;
use super::wire_types::to_wire_batch;

/// Maximum bytes of a message with several rows. gRPC clients refuse more than 4 MiB by default.
const TARGET_BYTES: usize = 3 << 20;

pub(super) struct BatchEncoder {
    wire: SchemaRef,
    options: IpcWriteOptions,
    generator: IpcDataGenerator,
    dictionaries: DictionaryTracker,
    context: IpcWriteContext,
    /// Number of rows that probably fit in the next message. [`Self::encode_rows`] tries this
    /// number first.
    rows: usize,
    /// Maximum size in bytes of a message with a single row.
    limit: usize,
}

impl BatchEncoder {
    pub(super) fn new(wire: SchemaRef, limit: usize) -> Self {
        Self {
            wire,
            options: IpcWriteOptions::default(),
            generator: IpcDataGenerator::default(),
            dictionaries: DictionaryTracker::new(false),
            context: IpcWriteContext::default(),
            rows: 1 << 16,
            limit,
        }
    }

    /// Returns the first message of a result, which contains the schema.
    pub(super) fn encode_schema(&self) -> FlightData {
        SchemaAsIpc::new(&self.wire, &self.options).into()
    }

    /// Encodes rows of `batch` from `start` on until a message is full. Returns the message and its
    /// number of rows, or an error if not even one row can be encoded or fits.
    pub(super) fn encode_rows(
        &mut self,
        batch: &RecordBatch,
        start: usize,
    ) -> Result<(FlightData, usize), Status> {
        let left = batch.num_rows().saturating_sub(start);
        let mut rows = self.rows.clamp(1, left.max(1)).min(left);
        loop {
            let piece = batch.slice(start, rows);
            let message = match self.encode_piece(&piece) {
                Ok(message) => message,
                // The error may come from the cast of a view array, which fails if the strings have
                // more than 2 GiB. Tries half of the rows, because their strings may be shorter.
                Err(_) if rows > 1 => {
                    rows /= 2;
                    continue;
                }
                Err(e) => return Err(convert_encoding_error(e)),
            };
            let size = compute_message_size(&message);
            if size <= TARGET_BYTES {
                // This message has less than half of the maximum size, so try twice as many rows
                // for the next one.
                if size < TARGET_BYTES / 2 {
                    self.rows = self.rows.max(rows.saturating_mul(2));
                }
                return Ok((message, rows));
            }
            if rows <= 1 {
                return self.encode_large_row(&piece, size).map(|message| (message, rows));
            }
            let fits = rows.saturating_mul(TARGET_BYTES) / size;
            rows = fits.saturating_mul(9).div_ceil(10).clamp(1, rows - 1);
            self.rows = rows;
        }
    }

    /// Encodes a single row whose message is larger than [`TARGET_BYTES`]. Copies the row first,
    /// because its buffers may also hold other rows, which would be sent, too. Returns an error if
    /// the message still exceeds the limit.
    fn encode_large_row(&mut self, row: &RecordBatch, size: usize) -> Result<FlightData, Status> {
        let copied = take_record_batch(row, &UInt64Array::from(vec![0]));
        let copied = copied.map_err(convert_encoding_error)?;
        let message = self.encode_piece(&copied).map_err(convert_encoding_error)?;
        let size = size.min(compute_message_size(&message));
        if size > self.limit {
            return Err(Status::resource_exhausted(format!(
                "one row takes {size} bytes, but a message has at most {} bytes; select fewer columns or list elements, or start the server with a higher --max-message and raise the limit of the client",
                self.limit
            )));
        }
        Ok(message)
    }

    fn encode_piece(&mut self, piece: &RecordBatch) -> Result<FlightData, ArrowError> {
        let sent = to_wire_batch(piece, &self.wire)?;
        let (_, message) = self.generator.encode(
            &sent,
            &mut self.dictionaries,
            &self.options,
            &mut self.context,
        )?;
        Ok(message.into())
    }
}

/// Returns the size of a message in bytes.
pub(super) fn compute_message_size(message: &FlightData) -> usize {
    message.data_header.len().saturating_add(message.data_body.len())
}

fn convert_encoding_error(e: ArrowError) -> Status {
    to_invalid(format!(
        "a row of the result cannot be encoded; select fewer columns, or cast them to other types: {e}"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        Array, ArrayRef, AsArray, Int64Array, LargeListArray, ListArray, StringArray,
        StringViewArray,
    };
    use arrow::datatypes::{DataType, Int64Type};
    use arrow_flight::decode::FlightRecordBatchStream;
    use arrow_flight::encode::FlightDataEncoderBuilder;
    use futures::{StreamExt, TryStreamExt, stream};

    use super::super::wire_types::to_wire_schema;
    use super::*;

    async fn send(batch: &RecordBatch) -> (Vec<usize>, Vec<RecordBatch>) {
        let wire = to_wire_schema(&batch.schema());
        let mut encoder = BatchEncoder::new(wire, 16 << 20);
        let mut messages = vec![encoder.encode_schema()];
        let mut start = 0;
        while start < batch.num_rows() {
            let (message, rows) = encoder.encode_rows(batch, start).unwrap();
            messages.push(message);
            start += rows;
        }
        let sizes = messages.iter().map(compute_message_size).collect();
        let received = FlightRecordBatchStream::new_from_flight_data(stream::iter(
            messages.into_iter().map(Ok),
        ));
        (sizes, received.try_collect().await.unwrap())
    }

    #[tokio::test]
    async fn large_batches_are_split() {
        let rows = 20_000;
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let texts = (0..rows).map(|i| format!("{i:0>600}"));
        let views: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
        let lists = (0..rows).map(|i| Some((0..i % 50).map(Some).collect::<Vec<_>>()));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
        let batch =
            RecordBatch::try_from_iter([("n", numbers), ("t", views), ("x", lists)]).unwrap();
        let batch = batch.slice(100, 19_000);
        let (sizes, received) = send(&batch).await;
        assert!(sizes.len() > 4 && sizes.iter().all(|n| *n <= TARGET_BYTES), "{sizes:?}");
        let total: usize = received.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(total, 19_000);
        let mut row = 100;
        for batch in received {
            let numbers = batch.column(0).as_primitive::<Int64Type>();
            let texts = batch.column(1).as_string::<i32>();
            let lists = batch.column(2).as_list::<i32>();
            for i in 0..batch.num_rows() {
                assert_eq!(numbers.value(i), row);
                assert_eq!(texts.value(i), format!("{row:0>600}"));
                assert_eq!(lists.value(i).len(), usize::try_from(row % 50).unwrap());
                row += 1;
            }
        }
    }

    #[tokio::test]
    async fn large_lists_stay_large_lists() {
        let lists = LargeListArray::from_iter_primitive::<Int64Type, _, _>([
            Some(vec![Some(1), Some(2)]),
            None,
            Some(vec![]),
        ]);
        let batch = RecordBatch::try_from_iter([("x", Arc::new(lists) as ArrayRef)]).unwrap();
        let (_, received) = send(&batch).await;
        assert_eq!(received, [batch]);
    }

    #[tokio::test]
    async fn stock_encoder_still_declares_large_lists_as_lists() {
        let lists = LargeListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1)])]);
        let batch = RecordBatch::try_from_iter([("x", Arc::new(lists) as ArrayRef)]).unwrap();
        let encoder = FlightDataEncoderBuilder::new()
            .with_schema(batch.schema())
            .build(stream::empty().boxed());
        let schema = encoder.known_schema().unwrap();
        assert!(matches!(schema.field(0).data_type(), DataType::List(_)));
    }

    #[test]
    fn a_row_that_fits_no_message_is_an_error() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(5 << 20)]));
        let batch = RecordBatch::try_from_iter([("t", text)]).unwrap();
        let wire = to_wire_schema(&batch.schema());
        let (message, rows) =
            BatchEncoder::new(Arc::clone(&wire), 16 << 20).encode_rows(&batch, 0).unwrap();
        assert!(rows == 1 && compute_message_size(&message) > 5 << 20);
        let refused = BatchEncoder::new(wire, 4 << 20).encode_rows(&batch, 0).unwrap_err();
        assert!(refused.message().contains("--max-message"), "{refused}");
    }
}
