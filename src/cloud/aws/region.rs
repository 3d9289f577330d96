//! The regions of AWS, and the endpoints of their services.

use url::Url;

use crate::cloud::context::LoginContext;
use crate::cloud::error::LoginError;

/// The name of the cloud in messages.
pub(super) const CLOUD: &str = "AWS";

/// A region, and the domain of its services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AwsRegion {
    pub(super) name: String,
    /// The domain of the region's services.
    pub(super) domain: String,
}

impl AwsRegion {
    /// Returns the host of STS, where roles are assumed.
    pub(super) fn sts_host(&self, is_fips: bool) -> String {
        let service = if is_fips { "sts-fips" } else { "sts" };
        format!("{service}.{}.{}", self.name, self.domain)
    }
}

/// Returns the endpoint of a service, or the configured one in its place.
pub(super) fn endpoint(host: String, context: LoginContext<'_>) -> Result<Url, LoginError> {
    if let Some(endpoint) = &context.options.endpoints.aws {
        return Ok(endpoint.clone());
    }
    let url = Url::parse(&format!("https://{host}/"));
    url.map_err(|_| LoginError::Registry { cloud: CLOUD, host, must: "name a region".to_owned() })
}
