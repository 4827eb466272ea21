//! Registers the files of a report as a table of an SQL session.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;

use crate::cli::command_failure::{Failure, Outcome};
use crate::cli::files::{InputShard, InputSource, conform_batch};
use crate::cli::interrupt;

/// Registers the rows of a source as the table `name`. At most `partitions` files are open at a
/// time.
pub(super) fn register_source(
    context: &SessionContext,
    name: &str,
    source: &InputSource,
    partitions: usize,
) -> Outcome {
    let schema = source.schema()?;
    let size = source.shards.len().div_ceil(partitions.max(1)).max(1);
    let parts = source.shards.chunks(size).map(|shards| {
        let part = ShardStream { schema: Arc::clone(&schema), shards: shards.into() };
        Arc::new(part) as Arc<dyn PartitionStream>
    });
    let table = StreamingTable::try_new(Arc::clone(&schema), parts.collect())?;
    context.register_table(name, Arc::new(table))?;
    Ok(())
}

#[derive(Debug)]
struct ShardStream {
    schema: SchemaRef,
    shards: Arc<[InputShard]>,
}

impl PartitionStream for ShardStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 1);
        let (sender, schema) = (stream.tx(), Arc::clone(&self.schema));
        let shards = Arc::clone(&self.shards);
        stream.spawn_blocking(move || {
            let read = || -> Outcome {
                for shard in shards.iter() {
                    for batch in shard.open_batches(Some(&schema))? {
                        interrupt::check_interrupt()?;
                        // An error means that the receiver is dropped: the query needs no more
                        // rows.
                        if sender.blocking_send(Ok(conform_batch(&batch?, &schema)?)).is_err() {
                            return Ok(());
                        }
                    }
                }
                Ok(())
            };
            read().map_err(to_query_error)
        });
        stream.build()
    }
}

fn to_query_error(failure: Failure) -> DataFusionError {
    let message = match failure {
        Failure::Failed(message) | Failure::Usage(message) => message,
        Failure::Closed | Failure::Interrupted => "interrupted".into(),
    };
    DataFusionError::External(message.into())
}
