//! Sessions of clients: finds the session of a request, limits the number of sessions, and ends
//! idle ones.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use datafusion::error::Result as PlanResult;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionContext;
use serrate_core::internal::lock_mutex;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Status};

use super::metrics::ServerMetrics;
use super::ready_result::ReadyResult;
use super::request_origin::{Caller, ConnectionId, find_connection};
use super::statement::PreparedStatement;
use super::status::to_status;
use crate::sql::new_session_like;

/// A function that gets each new session and can change it, for example so that the session uses
/// workers.
pub(crate) type AttachSession = Arc<dyn Fn(&SessionContext) + Send + Sync>;

const COOKIE: &str = "serrate_session";
/// Maximum number of results of a session that are planned and not yet read.
const MAX_RESULTS: usize = 64;
/// Time for which a session stays open after its last connection has closed, so that its client can
/// reconnect.
const RECONNECT_TIME: Duration = Duration::from_secs(60);
/// Maximum number of prepared statements of a session.
const MAX_STATEMENTS: usize = 256;

/// One session: settings, tables, prepared statements and results.
pub(super) struct ServerSession {
    key: String,
    context: SessionContext,
    /// Whether the client knows the key of the session, from a handshake or from a cookie. The
    /// client can then use the session on a new connection. Other sessions end with their
    /// connection.
    portable: AtomicBool,
    used: Mutex<Instant>,
    /// Whether all connections that used the session are closed.
    detached: AtomicBool,
    /// Number of open queries. A query is open while it runs, and until its result is read.
    open: AtomicUsize,
    parts: Mutex<SessionParts>,
}

#[derive(Default)]
struct SessionParts {
    statements: HashMap<String, Arc<PreparedStatement>>,
    results: HashMap<String, (ReadyResult, Instant)>,
    running: HashMap<String, RunningQuery>,
}

struct RunningQuery {
    task: AbortHandle,
    /// A message to `stop` ends the stream of the result at once. An abort of the query's task
    /// takes effect later, when the operators of the query yield.
    stop: oneshot::Sender<()>,
}

impl RunningQuery {
    fn stop_query(self) {
        self.task.abort();
        // An error means that the client no longer reads the result.
        let _ = self.stop.send(());
    }
}

impl fmt::Debug for ServerSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omits the key, which is a secret.
        f.debug_struct("ServerSession").field("open", &self.open).finish_non_exhaustive()
    }
}

