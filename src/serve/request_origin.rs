//! The origin of a request: its sender and its connection.

use tonic::transport::server::TlsConnectInfo;
use tonic::{Extensions, Status};

/// The sender of a request, whom the header `authorization` identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A client that sent the token of the server, or any client of a server without a token.
    Client,
    /// A client that sent the key of a session as its token. It has received this key in a
    /// handshake.
    OfSession(String),
}

/// Number of a connection, unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ConnectionId(pub(super) u64);

/// Returns the connection on which a request arrived, with or without TLS.
pub(super) fn find_connection(extensions: &Extensions) -> Result<ConnectionId, Status> {
    let plain = extensions.get::<ConnectionId>().copied();
    let tls = || extensions.get::<TlsConnectInfo<ConnectionId>>().map(|info| *info.get_ref());
    plain.or_else(tls).ok_or_else(|| {
        Status::internal("internal error: the request has no connection; please report it")
    })
}
