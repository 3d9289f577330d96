//! What watches over the work on mirrors.

use super::stop::StopSignal;
use crate::metrics::Metrics;

/// The word to stop, and who counts what is done.
#[derive(Clone, Debug, Default)]
pub struct Oversight {
    /// The word to stop.
    pub stop: StopSignal,
    /// Who counts.
    pub metrics: Metrics,
}
