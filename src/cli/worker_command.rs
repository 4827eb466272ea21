//! `serrate worker`, and the command-line arguments of sessions that use workers.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::command_failure::{Failure, Outcome};
use super::interrupt;
use super::network::{ListenerFiles, read_text, read_token, resolve_address};
use crate::cluster::{ClientConfig, Cluster, TlsIdentity, WorkerConfig, serve};
use crate::sql::describe_error;

/// Default timeout in seconds: a machine that does not answer for so long counts as lost.
const DEFAULT_TIMEOUT: u64 = 60;

/// Contents of the files with tokens, keys and certificates. These files must be outside the folder
/// of `--root`, so that no statement can read them. They are read at the start, because once
/// `--root` applies, the process cannot read files outside this folder.
#[derive(Default)]
struct WorkerSecrets {
    token: Option<String>,
    tls: Option<TlsIdentity>,
    authority: Option<String>,
}

impl fmt::Debug for WorkerSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSecrets").finish_non_exhaustive()
    }
}

/// How a session or a worker connects to workers.
#[derive(Args, Debug)]
struct ConnectionArgs {
    /// PEM file with the certificate of the workers or of their authority; connections to them are
    /// encrypted.
    #[arg(long, value_name = "FILE")]
    worker_ca: Option<PathBuf>,
    /// Seconds after which a silent worker counts as lost [default: 60].
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT,
          hide_default_value = true,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    worker_timeout: u64,
}

impl ConnectionArgs {
    fn read_authority(&self) -> Outcome<Option<String>> {
        self.worker_ca.as_deref().map(read_text).transpose()
    }

    fn get_timeout(&self) -> Duration {
        Duration::from_secs(self.worker_timeout)
    }
}

/// Arguments of `serrate worker`.
#[derive(Args, Debug)]
#[command(
    mut_arg("token_file", |arg| arg
        .help("File with a token, a secret that sessions and other workers must send")),
    mut_arg("tls_cert", |arg| arg
        .help("PEM file with the certificate of the worker; connections are encrypted")),
    mut_arg("tls_key", |arg| arg.help("PEM file with the private key of the worker")),
    mut_arg("worker_ca", |arg| arg.requires("tls_cert").help(
        "PEM file with the certificate of the other workers or of their authority [default: that of --tls-cert]"
    )),
    mut_arg("worker_timeout", |arg| arg
        .help("Seconds after which a silent machine counts as lost [default: 60]"))
)]
pub(super) struct WorkerArgs {
    /// Address to listen on; port 0 chooses a free one. Addresses of other machines require
    /// --token-file, --tls-cert and --tls-key.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7100")]
    listen: String,
    #[command(flatten)]
    files: ListenerFiles,
    /// Allow addresses of other machines without token and encryption.
    #[arg(long)]
    insecure_listen: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[arg(skip)]
    secrets: WorkerSecrets,
}

impl WorkerArgs {
    pub(super) fn read_files(&mut self, root: Option<&Path>) -> Outcome {
        self.files.check_outside(root)?;
        self.secrets.token = self.files.token_file.as_deref().map(read_token).transpose()?;
        self.secrets.authority = self.connection.read_authority()?;
        self.secrets.tls = self.files.read_identity()?;
        Ok(())
    }
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
    #[command(flatten)]
    connection: ConnectionArgs,
    #[arg(skip)]
    secrets: WorkerSecrets,
}

impl ClusterArgs {
    /// Returns a configuration with the addresses of the workers, from `--workers` or
    /// `$SERRATE_WORKERS`. All other settings have their defaults.
    fn default_config(&self) -> ClientConfig {
        match &self.workers {
            Some(workers) => ClientConfig::new(workers),
            None => ClientConfig::new(&std::env::var("SERRATE_WORKERS").unwrap_or_default()),
        }
    }

    pub(super) fn read_files(&mut self) -> Outcome {
        if !self.default_config().workers.is_empty() {
            self.secrets.token = self.token_file.as_deref().map(read_token).transpose()?;
            self.secrets.authority = self.connection.read_authority()?;
        }
        Ok(())
    }

    pub(super) fn connect_workers(&self) -> Outcome<Option<Cluster>> {
        let mut config = self.default_config();
        if config.workers.is_empty() {
            return Ok(None);
        }
        config.token.clone_from(&self.secrets.token);
        config.authority.clone_from(&self.secrets.authority);
        config.timeout = self.connection.get_timeout();
        let cluster = Cluster::new(&config).map_err(|e| Failure::from_usage(describe_error(&e)))?;
        Ok(Some(cluster))
    }
}

pub(super) async fn run_worker(args: WorkerArgs) -> Outcome {
    let config = WorkerConfig {
        listen: resolve_address("--listen", &args.listen)?,
        token: args.secrets.token,
        tls: args.secrets.tls,
        insecure: args.insecure_listen,
        authority: args.secrets.authority,
        timeout: args.connection.get_timeout(),
    };
    let ready = |address| {
        let mut out = std::io::stdout();
        let _ = writeln!(out, "worker listens on {address}");
        let _ = out.flush();
    };
    interrupt::run_or_cancel(async {
        let served = serve(config, ready).await;
        served.map_err(Failure::from)
    })
    .await
}
