//! Runs the ingestion of rows that a client sends, as one of the limited number of queries.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_flight::sql::CommandStatementIngest;
use datafusion::prelude::SessionContext;
use futures::{StreamExt, stream};
use serrate_core::internal::lock_mutex;
use tonic::Status;

use super::admission::QueryPermit;
use super::ingest::{FlightMessages, ingest_batches};
use super::query::{QueryCounter, QueryEngine};
use super::sessions::ServerSession;

/// Time for which an ingestion waits for its client before it lets another query run.
const MAX_HELD_WAIT: Duration = Duration::from_secs(1);

impl QueryEngine {
    /// Writes the rows that a client sends to a table, and returns their number. While the client
    /// sends nothing, other queries can run in place of the ingestion.
    pub(super) async fn run_ingestion(
        self: &Arc<Self>,
        session: &Arc<ServerSession>,
        command: CommandStatementIngest,
        messages: FlightMessages,
    ) -> Result<i64, Status> {
        let (engine, session) = (Arc::clone(self), Arc::clone(session));
        self.run(async move {
            let _open = session.open_query(None);
            let counted = QueryCounter::new(&engine.metrics);
            let ctx = session.session_context();
            let written = ingest_in_turn(&engine, ctx, command, messages).await;
            counted.count_end(&written);
            written
        })
        .await
    }
}

/// State that an ingestion shares with the stream of its messages.
#[derive(Default)]
struct IngestTurn {
    /// The permit to run. It is `None` while the ingestion waits for its client.
    place: Mutex<Option<QueryPermit>>,
    /// The status that ended the stream, if the client sent nothing for too long.
    timeout: Mutex<Option<Status>>,
}

async fn ingest_in_turn(
    engine: &Arc<QueryEngine>,
    ctx: &SessionContext,
    command: CommandStatementIngest,
    messages: FlightMessages,
) -> Result<i64, Status> {
    let turn = Arc::new(IngestTurn::default());
    let place = engine.admission.wait_for_turn().await?;
    *lock_mutex(&turn.place) = Some(place);
    let messages = receive_in_turn(Arc::clone(engine), Arc::clone(&turn), messages);
    let written = ingest_batches(ctx, command, messages).await;
    let timeout = lock_mutex(&turn.timeout).take();
    match timeout {
        Some(status) => Err(status),
        None => written,
    }
}

/// Returns the messages of a client. Gives up the permit in `turn` while the client sends nothing,
/// and ends with an error if this takes longer than [`QueryEngine::idle`].
fn receive_in_turn(
    engine: Arc<QueryEngine>,
    turn: Arc<IngestTurn>,
    messages: FlightMessages,
) -> FlightMessages {
    let received = stream::unfold(Some(messages), move |state| {
        let (engine, turn) = (Arc::clone(&engine), Arc::clone(&turn));
        async move {
            let mut messages = state?;
            if let Ok(next) = tokio::time::timeout(MAX_HELD_WAIT, messages.next()).await {
                return Some((next?, Some(messages)));
            }
            *lock_mutex(&turn.place) = None;
            let Ok(next) = tokio::time::timeout(engine.idle, messages.next()).await else {
                let status = Status::cancelled(format!(
                    "the statement was cancelled, because its client sent no rows for {} s; send them again",
                    engine.idle.as_secs()
                ));
                *lock_mutex(&turn.timeout) = Some(status.clone());
                return Some((Err(status), None));
            };
            match engine.admission.enter_again().await {
                Ok(place) => {
                    *lock_mutex(&turn.place) = Some(place);
                    Some((next?, Some(messages)))
                }
                Err(status) => Some((Err(status), None)),
            }
        }
    });
    received.boxed()
}
