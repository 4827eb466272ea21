//! [`Cluster`]: the workers of a session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use datafusion::common::{exec_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, GetWorkerInfoRequest, GetWorkerInfoResponse, WorkerChannel, WorkerResolver,
};
use futures::future::join_all;
use serrate_core::internal::lock_mutex;
use tokio::runtime::Handle;
use tonic::body::Body;
use tonic::codegen::http::HeaderValue;
use tonic::codegen::{Service, http};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use url::Url;

use super::VERSION;
use super::losses::{find_sentence, make_loss};

/// Maximum time that a session waits until a connection to a worker is open.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// Maximum number of received bytes that a connection buffers until the query reads them. One
/// connection carries the streams of all tasks of a worker. In a small buffer, streams that the
/// query does not read yet could block the stream that the query waits for. Each stream also has a
/// smaller limit of its own.
const RECEIVE_WINDOW: u32 = 1 << 30;
/// If the last check of the workers ended less than this time ago, its result still counts, and
/// workers are not checked again.
const MAX_CHECK_AGE: Duration = Duration::from_secs(1);

/// Minimum time between two checks of a worker that has answered too slowly or not at all, because
/// each check delays a statement by up to [`CONNECT_LIMIT`].
const MIN_SILENT_TIME: Duration = Duration::from_secs(5);

/// Maximum number of notes that are kept until [`Cluster::take_notes`] returns them.
const MAX_NOTES: usize = 1000;

/// Settings that a session with workers must have, each with its value. With any other value, a
/// divided plan could return wrong rows, or would not be divided.
pub(super) const FIXED: [(&str, &str); 10] = [
    // A dynamic filter tells a scan, while the query runs, which rows are no longer needed. The
    // update of a filter in one task never reaches the scans of other tasks.
    ("datafusion.optimizer.enable_dynamic_filter_pushdown", "false"),
    ("datafusion.optimizer.enable_topk_dynamic_filter_pushdown", "false"),
    ("datafusion.optimizer.enable_join_dynamic_filter_pushdown", "false"),
    ("datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown", "false"),
    // Plans with sort pushdown or interleaved unions lose properties, such as the order of rows,
    // when they are encoded for workers.
    ("datafusion.optimizer.enable_sort_pushdown", "false"),
    ("datafusion.optimizer.prefer_existing_union", "true"),
    // Makes datafusion-distributed keep the partitions of a union in order.
    ("distributed.children_isolator_unions", "false"),
    // Plans must not change while they run: `ClusterPlanner` and the module `preflight` check a
    // plan only before it runs.
    ("distributed.dynamic_task_count", "false"),
    ("distributed.partial_reduce", "false"),
    // The fields of list keys have metadata, which a group loses when it is encoded for workers.
    ("serrate.rule.list_keys", "false"),
];

/// The workers' addresses, and the token, encryption and timeout with which a session reaches them.
#[derive(Clone)]
pub struct ClientConfig {
    /// Addresses of the workers, as `HOST:PORT`.
    pub workers: Vec<String>,
    /// Secret token that the workers expect, if any.
    pub token: Option<String>,
    /// Text of a PEM file with the certificates of the workers, or of the authorities that signed
    /// them. If it is set, connections are encrypted.
    pub authority: Option<String>,
    /// Time without an answer after which a worker counts as lost.
    pub timeout: Duration,
}

impl std::fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Omits the token, which is a secret.
        f.debug_struct("ClientConfig")
            .field("workers", &self.workers)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl ClientConfig {
    /// Reads a comma-separated list of workers such as `a:7100,b:7100`.
    ///
    /// Sets no token, no encryption and a timeout of 60 s.
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
            authority: None,
            timeout: Duration::from_secs(60),
        }
    }
}

/// The workers of a session.
///
/// Clones share the connections to the workers.
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
    pub(super) shared: Arc<ClusterState>,
}

pub(super) struct ClusterState {
    pub(super) all: Vec<Url>,
    pub(super) channels: WorkerChannels,
    health: Mutex<WorkerHealth>,
    /// Locked during a check of the workers; other statements wait, and then use its result.
    checking: tokio::sync::Mutex<()>,
    notes: Mutex<Vec<String>>,
    /// The function to call whenever workers are lost or usable again. If it is set, nothing is
    /// added to `notes`.
    report: OnceLock<HealthReport>,
    /// The connections run on a thread that ends when this sender is dropped.
    _stop: tokio::sync::oneshot::Sender<()>,
}

