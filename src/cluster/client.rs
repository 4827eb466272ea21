//! [`Cluster`]: the workers of a session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use datafusion::common::{exec_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, DistributedExt, GetWorkerInfoRequest, GetWorkerInfoResponse,
    SessionStateBuilderExt, WorkerChannel, WorkerResolver,
};
use futures::future::join_all;
use tokio::runtime::Handle;
use tonic::body::Body;
use tonic::codegen::http::HeaderValue;
use tonic::codegen::{Service, http};
use tonic::transport::{Channel, Endpoint};
use url::Url;

use super::VERSION;
use super::codec::SerrateCodec;
use super::planner::ClusterPlanner;
use super::settings::ClusterOptions;
use super::tasks::{count_tasks, divide_leaf};

/// Maximum time that a session waits until a connection to a worker is open.
const CONNECT: Duration = Duration::from_secs(3);
/// Time after a check of all workers during which the session does not check them again.
const FRESH: Duration = Duration::from_secs(1);

/// Addresses, token and timeout with which a session reaches its workers.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Addresses of the workers, as `HOST:PORT`.
    pub workers: Vec<String>,
    /// Secret token that the workers expect, if any.
    pub token: Option<String>,
    /// Time without an answer after which a worker counts as lost.
    pub timeout: Duration,
}

impl ClientConfig {
    /// Reads a comma-separated list of workers such as `a:7100,b:7100`. Sets no token and a timeout of 60 s.
    ///
    /// ```
    /// use serrate::cluster::ClientConfig;
    /// assert_eq!(ClientConfig::new("a:7100, b:7100").workers, ["a:7100", "b:7100"]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn new(workers: &str) -> Self {
        let workers = workers.split(',').map(str::trim).filter(|w| !w.is_empty());
        Self {
            workers: workers.map(str::to_owned).collect(),
            token: None,
            timeout: Duration::from_secs(60),
        }
    }
}

/// The workers of a session. Clones share their connections.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::cluster::{ClientConfig, Cluster};
/// let cluster = Cluster::new(&ClientConfig::new("127.0.0.1:7100,127.0.0.1:7101"))?;
/// let ctx = serrate::sql::session();
/// cluster.attach(&ctx);
/// // A statement of `ctx` uses the workers, or leaves a note if it did not.
/// assert!(cluster.take_notes().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<ClusterState>,
}

struct ClusterState {
    all: Vec<Url>,
    channels: Channels,
    health: Mutex<Health>,
    notes: Mutex<Vec<String>>,
    /// Dropping this sender ends the thread on which the connections run.
    _thread: tokio::sync::oneshot::Sender<()>,
}

#[derive(Default)]
struct Health {
    checked: Option<Instant>,
    alive: Vec<Url>,
    /// For each worker that cannot be used, its address and the reason.
    faults: Vec<String>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("workers", &self.shared.all).finish_non_exhaustive()
    }
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn show_address(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        _ => url.to_string(),
    }
}

