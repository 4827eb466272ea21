//! Arguments of the commands that listen on an address.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use clap::Args;

use super::command_failure::{Failure, Outcome};
use crate::access;
#[cfg(not(feature = "serve"))]
use crate::cluster::TlsIdentity;
#[cfg(feature = "serve")]
use crate::serve::TlsIdentity;

/// Files of the token and the certificate of a command that listens on an address.
#[derive(Args, Debug)]
pub(super) struct ListenerFiles {
    /// File with a token, a secret that clients must send as password or bearer token.
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// PEM file with the certificate of the server.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the server.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl ListenerFiles {
    /// Returns an error if the token or the private key is in the folder `root`, where statements
    /// can read it.
    pub(super) fn check_outside(&self, root: Option<&Path>) -> Outcome {
        let mut secrets = [&self.token_file, &self.tls_key].into_iter().flatten();
        secrets.try_for_each(|file| check_outside(file, root))
    }

    pub(super) fn read_identity(&self) -> Outcome<Option<TlsIdentity>> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        Ok(Some(TlsIdentity { certificate: read_text(certificate)?, key: read_text(key)? }))
    }
}

pub(super) fn resolve_address(option: &str, text: &str) -> Outcome<SocketAddr> {
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| {
        Failure::from_usage(format!("{option} {text} is not an address; use HOST:PORT"))
    })
}

pub(super) fn read_text(file: &Path) -> Outcome<String> {
    access::read_to_string(file)
        .map_err(|e| Failure::from_message(format!("{}: {e}", file.display())))
}

pub(super) fn read_token(file: &Path) -> Outcome<String> {
    match read_text(file)?.trim() {
        "" => Err(Failure::from_message(format!(
            "the token file {} is empty; write the token to it",
            file.display()
        ))),
        token => Ok(token.to_owned()),
    }
}

/// Returns an error if the secret `file` is in the folder `root`, where statements can read it.
pub(super) fn check_outside(file: &Path, root: Option<&Path>) -> Outcome {
    let Some(root) = root else { return Ok(()) };
    let (Ok(file_path), Ok(root)) =
        (access::canonicalize_path(file), access::canonicalize_path(root))
    else {
        return Ok(());
    };
    match file_path.starts_with(&root) {
        true => Err(Failure::from_usage(format!(
            "{} is a secret, but it is in the folder of --root, whose files every client can read; move it out of this folder",
            file.display()
        ))),
        false => Ok(()),
    }
}
