//! Signals that end a run.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::cancel::StopToken;
use crate::cli::Failure;

/// The time between two looks at a stop signal.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Gives `stop` at SIGINT, SIGTERM or SIGHUP, as long as the runtime in which it is called runs tasks.
///
/// # Errors
///
/// When the handlers cannot be installed.
pub(super) fn forward_to(stop: &StopToken) -> Result<(), Failure> {
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let (stop, signal) = (stop.clone(), signal(kind));
        let mut signal = signal.map_err(|error| Failure::new(format!("cannot hear signals: {error}")))?;
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
