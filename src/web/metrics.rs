//! Metrics for Prometheus.

use std::future::{Future, IntoFuture};
use std::io;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// The content type of OpenMetrics, the version of Prometheus' text format with units.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves `/metrics`.
pub fn serve_metrics(listener: TcpListener, metrics: Metrics) -> impl Future<Output = io::Result<()>> {
    let text = move || async move { ([(CONTENT_TYPE, METRICS_TYPE)], metrics.to_text()) };
    axum::serve(listener, Router::new().route("/metrics", get(text))).into_future()
}
