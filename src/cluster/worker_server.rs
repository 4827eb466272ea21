//! `serrate worker`: a process that runs parts of queries.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{exec_datafusion_err, exec_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;

use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    BroadcastExec, DistributedExt, Worker, WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse,
    WorkerQueryContext,
};
use tokio::runtime::{Handle, Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Request, Status};

use super::VERSION;
use super::client::WorkerChannels;
use super::codec::SerrateCodec;
use super::nodes::{GuardExec, find_single_child};
use super::preflight::retype_calls;
use super::settings::{SentSettings, apply_settings};
use super::worker_functions::register_functions;
use crate::access;
use crate::config::SerrateOptions;
use crate::secret::{TlsIdentity, encrypt_server, is_equal_secret};
use crate::sql::portable::list_paths;
use crate::sql::{find_process_runtime, skip_hidden_files};

const STACK: usize = 64 << 20;

/// Settings of a worker.
#[derive(Clone)]
pub struct WorkerConfig {
    /// Address to listen on; port 0 chooses a free port.
    pub listen: SocketAddr,
    /// Secret token that sessions and other workers must send.
    pub token: Option<String>,
    /// Certificate and private key; connections are encrypted if they are set.
    pub tls: Option<TlsIdentity>,
    /// Whether other machines are allowed to connect without token and TLS.
    pub insecure: bool,
    /// Text of a PEM file with the certificates of other workers, or of the authorities that signed
    /// them. If it is `None`, other workers must have the certificate of this worker.
    pub authority: Option<String>,
    /// Time without an answer after which another worker counts as lost.
    pub timeout: Duration,
}

impl fmt::Debug for WorkerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omits the token, which is a secret.
        f.debug_struct("WorkerConfig")
            .field("listen", &self.listen)
            .field("tls", &self.tls)
            .field("insecure", &self.insecure)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl WorkerConfig {
    /// Unless `insecure` is set, returns an error if other machines could connect without a token
    /// or without TLS. A worker runs any plan that it receives, and returns rows of the files it
    /// reads.
    fn check_exposure(&self) -> Result<()> {
        if self.insecure || self.listen.ip().is_loopback() {
            return Ok(());
        }
        if self.token.is_none() || self.tls.is_none() {
            return plan_err!(
                "sessions on other machines need a token and an encrypted connection, so the worker listens on {} only with --token-file, --tls-cert and --tls-key; set these options, listen on 127.0.0.1, or set --insecure-listen",
                self.listen.ip()
            );
        }
        Ok(())
    }
}

/// The threads that run queries. Dropping this value does not wait until running queries end.
struct WorkerThreads(Option<Runtime>);

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a worker until the future is dropped.
///
/// Calls `ready` with the address once sessions can connect.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::net::SocketAddr;
/// use std::time::Duration;
/// use serrate::cluster::{WorkerConfig, serve};
/// let config = WorkerConfig {
///     listen: "127.0.0.1:0".parse()?,
///     token: None,
///     tls: None,
///     insecure: false,
///     authority: None,
///     timeout: Duration::from_secs(60),
/// };
/// let (send, address) = tokio::sync::oneshot::channel::<SocketAddr>();
/// let ready = |at| {
///     let _ = send.send(at);
/// };
/// tokio::select! {
///     ended = serve(config, ready) => ended?,
///     // Sessions can connect now; the worker stops when its future is dropped.
///     at = address => assert!(at?.port() > 0),
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the address or the certificate cannot be used, or if other machines could connect without
/// token or TLS, unless `insecure` is set.
pub async fn serve(config: WorkerConfig, ready: impl FnOnce(SocketAddr)) -> Result<()> {
    config.check_exposure()?;
    // Queries have their own threads, so that the server still answers while all these threads
    // compute.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .thread_name("query")
        .enable_all()
        .build()?;
    let queries = runtime.handle().clone();
    let _threads = WorkerThreads(Some(runtime));
    let (token, tls) = (config.token.as_deref(), config.tls.as_ref());
    let server = Server::builder()
        .tcp_nodelay(true)
        .http2_keepalive_interval(Some(config.timeout / 6))
        .http2_keepalive_timeout(Some(config.timeout));
    let mut server = encrypt_server(server, tls)?;
    let own = tls.map(|tls| tls.certificate.as_str());
    let authority = own.map(|own| config.authority.as_deref().unwrap_or(own));
    let channels = WorkerChannels::new(Handle::current(), token, authority, config.timeout)?;
    let build = move |context: WorkerQueryContext| {
        let (channels, queries) = (channels.clone(), queries.clone());
        async move { build_state(context, channels, queries) }
    };
    let worker = Worker::from_session_builder(build)
        .with_version(VERSION)
        .with_runtime_env(skip_hidden_files(&find_process_runtime()));
    let failed = |e: &dyn std::fmt::Display| {
        exec_datafusion_err!(
            "the worker cannot listen on {}; choose another address with --listen: {e}",
            config.listen
        )
    };
    let listener = tokio::net::TcpListener::bind(config.listen).await.map_err(|e| failed(&e))?;
    ready(listener.local_addr()?);
    let token = config.token.map(|token| format!("Bearer {token}"));
    let check = move |request: Request<()>| check_token(request, token.as_deref());
    server
        .add_service(InterceptedService::new(worker.into_worker_server(), check))
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await
        .map_err(|e| DataFusionError::External(Box::new(e)))
}

