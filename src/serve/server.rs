//! Starts the server, which listens for clients, and shuts it down.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use datafusion::common::{exec_datafusion_err, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::stream;
use tokio::net::TcpListener;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use tonic::service::interceptor::{InterceptedService, Interceptor};
use tonic::transport::Server;

use super::admission::QueryAdmission;
use super::auth::TokenGate;
use super::connection::ClientConnection;
use super::http::serve_metrics;
use super::metrics::{CountWorkers, ServerMetrics};
use super::query::QueryEngine;
use super::service::SqlService;
use super::sessions::{AttachSession, ServerSessions};
use crate::secret::{TlsIdentity, encrypt_server};
use crate::sql::{find_process_runtime, new_session_in};

/// Stack size in bytes of the threads that run queries, the same as in the `serrate` command.
const STACK: usize = 64 << 20;
/// Time between keep-alive pings on a connection, and maximum time to answer one.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// Maximum time that a stopping server waits for cancelled queries and last messages to clients.
const STOP_LIMIT: Duration = Duration::from_millis(500);
/// Maximum number of concurrent requests on a connection.
const MAX_STREAMS: u32 = 256;

pub(crate) struct ServeConfig {
    /// Address to listen on; port 0 chooses a free port.
    pub(crate) listen: SocketAddr,
    /// Address of `/health` and `/metrics` over HTTP, if any.
    pub(crate) metrics: Option<SocketAddr>,
    /// Secret that clients must send, if any.
    pub(crate) token: Option<String>,
    pub(crate) tls: Option<TlsIdentity>,
    /// Whether other machines are allowed to connect without token and TLS.
    pub(crate) insecure: bool,
    pub(crate) max_queries: usize,
    pub(crate) queue_timeout: Duration,
    pub(crate) max_sessions: usize,
    pub(crate) idle_timeout: Duration,
    /// Maximum size in bytes of a message to or from a client.
    pub(crate) max_message: usize,
    /// Time that running queries have to end when the server stops.
    pub(crate) grace: Duration,
    /// Name and SQL text of each script that defines the initial tables and settings of sessions.
    pub(crate) scripts: Vec<(String, String)>,
    pub(crate) attach: Option<AttachSession>,
    pub(crate) workers: Option<CountWorkers>,
}

impl ServeConfig {
    /// Returns an error if clients on other machines could connect without a token or without TLS,
    /// or could read the metrics. Allows this if the field `insecure` is true.
    fn check_exposure(&self) -> Result<()> {
        if self.insecure {
            return Ok(());
        }
        if !self.listen.ip().is_loopback() && (self.token.is_none() || self.tls.is_none()) {
            return plan_err!(
                "clients on other machines need a token and an encrypted connection, so the server listens on {} only with --token-file, --tls-cert and --tls-key; set these options, listen on 127.0.0.1, or set --insecure-listen",
                self.listen.ip()
            );
        }
        match self.metrics {
            Some(metrics) if !metrics.ip().is_loopback() => plan_err!(
                "metrics cannot be served on {}, because they have no token and no encryption; choose a loopback address such as 127.0.0.1:9100, or set --insecure-listen",
                metrics.ip()
            ),
            _ => Ok(()),
        }
    }
}

/// The threads that run queries. Dropping this value does not wait until running queries end.
struct ServerThreads(Option<Runtime>);

impl Drop for ServerThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

async fn bind_address(address: SocketAddr, option: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|e| {
        exec_datafusion_err!(
            "the server cannot listen on {address}; choose another address with {option}: {e}"
        )
    })
}

/// Runs a server until `stop` completes. Calls `ready` with the addresses for clients and for
/// metrics once clients can connect, and `watch` with the base session, whose temporary files and
/// memory limit all sessions share.
///
/// # Errors
/// If an address cannot be used, if other machines could connect without token and TLS, or if a
/// script fails.
pub(crate) async fn serve_clients(
    config: ServeConfig,
    watch: impl FnOnce(&SessionContext),
    ready: impl FnOnce(SocketAddr, Option<SocketAddr>),
    stop: impl Future<Output = ()>,
) -> Result<()> {
    config.check_exposure()?;
    // Queries have their own threads, so that the server answers requests even if all of these are
    // busy.
    let threads = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .thread_name("query")
        .enable_all()
        .build()?;
    let queries = threads.handle().clone();
    let _threads = ServerThreads(Some(threads));
    let runtime = find_process_runtime();
    let base = new_session_in(SessionConfig::new(), &runtime);
    watch(&base);
    run_scripts(&base, &config.scripts, &queries).await?;
    let metrics = Arc::new(ServerMetrics::new(config.workers.clone()));
    let sessions = Arc::new(ServerSessions::new(
        base,
        runtime,
        config.attach.clone(),
        config.max_sessions,
        config.idle_timeout,
        Arc::clone(&metrics),
    ));
    let engine = Arc::new(build_engine(&config, queries, &metrics));
    let listener = bind_address(config.listen, "--listen").await?;
    let http = match config.metrics {
        Some(address) => Some(bind_address(address, "--metrics-listen").await?),
        None => None,
    };
    let server = build_server(&config)?;
    let http_address = http.as_ref().map(TcpListener::local_addr).transpose()?;
    ready(listener.local_addr()?, http_address);
    let service = build_service(&config, &sessions, &engine);
    let (close, closed) = oneshot::channel::<()>();
    let clients = accept_clients(listener, Arc::clone(&sessions));
    let mut server = server;
    let serving = server.add_service(service).serve_with_incoming_shutdown(clients, async {
        // Waits until `serve_clients` sends a message, or returns and drops the sender. In both
        // cases, the server must stop, so the result is ignored.
        let _ = closed.await;
    });
    let helpers =
        run_helpers(http, Arc::clone(&metrics), Arc::clone(&sessions), config.idle_timeout);
    tokio::pin!(serving, helpers, stop);
    tokio::select! {
        served = &mut serving => {
            return served.map_err(|e| exec_datafusion_err!("the server stopped because of an error; correct its cause, and start the server again: {e}"));
        }
        () = &mut helpers => {}
        () = &mut stop => {}
    }
    // This message makes the server refuse new connections and requests. The server still answers
    // `/health` and `/metrics`.
    let _ = close.send(());
    let ended = async {
        tokio::select! {
            _ = &mut serving => true,
            () = &mut helpers => false,
            () = wait_for_queries(&metrics) => false,
            () = tokio::time::sleep(config.grace) => false,
        }
    };
    if !ended.await {
        engine.stopping.store(true, Ordering::SeqCst);
        sessions.end_all();
        let _ = tokio::time::timeout(STOP_LIMIT, &mut serving).await;
    }
    Ok(())
}

