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
use super::sessions::Sessions;

/// A TCP connection. When it is dropped, it calls [`Sessions::close_connection`].
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    id: ConnectionId,
    sessions: Arc<Sessions>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, id: u64, sessions: Arc<Sessions>) -> Self {
        sessions.server_metrics().connections.add(1);
        Self { stream, id: ConnectionId(id), sessions }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.sessions.server_metrics().connections.sub();
        self.sessions.close_connection(self.id);
    }
}

impl Connected for Connection {
    type ConnectInfo = ConnectionId;

    fn connect_info(&self) -> ConnectionId {
        self.id
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
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
