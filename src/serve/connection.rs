//! TCP connections, each with a number. When a connection closes, the sessions that used it end, at
//! once or after some time without a new connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::Connected;

use super::request_origin::ConnectionId;
use super::sessions::ServerSessions;

/// A TCP connection. When it is dropped, it calls [`ServerSessions::close_connection`].
#[derive(Debug)]
pub(super) struct ClientConnection {
    stream: TcpStream,
    id: ConnectionId,
    sessions: Arc<ServerSessions>,
}

impl ClientConnection {
    pub(super) fn new(stream: TcpStream, id: u64, sessions: Arc<ServerSessions>) -> Self {
        sessions.server_metrics().connections.add(1);
        Self { stream, id: ConnectionId(id), sessions }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.sessions.server_metrics().connections.sub();
        self.sessions.close_connection(self.id);
    }
}

impl Connected for ClientConnection {
    type ConnectInfo = ConnectionId;

    fn connect_info(&self) -> ConnectionId {
        self.id
    }
}

impl AsyncRead for ClientConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for ClientConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
