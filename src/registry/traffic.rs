//! The bounds that requests by all routes share.

use super::budget::Budgets;
use super::options::RegistryOptions;
use super::pauses::Pauses;
use super::transports::Transports;
use crate::tenancy::{Capacity, FairSemaphore, SlotLimits};

/// The number of lists that are read beyond their first page at the same time.
const PAGED_LISTS: usize = 32;

/// The bounds that requests by all routes share.
#[derive(Debug)]
pub(super) struct Traffic {
    /// Slots and rates of servers.
    pub(super) budgets: Budgets,
    /// Pauses that servers asked for.
    pub(super) pauses: Pauses,
    /// Connections by all routes.
    pub(super) transports: Transports,
    /// Slots of lists that are read beyond their first page; each holds tags in memory meanwhile.
    pub(super) paging: FairSemaphore,
    /// Threads and memory of the process.
    pub(super) capacity: Capacity,
}

impl Traffic {
    pub(super) fn new(options: &RegistryOptions) -> Self {
        Self {
            budgets: Budgets::new(options.budget),
            pauses: Pauses::default(),
            transports: Transports::default(),
            paging: FairSemaphore::new(SlotLimits::shared(PAGED_LISTS)),
            capacity: options.capacity.clone(),
        }
    }
}
