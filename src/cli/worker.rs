//! `serrate worker`, and the command-line arguments of sessions that use workers.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::command_failure::{Failure, Outcome};
use super::interrupt;
use super::network::{read_token, resolve_address};
use crate::cluster::{ClientConfig, Cluster, WorkerConfig, serve};
use crate::config::parse_bytes;

/// Default timeout in seconds: a machine that does not answer for so long counts as lost.
const SILENCE: u64 = 60;

/// Arguments of `serrate worker`.
#[derive(Args, Debug)]
pub(super) struct WorkerArgs {
    /// Address to listen on; port 0 chooses a free one. Addresses of other machines require --token-file.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7100")]
    listen: String,
    /// Memory for all queries together, such as 8GB [default: no limit].
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// File with a token, a secret that sessions and other workers must send.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Seconds after which a silent machine counts as lost.
    #[arg(long, value_name = "SECONDS", default_value_t = SILENCE,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    worker_timeout: u64,
}

/// Command-line arguments of sessions that use workers.
#[derive(Args, Debug)]
pub(super) struct ClusterArgs {
    /// Workers that run parts of queries, separated by commas [default: $SERRATE_WORKERS].
    #[arg(long, value_name = "HOST:PORT,..")]
    workers: Option<String>,
    /// File with the token that the workers expect.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Seconds after which a silent worker counts as lost.
    #[arg(long, value_name = "SECONDS", default_value_t = SILENCE,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    worker_timeout: u64,
}

impl ClusterArgs {
    pub(super) fn connect_workers(&self) -> Outcome<Option<Cluster>> {
        let workers = match &self.workers {
            Some(workers) => workers.clone(),
            None => std::env::var("SERRATE_WORKERS").unwrap_or_default(),
        };
        let mut config = ClientConfig::new(&workers);
        if config.workers.is_empty() {
            return Ok(None);
        }
        config.token = self.token_file.as_deref().map(read_token).transpose()?;
        config.timeout = Duration::from_secs(self.worker_timeout);
        let cluster =
            Cluster::new(&config).map_err(|e| Failure::from_usage(e.strip_backtrace()))?;
        Ok(Some(cluster))
    }
}

pub(super) async fn run_worker(args: WorkerArgs) -> Outcome {
    let memory = args.memory.as_deref().map(parse_bytes).transpose();
    let memory =
        memory.map_err(|e| Failure::from_usage(format!("--memory: {}", e.strip_backtrace())))?;
    let memory = memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let config = WorkerConfig {
        listen: resolve_address("--listen", &args.listen)?,
        memory,
        token: args.token_file.as_deref().map(read_token).transpose()?,
        timeout: Duration::from_secs(args.worker_timeout),
    };
    let ready = |address| {
        let mut out = std::io::stdout();
        let _ = writeln!(out, "worker listens on {address}");
        let _ = out.flush();
    };
    interrupt::run_or_cancel(async {
        let served = serve(config, ready).await;
        served.map_err(|e| Failure::from_message(e.strip_backtrace()))
    })
    .await
}
