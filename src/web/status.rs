//! The server of `--status-addr`.

use std::future::Future;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::middleware;
use tokio::net::TcpListener;

use super::http::{self, Hosts};
use super::store::Stores;
use super::{api, page};

/// Serves the REST API and the web page.
///
/// Requests for other hosts than `hosts` are refused.
pub fn serve_status(
    listener: TcpListener,
    stores: Stores,
    hosts: Hosts,
) -> impl Future<Output = io::Result<()>> {
    let check = middleware::from_fn_with_state(Arc::new(hosts), http::check);
    let routes = Router::new().merge(api::routes(stores.clone())).merge(page::routes(stores)).layer(check);
    http::serve(listener, routes)
}
