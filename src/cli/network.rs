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
