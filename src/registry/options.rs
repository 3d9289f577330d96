//! Options of requests to registries.

use super::budget::BudgetOptions;
use super::login::{CloudEnvironment, CloudOptions};
use super::way::Limits;
use crate::backoff::random_fraction;
use crate::metrics::Metrics;
use crate::net::LocalAddresses;
use crate::tenancy::Capacity;

/// The default maximum number of tags of one repository.
pub(super) const MOST_TAGS: usize = 250_000;

/// Limits and shared means of requests to registries.
#[derive(Debug, Clone)]
pub struct RegistryOptions {
    /// The rate limits of each server.
    pub budget: BudgetOptions,
    /// The timeouts of the parts of a request.
    pub limits: Limits,
    /// Allows or forbids registries, and redirects, to this machine or its network link.
    pub local_addresses: LocalAddresses,
    /// The maximum number of tags of one repository; more are an error.
    pub most_tags: usize,
    /// The options of logins at clouds.
    pub clouds: CloudOptions,
    /// Returns a random number from 0 to 1, the jitter of pauses.
    pub chance: fn() -> f64,
    /// The threads and the memory for large responses.
    pub capacity: Capacity,
    /// The metrics that measure waits for slots.
    pub metrics: Option<Metrics>,
}

impl RegistryOptions {
    /// The defaults for interactive use: the cloud identity comes from the environment.
    pub fn of_this_process() -> Self {
        let environment = CloudEnvironment::of_this_process();
        Self { clouds: CloudOptions { environment, ..CloudOptions::default() }, ..Self::default() }
    }
}

impl Default for RegistryOptions {
    /// The defaults for a process on a user's own machine.
    fn default() -> Self {
        Self {
            budget: BudgetOptions::default(),
            limits: Limits::default(),
            local_addresses: LocalAddresses::Allowed,
            most_tags: MOST_TAGS,
            clouds: CloudOptions::default(),
            chance: random_fraction,
            capacity: Capacity::default(),
            metrics: None,
        }
    }
}
