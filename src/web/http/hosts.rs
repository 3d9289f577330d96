//! The hosts for which requests are accepted.
//!
//! A page of another site can have a name that resolves to the address of this server (DNS rebinding), and its scripts
//! could then read the status with the browser of a user. Its requests have that name as `Host`.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use axum::http::Request;
use axum::http::header::HOST;
use axum::http::uri::Authority;

/// The name that every machine has for itself, which browsers never look up elsewhere.
const LOCALHOST: &str = "localhost";

/// The host names for which requests are accepted, beside IP addresses and `localhost`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(BTreeSet<String>);

impl Hosts {
    /// Accepts these names, in any case.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| normalized(&name)).collect())
    }

    /// Returns true for a request for this server.
    ///
    /// Its host is an IP address, `localhost` or one of the names.
    ///
    /// The port may be any, because a forwarded port often differs.
    pub(super) fn accept<B>(&self, request: &Request<B>) -> bool {
        let mut headers = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (headers.next(), headers.next()) else { return false };
        // A request to a proxy has the host in the URL, too.
        let is_same =
            |url: &Authority| host.to_str().is_ok_and(|host| host.eq_ignore_ascii_case(url.as_str()));
        if request.uri().authority().is_some_and(|url| !is_same(url)) {
            return false;
        }
        match Authority::try_from(host.as_bytes()) {
            Ok(authority) if !authority.as_str().contains('@') => self.has(authority.host()),
            _ => false,
        }
    }

    fn has(&self, host: &str) -> bool {
        let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match in_brackets {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None if host.parse::<IpAddr>().is_ok() => true,
            None => {
                let name = normalized(host);
                name == LOCALHOST || self.0.contains(&name)
            }
        }
    }
}

/// Returns a name in lower case without the dot of the root.
fn normalized(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(hosts: &[&str], uri: &str) -> bool {
        let names = Hosts::new(["status.example.com".to_owned(), "Tagboat.".to_owned()]);
        let request = hosts.iter().fold(Request::get(uri), |request, host| request.header(HOST, *host));
        names.accept(&request.body(()).unwrap())
    }

    #[test]
    fn addresses_localhost_and_given_names_are_accepted() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:9797",
            "10.1.2.3:1",
            "[::1]",
            "[::1]:9797",
            "[2001:db8::1]",
            "localhost",
            "LOCALHOST:9797",
            "localhost.",
            "status.example.com",
            "Status.Example.com.:443",
            "tagboat",
        ] {
            assert!(accepts(&[host], "/"), "{host}");
        }
    }

    #[test]
    fn other_hosts_are_refused() {
        for host in [
            "",
            "example.com",
            "evil.status.example.com",
            "status.example.com.evil.org",
            "localhost.evil.org",
            "127.0.0.1.evil.org",
            "127.1",
            "0x7f000001",
            "user@localhost",
            "[::1",
            "[status.example.com]",
            "local host",
            "localhost:x:y",
        ] {
            assert!(!accepts(&[host], "/"), "{host}");
        }
        assert!(!accepts(&[], "/"), "a request without a host");
        assert!(!accepts(&["localhost", "localhost"], "/"), "a request with two hosts");
    }

    #[test]
    fn the_host_of_the_url_is_that_of_the_header() {
        assert!(accepts(&["localhost:9797"], "http://localhost:9797/"));
        assert!(!accepts(&["localhost:9797"], "http://evil.org/"));
    }
}
