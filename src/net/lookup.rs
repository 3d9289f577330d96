//! Name lookup before git or a client connects.
//! No name may lead to a forbidden address.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tokio::time::timeout;

use super::address::{self, Host};
use crate::tenancy::BlockingPool;

/// The host and port of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The host as in a URL.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A server with the only addresses at which git may connect to it.
///
/// Without a pin, a second lookup by git could give other addresses than ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The server; its host is a name.
    pub server: Server,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// The error of a server that may not or cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// It is a local address or name.
    #[error(
        "the host '{host}' is the controller's own machine or on its network link, which objects may not use: use \
         another address, or start the controller with --allow-local-addresses"
    )]
    Local {
        /// The host.
        host: String,
    },
    /// Its name resolves to a local address.
    #[error(
        "the host '{host}' has the address {address}, the controller's own machine or on its network link, which objects may not use: use another address, or start the controller with --allow-local-addresses"
    )]
    ResolvesToLocal {
        /// The host.
        host: String,
        /// The address.
        address: IpAddr,
    },
    /// It cannot be found.
    #[error("cannot find the address of the host '{host}'")]
    NotFound {
        /// The host.
        host: String,
        /// The cause.
        #[source]
        cause: io::Error,
    },
}

impl LookupError {
    /// Returns true if it may not be reached, false if it cannot be found.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Local { .. } | Self::ResolvesToLocal { .. })
    }
}

impl Server {
    /// Resolves a server for a namespace on a thread of `lookups`.
    /// `limit` includes the wait for the thread. A server whose host is an address needs no pin.
    ///
    /// # Errors
    ///
    /// If one of its addresses is local, or there is none.
    pub async fn look_up(
        &self,
        lookups: &BlockingPool,
        namespace: &str,
        limit: Duration,
    ) -> Result<Option<Pin>, LookupError> {
        let host = Host::read(&self.host);
        if host.is_local() {
            return Err(LookupError::Local { host: self.host.clone() });
        }
        let Host::Name(name) = host else { return Ok(None) };
        let not_found = |cause| LookupError::NotFound { host: self.host.clone(), cause };
        let found = timeout(limit, addresses(lookups, namespace, name, self.port)).await;
        let found = found.map_err(|_| not_found(io::ErrorKind::TimedOut.into()))?.map_err(not_found)?;
        self.pin(found.iter().map(SocketAddr::ip)).map(Some)
    }

    /// Pins it to the addresses of its name.
    fn pin(&self, found: impl Iterator<Item = IpAddr>) -> Result<Pin, LookupError> {
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in found {
            if address::is_local(address) {
                return Err(LookupError::ResolvesToLocal { host: self.host.clone(), address });
            }
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            let cause = io::ErrorKind::NotFound.into();
            return Err(LookupError::NotFound { host: self.host.clone(), cause });
        }
        Ok(Pin { server: self.clone(), addresses })
    }
}

/// Resolves a name for a namespace on a thread of `lookups`.
/// The thread is free again when the system's resolver has ended.
///
/// # Errors
///
/// If the resolver fails.
pub async fn addresses(
    lookups: &BlockingPool,
    namespace: &str,
    name: String,
    port: u16,
) -> io::Result<Vec<SocketAddr>> {
    lookups.run(namespace, move || Ok((name.as_str(), port).to_socket_addrs()?.collect())).await
}

impl Pin {
    /// Returns the values of git's `http.curloptResolve`, with and without a final dot, which curl distinguishes.
    pub fn to_curl_resolve(&self) -> Vec<String> {
        let Self { server: Server { host, port }, addresses } = self;
        let places: Vec<String> = addresses
            .iter()
            .map(|address| match address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            })
            .collect();
        let name = host.trim_end_matches('.');
        [name.to_owned(), format!("{name}.")]
            .into_iter()
            .map(|name| format!("{name}:{port}:{}", places.join(",")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str) -> Server {
        Server { host: host.to_owned(), port: 80 }
    }

    #[tokio::test]
    async fn a_local_server_is_refused_and_an_address_needs_no_pin() {
        let look_up = async |host| {
            server(host).look_up(&BlockingPool::for_lookups(), "n", Duration::from_secs(5)).await
        };
        for host in ["localhost", "127.1", "[::1]", "169.254.169.254"] {
            let error = look_up(host).await.unwrap_err();
            assert!(matches!(error, LookupError::Local { .. }) && error.is_refusal(), "{error}");
            assert!(
                error.to_string().contains(host) && error.to_string().contains("--allow-local-addresses")
            );
        }
        assert_eq!(look_up("192.0.2.1").await.unwrap(), None);
        let error = look_up("nowhere.invalid").await.unwrap_err();
        assert!(matches!(error, LookupError::NotFound { .. }) && !error.is_refusal(), "{error}");
    }

    #[test]
    fn one_local_address_among_others_is_enough() {
        let pin = |text: &str| server("git.example").pin(text.split(' ').map(|one| one.parse().unwrap()));
        let addresses = pin("192.0.2.1 2001:db8::1 192.0.2.1").unwrap().addresses;
        assert_eq!(addresses.len(), 2);
        for (found, address) in
            [("192.0.2.1 127.0.0.1", "127.0.0.1"), ("::ffff:169.254.1.1", "::ffff:169.254.1.1")]
        {
            let error = pin(found).unwrap_err();
            let begin = format!("the host 'git.example' has the address {address}, the controller's own");
            assert!(error.to_string().starts_with(&begin) && error.is_refusal(), "{error}");
        }
        assert!(server("git.example").pin([].into_iter()).is_err());
    }

    #[test]
    fn a_pinned_address_has_the_syntax_of_curl() {
        let addresses = vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        let pin = Pin { server: server("git.example."), addresses };
        assert_eq!(
            pin.to_curl_resolve(),
            ["git.example:80:192.0.2.1,[2001:db8::1]", "git.example.:80:192.0.2.1,[2001:db8::1]"]
        );
    }
}
