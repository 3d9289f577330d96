//! State and limits that requests over all routes share.

use super::options::RegistryOptions;
use super::pauses::Pauses;
use super::rate_limit::RateLimiters;
use super::transports::Transports;
use crate::tenancy::{Capacity, FairSemaphore, SlotLimits};

/// The maximum number of lists of which further pages are read at the same time.
const PAGED_LISTS: usize = 32;

/// State and limits that requests over all routes share.
#[derive(Debug)]
pub(super) struct Traffic {
    /// The rate limiters of servers.
    pub(super) limiters: RateLimiters,
    /// The pauses that servers asked for.
    pub(super) pauses: Pauses,
    /// The connections of all routes.
    pub(super) transports: Transports,
    /// Slots of lists that are read beyond their first page; each holds tags in memory meanwhile.
    pub(super) paging: FairSemaphore,
    /// Threads and memory of the process.
    pub(super) capacity: Capacity,
}

impl Traffic {
    pub(super) fn new(options: &RegistryOptions) -> Self {
        Self {
            limiters: RateLimiters::new(options.rate_limits),
            pauses: Pauses::default(),
            transports: Transports::default(),
            paging: FairSemaphore::new(SlotLimits::shared(PAGED_LISTS)),
            capacity: options.capacity.clone(),
        }
    }
}
