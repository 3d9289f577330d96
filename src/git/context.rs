//! The context of a writer: stop token, metrics and shared capacity.

use crate::cancel::StopToken;
use crate::metrics::Metrics;
use crate::tenancy::Capacity;

/// The stop token, the metrics and the shared capacity of all work on mirrors.
#[derive(Clone, Debug, Default)]
pub struct WriterContext {
    /// Ends all work.
    pub stop: StopToken,
    /// Counts what is done.
    pub metrics: Metrics,
    /// Threads and memory for what tenants control.
    pub capacity: Capacity,
}
