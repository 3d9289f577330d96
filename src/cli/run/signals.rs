//! Signals that end a run.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::cancel::StopToken;
use crate::cli::Failure;

/// The time between two checks of a stop signal.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Gives `stop` upon SIGINT, SIGTERM or SIGHUP, while the runtime of the caller runs tasks.
///
/// # Errors
///
/// If the handlers cannot be installed.
pub(super) fn forward_to(stop: &StopToken) -> Result<(), Failure> {
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let (stop, signal) = (stop.clone(), signal(kind));
        let mut signal =
            signal.map_err(|error| Failure::new(format!("cannot install signal handlers: {error}")))?;
        tokio::spawn(async move {
            signal.recv().await;
            stop.cancel();
        });
    }
    Ok(())
}

/// Waits until `stop` is given.
pub(super) async fn stopped(stop: &StopToken) {
    while !stop.is_cancelled() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
