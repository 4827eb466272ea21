//! Arguments of the commands that listen on an address.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use super::command_failure::{Failure, Outcome};
use crate::access;

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
    let (Ok(file_path), Ok(root)) = (access::canonicalize(file), access::canonicalize(root)) else {
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