type HealthReport = Box<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct WorkerHealth {
    /// Times at which the last check started and ended. `None` before the first check.
    started: Option<Instant>,
    ended: Option<Instant>,
    alive: Vec<Url>,
    /// The workers that cannot be used.
    faults: Vec<WorkerFault>,
}

/// Says why a worker cannot be used.
#[derive(Clone)]
struct WorkerFault {
    url: Url,
    /// The address of the worker and the reason.
    sentence: String,
    /// The time at which the worker was asked, if asking it took long.
    silent_since: Option<Instant>,
}

impl WorkerHealth {
    fn list_faults(&self) -> Vec<String> {
        self.faults.iter().map(|fault| fault.sentence.clone()).collect()
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("workers", &self.shared.all).finish_non_exhaustive()
    }
}

fn show_address(url: &Url) -> String {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        _ => url.to_string(),
    }
}

impl Cluster {
    /// Prepares connections to workers.
    ///
    /// Each connection is opened when a query needs it.
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
    /// If an address is not `HOST:PORT`, a header cannot hold the token, or the authority is not a
    /// certificate.
    pub fn new(config: &ClientConfig) -> Result<Self> {
        let mut all: Vec<Url> = Vec::new();
        let scheme = if config.authority.is_some() { "https" } else { "http" };
        for worker in &config.workers {
            // Takes the port from the text: `Url::port` is `None` for `http://a:80`, because 80 is
            // the default port.
            let port = worker.trim_end_matches('/').rsplit_once(':');
            let has_port = port.is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            match Url::parse(&format!("{scheme}://{worker}")) {
                Ok(url) if has_port && url.path() == "/" => {
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
        let (token, authority) = (config.token.as_deref(), config.authority.as_deref());
        let channels = WorkerChannels::new(handle, token, authority, config.timeout)?;
        let shared = ClusterState {
            all,
            channels,
            health: Mutex::default(),
            checking: tokio::sync::Mutex::default(),
            notes: Mutex::default(),
            report: OnceLock::new(),
            _stop: stop,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Checks the workers, unless the last check ended less than [`MAX_CHECK_AGE`] ago. Does not
    /// ask workers that were silent less than [`MIN_SILENT_TIME`] ago.
    pub(crate) async fn refresh_health(&self) {
        let _checking = self.shared.checking.lock().await;
        if lock_mutex(&self.shared.health).ended.is_some_and(|at| at.elapsed() < MAX_CHECK_AGE) {
            return;
        }
        let mut silent = lock_mutex(&self.shared.health).faults.clone();
        silent.retain(|fault| fault.silent_since.is_some_and(|at| at.elapsed() < MIN_SILENT_TIME));
        self.check_workers(&silent).await;
    }

    /// Checks all workers, even if the last check is fresh. If another caller begins a check while
    /// this call waits, uses the result of that check.
    pub(super) async fn recheck_health(&self) {
        let called = Instant::now();
        let _checking = self.shared.checking.lock().await;
        if lock_mutex(&self.shared.health).started.is_some_and(|at| at >= called) {
            return;
        }
        self.check_workers(&[]).await;
    }

    /// Asks all workers except those in `silent`, whose faults remain.
    async fn check_workers(&self, silent: &[WorkerFault]) {
        let started = Some(Instant::now());
        let answers = join_all(self.shared.all.iter().map(|url| {
            let known = silent.iter().find(|fault| fault.url == *url).cloned();
            async move {
                match known {
                    Some(fault) => Err(fault),
                    None => self.ask_worker(url).await,
                }
            }
        }));
        let answers = answers.await;
        let ended = Some(Instant::now());
        let mut health = WorkerHealth { started, ended, ..WorkerHealth::default() };
        for (url, answer) in self.shared.all.iter().zip(answers) {
            match answer {
                Ok(()) => health.alive.push(url.clone()),
                Err(fault) => health.faults.push(fault),
            }
        }
        let now = self.describe_health(&health);
        let before = std::mem::replace(&mut *lock_mutex(&self.shared.health), health);
        // All workers count as usable before the first check, so that the first check reports only
        // faults.
        let before = before.ended.and_then(|_| self.describe_health(&before));
        if let Some(report) = self.shared.report.get()
            && now != before
        {
            let all = self.shared.all.len();
            report(&now.unwrap_or_else(|| match all {
                1 => "the worker can be used".to_owned(),
                all => format!("all {all} workers can be used"),
            }));
        }
    }

    /// Returns a sentence that names each worker that cannot be used, with the reason, or `None` if
    /// all workers can be used.
    fn describe_health(&self, health: &WorkerHealth) -> Option<String> {
        let (all, alive) = (self.shared.all.len(), health.alive.len());
        if health.faults.is_empty() {
            return None;
        }
        let faults = health.list_faults().join(", ");
        let consequence = if alive == 0 { "; statements run here" } else { "" };
        Some(format!("{alive} of {all} workers can be used ({faults}){consequence}"))
    }

    pub(super) fn list_faults(&self) -> Vec<String> {
        lock_mutex(&self.shared.health).list_faults()
    }

    pub(super) fn count_alive(&self) -> usize {
        lock_mutex(&self.shared.health).alive.len()
    }

    async fn ask_worker(&self, url: &Url) -> std::result::Result<(), WorkerFault> {
        let start = Instant::now();
        let limit = CONNECT_LIMIT.min(self.shared.channels.timeout);
        self.ask_within(url, limit).await.map_err(|sentence| {
            let silent_since = (start.elapsed() > limit / 2).then_some(start);
            WorkerFault { url: url.clone(), sentence, silent_since }
        })
    }

    /// Asks a worker for its version. The error says why the worker cannot be used.
    async fn ask_within(&self, url: &Url, limit: Duration) -> std::result::Result<(), String> {
        let question = async {
            match self.ask_once(url).await {
                Err(e) if !is_refused(&e) => {
                    // The worker may have restarted, which breaks the old connection. Asks once
                    // more over a new one.
                    self.shared.channels.forget_channel(url);
                    self.ask_once(url).await
                }
                answer => answer,
            }
        };
        let name = show_address(url);
        match tokio::time::timeout(limit, question).await {
            Err(_) => Err(format!(
                "worker {name} does not answer; check that it runs, or start it with serrate worker"
            )),
            Ok(Err(e)) if is_refused(&e) => Err(format!(
                "worker {name} refuses the token; pass the file with the token of the worker as --token-file"
            )),
            Ok(Err(e)) => Err(self.describe_failure(&name, &e)),
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

    /// Returns a sentence that says why the worker `name` did not answer the request for its
    /// version, which failed with `e`.
    fn describe_failure(&self, name: &str, e: &DataFusionError) -> String {
        let root = e.find_root();
        find_sentence(root).unwrap_or_else(|| {
            let cause = find_innermost_cause(root);
            let cause = cause.lines().next().unwrap_or_default();
            describe_refusal(name, cause, self.shared.channels.tls.is_some())
        })
    }

    /// Adds a note for the user. If [`MAX_NOTES`] are stored, drops it: the program may never call
    /// [`take_notes`](Self::take_notes).
    pub(super) fn add_note(&self, note: String) {
        if self.shared.report.get().is_some() {
            return;
        }
        let mut notes = lock_mutex(&self.shared.notes);
        if notes.len() < MAX_NOTES {
            notes.push(note);
        }
    }

    /// Returns the number of workers that could be used at the last check, and the number of all
    /// workers.
    #[cfg(feature = "serve")]
    pub(crate) fn count_workers(&self) -> (usize, usize) {
        (self.count_alive(), self.shared.all.len())
    }

    /// Calls `report` with a sentence whenever workers are lost or can be used again. From then on
    /// no notes are stored, so [`take_notes`](Self::take_notes) need not be called.
    #[cfg(feature = "serve")]
    pub(crate) fn report_health(&self, report: impl Fn(&str) + Send + Sync + 'static) {
        // An error means that another function already receives the changes.
        let _ = self.shared.report.set(Box::new(report));
    }

    /// Returns and clears the notes about statements that did not run on all workers, at most the
    /// first 1000.
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
    /// Returns the addresses of the workers that can be used. If there is only one worker, returns
    /// its address twice, so that a scan has two tasks: datafusion-distributed does not divide a
    /// plan of one task. Tasks have different keys, so one worker can run both.
    fn get_urls(&self) -> Result<Vec<Url>> {
        let mut urls = lock_mutex(&self.shared.health).alive.clone();
        if urls.len() == 1 {
            urls.extend_from_within(..);
        }
        Ok(urls)
    }
}

/// Returns the settings of encrypted connections. `authority` is the text of a PEM file with the
/// certificates of the workers, or of the authorities that signed them.
fn trust_authority(authority: &str) -> Result<ClientTlsConfig> {
    let certificate = Certificate::from_pem(authority);
    let tls = ClientTlsConfig::new().ca_certificate(certificate).timeout(CONNECT_LIMIT);
    // Checks the certificate now, to report an error early: tonic parses it later, when it builds
    // an endpoint, and accepts a text without a certificate.
    let read = Endpoint::from_static("https://localhost").tls_config(tls.clone());
    match read.is_ok() && authority.contains("-----BEGIN CERTIFICATE-----") {
        true => Ok(tls),
        false => plan_err!(
            "--worker-ca does not name a certificate; give a PEM file with the certificate of the workers or of their authority"
        ),
    }
}

fn find_innermost_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Returns a sentence that says why the worker `name` cannot be reached, and what to do. `cause` is
/// the text of the connection error; `encrypts` is whether the session uses TLS.
fn describe_refusal(name: &str, cause: &str, encrypts: bool) -> String {
    // Recognizes errors of rustls by their messages, because the types of these errors are not
    // accessible here.
    if cause.contains("invalid peer certificate") {
        return format!(
            "worker {name} cannot be reached, because its certificate is not accepted ({cause}); pass the certificate of its authority as --worker-ca, and use an address that the certificate names"
        );
    }
    if cause.contains("corrupt message") || cause.contains("tls handshake eof") {
        return format!(
            "worker {name} cannot be reached, because it does not encrypt; start it with --tls-cert and --tls-key, or leave out --worker-ca"
        );
    }
    // A worker with a certificate accepts a connection without encryption, but does not answer on
    // it. The hint is for this case, and not for a refused connection.
    let hint = match encrypts || cause.contains("refused") {
        true => "",
        false => "; pass --worker-ca if it has --tls-cert",
    };
    format!("worker {name} cannot be reached ({cause}); check its address, and that it runs{hint}")
}

/// Open connections to workers. Keep-alive pings detect a machine that no longer answers.
#[derive(Clone)]
pub(super) struct WorkerChannels {
    runtime: Handle,
    token: Option<HeaderValue>,
    tls: Option<ClientTlsConfig>,
    timeout: Duration,
    open: Arc<Mutex<HashMap<Url, BoxCloneSyncChannel>>>,
}

impl WorkerChannels {
    pub(super) fn new(
        runtime: Handle,
        token: Option<&str>,
        authority: Option<&str>,
        timeout: Duration,
    ) -> Result<Self> {
        let token = token.map(|token| HeaderValue::from_str(&format!("Bearer {token}")));
        let mut token = token
            .transpose()
            .map_err(|_| exec_datafusion_err!("the token of the workers has characters that an HTTP header cannot hold; use only visible ASCII characters"))?;
        if let Some(token) = &mut token {
            // The HTTP library then omits the token from its logs.
            token.set_sensitive(true);
        }
        let tls = authority.map(trust_authority).transpose()?;
        Ok(Self { runtime, token, tls, timeout, open: Arc::default() })
    }

    fn forget_channel(&self, url: &Url) {
        lock_mutex(&self.open).remove(url);
    }

    async fn open_channel(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        let failed = |e: &(dyn std::error::Error + 'static)| {
            let (name, cause) = (show_address(url), find_innermost_cause(e));
            make_loss(describe_refusal(&name, &cause, self.tls.is_some()))
        };
        let endpoint = Endpoint::from_shared(url.to_string())
            .map_err(|e| failed(&e))?
            .connect_timeout(CONNECT_LIMIT)
            .tcp_nodelay(true)
            .initial_connection_window_size(RECEIVE_WINDOW)
            .http2_keep_alive_interval((self.timeout / 6).max(Duration::from_millis(200)))
            .keep_alive_timeout(self.timeout)
            .keep_alive_while_idle(true);
        let endpoint = match &self.tls {
            Some(tls) => endpoint.tls_config(tls.clone()).map_err(|e| failed(&e))?,
            None => endpoint,
        };
        let task = self.runtime.spawn(async move { endpoint.connect().await });
        let channel = task.await.map_err(|e| failed(&e))?.map_err(|e| failed(&e))?;
        Ok(match &self.token {
            None => BoxCloneSyncChannel::new(channel),
            Some(token) => {
                BoxCloneSyncChannel::new(BearerChannel { channel, token: token.clone() })
            }
        })
    }
}

#[async_trait]
impl ChannelResolver for WorkerChannels {
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
struct BearerChannel {
    channel: Channel,
    token: HeaderValue,
}

impl Service<http::Request<Body>> for BearerChannel {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port() {
        for (worker, valid) in [
            ("a:7100", true),
            ("a:80", true),
            ("[::1]:7100", true),
            ("a", false),
            ("a:b", false),
            ("a:7100/x", false),
        ] {
            assert_eq!(Cluster::new(&ClientConfig::new(worker)).is_ok(), valid, "{worker}");
        }
    }

    #[test]
    fn debug_texts_have_no_token() {
        let mut config = ClientConfig::new("a:7100");
        config.token = Some("secret".into());
        let cluster = Cluster::new(&config).unwrap();
        let shown = format!("{config:?} {cluster:?} {:?}", cluster.shared.channels.token);
        assert!(shown.contains("7100") && !shown.contains("secret"), "{shown}");
    }

    #[tokio::test]
    async fn a_refused_connection_is_a_loss() {
        // A port on which nothing listens.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let worker = listener.local_addr().unwrap().to_string();
        drop(listener);
        let cluster = Cluster::new(&ClientConfig::new(&worker)).unwrap();
        let Err(refused) = cluster.ask_once(&cluster.shared.all[0]).await else {
            panic!("{worker} answers");
        };
        assert!(crate::cluster::losses::is_lost(&refused), "{refused:?}");
        let sentence = cluster.describe_failure(&worker, &refused);
        assert!(sentence.starts_with(&format!("worker {worker} cannot be reached")), "{sentence}");
    }

    #[tokio::test]
    async fn a_silent_worker_does_not_delay_each_statement() {
        // Connections to this address are accepted, but nobody answers.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut config = ClientConfig::new(&listener.local_addr().unwrap().to_string());
        config.timeout = Duration::from_millis(400);
        let cluster = Cluster::new(&config).unwrap();
        let measure = async |forced: bool| {
            let start = Instant::now();
            match forced {
                true => cluster.recheck_health().await,
                false => cluster.refresh_health().await,
            }
            assert!(cluster.list_faults().concat().contains("does not answer"));
            start.elapsed()
        };
        assert!(measure(false).await >= config.timeout);
        tokio::time::sleep(MAX_CHECK_AGE + Duration::from_millis(50)).await;
        assert!(measure(false).await < config.timeout);
        assert!(measure(true).await >= config.timeout);
    }

    #[test]
    fn notes_that_nobody_takes_are_dropped() {
        let cluster = Cluster::new(&ClientConfig::new("a:1")).unwrap();
        for i in 0..MAX_NOTES + 5 {
            cluster.add_note(i.to_string());
        }
        assert_eq!(cluster.take_notes().len(), MAX_NOTES);
        cluster.add_note("next".into());
        assert_eq!(cluster.take_notes(), ["next"]);
    }

    #[test]
    fn a_single_worker_has_two_tasks() {
        let cluster = Cluster::new(&ClientConfig::new("a:1,b:1,c:1")).unwrap();
        for (alive, tasks) in [(0, 0), (1, 2), (2, 2), (3, 3)] {
            lock_mutex(&cluster.shared.health).alive = cluster.shared.all[..alive].to_vec();
            assert_eq!(cluster.get_urls().unwrap().len(), tasks, "{alive} workers");
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        for (cause, encrypts, advice) in [
            ("invalid peer certificate: UnknownIssuer", true, "pass the certificate"),
            ("received corrupt message of type InvalidContentType", true, "leave out --worker-ca"),
            ("Connection refused (os error 111)", false, "that it runs"),
            ("connection reset", false, "pass --worker-ca"),
            ("connection reset", true, "that it runs"),
        ] {
            let said = describe_refusal("a:7100", cause, encrypts);
            assert!(said.starts_with("worker a:7100 cannot be reached"), "{said}");
            assert!(said.contains(advice), "{said}");
        }
    }
}