/// Returns 128 random bits in hexadecimal.
pub(super) fn draw_random_key() -> Result<String, Status> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|e| {
        Status::internal(format!(
            "the operating system returns no random numbers for a session key; try again: {e}"
        ))
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// While this value exists, a query is open, and its session does not expire. When it is dropped,
/// [`ServerSession::cancel_query`] can no longer stop the query.
pub(super) struct OpenQuery {
    session: Arc<ServerSession>,
    id: Option<String>,
}

impl Drop for OpenQuery {
    fn drop(&mut self) {
        self.session.open.fetch_sub(1, Ordering::SeqCst);
        self.session.mark_used();
        if let Some(id) = &self.id {
            lock_mutex(&self.session.parts).running.remove(id);
        }
    }
}

impl ServerSession {
    fn new(key: String, context: SessionContext, portable: bool) -> Self {
        Self {
            key,
            context,
            portable: AtomicBool::new(portable),
            used: Mutex::new(Instant::now()),
            detached: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            parts: Mutex::default(),
        }
    }

    pub(super) fn session_context(&self) -> &SessionContext {
        &self.context
    }

    pub(super) fn session_key(&self) -> &str {
        &self.key
    }

    fn mark_used(&self) {
        *lock_mutex(&self.used) = Instant::now();
    }

    fn is_idle(&self, limit: Duration) -> bool {
        let limit = match self.detached.load(Ordering::SeqCst) {
            true => limit.min(RECONNECT_TIME),
            false => limit,
        };
        self.open.load(Ordering::SeqCst) == 0 && lock_mutex(&self.used).elapsed() > limit
    }

    /// Marks a query as open until the returned value is dropped. If `id` is set, the drop also
    /// removes the registration of the query.
    pub(super) fn open_query(self: &Arc<Self>, id: Option<&str>) -> OpenQuery {
        self.open.fetch_add(1, Ordering::SeqCst);
        OpenQuery { session: Arc::clone(self), id: id.map(str::to_owned) }
    }

    /// Registers a running query, so that [`cancel_query`](Self::cancel_query) can stop it: it
    /// aborts `task`, and ends the stream of the result with `stop`.
    pub(super) fn add_running(&self, id: &str, task: AbortHandle, stop: oneshot::Sender<()>) {
        let query = RunningQuery { task, stop };
        lock_mutex(&self.parts).running.insert(id.to_owned(), query);
    }

    /// Keeps a result until its client reads it, and returns its id. Returns an error if the
    /// session already keeps [`MAX_RESULTS`] results.
    pub(super) fn keep_result(&self, result: ReadyResult) -> Result<String, Status> {
        let id = draw_random_key()?;
        let mut parts = lock_mutex(&self.parts);
        if parts.results.len() >= MAX_RESULTS {
            return Err(Status::resource_exhausted(format!(
                "the session already has {MAX_RESULTS} unread results, the maximum; read or cancel some of them"
            )));
        }
        parts.results.insert(id.clone(), (result, Instant::now()));
        Ok(id)
    }

    pub(super) fn take_result(&self, id: &str) -> Result<ReadyResult, Status> {
        let taken = lock_mutex(&self.parts).results.remove(id);
        taken.map(|(result, _)| result).ok_or_else(|| {
            Status::not_found(
                "the result was not found: it was already read, cancelled or not read in time, or it belongs to another session; run the statement again",
            )
        })
    }

    pub(super) fn keep_statement(&self, statement: PreparedStatement) -> Result<String, Status> {
        let id = draw_random_key()?;
        let mut parts = lock_mutex(&self.parts);
        if parts.statements.len() >= MAX_STATEMENTS {
            return Err(Status::resource_exhausted(format!(
                "the session already has {MAX_STATEMENTS} prepared statements, the maximum; close some of them"
            )));
        }
        parts.statements.insert(id.clone(), Arc::new(statement));
        Ok(id)
    }

    pub(super) fn find_statement(&self, id: &str) -> Result<Arc<PreparedStatement>, Status> {
        lock_mutex(&self.parts).statements.get(id).cloned().ok_or_else(|| {
            Status::not_found(
                "the prepared statement was not found: it was closed, or it belongs to another session; prepare it again",
            )
        })
    }

    pub(super) fn close_statement(&self, id: &str) {
        lock_mutex(&self.parts).statements.remove(id);
    }

    /// Stops the query or drops the unread result with this id. Returns false if there is neither.
    pub(super) fn cancel_query(&self, id: &str) -> bool {
        let mut parts = lock_mutex(&self.parts);
        let planned = parts.results.remove(id).is_some();
        match parts.running.remove(id) {
            Some(query) => {
                query.stop_query();
                true
            }
            None => planned,
        }
    }

    fn end_queries(&self) {
        let parts = std::mem::take(&mut *lock_mutex(&self.parts));
        for query in parts.running.into_values() {
            query.stop_query();
        }
    }

    fn forget_old_results(&self, limit: Duration) {
        lock_mutex(&self.parts).results.retain(|_, (_, since)| since.elapsed() <= limit);
    }
}

pub(super) struct ServerSessions {
    base: SessionContext,
    runtime: RuntimeEnv,
    attach: Option<AttachSession>,
    limit: usize,
    idle: Duration,
    metrics: Arc<ServerMetrics>,
    table: Mutex<SessionTable>,
}

impl fmt::Debug for ServerSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSessions").field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct SessionTable {
    sessions: HashMap<String, Arc<ServerSession>>,
    /// The session of each connection on which a request came that had neither a cookie nor a
    /// session key.
    connections: HashMap<ConnectionId, BoundSession>,
    /// For each connection, the keys of the open sessions that its handshakes have created or its
    /// requests have named. These are several if clients share a proxy, and thereby a connection.
    named: HashMap<ConnectionId, HashSet<String>>,
    /// Number of sessions that are being created. They count towards the maximum number of
    /// sessions.
    creating: usize,
}

