//! Signals that end a run.

use tokio::signal::unix::{SignalKind, signal};

use crate::cancel::StopToken;
use crate::cli::Failure;

/// Cancels `stop` at SIGINT, SIGTERM or SIGHUP.
/// It does so as long as the runtime in which it is called runs tasks.
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
