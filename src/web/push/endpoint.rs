//! The address of a server that receives statuses.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// The address of a server that receives statuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

/// The error of an address that cannot receive statuses.
///
/// No message has the address, which may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEndpoint {
    /// It is no address of HTTP.
    #[error("write http://HOST or https://HOST, with a path if the server has one")]
    Scheme,
    /// It has a user part.
    #[error("write it without user and password; --status-token-file is for a token")]
    User,
    /// It has a query or a fragment.
    #[error("write it without ? and #")]
    Query,
}

impl Endpoint {
    /// Returns the address for the status of a deployment.
    ///
    /// The id is one segment of the path.
    pub(super) fn status_of(&self, deployment_id: &str) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1", "deployments", deployment_id, "status"]);
        }
        url
    }
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or(InvalidEndpoint::Scheme)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidEndpoint::User);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidEndpoint::Query);
        }
        Ok(Self(url))
    }
}

/// Formats the address, which has no secrets.
impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_deployment_has_an_address_below_that_of_the_server() {
        for (endpoint, id, expected) in [
            ("http://sink", "1-2", "http://sink/api/v1/deployments/1-2/status"),
            ("http://sink/", "1-2", "http://sink/api/v1/deployments/1-2/status"),
            ("https://sink:8443/a/b", "1", "https://sink:8443/a/b/api/v1/deployments/1/status"),
            ("https://sink/a/b/", "1", "https://sink/a/b/api/v1/deployments/1/status"),
            ("http://[::1]:80", "a/b?c", "http://[::1]/api/v1/deployments/a%2Fb%3Fc/status"),
            ("http://sink/%20", "é", "http://sink/%20/api/v1/deployments/%C3%A9/status"),
        ] {
            let endpoint: Endpoint = endpoint.parse().unwrap();
            assert_eq!(endpoint.status_of(id).as_str(), expected);
        }
    }

    #[test]
    fn an_address_that_cannot_receive_statuses_is_refused() {
        for (text, error) in [
            ("", InvalidEndpoint::Scheme),
            ("sink", InvalidEndpoint::Scheme),
            ("sink:80", InvalidEndpoint::Scheme),
            ("ftp://sink", InvalidEndpoint::Scheme),
            ("http://", InvalidEndpoint::Scheme),
            ("http://user@sink", InvalidEndpoint::User),
            ("http://user:password@sink", InvalidEndpoint::User),
            ("http://:password@sink", InvalidEndpoint::User),
            ("http://sink?token=1", InvalidEndpoint::Query),
            ("http://sink/#1", InvalidEndpoint::Query),
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(error), "{text}");
        }
    }
}