/// The session of a connection, for requests that have neither a cookie nor a session key.
enum BoundSession {
    Session(String),
    /// The session has expired. The next request on the connection returns an error that says so.
    Expired,
}

/// Counts a session in [`SessionTable::creating`] until this value is dropped, which also happens
/// if the client disconnects.
struct CreationCount<'a>(&'a ServerSessions);

impl Drop for CreationCount<'_> {
    fn drop(&mut self) {
        let mut table = lock_mutex(&self.0.table);
        table.creating = table.creating.saturating_sub(1);
    }
}

impl ServerSessions {
    pub(super) fn new(
        base: SessionContext,
        runtime: RuntimeEnv,
        attach: Option<AttachSession>,
        limit: usize,
        idle: Duration,
        metrics: Arc<ServerMetrics>,
    ) -> Self {
        Self { base, runtime, attach, limit, idle, metrics, table: Mutex::default() }
    }

    pub(super) fn server_metrics(&self) -> &Arc<ServerMetrics> {
        &self.metrics
    }

    pub(super) fn is_open(&self, key: &str) -> bool {
        lock_mutex(&self.table).sessions.contains_key(key)
    }

    /// Returns the session of a request. If the request has a session key as bearer token or a
    /// cookie, this is the session with that key, or an error if that session has ended. Otherwise,
    /// it is the session of the connection, which is created if it does not exist.
    pub(super) async fn find_session(
        &self,
        extensions: &Extensions,
        metadata: &MetadataMap,
    ) -> Result<Arc<ServerSession>, Status> {
        let connection = find_connection(extensions)?;
        if let Some(Caller::OfSession(key)) = extensions.get::<Caller>() {
            return self.find_open(key, connection);
        }
        if let Some(key) = find_cookie(metadata) {
            return self.find_open(&key, connection).map_err(|mut status| {
                // Deletes the cookie, so that the next request gets a new session.
                if let Ok(value) = format!("{COOKIE}=; Max-Age=0").parse() {
                    status.metadata_mut().insert("set-cookie", value);
                }
                status
            });
        }
        {
            let mut table = lock_mutex(&self.table);
            match table.connections.get(&connection) {
                Some(BoundSession::Session(key)) => {
                    if let Some(session) = table.sessions.get(key) {
                        session.mark_used();
                        return Ok(Arc::clone(session));
                    }
                    // The client has ended the session with CloseSession, so it gets a new one.
                    table.connections.remove(&connection);
                }
                Some(BoundSession::Expired) => {
                    table.connections.remove(&connection);
                    return Err(Status::not_found(format!(
                        "the session ended after {} s without a statement, so its tables and settings are lost; create them again in a new session, which the next statement begins",
                        self.idle.as_secs()
                    )));
                }
                None => {}
            }
        }
        self.create_session(Some(connection)).await
    }

    /// Returns the open session with this key, and notes that `connection` uses it.
    pub(super) fn find_open(
        &self,
        key: &str,
        connection: ConnectionId,
    ) -> Result<Arc<ServerSession>, Status> {
        let mut table = lock_mutex(&self.table);
        let found = table.sessions.get(key).cloned();
        let session =
            found.ok_or_else(|| Status::unauthenticated("the session has ended; connect again"))?;
        table.named.entry(connection).or_default().insert(key.to_owned());
        session.detached.store(false, Ordering::SeqCst);
        session.portable.store(true, Ordering::SeqCst);
        session.mark_used();
        Ok(session)
    }

