//! Serves health checks and metrics over HTTP.

use std::future::{Future, IntoFuture};
use std::io;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// The content type of OpenMetrics, the version of Prometheus' text format with units.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Listens on an address in Go's form.
///
/// `:8080` is that port on all addresses of the machine.
///
/// # Errors
///
/// Returns an error if the address is in use or invalid.
pub async fn listen(address: &str) -> io::Result<TcpListener> {
    match address.strip_prefix(':') {
        // This binds both IPv6 and IPv4 if the machine has both.
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        },
        None => TcpListener::bind(address).await,
    }
}

/// Serves `/healthz` and `/readyz`, as Flux does: a response means healthy.
pub fn serve_health(listener: TcpListener) -> impl Future<Output = io::Result<()>> {
    let ping = || async { "ok" };
    let routes = Router::new().route("/healthz", get(ping)).route("/readyz", get(ping));
    axum::serve(listener, routes).into_future()
}

/// Serves `/metrics`.
pub fn serve_metrics(listener: TcpListener, metrics: Metrics) -> impl Future<Output = io::Result<()>> {
    let text = move || async move { ([(CONTENT_TYPE, METRICS_TYPE)], metrics.to_text()) };
    axum::serve(listener, Router::new().route("/metrics", get(text))).into_future()
}
