//! The parts of commands that run until a signal: log, probes, and end.

use std::future::Future;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::Failure;
use crate::metrics::Metrics;
use crate::telemetry::{LogEncoding, LogLevel};
use crate::web;

/// The addresses at which a command is probed.
#[derive(Clone, Debug)]
pub(super) struct ProbeAddresses {
    /// The address of `--health-addr`.
    pub(super) health: Option<String>,
    /// The address of `--metrics-addr`.
    pub(super) metrics: Option<String>,
}

impl ProbeAddresses {
    /// Serves the probes from now on.
    pub(super) async fn serve(&self, metrics: &Metrics) -> Result<(), Failure> {
        if let Some(address) = &self.health {
            spawn("health", web::serve_health(listen("health-addr", address).await?));
        }
        if let Some(address) = &self.metrics {
            spawn("metrics", web::serve_metrics(listen("metrics-addr", address).await?, metrics.clone()));
        }
        Ok(())
    }
}

/// Runs the work of a command on a runtime; its failures go to the log.
pub(super) fn run(runtime: Runtime, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    // Fails if there is one already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let result = runtime.block_on(work);
    // Threads that still wait have no more work.
    runtime.shutdown_background();
    if result.is_ok() {
        tracing::info!("shutdown complete");
    }
    result.map_err(|failure| match failure {
        // The log of a pod has lines of one format only.
        Failure::Failed(sentences) => {
            sentences.iter().for_each(|sentence| tracing::error!("{sentence}"));
            Failure::Logged
        }
        other => other,
    })
}

/// Installs handlers for SIGINT and SIGTERM, and returns a future of the first signal.
pub(super) fn shutdown_signal() -> Result<impl Future<Output = ()>, Failure> {
    let handler =
        |kind| signal(kind).map_err(|error| Failure::new(format!("cannot install signal handlers: {error}")));
    let (mut interrupt, mut terminate) =
        (handler(SignalKind::interrupt())?, handler(SignalKind::terminate())?);
    Ok(async move {
        let name = tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
        };
        tracing::info!("received {name}, shutting down");
    })
}

/// Listens at the address of a flag.
pub(super) async fn listen(flag: &str, address: &str) -> Result<TcpListener, Failure> {
    let listener = web::listen(address).await;
    listener.map_err(|error| Failure::new(format!("cannot serve at --{flag} {address:?}: {error}")))
}

/// Runs a server from now on.
pub(super) fn spawn(what: &'static str, server: impl Future<Output = std::io::Result<()>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(error) = server.await {
            tracing::error!(error = %error, "server of {what} failed");
        }
    });
}

/// Parses an address to serve at; as in Flux, `0` is none.
pub(super) fn address(flag: &str, value: &str) -> Result<Option<String>, Failure> {
    let address = Some(value).filter(|value| !value.is_empty() && *value != "0");
    let has_port =
        |address: &str| address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match address {
        Some(address) if !has_port(address) => {
            Err(invalid(flag, value, "write HOST:PORT, :PORT, or 0 for none"))
        }
        address => Ok(address.map(str::to_owned)),
    }
}

/// Parses the value of `--log-level`.
pub(super) fn log_level(value: &str) -> Result<LogLevel, Failure> {
    match value {
        "trace" => Ok(LogLevel::Trace),
        "debug" => Ok(LogLevel::Debug),
        "info" => Ok(LogLevel::Info),
        "error" => Ok(LogLevel::Error),
        _ => Err(invalid("log-level", value, "write trace, debug, info or error")),
    }
}

/// Parses the value of `--log-encoding`.
pub(super) fn log_encoding(value: &str) -> Result<LogEncoding, Failure> {
    match value {
        "json" => Ok(LogEncoding::Json),
        "console" => Ok(LogEncoding::Console),
        _ => Err(invalid("log-encoding", value, "write json or console")),
    }
}

/// Returns the failure of a flag with a wrong value.
pub(super) fn invalid(flag: &str, value: &str, advice: &str) -> Failure {
    Failure::Usage(format!("--{flag} {value:?} cannot be used: {advice}"))
}
