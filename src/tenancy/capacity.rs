//! The shared capacity of one process.

use std::time::Duration;

use super::memory::MemoryBudget;
use super::pool::BlockingPool;
use crate::metrics::Metrics;

/// The blocking threads and the memory that all tenants of a process share.
///
/// Clones share them.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// Threads for work whose cost tenants control.
    pub pool: BlockingPool,
    /// Threads for DNS lookups of names that tenants give.
    pub lookups: BlockingPool,
    /// Memory for large inputs.
    pub memory: MemoryBudget,
}

impl Capacity {
    /// The maximum wait for memory or a thread.
    ///
    /// Waiting work suspends its own timeout meanwhile.
    pub const MAX_WAIT: Duration = Duration::from_secs(600);

    /// The default capacity for this machine, with its use measured by namespace.
    pub fn measured(metrics: &Metrics) -> Self {
        Self {
            pool: BlockingPool::measured(metrics),
            lookups: BlockingPool::for_lookups(),
            memory: MemoryBudget::measured(metrics),
        }
    }
}

impl Default for Capacity {
    /// The default capacity for this machine.
    fn default() -> Self {
        Self {
            pool: BlockingPool::for_this_machine(),
            lookups: BlockingPool::for_lookups(),
            memory: MemoryBudget::default(),
        }
    }
}