    /// Creates a session, and makes it the session of `connection`. If `connection` is `None`, the
    /// requests of the client contain the key of the session instead.
    pub(super) async fn create_session(
        &self,
        connection: Option<ConnectionId>,
    ) -> Result<Arc<ServerSession>, Status> {
        self.end_idle();
        {
            let mut table = lock_mutex(&self.table);
            if table.sessions.len().saturating_add(table.creating) >= self.limit {
                return Err(Status::resource_exhausted(format!(
                    "as many sessions are open as --max-sessions allows ({}); close one, or start the server with a higher --max-sessions",
                    self.limit
                )));
            }
            table.creating += 1;
        }
        let creating = CreationCount(self);
        let context = self.create_context().await.map_err(|e| to_status(&e))?;
        let session = ServerSession::new(draw_random_key()?, context, connection.is_none());
        let session = Arc::new(session);
        drop(creating);
        let mut table = lock_mutex(&self.table);
        if let Some(connection) = connection {
            // While this session was created, another request on the connection may have created
            // one, which is returned instead.
            if let Some(BoundSession::Session(key)) = table.connections.get(&connection)
                && let Some(other) = table.sessions.get(key)
            {
                return Ok(Arc::clone(other));
            }
            table.connections.insert(connection, BoundSession::Session(session.key.clone()));
        }
        table.sessions.insert(session.key.clone(), Arc::clone(&session));
        self.metrics.sessions.add(1);
        Ok(session)
    }

    async fn create_context(&self) -> PlanResult<SessionContext> {
        let context = new_session_like(&self.base, &self.runtime).await?;
        if let Some(attach) = &self.attach {
            attach(&context);
        }
        Ok(context)
    }

    /// Ends a session and all its queries.
    pub(super) fn end_session(&self, key: &str) {
        let ended = {
            let mut table = lock_mutex(&self.table);
            // A connection may outlive any number of sessions, so it does not keep their keys.
            table.named.retain(|_, keys| {
                keys.remove(key);
                !keys.is_empty()
            });
            table.sessions.remove(key)
        };
        if let Some(session) = ended {
            self.metrics.sessions.sub();
            session.end_queries();
        }
    }

    /// Ends the sessions that used a closed connection, unless they are used on other connections.
    /// If the client knows the key of a session, the session ends only after [`RECONNECT_TIME`].
    pub(super) fn close_connection(&self, connection: ConnectionId) {
        let ended = {
            let mut table = lock_mutex(&self.table);
            let own = match table.connections.remove(&connection) {
                Some(BoundSession::Session(key)) => Some(key),
                _ => None,
            };
            let named = table.named.remove(&connection).unwrap_or_default();
            for key in named.iter().chain(&own) {
                let is_bound =
                    |bound: &BoundSession| matches!(bound, BoundSession::Session(k) if k == key);
                if !table.named.values().any(|keys| keys.contains(key))
                    && !table.connections.values().any(is_bound)
                    && let Some(session) = table.sessions.get(key)
                {
                    session.mark_used();
                    session.detached.store(true, Ordering::SeqCst);
                }
            }
            own.filter(|key| {
                let session = table.sessions.get(key);
                session.is_some_and(|session| !session.portable.load(Ordering::SeqCst))
            })
        };
        if let Some(key) = ended {
            self.end_session(&key);
        }
    }

    /// Ends the sessions that were last used longer ago than the idle timeout. In all other
    /// sessions, drops the results that have been unread for longer than this timeout.
    pub(super) fn end_idle(&self) {
        let (idle, busy): (Vec<_>, Vec<_>) = {
            let table = lock_mutex(&self.table);
            table.sessions.values().cloned().partition(|session| session.is_idle(self.idle))
        };
        for session in busy {
            session.forget_old_results(self.idle);
        }
        for session in idle {
            for bound in lock_mutex(&self.table).connections.values_mut() {
                if matches!(bound, BoundSession::Session(key) if *key == session.key) {
                    *bound = BoundSession::Expired;
                }
            }
            self.end_session(&session.key);
        }
    }

    pub(super) fn end_all(&self) {
        let keys: Vec<String> = lock_mutex(&self.table).sessions.keys().cloned().collect();
        for key in keys {
            self.end_session(&key);
        }
    }
}

/// Returns the value of the header `set-cookie` that makes a client send the key of the session.
pub(super) fn format_cookie(session: &ServerSession) -> String {
    format!("{COOKIE}={}; HttpOnly", session.key)
}

