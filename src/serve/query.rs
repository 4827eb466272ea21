//! Runs statements on the threads for queries, and sends their results.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::FlightData;
use datafusion::error::Result as PlanResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, stream};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tonic::Status;

use super::admission::{QueryAdmission, QueryPermit};
use super::flight_messages::{BatchEncoder, compute_message_size};
use super::metrics::ServerMetrics;
use super::ready_result::{ReadyResult, ResultPart};
use super::sessions::{OpenQuery, ServerSession};
use super::statement::{check_settings, has_effect, to_plan_status};
use super::status::{convert_panic, to_status};
use super::wire_types::to_wire_schema;
use crate::sql::{convert_internal_error, sum_counts};

/// Maximum number of messages that a query computes in advance, before its client reads them.
const MAX_MESSAGES_AHEAD: usize = 2;

/// Maximum number of rows of parameter values for which a prepared query runs at a time. A result
/// keeps one plan per row in memory until its client reads it.
const MAX_PLANS: usize = 1 << 10;

/// State that all queries of a server share.
#[derive(Debug)]
pub(super) struct QueryEngine {
    pub(super) queries: Handle,
    pub(super) admission: QueryAdmission,
    pub(super) metrics: Arc<ServerMetrics>,
    /// Maximum size in bytes of a message to a client, which contains rows of a result.
    pub(super) max_message: usize,
    /// Time after which a result that its client does not read is cancelled.
    pub(super) idle: Duration,
    pub(super) stopping: AtomicBool,
}

/// A task that is aborted when this value is dropped. If the client disconnects, the request is
/// dropped and this value with it.
struct AbortedTask<T>(JoinHandle<T>);

impl<T> Drop for AbortedTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> AbortedTask<Result<T, Status>> {
    async fn wait_for_end(&mut self, engine: &QueryEngine) -> Result<T, Status> {
        match (&mut self.0).await {
            Ok(result) => result,
            Err(e) => match e.try_into_panic() {
                Ok(panic) => Err(convert_panic(panic.as_ref())),
                Err(_) => Err(engine.to_cancelled()),
            },
        }
    }
}

/// Counts a query as open until it ends, and then as finished, failed or cancelled. A query counts
/// as cancelled if this value is dropped before the query ends.
pub(super) struct QueryCounter<'a> {
    metrics: &'a ServerMetrics,
    ended: bool,
}

impl<'a> QueryCounter<'a> {
    pub(super) fn new(metrics: &'a ServerMetrics) -> Self {
        metrics.open.add(1);
        Self { metrics, ended: false }
    }

    pub(super) fn count_end<T>(mut self, result: &Result<T, Status>) {
        self.ended = true;
        match result {
            Ok(_) => self.metrics.finished.add(1),
            Err(status) if status.code() == tonic::Code::Cancelled => {
                self.metrics.cancelled.add(1);
            }
            Err(_) => self.metrics.failed.add(1),
        }
    }
}

impl Drop for QueryCounter<'_> {
    fn drop(&mut self) {
        self.metrics.open.sub();
        if !self.ended {
            self.metrics.cancelled.add(1);
        }
    }
}

impl QueryEngine {
    fn to_cancelled(&self) -> Status {
        match self.stopping.load(Ordering::SeqCst) {
            true => Status::unavailable("the server is shutting down; connect again later"),
            false => Status::cancelled("the query was cancelled"),
        }
    }

    fn check_running(&self) -> Result<(), Status> {
        match self.stopping.load(Ordering::SeqCst) {
            true => Err(self.to_cancelled()),
            false => Ok(()),
        }
    }