async fn wait_for_queries(metrics: &ServerMetrics) {
    while metrics.open.get() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Leaves time for the last messages to reach the clients.
    tokio::time::sleep(STOP_LIMIT).await;
}

fn build_engine(
    config: &ServeConfig,
    queries: Handle,
    metrics: &Arc<ServerMetrics>,
) -> QueryEngine {
    QueryEngine {
        queries,
        admission: QueryAdmission::new(
            config.max_queries,
            config.queue_timeout,
            Arc::clone(metrics),
        ),
        metrics: Arc::clone(metrics),
        max_message: config.max_message,
        idle: config.idle_timeout,
        stopping: AtomicBool::new(false),
    }
}

/// Returns the service of Flight SQL, which checks the token of each request.
fn build_service(
    config: &ServeConfig,
    sessions: &Arc<ServerSessions>,
    engine: &Arc<QueryEngine>,
) -> InterceptedService<FlightServiceServer<SqlService>, impl Interceptor + Clone + use<>> {
    let gate = TokenGate::new(config.token.as_deref(), Arc::clone(sessions));
    let service = SqlService::new(Arc::clone(sessions), Arc::clone(engine));
    let service = FlightServiceServer::new(service)
        .max_decoding_message_size(config.max_message)
        .max_encoding_message_size(usize::MAX);
    InterceptedService::new(service, move |request| gate.check_request(request))
}

fn build_server(config: &ServeConfig) -> Result<Server> {
    let server = Server::builder()
        .tcp_nodelay(true)
        .max_concurrent_streams(MAX_STREAMS)
        .http2_keepalive_interval(Some(PING_INTERVAL))
        .http2_keepalive_timeout(Some(PING_INTERVAL));
    encrypt_server(server, config.tls.as_ref())
}

fn accept_clients(
    listener: TcpListener,
    sessions: Arc<ServerSessions>,
) -> impl stream::Stream<Item = std::io::Result<ClientConnection>> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    stream::unfold((listener, sessions), |(listener, sessions)| async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Disables Nagle's algorithm, which delays small messages.
                    let _ = stream.set_nodelay(true);
                    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                    let connection = ClientConnection::new(stream, number, Arc::clone(&sessions));
                    return Some((Ok(connection), (listener, sessions)));
                }
                // Waits before the next attempt: too many files may be open until other connections
                // close.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    })
}

/// Serves the metrics on `http`, if any, and ends idle sessions.
async fn run_helpers(
    http: Option<TcpListener>,
    metrics: Arc<ServerMetrics>,
    sessions: Arc<ServerSessions>,
    idle: Duration,
) {
    let sweep = sweep_sessions(sessions, idle);
    match http {
        Some(listener) => {
            tokio::join!(serve_metrics(listener, metrics), sweep);
        }
        None => sweep.await,
    }
}

async fn sweep_sessions(sessions: Arc<ServerSessions>, idle: Duration) {
    let period = (idle / 4).clamp(Duration::from_millis(250), Duration::from_secs(15));
    loop {
        tokio::time::sleep(period).await;
        sessions.end_idle();
    }
}

/// Runs the scripts, each with its name, in the session `base` on the threads of `queries`.
async fn run_scripts(
    base: &SessionContext,
    scripts: &[(String, String)],
    queries: &Handle,
) -> Result<()> {
    for (name, text) in scripts {
        let (base, text) = (base.clone(), text.clone());
        let run = queries.spawn(async move { run_script(&base, &text).await });
        let done = run.await.map_err(|e| exec_datafusion_err!("{name}: {e}"))?;
        done.map_err(|e| plan_datafusion_err!("{name}: {}", crate::sql::describe_error(&e)))?;
    }
    Ok(())
}

async fn run_script(ctx: &SessionContext, text: &str) -> Result<()> {
    for statement in crate::sql::parse(ctx, text)? {
        crate::sql::execute(ctx, statement).await?.collect().await?;
    }
    Ok(())
}