/// Returns the session key in the cookie of a request, or `None` without such a cookie.
pub(super) fn find_cookie(metadata: &MetadataMap) -> Option<String> {
    let cookies = metadata.get_all("cookie").iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
    pairs.find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE).then(|| value.trim_matches('"').to_owned())
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sql::{find_process_runtime, new_session_in};

    pub(in crate::serve) fn make_sessions(limit: usize) -> Arc<ServerSessions> {
        let runtime = find_process_runtime();
        let base = new_session_in(datafusion::prelude::SessionConfig::new(), &runtime);
        let metrics = Arc::new(ServerMetrics::default());
        let idle = Duration::from_millis(100);
        Arc::new(ServerSessions::new(base, runtime, None, limit, idle, metrics))
    }

    fn make_request(connection: u64) -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(ConnectionId(connection));
        extensions
    }

    async fn find_for(
        sessions: &ServerSessions,
        connection: u64,
    ) -> Result<Arc<ServerSession>, Status> {
        sessions.find_session(&make_request(connection), &MetadataMap::new()).await
    }

    #[tokio::test]
    async fn a_connection_has_one_session() {
        let sessions = make_sessions(2);
        let first = find_for(&sessions, 1).await.unwrap();
        assert_eq!(find_for(&sessions, 1).await.unwrap().session_key(), first.session_key());
        let second = find_for(&sessions, 2).await.unwrap();
        assert_ne!(first.session_key(), second.session_key());
        let refused = find_for(&sessions, 3).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        sessions.close_connection(ConnectionId(1));
        assert!(!sessions.is_open(first.session_key()));
        assert_eq!(sessions.server_metrics().sessions.get(), 1);
        find_for(&sessions, 3).await.unwrap();
    }

    #[tokio::test]
    async fn a_cookie_names_a_session_on_any_connection() {
        let sessions = make_sessions(2);
        let first = find_for(&sessions, 1).await.unwrap();
        let mut metadata = MetadataMap::new();
        let cookie = format!("a=b; {}", format_cookie(&first).replace("; HttpOnly", ""));
        metadata.insert("cookie", cookie.parse().unwrap());
        let again = sessions.find_session(&make_request(2), &metadata).await.unwrap();
        assert_eq!(again.session_key(), first.session_key());
        sessions.close_connection(ConnectionId(1));
        assert!(sessions.is_open(first.session_key()));
        sessions.end_session(first.session_key());
        let ended = sessions.find_session(&make_request(2), &metadata).await.unwrap_err();
        assert_eq!(ended.code(), tonic::Code::Unauthenticated);
    }

    #[tokio::test]
    async fn a_connection_knows_the_open_sessions_of_its_handshakes() {
        let sessions = make_sessions(1);
        for _ in 0..3 {
            let session = sessions.create_session(None).await.unwrap();
            sessions.find_open(session.session_key(), ConnectionId(1)).unwrap();
            sessions.end_session(session.session_key());
        }
        assert!(lock_mutex(&sessions.table).named.is_empty());
        // A session that its client leaves ends earlier than others.
        let session = sessions.create_session(None).await.unwrap();
        sessions.find_open(session.session_key(), ConnectionId(1)).unwrap();
        assert!(!session.detached.load(Ordering::SeqCst));
        sessions.close_connection(ConnectionId(1));
        assert!(session.detached.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn idle_sessions_end_and_say_so_once() {
        let sessions = make_sessions(2);
        let first = find_for(&sessions, 1).await.unwrap();
        let query = first.open_query(None);
        tokio::time::sleep(Duration::from_millis(150)).await;
        sessions.end_idle();
        assert!(sessions.is_open(first.session_key()), "a session with a query is not idle");
        drop(query);
        tokio::time::sleep(Duration::from_millis(150)).await;
        sessions.end_idle();
        assert!(!sessions.is_open(first.session_key()));
        assert_eq!(find_for(&sessions, 1).await.unwrap_err().code(), tonic::Code::NotFound);
        find_for(&sessions, 1).await.unwrap();
    }
}