    /// Runs work on the threads for queries, and returns its result. Dropping the future stops the
    /// work.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<T, Status> {
        self.check_running()?;
        let work = AssertUnwindSafe(work).catch_unwind();
        let task = self.queries.spawn(async move {
            work.await.unwrap_or_else(|panic| Err(convert_panic(panic.as_ref())))
        });
        AbortedTask(task).wait_for_end(self).await
    }

    /// Plans the statements that `parse` returns. Queries do not run before a client reads their
    /// result. Other statements run in order before this function returns.
    pub(super) async fn start_statements(
        self: &Arc<Self>,
        session: &Arc<ServerSession>,
        parse: impl FnOnce(&SessionContext) -> Result<Vec<Statement>, Status> + Send + 'static,
    ) -> Result<ReadyResult, Status> {
        let (engine, session) = (Arc::clone(self), Arc::clone(session));
        self.run(async move {
            let _open = session.open_query(None);
            let counted = QueryCounter::new(&engine.metrics);
            let started = engine.start_all(session.session_context(), parse).await;
            match &started {
                // All statements are queries, which run later. They are counted when their result
                // is read, so this count is discarded.
                Ok(ready)
                    if ready.parts.iter().all(|part| matches!(part, ResultPart::Plan(..))) =>
                {
                    counted.discard_count();
                }
                _ => counted.count_end(&started),
            }
            started
        })
        .await
    }

    async fn start_all(
        &self,
        ctx: &SessionContext,
        parse: impl FnOnce(&SessionContext) -> Result<Vec<Statement>, Status>,
    ) -> Result<ReadyResult, Status> {
        let _place = self.admission.wait_for_turn().await?;
        let mut ready: Option<ReadyResult> = None;
        let mut plans = 0usize;
        for statement in parse(ctx)? {
            let next = start_one(ctx, statement).await.map_err(|e| to_plan_status(&e))?;
            plans += next.parts.iter().filter(|part| matches!(part, ResultPart::Plan(..))).count();
            if plans > MAX_PLANS {
                return Err(Status::invalid_argument(format!(
                    "a query runs for at most {MAX_PLANS} rows of parameter values at a time, but more are bound; load them into a table, and join that table"
                )));
            }
            match &mut ready {
                None => ready = Some(next),
                Some(ready) if ready.schema == next.schema => ready.parts.extend(next.parts),
                Some(ready) => {
                    return Err(Status::invalid_argument(format!(
                        "the rows of parameter values give results with different schemas, {} and {}; bind one row at a time",
                        ready.schema, next.schema
                    )));
                }
            }
        }
        ready.ok_or_else(|| {
            Status::invalid_argument("no row of parameter values is bound; bind one")
        })
    }

    /// Runs the statements that `parse` returns to their end. Returns the number of rows that they
    /// changed, or -1 for a query.
    pub(super) async fn run_updates(
        self: &Arc<Self>,
        session: &Arc<ServerSession>,
        parse: impl FnOnce(&SessionContext) -> Result<Vec<Statement>, Status> + Send + 'static,
    ) -> Result<i64, Status> {
        let (engine, session) = (Arc::clone(self), Arc::clone(session));
        self.run(async move {
            let _open = session.open_query(None);
            let counted = QueryCounter::new(&engine.metrics);
            let changed = engine.update_all(session.session_context(), parse).await;
            counted.count_end(&changed);
            changed
        })
        .await
    }

    async fn update_all(
        &self,
        ctx: &SessionContext,
        parse: impl FnOnce(&SessionContext) -> Result<Vec<Statement>, Status>,
    ) -> Result<i64, Status> {
        let _place = self.admission.wait_for_turn().await?;
        let statements = parse(ctx)?;
        let several = statements.len() > 1;
        let mut total = Some(0u64);
        for (row, statement) in statements.into_iter().enumerate() {
            let changed = update_one(ctx, statement).await.map_err(|e| {
                let status = to_plan_status(&e);
                match several {
                    true => Status::new(
                        status.code(),
                        format!(
                            "row {} of the parameter values: {} (the statement has run for the rows before it)",
                            row + 1,
                            status.message()
                        ),
                    ),
                    false => status,
                }
            })?;
            total = total.zip(changed).map(|(a, b)| a.saturating_add(b));
        }
        Ok(total.map_or(-1, |rows| i64::try_from(rows).unwrap_or(i64::MAX)))
    }

    /// Runs the query of a result, and returns its messages as a stream. The query stops if this
    /// stream is dropped, or if [`ServerSession::cancel_query`] is called with `id`.
    pub(super) fn send_messages(
        self: &Arc<Self>,
        session: &Arc<ServerSession>,
        id: &str,
        ready: ReadyResult,
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        self.check_running()?;
        let (sender, receiver) = mpsc::channel(MAX_MESSAGES_AHEAD);
        let open = session.open_query(Some(id));
        let engine = Arc::clone(self);
        let (start, started) = oneshot::channel::<()>();
        let task = self.queries.spawn(async move {
            let _open: OpenQuery = open;
            // Waits until `add_running` has registered the query. If the query ended earlier, it
            // would stay registered, because only its end removes the registration.
            let _ = started.await;
            let counted = QueryCounter::new(&engine.metrics);
            let sent = AssertUnwindSafe(send_result(&engine, ready, sender)).catch_unwind().await;
            let sent = sent.unwrap_or_else(|panic| Err(convert_panic(panic.as_ref())));
            counted.count_end(&sent);
            sent
        });
        let (stop, stopped) = oneshot::channel::<()>();
        session.add_running(id, task.abort_handle(), stop);
        let _ = start.send(());
        let state = Some((receiver, stopped.fuse(), AbortedTask(task), Arc::clone(self)));
        Ok(stream::unfold(state, |state| async move {
            let (mut receiver, mut stopped, mut task, engine) = state?;
            let message = tokio::select! {
                biased;
                Ok(()) = &mut stopped => return Some((Err(engine.to_cancelled()), None)),
                message = receiver.recv() => message,
            };
            match message {
                Some(message) => Some((Ok(message), Some((receiver, stopped, task, engine)))),
                None => match task.wait_for_end(&engine).await {
                    Ok(()) => None,
                    Err(status) => Some((Err(status), None)),
                },
            }
        })
        .boxed())
    }
}

