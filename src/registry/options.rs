//! Options of requests to registries.

use crate::backoff::random_fraction;
use crate::cloud::{CloudEnvironment, CloudOptions};
use crate::metrics::Metrics;
use crate::net::LocalAddresses;
use crate::net::http::{HttpOptions, RateLimitOptions, Timeouts};
use crate::tenancy::Capacity;

/// The default maximum number of tags of one repository.
pub(super) const MAX_TAGS: usize = 250_000;

/// Limits and shared means of requests to registries.
#[derive(Debug, Clone)]
pub struct RegistryOptions {
    /// The rate limits of each server.
    pub rate_limits: RateLimitOptions,
    /// The timeouts of the parts of a request.
    pub timeouts: Timeouts,
    /// Allows or forbids registries, and redirects, to this machine or its network link.
    pub local_addresses: LocalAddresses,
    /// The maximum number of tags of one repository; more are an error.
    pub max_tags: usize,
    /// The options of logins at clouds.
    pub clouds: CloudOptions,
    /// Returns a random number from 0 to 1, the jitter of pauses.
    pub jitter: fn() -> f64,
    /// The threads and the memory for large responses.
    pub capacity: Capacity,
    /// The metrics that measure waits for slots.
    pub metrics: Option<Metrics>,
}

impl RegistryOptions {
    /// The defaults for interactive use: the cloud identity comes from the environment.
    pub fn from_env() -> Self {
        let environment = CloudEnvironment::from_env();
        Self { clouds: CloudOptions { environment, ..CloudOptions::default() }, ..Self::default() }
    }

    /// Returns the options of the requests.
    pub fn http(&self) -> HttpOptions {
        HttpOptions {
            rate_limits: self.rate_limits,
            timeouts: self.timeouts,
            local_addresses: self.local_addresses,
            jitter: self.jitter,
            capacity: self.capacity.clone(),
            metrics: self.metrics.clone(),
        }
    }
}

impl Default for RegistryOptions {
    /// The defaults for a process on a user's own machine.
    fn default() -> Self {
        Self {
            rate_limits: RateLimitOptions::default(),
            timeouts: Timeouts::default(),
            local_addresses: LocalAddresses::Allowed,
            max_tags: MAX_TAGS,
            clouds: CloudOptions::default(),
            jitter: random_fraction,
            capacity: Capacity::default(),
            metrics: None,
        }
    }
}
