//! The SSRF guard: objects may not send requests to this machine or its network link.
//!
//! A host that is an address is checked before each request, because addresses are not looked up. A name is resolved
//! once, when a connection is made, and the connection goes to one of the checked addresses: a second lookup cannot
//! give another one.

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::time::Instant;
use url::Url;

use super::address::{Host, LocalAddresses};
use super::lookup::{self, LookupError, Server};
use super::proxy_choice::ProxyChoice;
use crate::tenancy::{BlockingPool, FairCache};

/// The timeout of a name lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// The timeout of a name lookup if a proxy resolves the name anyway.
/// The proxy may know names that we do not.
const PROXIED_LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The time for which an admitted name behind a proxy is not looked up again.
const ADMITTED_TTL: Duration = Duration::from_secs(60);

/// The maximum number of admitted names in the cache.
const MAX_ADMITTED: usize = 1024;

/// The environment variables that name a proxy.
pub(super) const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

tokio::task_local! {
    /// The namespace for which connections are made.
    /// Clients are shared, so they have no namespace of their own.
    static NAMESPACE: String;
}

/// Runs `work`, whose connections are charged to a namespace.
pub async fn on_behalf_of<T>(namespace: &str, work: impl Future<Output = T>) -> T {
    NAMESPACE.scope(namespace.to_owned(), work).await
}

/// SSRF guard: refuses connections to local addresses.
#[derive(Debug, Clone)]
pub struct SsrfGuard {
    local_addresses: LocalAddresses,
    /// True if a proxy may resolve names in our place.
    is_behind_proxy: bool,
    /// The hosts of the environment's proxies, which may be anywhere.
    proxies: Arc<BTreeSet<String>>,
    /// The admitted names behind a proxy, with the time of their lookup.
    admitted: Arc<Mutex<FairCache<String, Instant>>>,
    lookups: BlockingPool,
}

impl SsrfGuard {
    /// Creates the guard of connections through a proxy.
    /// Names are looked up on threads of `lookups`.
    pub fn new(local_addresses: LocalAddresses, proxy: &ProxyChoice, lookups: BlockingPool) -> Self {
        let proxies = match proxy {
            ProxyChoice::Environment => PROXY_VARIABLES.into_iter().filter_map(proxy_host).collect(),
            ProxyChoice::Given(_) | ProxyChoice::Direct => BTreeSet::new(),
        };
        let is_behind_proxy = matches!(proxy, ProxyChoice::Given(_)) || !proxies.is_empty();
        let admitted = Arc::new(Mutex::new(FairCache::new(MAX_ADMITTED)));
        Self { local_addresses, is_behind_proxy, proxies: Arc::new(proxies), admitted, lookups }
    }

    /// Checks a request of a namespace.
    ///
    /// # Errors
    ///
    /// If it leads to a local address, and those are refused.
    pub async fn admit(&self, namespace: &str, url: &Url) -> Result<(), LookupError> {
        if self.local_addresses == LocalAddresses::Allowed {
            return Ok(());
        }
        let server = server(url);
        if Host::read(&server.host).is_local() {
            return Err(LookupError::Local { host: server.host });
        }
        if !self.is_behind_proxy {
            return Ok(());
        }
        // The proxy would connect to it, and may stand on our network.
        if self.admitted.lock().get(&server.host).is_some_and(|at| at.elapsed() < ADMITTED_TTL) {
            return Ok(());
        }
        match server.look_up(&self.lookups, namespace, PROXIED_LOOKUP_TIMEOUT).await {
            Err(error) if error.is_refusal() => Err(error),
            _ => {
                self.admitted.lock().insert(namespace, server.host, Instant::now());
                Ok(())
            }
        }
    }

    /// Returns the resolver of connections.
    pub(super) fn resolver(&self) -> Arc<Resolver> {
        Arc::new(Resolver {
            local_addresses: self.local_addresses,
            exempt: Arc::clone(&self.proxies),
            lookups: self.lookups.clone(),
        })
    }
}

/// Returns the refusal among the causes of an error, if there is one.
pub fn ssrf_refusal<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e LookupError> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(refusal) = cause.downcast_ref::<LookupError>() {
            return Some(refusal).filter(|refusal| refusal.is_refusal());
        }
        next = cause.source();
    }
    None
}

