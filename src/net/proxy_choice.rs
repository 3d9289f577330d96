//! The choice of a proxy for a request, whose address is named in errors.

use std::env;

use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use super::http_client::HttpClientError;
use super::proxy::Proxy;
use super::ssrf_guard::PROXY_VARIABLES;

/// The schemes of proxies in the environment.
const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// The choice of a proxy.
#[derive(Debug, Clone, Default)]
pub enum ProxyChoice {
    /// The proxy of the variables `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
    #[default]
    Environment,
    /// This proxy.
    Given(Proxy),
    /// None.
    Direct,
}

impl ProxyChoice {
    /// Returns the address of the proxy for a request to `url`, without a login.
    /// The result is `None` for a direct request.
    pub fn address_for(&self, url: &Url) -> Option<String> {
        match self {
            Self::Direct => None,
            Self::Given(proxy) => {
                let server = proxy.server();
                Some(format!("{}:{}", server.host, server.port))
            }
            Self::Environment => {
                let found = Matcher::from_env().intercept(&url.as_str().parse().ok()?)?;
                Some(found.uri().authority()?.to_string())
            }
        }
    }

    /// Checks the variables of the environment: clients would silently ignore one that names no proxy.
    pub(super) fn check_environment(&self) -> Result<(), HttpClientError> {
        if !matches!(self, Self::Environment) {
            return Ok(());
        }
        let is_malformed =
            |name: &str| env::var_os(name).is_some_and(|value| !is_proxy(&value.to_string_lossy()));
        match PROXY_VARIABLES.into_iter().find(|name| is_malformed(name)) {
            Some(variable) => Err(HttpClientError::Proxy {
                detail: format!(
                    "the environment variable {variable} is not a proxy URL: write http://HOST:PORT, or use the scheme \
                     https or socks5"
                ),
            }),
            None => Ok(()),
        }
    }
}

/// Returns true if a value names a proxy, or is empty.
fn is_proxy(value: &str) -> bool {
    let (scheme, rest) = value.trim().split_once("://").unwrap_or(("http", value.trim()));
    let is_named = Url::parse(&format!("http://{rest}")).is_ok_and(|url| url.host_str().is_some());
    value.trim().is_empty() || (is_named && SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_of_the_environment_has_a_host_and_a_known_scheme() {
        for good in [
            "",
            " ",
            "proxy:3128",
            "http://u:p@proxy:3128/",
            "HTTPS://proxy",
            "socks5://10.0.0.1:1080",
            "[::1]:1",
        ] {
            assert!(is_proxy(good), "{good}");
        }
        for bad in ["ftp://proxy", "://", "http://", "a b", "proxy:port"] {
            assert!(!is_proxy(bad), "{bad}");
        }
    }
}
