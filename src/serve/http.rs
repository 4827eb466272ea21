//! Serves `/health` and `/metrics` over HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::metrics::ServerMetrics;

/// Maximum number of connections at a time.
const MAX_CONNECTIONS: usize = 64;
/// Maximum time to receive the headers of a request. `MAX_CONNECTION_TIME` is the maximum duration
/// of a connection.
const MAX_HEADER_TIME: Duration = Duration::from_secs(10);
const MAX_CONNECTION_TIME: Duration = Duration::from_secs(300);

/// Answers requests on `listener`. Does not end by itself: the caller drops the future.
pub(super) async fn serve_metrics(listener: TcpListener, metrics: Arc<ServerMetrics>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let metrics = Arc::clone(&metrics);
                tokio::spawn(async move {
                    let _place = place;
                    let _ =
                        tokio::time::timeout(MAX_CONNECTION_TIME, answer_requests(stream, metrics))
                            .await;
                });
            }
            // Waits before the next attempt: too many files may be open until other connections
            // close.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer_requests(stream: TcpStream, metrics: Arc<ServerMetrics>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = build_response(&request, &metrics);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(MAX_HEADER_TIME).max_buf_size(16 << 10);
    // Ignores an error, because hyper itself answers an invalid request.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

fn build_response(request: &Request<Incoming>, metrics: &ServerMetrics) -> Response<String> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, text) = match (is_read, request.uri().path()) {
        (true, "/metrics") => (StatusCode::OK, metrics.to_text()),
        (true, "/health") => (StatusCode::OK, "ok\n".to_owned()),
        (true, _) => (
            StatusCode::NOT_FOUND,
            "this path is unknown; request /metrics or /health\n".to_owned(),
        ),
        (false, _) => {
            (StatusCode::METHOD_NOT_ALLOWED, "this method is not supported; send GET\n".to_owned())
        }
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
