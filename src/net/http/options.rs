//! Options of HTTP requests.

use super::rate_limit::RateLimitOptions;
use super::route::Timeouts;
use crate::metrics::Metrics;
use crate::net::LocalAddresses;
use crate::tenancy::Capacity;

/// Limits and shared means of HTTP requests.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The rate limits of each server.
    pub rate_limits: RateLimitOptions,
    /// The timeouts of the parts of a request.
    pub timeouts: Timeouts,
    /// Allows or forbids servers, and redirects, on this machine or its network link.
    pub local_addresses: LocalAddresses,
    /// Returns a random number from 0 to 1, the jitter of pauses.
    pub jitter: fn() -> f64,
    /// The threads and the memory for large responses.
    pub capacity: Capacity,
    /// The metrics that measure waits for slots.
    pub metrics: Option<Metrics>,
}
