//! The options of a writer, and its context: stop token, metrics and shared capacity.

use super::mirror_store::MirrorStore;
use super::slots::TransactionSlots;
use super::stop::StopSignal;
use crate::metrics::Metrics;
use crate::tenancy::Capacity;

/// The options of a writer.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The mirrors.
    pub mirrors: MirrorStore,
    /// Set in a dry run, in which everything is done but the push.
    pub is_rehearsal: bool,
    /// Stop token, metrics and capacity.
    pub context: WriterContext,
    /// Limits the transactions that run at once.
    pub slots: TransactionSlots,
}

/// The stop token, the metrics and the shared capacity of all work on mirrors.
#[derive(Clone, Debug, Default)]
pub struct WriterContext {
    /// Ends all work.
    pub stop: StopSignal,
    /// Counts what is done.
    pub metrics: Metrics,
    /// Threads and memory for what tenants control.
    pub capacity: Capacity,
}
