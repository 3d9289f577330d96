//! Health checks.

use std::future::{Future, IntoFuture};
use std::io;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;

/// Serves `/healthz` and `/readyz`, as Flux does: a response means healthy.
pub fn serve_health(listener: TcpListener) -> impl Future<Output = io::Result<()>> {
    let ping = || async { "ok" };
    let routes = Router::new().route("/healthz", get(ping)).route("/readyz", get(ping));
    axum::serve(listener, routes).into_future()
}