impl Cluster {
    /// Prepares connections to workers. Each connection is opened when a query needs it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use serrate::cluster::{ClientConfig, Cluster};
    /// assert!(Cluster::new(&ClientConfig::new("127.0.0.1:7100")).is_ok());
    /// assert!(Cluster::new(&ClientConfig::new("localhost")).is_err()); // no port
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If an address is not `HOST:PORT`, or a header cannot hold the token.
    pub fn new(config: &ClientConfig) -> Result<Self> {
        let mut all: Vec<Url> = Vec::new();
        for worker in &config.workers {
            let url = Url::parse(&format!("http://{worker}"));
            match url {
                Ok(url) if url.port().is_some() && url.path() == "/" => {
                    if !all.contains(&url) {
                        all.push(url);
                    }
                }
                _ => {
                    return plan_err!("{worker:?} is not the address of a worker; write HOST:PORT");
                }
            }
        }
        // Connections run on their own thread, so that they answer pings while queries compute.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        std::thread::Builder::new().name("connections".into()).spawn(move || {
            let _ = runtime.block_on(stopped);
        })?;
        let channels = Channels::new(handle, config.token.as_deref(), config.timeout)?;
        let shared = ClusterState {
            all,
            channels,
            health: Mutex::default(),
            notes: Mutex::default(),
            _thread: stop,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Changes a session so that its queries use the workers.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use serrate::cluster::{ClientConfig, Cluster};
    /// let ctx = serrate::sql::session();
    /// let before = ctx.copied_config().target_partitions();
    /// Cluster::new(&ClientConfig::new("127.0.0.1:7100,127.0.0.1:7101"))?.attach(&ctx);
    /// // Each of the two workers gets as many partitions as the session had.
    /// assert_eq!(ctx.copied_config().target_partitions(), 2 * before);
    /// # Ok(())
    /// # }
    /// ```
    pub fn attach(&self, context: &SessionContext) {
        let mut builder = context.clone().into_state_builder();
        let inner = builder.query_planner().take();
        let config = builder.config().get_or_insert_with(SessionConfig::new);
        // Each worker gets as many partitions as a session without workers has.
        let partitions = config.target_partitions().saturating_mul(self.shared.all.len().max(1));
        *config = config.clone().with_target_partitions(partitions);
        let builder = builder
            .with_distributed_planner()
            .with_distributed_worker_resolver(self.clone())
            .with_distributed_channel_resolver(self.shared.channels.clone())
            .with_distributed_user_codec(SerrateCodec)
            .with_distributed_option_extension(ClusterOptions::default())
            .with_distributed_desired_task_count_handler(count_tasks)
            .with_distributed_scale_up_leaf_node_handler(divide_leaf);
        let mut builder = builder;
        if let Some(config) = builder.config() {
            let options = config.options_mut();
            // Look-up functions need this option to read their table, but datafusion-distributed
            // unsets it.
            options.optimizer.enable_physical_uncorrelated_scalar_subquery = true;
            // Dynamic filters are off, because an update in one task never reaches other tasks.
            options.optimizer.enable_dynamic_filter_pushdown = false;
            options.optimizer.enable_topk_dynamic_filter_pushdown = false;
            options.optimizer.enable_join_dynamic_filter_pushdown = false;
            options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
            // Sort pushdown and interleaved unions are off, because plans with them lose
            // properties, such as the order of rows, when the plans are encoded.
            options.optimizer.enable_sort_pushdown = false;
            options.optimizer.prefer_existing_union = true;
            // Makes datafusion-distributed keep the partitions of a union in order.
            let _ = options.set("distributed.children_isolator_unions", "false");
        }
        let planner = ClusterPlanner::new(inner, self.clone());
        // Replaces the state in place, because the provider of tables for file paths holds a reference to it.
        let state = builder.with_query_planner(Arc::new(planner)).build();
        *context.state_ref().write() = state;
    }

    /// Asks all workers whether they can be used, unless the last check is younger than [`FRESH`].
    pub(super) async fn refresh_health(&self) {
        if lock_mutex(&self.shared.health).checked.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        let asked = join_all(self.shared.all.iter().map(|url| self.ask_worker(url))).await;
        let mut health = Health { checked: Some(Instant::now()), ..Health::default() };
        for (url, answer) in self.shared.all.iter().zip(asked) {
            match answer {
                Ok(()) => health.alive.push(url.clone()),
                Err(fault) => health.faults.push(fault),
            }
        }
        *lock_mutex(&self.shared.health) = health;
    }

    pub(super) async fn recheck_health(&self) {
        lock_mutex(&self.shared.health).checked = None;
        self.refresh_health().await;
    }

    pub(super) fn list_faults(&self) -> Vec<String> {
        lock_mutex(&self.shared.health).faults.clone()
    }

    pub(super) fn count_alive(&self) -> usize {
        lock_mutex(&self.shared.health).alive.len()
    }

    async fn ask_worker(&self, url: &Url) -> std::result::Result<(), String> {
        let question = async {
            match self.ask_once(url).await {
                Err(e) if !is_refused(&e) => {
                    // A restarted worker requires a new connection.
                    self.shared.channels.forget_channel(url);
                    self.ask_once(url).await
                }
                answer => answer,
            }
        };
        let name = show_address(url);
        let limit = CONNECT.min(self.shared.channels.timeout);
        match tokio::time::timeout(limit, question).await {
            Err(_) => Err(format!(
                "worker {name} does not answer; check that it runs, or start it with serrate worker"
            )),
            Ok(Err(e)) if is_refused(&e) => Err(format!(
                "worker {name} refuses the token; pass the file with the token of the worker as --token-file"
            )),
            Ok(Err(e)) => {
                let text = e.strip_backtrace();
                let cause = text.lines().next().unwrap_or_default();
                Err(format!(
                    "worker {name} cannot be reached ({cause}); check its address, and that it runs"
                ))
            }
            Ok(Ok(info)) if info.version != VERSION => Err(format!(
                "worker {name} has version {:?}, but this session has {VERSION:?}; install the same version on both",
                info.version
            )),
            Ok(Ok(_)) => Ok(()),
        }
    }

    async fn ask_once(&self, url: &Url) -> Result<GetWorkerInfoResponse> {
        let mut client = self.shared.channels.get_worker_client_for_url(url).await?;
        client.get_worker_info(GetWorkerInfoRequest {}).await
    }

    pub(super) fn add_note(&self, note: String) {
        lock_mutex(&self.shared.notes).push(note);
    }

    /// Returns and clears the notes about statements that did not run on all workers.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use serrate::cluster::{ClientConfig, Cluster};
    /// let cluster = Cluster::new(&ClientConfig::new("127.0.0.1:7100"))?;
    /// cluster.attach(&serrate::sql::session());
    /// assert!(cluster.take_notes().is_empty()); // no statement ran
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut lock_mutex(&self.shared.notes))
    }
}