/// Resolves names, and returns no local address if those are refused.
pub(super) struct Resolver {
    local_addresses: LocalAddresses,
    exempt: Arc<BTreeSet<String>>,
    lookups: BlockingPool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let is_exempt = self.local_addresses == LocalAddresses::Allowed
            || self.exempt.contains(&name.as_str().to_ascii_lowercase());
        let lookups = self.lookups.clone();
        let namespace = NAMESPACE.try_with(Clone::clone).unwrap_or_default();
        Box::pin(async move {
            let server = Server { host: name.as_str().to_owned(), port: 0 };
            if is_exempt {
                let found = lookup::addresses(&lookups, &namespace, server.host, 0).await?;
                return Ok(Box::new(found.into_iter()) as Addrs);
            }
            let pin = server.look_up(&lookups, &namespace, LOOKUP_TIMEOUT).await?;
            let addresses = pin.map(|pin| pin.addresses).unwrap_or_default();
            Ok(Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

/// Returns the host of the proxy in an environment variable.
/// The scheme may be left out, as in clients.
fn proxy_host(variable: &str) -> Option<String> {
    let value = env::var(variable).ok().filter(|value| !value.trim().is_empty())?;
    host_of(value.trim())
}

fn host_of(proxy: &str) -> Option<String> {
    let url = Url::parse(proxy).ok().filter(|url| url.host_str().is_some());
    let url = url.or_else(|| Url::parse(&format!("http://{proxy}")).ok())?;
    url.host_str().map(str::to_ascii_lowercase)
}

fn server(url: &Url) -> Server {
    Server {
        host: url.host_str().unwrap_or_default().to_owned(),
        port: url.port_or_known_default().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(local_addresses: LocalAddresses) -> SsrfGuard {
        SsrfGuard::new(local_addresses, &ProxyChoice::Direct, BlockingPool::for_lookups())
    }

    #[tokio::test]
    async fn local_addresses_are_admitted_only_if_allowed() {
        let refused = guard(LocalAddresses::Refused);
        let allowed = guard(LocalAddresses::Allowed);
        for local in [
            "http://127.0.0.1:5000/v2/",
            "https://2130706433/",
            "https://[::1]/",
            "https://169.254.169.254/",
            "http://localhost.:1/",
            "http://[::ffff:169.254.169.254]/",
        ] {
            let url = Url::parse(local).unwrap();
            let error = refused.admit("n", &url).await.unwrap_err();
            assert!(error.is_refusal(), "{local}: {error}");
            assert!(allowed.admit("n", &url).await.is_ok(), "{local}");
        }
        for other in ["https://10.0.0.1/", "https://registry.example/", "https://[fd00::1]/"] {
            assert!(refused.admit("n", &Url::parse(other).unwrap()).await.is_ok(), "{other}");
        }
    }

    #[tokio::test]
    async fn names_beyond_the_maximum_evict_names_of_their_own_namespace() {
        let guard = SsrfGuard { is_behind_proxy: true, ..guard(LocalAddresses::Refused) };
        for (namespace, count) in [("victim", 1), ("flood", MAX_ADMITTED)] {
            for number in 0..count {
                guard.admitted.lock().insert(
                    namespace,
                    format!("{namespace}{number}.example"),
                    Instant::now(),
                );
            }
        }
        // An address needs no lookup, and is cached as well.
        guard.admit("flood", &Url::parse("http://10.0.0.1/").unwrap()).await.unwrap();
        let mut admitted = guard.admitted.lock();
        assert_eq!(admitted.len(), MAX_ADMITTED);
        assert!(admitted.get("victim0.example").is_some() && admitted.get("10.0.0.1").is_some());
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_not_looked_up() {
        let exempt = Arc::new(BTreeSet::from(["localhost".to_owned()]));
        let exempting = SsrfGuard { proxies: exempt, ..guard(LocalAddresses::Refused) };
        for resolver in [exempting.resolver(), guard(LocalAddresses::Allowed).resolver()] {
            let mut found = resolver.resolve("localhost".parse().unwrap()).await.unwrap();
            assert!(found.all(|address| address.ip().is_loopback()));
        }
        let resolver = guard(LocalAddresses::Refused).resolver();
        let error = resolver.resolve("localhost".parse().unwrap()).await.err().unwrap();
        assert!(error.downcast_ref::<LookupError>().unwrap().is_refusal());
    }

    #[test]
    fn a_proxy_is_named_with_its_scheme_or_without() {
        for (proxy, host) in [
            ("http://user:pass@Proxy.example:3128", Some("proxy.example")),
            ("proxy:3128", Some("proxy")),
            ("proxy", Some("proxy")),
            ("localhost:3128/", Some("localhost")),
            ("socks5h://[::1]:1080", Some("[::1]")),
            ("://", None),
        ] {
            assert_eq!(host_of(proxy).as_deref(), host, "{proxy}");
        }
    }
}
