//! Accepts connections, up to a limit, and serves requests on each.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::write_timeout::WriteTimeout;

/// The maximum number of connections.
const MAX_CONNECTIONS: usize = 256;

/// The time within which a client must send the head of its next request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The time within which a client must accept more of a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of the head of a request in bytes.
///
/// A longer one gets 431 without a content, as one with more than 100 headers does. It is also the maximum size of the
/// part of a response that waits to be sent.
const BUFFER: usize = 16 * 1024;

/// The wait after a failed accept.
///
/// The system refuses connections if no more files can be open, for example.
const PAUSE: Duration = Duration::from_millis(100);

/// The response to a connection beyond the limit.
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    connection: close\r\n\
    retry-after: 10\r\n\
    cache-control: no-store\r\n\
    x-content-type-options: nosniff\r\n\
    referrer-policy: no-referrer\r\n\
    cross-origin-resource-policy: same-origin\r\n\
    content-security-policy: default-src 'none'; frame-ancestors 'none'\r\n\
    content-type: application/problem+json\r\n\
    content-length: 107\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"there are too many connections\"}";

/// Serves requests until dropped.
///
/// Each connection has a task. Connections beyond the limit are refused, and slow or idle ones closed.
pub(in crate::web) async fn serve(listener: TcpListener, routes: Router) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(error = %error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            // The new socket has room for it; if not, the connection is just closed.
            let _ = stream.try_write(REFUSAL);
            continue;
        };
        // Otherwise the end of a long response waits 40 ms for the acknowledgement of its beginning.
        let _ = stream.set_nodelay(true);
        let routes = routes.clone();
        tokio::spawn(async move {
            serve_connection(stream, routes).await;
            drop(slot);
        });
    }
}

/// Serves the requests of one connection until it is closed.
async fn serve_connection(stream: TcpStream, routes: Router) {
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(BUFFER);
    let stream = TokioIo::new(WriteTimeout::new(stream, WRITE_TIMEOUT));
    let served = protocol.serve_connection(stream, TowerToHyperService::new(routes)).await;
    if let Err(error) = served {
        tracing::debug!(error = %error, "a connection for the status was closed");
    }
}
