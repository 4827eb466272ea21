//! Reads the batches that clients send: rows to write to a table, and values of parameters.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{TableReference, exec_err, plan_datafusion_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use serrate_core::internal::lock_mutex;
use tonic::Status;

use super::sessions::draw_random_key;
use super::status::{NO_TRANSACTIONS, to_invalid, to_status};
use crate::sql::quote_name;

/// Maximum size in bytes of the parameter values in one request.
const MAX_PARAMETER_BYTES: usize = 64 << 20;

/// All messages of a request, including the first, which names the command.
pub(super) type FlightMessages = BoxStream<'static, Result<FlightData, Status>>;

fn decode_messages(messages: FlightMessages) -> FlightRecordBatchStream {
    FlightRecordBatchStream::new_from_flight_data(messages.map_err(FlightError::from))
}

fn convert_client_error(e: FlightError) -> DataFusionError {
    plan_datafusion_err!(
        "the batches that the client sent cannot be decoded: {e}; use a client of Flight SQL"
    )
}

/// Reads the parameter values of a request, as batches with one column per parameter. More than
/// [`MAX_PARAMETER_BYTES`] bytes are an error.
pub(super) async fn read_parameters(messages: FlightMessages) -> Result<Vec<RecordBatch>, Status> {
    let mut total = 0usize;
    let counted = messages.map(move |message| {
        let message = message?;
        total = total.saturating_add(message.data_body.len());
        match total > MAX_PARAMETER_BYTES {
            true => Err(Status::resource_exhausted(format!(
                "the parameter values of one request take more than {MAX_PARAMETER_BYTES} bytes; load them into a table, and join that table"
            ))),
            false => Ok(message),
        }
    });
    let mut batches = Vec::new();
    let mut stream = decode_messages(counted.boxed());
    while let Some(batch) = stream.next().await {
        batches.push(batch.map_err(|e| match e {
            FlightError::Tonic(status) => *status,
            e => to_invalid(convert_client_error(e).strip_backtrace()),
        })?);
    }
    Ok(batches)
}

/// The batches that a client sends, as a table that can be read only once.
struct IncomingBatches {
    schema: SchemaRef,
    batches: Mutex<Option<BoxStream<'static, Result<RecordBatch>>>>,
}

impl fmt::Debug for IncomingBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingBatches").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PartitionStream for IncomingBatches {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let taken = lock_mutex(&self.batches).take();
        let batches = taken.unwrap_or_else(|| {
            stream::once(async { exec_err!("internal error: the batches that the client sent are read twice; please report it") }).boxed()
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

/// Writes the batches of a client to a table, and returns the number of rows.
pub(super) async fn ingest_batches(
    ctx: &SessionContext,
    command: CommandStatementIngest,
    messages: FlightMessages,
) -> Result<i64, Status> {
    if command.transaction_id.is_some() {
        return Err(to_invalid(NO_TRANSACTIONS));
    }
    if let Some(option) = command.options.keys().next() {
        return Err(to_invalid(format!("the ingestion option {option} is unknown; omit it")));
    }
    let mut decoded = decode_messages(messages);
    // Reads the first batch now, because `decoded` has no schema before that.
    let first = decoded
        .next()
        .await
        .transpose()
        .map_err(|e| to_invalid(convert_client_error(e).strip_backtrace()))?;
    let schema = decoded.schema().cloned().ok_or_else(|| {
        to_invalid("the stream to ingest has no schema; send the schema, then the batches")
    })?;
    let batches = stream::iter(first.map(Ok)).chain(decoded.map_err(convert_client_error)).boxed();
    let target = IngestTarget::new(ctx, &command)?;
    let incoming =
        IncomingBatches { schema: Arc::clone(&schema), batches: Mutex::new(Some(batches)) };
    let name = format!("ingested_{}", draw_random_key()?);
    let table = StreamingTable::try_new(schema, vec![Arc::new(incoming)]);
    let table = table.map_err(|e| to_status(&e))?;
    let source = TableReference::bare(name.clone());
    ctx.register_table(source.clone(), Arc::new(table)).map_err(|e| to_status(&e))?;
    // Dropping `_named` deregisters the table, even if the request is dropped before its end.
    let _named = NewTable { ctx: ctx.clone(), name: source };
    let written = target.write_rows(ctx, &name).await;
    written.map_err(|e| to_status(&e))
}

struct NewTable {
    ctx: SessionContext,
    name: TableReference,
}

impl Drop for NewTable {
    fn drop(&mut self) {
        let _ = self.ctx.deregister_table(self.name.clone());
    }
}

/// The table that a client writes, and whether it may be created, appended to, or replaced.
struct IngestTarget {
    /// Name of the table in SQL text: qualified, and in quotes.
    name: String,
    reference: TableReference,
    creates: bool,
    appends: bool,
    replaces: bool,
}

impl IngestTarget {
    fn new(ctx: &SessionContext, command: &CommandStatementIngest) -> Result<Self, Status> {
        let default = ctx.copied_config().options().catalog.clone();
        let catalog = command.catalog.clone().unwrap_or(default.default_catalog);
        let schema = command.schema.clone().unwrap_or(default.default_schema);
        let options = command.table_definition_options.unwrap_or_default();
        let creates = options.if_not_exist() != TableNotExistOption::Fail;
        let parts = [&catalog, &schema, &command.table];
        let name = parts.map(|part| quote_name(part)).join(".");
        Ok(Self {
            name,
            reference: TableReference::full(catalog, schema, command.table.clone()),
            creates,
            appends: options.if_exists() == TableExistsOption::Append,
            replaces: options.if_exists() == TableExistsOption::Replace,
        })
    }

    async fn write_rows(&self, ctx: &SessionContext, source: &str) -> Result<i64> {
        let exists = ctx.table_exist(self.reference.clone())?;
        let (name, replace) = (&self.name, if self.replaces { "OR REPLACE " } else { "" });
        if exists && self.appends {
            let columns = ctx.table_provider(TableReference::bare(source)).await?.schema();
            let columns = columns.fields().iter().map(|field| quote_name(field.name()));
            let columns = columns.collect::<Vec<_>>().join(", ");
            let insert =
                format!("INSERT INTO {name} ({columns}) SELECT {columns} FROM \"{source}\"");
            let batches = crate::sql::sql(ctx, &insert).await?.collect().await?;
            return Ok(batches
                .iter()
                .map(crate::sql::sum_counts)
                .sum::<u64>()
                .try_into()
                .unwrap_or(i64::MAX));
        }
        if exists && !self.replaces {
            return Err(DataFusionError::External(Box::new(crate::Error::Exists(
                self.reference.to_string().into(),
            ))));
        }
        if !exists && !self.creates {
            return exec_err!(
                "table '{}' not found; create it, or ingest in a mode that creates it",
                self.reference
            );
        }
        let create = format!("CREATE {replace}TABLE {name} AS SELECT * FROM \"{source}\"");
        crate::sql::sql(ctx, &create).await?.collect().await?;
        let rows = ctx.table(self.reference.clone()).await?.count().await?;
        Ok(i64::try_from(rows).unwrap_or(i64::MAX))
    }
}
