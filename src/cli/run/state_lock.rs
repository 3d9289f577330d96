//! Lock of the state directory, with a wait for other runs.

use std::path::Path;
use std::time::{Duration, Instant};

use tagboat_api::GoDuration;
use tokio::time::sleep;

use super::signals;
use crate::cancel::StopToken;
use crate::cli::Failure;
use crate::cli::terminal::say;
use crate::error::chain;
use crate::objects::manifests::{StateAccess, StateDirectory, StateLock};

/// The retry interval of the state lock.
const TRY_INTERVAL: Duration = Duration::from_millis(50);

/// Locks the state in `root`, waiting up to `timeout` for another run.
///
/// # Errors
///
/// If the state cannot be locked in time or at all, or if `stop` is given.
pub(super) async fn lock(
    root: &Path,
    access: StateAccess,
    timeout: Duration,
    stop: &StopToken,
) -> Result<StateLock, Failure> {
    let state = StateDirectory::new(root);
    let begin = Instant::now();
    let mut is_told = false;
    loop {
        if let Some(lock) = state.try_lock(access).map_err(|error| Failure::new(chain(&error)))? {
            return Ok(lock);
        }
        let directory = root.display();
        if timeout.is_zero() {
            return Err(Failure::new(format!(
                "another run uses the state in {directory}; run again when it is done, or wait for it with --wait-for-state"
            )));
        }
        if begin.elapsed() >= timeout {
            return Err(Failure::new(format!(
                "another run still uses the state in {directory} after {}; run again when it is done, or wait longer with \
                 --wait-for-state",
                GoDuration::from(timeout)
            )));
        }
        if !is_told {
            // Not earlier: without a wait, signals keep their default actions while manifests are read.
            signals::forward_to(stop)?;
            say(&format!(
                "waiting for another run that uses the state in {directory}, up to {}",
                GoDuration::from(timeout)
            ));
            is_told = true;
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                return Err(Failure::new(format!(
                    "tagboat was stopped while it waited for another run that uses the state in {directory}"
                )));
            }
            () = sleep(TRY_INTERVAL.min(timeout)) => {}
        }
    }
}
