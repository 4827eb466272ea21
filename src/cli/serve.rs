//! `serrate serve`: answers queries of other programs over Flight SQL.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
#[cfg(feature = "cluster")]
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::arguments::parse_up_to;
use super::command_failure::{Failure, Outcome};
use super::interrupt;
#[cfg(feature = "cluster")]
use super::network::check_outside;
use super::network::{ListenerFiles, read_text, read_token, resolve_address};
use crate::access;
use crate::config::parse_bytes;
use crate::io::meds_torch::TensorizedCohort;
use crate::serve::{AttachSession, CountWorkers, ServeConfig, TlsIdentity, serve_clients};
use crate::sql::{quote_name, quote_text};

/// Maximum value of `--max-queries` and `--max-sessions`.
const MAX_LIMIT: usize = 1 << 16;
/// Smallest and largest value of `--max-message`. A protocol buffer must be smaller than 2 GiB.
const MESSAGES: std::ops::RangeInclusive<u64> = (4 << 20)..=((2 << 30) - 1);

/// Arguments of `serrate serve`.
#[derive(Args, Debug)]
pub(super) struct ServeArgs {
    /// Address to listen on; port 0 chooses a free one. Addresses of other machines require
    /// --token-file, --tls-cert and --tls-key.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8815")]
    listen: String,
    /// Address for /health and /metrics over HTTP [default: none].
    #[arg(long, value_name = "HOST:PORT")]
    metrics_listen: Option<String>,
    #[command(flatten)]
    files: ListenerFiles,
    /// Allow addresses of other machines without token and encryption.
    #[arg(long)]
    insecure_listen: bool,
    /// Table that every session has: a file, a pattern or a MEDS folder; may be given more than
    /// once.
    #[arg(long, value_name = "NAME=PATH")]
    table: Vec<String>,
    /// SQL script for tables and settings that every session starts with; it runs once.
    #[arg(long, value_name = "FILE.sql")]
    init: Vec<PathBuf>,
    /// Maximum number of running queries; the others wait [default: number of cores, at least 4].
    #[arg(long, value_name = "N", value_parser = parse_up_to(MAX_LIMIT))]
    max_queries: Option<usize>,
    /// Seconds that a query waits for its turn.
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(..=86_400))]
    queue_timeout: u64,
    /// Maximum number of open sessions.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = parse_up_to(MAX_LIMIT))]
    max_sessions: usize,
    /// Seconds after which an unused session or an unread result ends.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800,
          value_parser = clap::value_parser!(u64).range(1..=604_800))]
    idle_timeout: u64,
    /// Maximum size of a message with a single row; messages with several rows have at most 3 MiB.
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    max_message: String,
    /// Seconds that running queries have to end when the server stops.
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(..=86_400))]
    grace: u64,
    /// Workers that run parts of queries, separated by commas.
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "HOST:PORT,..")]
    workers: Option<String>,
    /// File with the token that the workers expect.
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "FILE", requires = "workers")]
    worker_token_file: Option<PathBuf>,
    /// PEM file with the certificate of the workers or of their authority; connections to them are
    /// encrypted.
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "FILE", requires = "workers")]
    worker_ca: Option<PathBuf>,
}

/// Secrets of the server. Their files must be outside the folder of `--root`, so that no statement
/// can read them. They are read at the start, because once `--root` applies, the process cannot
/// read files outside this folder.
pub(super) struct ServerSecrets {
    token: Option<String>,
    tls: Option<TlsIdentity>,
    #[cfg(feature = "cluster")]
    worker_token: Option<String>,
    #[cfg(feature = "cluster")]
    worker_authority: Option<String>,
}

impl ServeArgs {
    pub(super) fn read_secrets(&self, root: Option<&Path>) -> Outcome<ServerSecrets> {
        self.files.check_outside(root)?;
        #[cfg(feature = "cluster")]
        if let Some(file) = &self.worker_token_file {
            check_outside(file, root)?;
        }
        Ok(ServerSecrets {
            token: self.files.token_file.as_deref().map(read_bearer_token).transpose()?,
            tls: self.files.read_identity()?,
            #[cfg(feature = "cluster")]
            worker_token: self.worker_token_file.as_deref().map(read_bearer_token).transpose()?,
            #[cfg(feature = "cluster")]
            worker_authority: self.worker_ca.as_deref().map(read_text).transpose()?,
        })
    }

    fn parse_message_size(&self) -> Outcome<usize> {
        let bytes = parse_bytes(&self.max_message)
            .map_err(|e| Failure::from_usage(format!("--max-message: {}", e.message())))?;
        match usize::try_from(bytes) {
            Ok(size) if MESSAGES.contains(&bytes) => Ok(size),
            _ => Err(Failure::from_usage(format!(
                "--max-message is {}; give a size from {} to {} bytes",
                self.max_message,
                MESSAGES.start(),
                MESSAGES.end()
            ))),
        }
    }