fn is_refused(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::External(e) => e
            .downcast_ref::<tonic::Status>()
            .is_some_and(|s| s.code() == tonic::Code::Unauthenticated),
        _ => false,
    }
}

impl WorkerResolver for Cluster {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(lock_mutex(&self.shared.health).alive.clone())
    }
}

/// Open connections to workers. Keep-alive pings detect a machine that no longer answers.
#[derive(Clone)]
pub(super) struct Channels {
    runtime: Handle,
    token: Option<HeaderValue>,
    timeout: Duration,
    open: Arc<Mutex<HashMap<Url, BoxCloneSyncChannel>>>,
}

impl Channels {
    pub(super) fn new(runtime: Handle, token: Option<&str>, timeout: Duration) -> Result<Self> {
        let token = token.map(|token| HeaderValue::from_str(&format!("Bearer {token}")));
        let token = token
            .transpose()
            .map_err(|_| exec_datafusion_err!("the token of the workers has characters that an HTTP header cannot hold; use only visible ASCII characters"))?;
        Ok(Self { runtime, token, timeout, open: Arc::default() })
    }

    fn forget_channel(&self, url: &Url) {
        lock_mutex(&self.open).remove(url);
    }

    async fn open_channel(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        let failed = |e: &dyn std::fmt::Display| {
            exec_datafusion_err!(
                "worker {} cannot be reached; check its address, and that it runs: {e}",
                show_address(url)
            )
        };
        let endpoint = Endpoint::from_shared(url.to_string())
            .map_err(|e| failed(&e))?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval((self.timeout / 6).max(Duration::from_millis(200)))
            .keep_alive_timeout(self.timeout)
            .keep_alive_while_idle(true);
        let task = self.runtime.spawn(async move { endpoint.connect().await });
        let channel = task.await.map_err(|e| failed(&e))?.map_err(|e| failed(&e))?;
        Ok(match &self.token {
            None => BoxCloneSyncChannel::new(channel),
            Some(token) => BoxCloneSyncChannel::new(Bearer { channel, token: token.clone() }),
        })
    }
}

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let known = lock_mutex(&self.open).get(url).cloned();
        let channel = match known {
            Some(channel) => channel,
            None => {
                let channel = self.open_channel(url).await?;
                lock_mutex(&self.open).insert(url.clone(), channel.clone());
                channel
            }
        };
        Ok(create_worker_client(channel))
    }
}

/// A connection that sends the token with each request.
#[derive(Clone)]
struct Bearer {
    channel: Channel,
    token: HeaderValue,
}

impl Service<http::Request<Body>> for Bearer {
    type Response = http::Response<Body>;
    type Error = tonic::transport::Error;
    type Future = <Channel as Service<http::Request<Body>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<std::result::Result<(), Self::Error>> {
        Service::<http::Request<Body>>::poll_ready(&mut self.channel, cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        request.headers_mut().insert(http::header::AUTHORIZATION, self.token.clone());
        self.channel.call(request)
    }
}
