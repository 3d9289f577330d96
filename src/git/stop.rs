//! The word to stop, for everything that waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells work in other threads to end: git processes are ended with their groups, and nothing new is begun.
///
/// Clones are one and the same signal. A push that is under way when it is given may arrive all the same; the next run
/// finds out.
#[derive(Clone, Debug, Default)]
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// Gives the word.
    pub fn give(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was given.
    pub fn is_given(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
