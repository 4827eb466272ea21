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

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(3);
/// How long what was found out about the workers holds.
const FRESH: Duration = Duration::from_secs(1);

/// How a session reaches its workers.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The workers, as `HOST:PORT`.
    pub workers: Vec<String>,
    /// The secret that the workers ask for.
    pub token: Option<String>,
    /// How long a worker may be silent before it counts as lost.
    pub timeout: Duration,
}

impl ClientConfig {
    /// Reads a list of workers such as `a:7100,b:7100`.
    pub fn new(workers: &str) -> Self {
        let workers = workers.split(',').map(str::trim).filter(|w| !w.is_empty());
        Self {
            workers: workers.map(str::to_owned).collect(),
            token: None,
            timeout: Duration::from_secs(60),
        }
    }
}

/// The workers of a session.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
}

struct Shared {
    all: Vec<Url>,
    channels: Channels,
    health: Mutex<Health>,
    notes: Mutex<Vec<String>>,
    /// Ends the thread of the connections when it is dropped.
    _thread: tokio::sync::oneshot::Sender<()>,
}

#[derive(Default)]
struct Health {
    checked: Option<Instant>,
    alive: Vec<Url>,
    /// Faults of the others.
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

/// Returns the address of a worker as its users write it.
fn show_address(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        _ => url.to_string(),
    }
}

impl Cluster {
    /// Prepares connections to workers. They are opened when a query needs them.
    ///
    /// # Errors
    /// When an address is not `HOST:PORT`, or the token cannot be sent.
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
                _ => return plan_err!("{worker:?} is not the address of a worker, HOST:PORT"),
            }
        }
        // Connections live on a thread of their own, so that they answer while queries compute.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        std::thread::Builder::new().name("connections".into()).spawn(move || {
            let _ = runtime.block_on(stopped);
        })?;
        let channels = Channels::new(handle, config.token.as_deref(), config.timeout)?;
        let shared = Shared {
            all,
            channels,
            health: Mutex::default(),
            notes: Mutex::default(),
            _thread: stop,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Makes the queries of a session use the workers.
    pub fn attach(&self, context: &SessionContext) {
        let mut builder = context.clone().into_state_builder();
        let inner = builder.query_planner().take();
        let config = builder.config().get_or_insert_with(SessionConfig::new);
        // Several times the tasks of one machine, so that each worker has as many as this one would.
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
            // Look-ups need their table as a constant; the engine switches this off.
            options.optimizer.enable_physical_uncorrelated_scalar_subquery = true;
            // A filter that one task fills is never filled in another.
            options.optimizer.enable_dynamic_filter_pushdown = false;
            options.optimizer.enable_topk_dynamic_filter_pushdown = false;
            options.optimizer.enable_join_dynamic_filter_pushdown = false;
            options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
            // The encoding of a plan loses the properties that these rules change.
            options.optimizer.enable_sort_pushdown = false;
            options.optimizer.prefer_existing_union = true;
            // Partitions of a union keep their order.
            let _ = options.set("distributed.children_isolator_unions", "false");
        }
        let planner = ClusterPlanner::new(inner, self.clone());
        // In place, because tables of files by path refer to the state of their session.
        let state = builder.with_query_planner(Arc::new(planner)).build();
        *context.state_ref().write() = state;
    }

    /// Finds out which workers answer. The answer holds for a second.
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

    /// Forgets what is known of the workers, and finds it out again.
    pub(super) async fn recheck_health(&self) {
        lock_mutex(&self.shared.health).checked = None;
        self.refresh_health().await;
    }

    /// Returns what is wrong with the workers that do not work.
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
                    // A worker that was started again needs a new connection.
                    self.shared.channels.forget_channel(url);
                    self.ask_once(url).await
                }
                answer => answer,
            }
        };
        let name = show_address(url);
        let limit = CONNECT.min(self.shared.channels.timeout);
        match tokio::time::timeout(limit, question).await {
            Err(_) => Err(format!("worker {name} does not answer")),
            Ok(Err(e)) if is_refused(&e) => Err(format!(
                "worker {name} asks for another token; name its file with --token-file"
            )),
            Ok(Err(e)) => {
                let text = e.strip_backtrace();
                let cause = text.lines().next().unwrap_or_default();
                Err(format!("worker {name} cannot be reached ({cause})"))
            }
            Ok(Ok(info)) if info.version != VERSION => Err(format!(
                "worker {name} is {:?}, but this is {VERSION:?}; both must be the same",
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

    /// Takes the notes since the last call: why statements ran in the session.
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

/// Connections to workers, which notice a machine that no longer answers.
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
            .map_err(|_| exec_datafusion_err!("the token must consist of visible ASCII letters"))?;
        Ok(Self { runtime, token, timeout, open: Arc::default() })
    }

    fn forget_channel(&self, url: &Url) {
        lock_mutex(&self.open).remove(url);
    }

    async fn open_channel(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        let failed = |e: &dyn std::fmt::Display| {
            exec_datafusion_err!("worker {} cannot be reached: {e}", show_address(url))
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

/// A connection that sends a token with each request.
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