impl QueryEngine {
    pub(super) fn send_rows(
        &self,
        rows: RecordBatch,
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, Status> {
        let mut encoder = BatchEncoder::new(rows.schema(), self.max_message);
        let mut messages = vec![Ok(encoder.encode_schema())];
        let mut start = 0;
        while start < rows.num_rows() {
            let (message, sent) = encoder.encode_rows(&rows, start)?;
            start = start.saturating_add(sent.max(1));
            messages.push(Ok(message));
        }
        Ok(stream::iter(messages).boxed())
    }
}

impl QueryCounter<'_> {
    /// Ends the count without counting the query as finished, failed or cancelled. The query is
    /// counted again when its result is read.
    fn discard_count(mut self) {
        self.ended = true;
    }
}

async fn start_one(ctx: &SessionContext, statement: Statement) -> PlanResult<ReadyResult> {
    let plan = crate::sql::plan(ctx, statement).await?;
    check_settings(ctx, &plan)?;
    let effect = has_effect(&plan);
    let explains = matches!(
        plan,
        datafusion::logical_expr::LogicalPlan::Explain(_)
            | datafusion::logical_expr::LogicalPlan::Analyze(_)
    );
    let frame =
        crate::sql::execute_plan(ctx, plan, ctx.state()).await.map_err(convert_internal_error)?;
    let task = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await.map_err(convert_internal_error)?;
    if effect {
        let mut stream = execute_stream(plan, task)?;
        let schema = to_wire_schema(&stream.schema());
        // The statement is not a query, so it runs now. Its few rows, counts of changed rows, stay
        // in memory.
        let mut rows = Vec::new();
        while let Some(batch) = stream.next().await {
            rows.push(batch?);
        }
        return Ok(ReadyResult { schema, parts: vec![ResultPart::Rows(rows)] });
    }
    let plan = if explains { plan } else { crate::sql::prefer_source_order(plan)? };
    Ok(ReadyResult {
        schema: to_wire_schema(&plan.schema()),
        parts: vec![ResultPart::Plan(plan, task)],
    })
}

/// Runs a statement to its end. Returns the number of rows that it changed; `None` for a query.
async fn update_one(ctx: &SessionContext, statement: Statement) -> PlanResult<Option<u64>> {
    let mut changed = Some(0u64);
    for part in start_one(ctx, statement).await?.parts {
        match part {
            ResultPart::Rows(batches) => {
                let rows: u64 = batches.iter().map(sum_counts).sum();
                changed = changed.map(|n| n.saturating_add(rows));
            }
            ResultPart::Plan(plan, task) => {
                changed = None;
                let mut stream = execute_stream(plan, task)?;
                while let Some(batch) = stream.next().await {
                    batch?;
                }
            }
        }
    }
    Ok(changed)
}