#[allow(clippy::result_large_err, reason = "the type of tonic's interceptors")]
fn check_token(
    request: Request<()>,
    expected: Option<&str>,
) -> std::result::Result<Request<()>, Status> {
    let Some(expected) = expected else { return Ok(request) };
    let given = request.metadata().get("authorization").map(|v| v.as_bytes());
    match given.is_some_and(|given| is_equal_secret(given, expected.as_bytes())) {
        true => Ok(request),
        false => Err(Status::unauthenticated(
            "the token is missing or wrong; send the token of this worker",
        )),
    }
}

/// Builds the session state of one task. It has the settings that the session of the query has
/// sent, and the functions of a worker ([`register_functions`]). The task reads from other workers
/// through `channels`, and runs on the runtime `queries`.
fn build_state(
    context: WorkerQueryContext,
    channels: WorkerChannels,
    queries: Handle,
) -> Result<SessionState> {
    let mut builder = context
        .builder
        .with_distributed_user_codec(SerrateCodec)
        .with_distributed_channel_resolver(channels)
        .with_distributed_option_extension_from_headers::<SentSettings>(&context.headers)?
        .with_distributed_worker_plan_rewrite_handler(move |event: WorkerPlanRewriteEvent<'_>| {
            check_plan(&event.plan)?;
            let plan = retype_calls(event.plan, event.session_config.options())?;
            guard_plan(plan, &queries).map(WorkerPlanRewriteEventResponse::new)
        });
    let config = builder.config().get_or_insert_with(SessionConfig::new);
    let options = config.options_mut();
    options.extensions.insert(SerrateOptions::default());
    let settings = options.extensions.get::<SentSettings>().map(|o| o.settings.clone());
    apply_settings(&settings.unwrap_or_default(), options)?;
    // Without work stealing, each partition reads only its own files, in order, and no files of
    // other partitions.
    options.execution.enable_file_stream_work_stealing = false;
    let mut state = builder.build();
    register_functions(&mut state)?;
    Ok(state)
}

/// Returns an error if a plan writes files, or reads a file that the limits of the process forbid.
fn check_plan(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    plan.apply(|node| {
        if node.name().contains("Sink") {
            return exec_err!("the statement writes a file, but a worker cannot write files; run the statement without workers");
        }
        for path in list_paths(node).unwrap_or_default() {
            access::check_read(&path).map_err(|e| crate::Error::io(&path, e))?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Inserts a [`GuardExec`] at the top of a plan, so that the plan runs on the runtime for queries.
/// A RepartitionExec or BroadcastExec stays above it, because datafusion-distributed expects these
/// nodes at the top.
fn guard_plan(plan: Arc<dyn ExecutionPlan>, queries: &Handle) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.is::<RepartitionExec>() || plan.is::<BroadcastExec>() {
        let inner = Arc::new(GuardExec::new(find_single_child(&plan)?, queries.clone()));
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        return plan.replace_children(vec![inner], options);
    }
    Ok(Arc::new(GuardExec::new(plan, queries.clone())))
}