    /// Returns the scripts that define the initial tables and settings of sessions, each with its
    /// name: first one for each `--table`, then the files of `--init`.
    fn read_scripts(&self) -> Outcome<Vec<(String, String)>> {
        let tables = self.table.iter().map(|table| {
            let declared = declare_table(table)?;
            Ok((format!("--table {table}"), declared))
        });
        let mut scripts = tables.collect::<Outcome<Vec<_>>>()?;
        for file in &self.init {
            scripts.push((file.display().to_string(), read_text(file)?));
        }
        Ok(scripts)
    }

    /// Returns a function that makes a new session use the workers, and one that counts the
    /// workers; `None` without workers. `token` is the token that the workers expect, and
    /// `authority` has their certificates. From now on, stderr shows when a worker is lost or can
    /// be used again. It does not show notes about single statements, because clients do not see
    /// the stderr of the server.
    #[cfg(feature = "cluster")]
    async fn connect_workers(
        &self,
        token: Option<String>,
        authority: Option<String>,
    ) -> Outcome<Option<(AttachSession, CountWorkers)>> {
        use crate::cluster::{ClientConfig, Cluster};
        use crate::sql::describe_error;
        let mut config = ClientConfig::new(self.workers.as_deref().unwrap_or_default());
        if config.workers.is_empty() {
            return Ok(None);
        }
        config.token = token;
        config.authority = authority;
        let cluster = Cluster::new(&config).map_err(|e| Failure::from_usage(describe_error(&e)))?;
        cluster.report_health(|health| {
            // Ignores an error, because the server must also run if standard error is closed.
            let _ = writeln!(std::io::stderr(), "note: {health}");
        });
        // Checks the workers now, to report at the start those that cannot be used.
        cluster.refresh_health().await;
        let counted = cluster.clone();
        let count: CountWorkers = Arc::new(move || counted.count_workers());
        let attach: AttachSession = Arc::new(move |session| cluster.attach(session));
        Ok(Some((attach, count)))
    }
}

fn read_bearer_token(file: &Path) -> Outcome<String> {
    let token = read_token(file)?;
    // A bearer token is sent in an HTTP header, so it must consist of visible ASCII characters.
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::from_message(format!(
            "the token in {} has spaces or characters that are not ASCII; use letters, digits and punctuation",
            file.display()
        )));
    }
    Ok(token)
}

fn declare_table(table: &str) -> Outcome<String> {
    let Some((name, path)) = table.split_once('=').filter(|(n, p)| !n.is_empty() && !p.is_empty())
    else {
        return Err(Failure::from_usage(format!(
            "--table {table} does not have the form NAME=PATH; write one such as visits=/data/visits.nrt"
        )));
    };
    let quoted = quote_text(path);
    let folder = Path::new(path);
    let source = match TensorizedCohort::is_at(folder) || access::is_dir(folder.join("data")) {
        true => format!("meds({quoted})"),
        false => quoted,
    };
    Ok(format!("CREATE VIEW {} AS SELECT * FROM {source}", quote_name(name)))
}

fn default_queries() -> usize {
    std::thread::available_parallelism().map_or(4, |cores| cores.get().max(4))
}

pub(super) async fn run_server(args: ServeArgs, secrets: ServerSecrets) -> Outcome {
    let positive = |option: &str, n: usize| match n {
        0 => Err(Failure::from_usage(format!("{option} is 0, but must be 1 or more"))),
        n => Ok(n),
    };
    let grace = Duration::from_secs(args.grace);
    #[cfg(feature = "cluster")]
    let (attach, workers) =
        args.connect_workers(secrets.worker_token, secrets.worker_authority).await?.unzip();
    #[cfg(not(feature = "cluster"))]
    let (attach, workers): (Option<AttachSession>, Option<CountWorkers>) = (None, None);
    let metrics = args.metrics_listen.as_deref();
    let config = ServeConfig {
        listen: resolve_address("--listen", &args.listen)?,
        metrics: metrics.map(|text| resolve_address("--metrics-listen", text)).transpose()?,
        token: secrets.token,
        tls: secrets.tls,
        insecure: args.insecure_listen,
        max_queries: positive("--max-queries", args.max_queries.unwrap_or_else(default_queries))?,
        queue_timeout: Duration::from_secs(args.queue_timeout),
        max_sessions: positive("--max-sessions", args.max_sessions)?,
        idle_timeout: Duration::from_secs(args.idle_timeout),
        max_message: args.parse_message_size()?,
        grace,
        scripts: args.read_scripts()?,
        attach,
        workers,
    };
    let ready = |address, metrics: Option<SocketAddr>| {
        let mut out = std::io::stdout();
        let _ = writeln!(out, "server listens on {address}");
        if let Some(metrics) = metrics {
            let _ = writeln!(out, "metrics are at http://{metrics}/metrics");
        }
        let _ = out.flush();
    };
    // The server cancels running queries after `grace`; the process exits at most 2 seconds later.
    interrupt::set_grace(grace.saturating_add(Duration::from_secs(2)));
    let served =
        serve_clients(config, interrupt::watch_session, ready, interrupt::wait_for_interrupt())
            .await;
    interrupt::remove_leftovers();
    served.map_err(Failure::from)
}