/// Sends the messages of a result to its client. If the client reads slowly, waits without the
/// permit to run, so that other queries can run.
struct ResultOutlet<'a> {
    engine: &'a QueryEngine,
    sender: mpsc::Sender<FlightData>,
    /// The permit to run. It is `None` while the query waits for its client to read.
    place: Option<QueryPermit>,
}

impl ResultOutlet<'_> {
    async fn send_message(&mut self, message: FlightData) -> Result<(), Status> {
        let bytes = u64::try_from(compute_message_size(&message)).unwrap_or(u64::MAX);
        let message = match self.sender.try_send(message) {
            Ok(()) => None,
            Err(mpsc::error::TrySendError::Full(message)) => Some(message),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(self.engine.to_cancelled()),
        };
        if let Some(message) = message {
            // Lets another query run while this query waits for its client.
            self.place = None;
            let slot = tokio::time::timeout(self.engine.idle, self.sender.reserve()).await;
            let slot = slot.map_err(|_| {
                Status::cancelled(format!(
                    "the query was cancelled, because its result was not read for {} s; run it again",
                    self.engine.idle.as_secs()
                ))
            })?;
            slot.map_err(|_| self.engine.to_cancelled())?.send(message);
            self.place = Some(self.engine.admission.enter_again().await?);
        }
        self.engine.metrics.bytes.add(bytes);
        Ok(())
    }
}

async fn send_result(
    engine: &QueryEngine,
    ready: ReadyResult,
    sender: mpsc::Sender<FlightData>,
) -> Result<(), Status> {
    let place = Some(engine.admission.wait_for_turn().await?);
    let mut outlet = ResultOutlet { engine, sender, place };
    let mut encoder = BatchEncoder::new(Arc::clone(&ready.schema), engine.max_message);
    outlet.send_message(encoder.encode_schema()).await?;
    for part in ready.parts {
        let mut batches = match part {
            ResultPart::Plan(plan, task) => {
                execute_stream(plan, task).map_err(|e| to_status(&e))?
            }
            ResultPart::Rows(batches) => make_batch_stream(&ready.schema, batches),
        };
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(|e| to_status(&e))?;
            let mut start = 0;
            while start < batch.num_rows() {
                let (message, rows) = encoder.encode_rows(&batch, start)?;
                start = start.saturating_add(rows.max(1));
                outlet.send_message(message).await?;
            }
            engine.metrics.rows.add(u64::try_from(batch.num_rows()).unwrap_or(u64::MAX));
        }
    }
    Ok(())
}

fn make_batch_stream(schema: &SchemaRef, batches: Vec<RecordBatch>) -> SendableRecordBatchStream {
    let batches = stream::iter(batches.into_iter().map(Ok));
    Box::pin(datafusion::physical_plan::stream::RecordBatchStreamAdapter::new(
        Arc::clone(schema),
        batches,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine_of_tests() -> QueryEngine {
        let metrics = Arc::new(ServerMetrics::default());
        QueryEngine {
            queries: Handle::current(),
            admission: QueryAdmission::new(1, Duration::from_secs(1), Arc::clone(&metrics)),
            metrics,
            max_message: 4 << 20,
            idle: Duration::from_secs(1),
            stopping: AtomicBool::new(false),
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_error_of_its_query() {
        let engine = engine_of_tests();
        let work = async {
            let none: Option<u8> = None;
            none.map(Ok).unwrap_or_else(|| panic!("on purpose"))
        };
        let failed = engine.run(work).await.unwrap_err();
        assert_eq!(failed.code(), tonic::Code::Internal);
        assert!(failed.message().contains("on purpose"), "{failed}");
        assert_eq!(engine.run(async { Ok(3) }).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn dropped_work_stops() {
        let engine = engine_of_tests();
        let (sender, receiver) = oneshot::channel::<()>();
        let work = engine.run(async move {
            let _sender = sender;
            std::future::pending::<Result<(), Status>>().await
        });
        assert!(tokio::time::timeout(Duration::from_millis(50), work).await.is_err());
        // The task was stopped and has dropped its sender, so the receiver gets an error.
        assert!(receiver.await.is_err());
    }
}
