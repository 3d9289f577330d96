//! The one builder of HTTP clients.

use std::time::Duration;

use reqwest::{Client, redirect, retry};
use rustls::pki_types::CertificateDer;

use super::address::{Host, LocalAddresses};
use super::proxy_choice::ProxyChoice;
use super::root_cause::root_cause;
use super::ssrf_guard::SsrfGuard;
use super::tls::{self, ClientCertificate};
use super::{LookupError, Proxy};
use crate::tenancy::BlockingPool;

/// The value of `User-Agent`.
const USER_AGENT: &str = concat!("tagboat/", env!("CARGO_PKG_VERSION"));

/// The maximum number of redirects that a client follows.
const REDIRECTS: usize = 10;

/// The maximum number of bytes that a server may send ahead of one response's reader.
/// [`CONNECTION_WINDOW`] is the maximum for all responses on one HTTP/2 connection.
///
/// Tenants share connections to a server. The connection's window has room for twice the server's slots, so that unread
/// responses, whose namespace waits for memory, do not block those of others.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

/// The options of an HTTP client: timeouts, proxy, certificates, and the SSRF guard.
#[derive(Debug, Clone)]
pub struct HttpClientOptions {
    /// The time until there is a connection.
    pub connect_timeout: Duration,
    /// The time without new bytes of a response.
    pub read_timeout: Duration,
    /// The time of a whole request, if the sender does not limit it.
    pub timeout: Option<Duration>,
    /// The proxy.
    pub proxy: ProxyChoice,
    /// The policy for addresses of this machine and its link.
    pub local_addresses: LocalAddresses,
    /// True if the client follows redirects; otherwise the sender does.
    pub follows_redirects: bool,
    /// The threads of name lookups.
    pub lookups: BlockingPool,
    /// Certificates that are trusted beside those of the system.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The client certificate.
    pub identity: Option<ClientCertificate>,
}

/// The error of a client that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpClientError {
    /// The proxy's address cannot be used.
    #[error("the proxy cannot be used: {detail}")]
    Proxy {
        /// The cause.
        detail: String,
    },
    /// The client cannot be made.
    #[error("cannot prepare connections: {detail}")]
    Client {
        /// The cause.
        detail: String,
    },
}

impl HttpClientOptions {
    /// Returns options for the proxy of the environment, with two timeouts.
    pub fn with_timeouts(connect_timeout: Duration, read_timeout: Duration) -> Self {
        Self {
            connect_timeout,
            read_timeout,
            timeout: None,
            proxy: ProxyChoice::Environment,
            local_addresses: LocalAddresses::Allowed,
            follows_redirects: false,
            lookups: BlockingPool::for_lookups(),
            authorities: Vec::new(),
            identity: None,
        }
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// If the proxy or the certificates cannot be used.
    pub fn build(self) -> Result<Client, HttpClientError> {
        // Fails if there is one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let redirects = if self.follows_redirects {
            redirect::Policy::limited(REDIRECTS)
        } else {
            redirect::Policy::none()
        };
        self.proxy.check_environment()?;
        let guard = SsrfGuard::new(self.local_addresses, &self.proxy, self.lookups.clone());
        let mut builder = Client::builder()
            .user_agent(USER_AGENT)
            .redirect(redirects)
            .retry(retry::never())
            .connect_timeout(self.connect_timeout)
            .read_timeout(self.read_timeout)
            .pool_max_idle_per_host(8)
            .pool_idle_timeout(Duration::from_secs(60))
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .dns_resolver(guard.resolver());
        if let Some(timeout) = self.timeout {
            builder = builder.timeout(timeout);
        }
        builder = match &self.proxy {
            ProxyChoice::Environment => builder,
            ProxyChoice::Direct => builder.no_proxy(),
            ProxyChoice::Given(proxy) => builder.proxy(self.checked_proxy(proxy)?),
        };
        let handshakes = tls::configuration(self.authorities, self.identity)
            .map_err(|error| HttpClientError::Client { detail: root_cause(&error) })?;
        builder = builder.tls_backend_preconfigured(handshakes);
        builder.build().map_err(|error| HttpClientError::Client { detail: root_cause(&error) })
    }

    fn checked_proxy(&self, proxy: &Proxy) -> Result<reqwest::Proxy, HttpClientError> {
        let host = &proxy.server().host;
        if self.local_addresses == LocalAddresses::Refused && Host::read(host).is_local() {
            let detail = LookupError::Local { host: host.clone() }.to_string();
            return Err(HttpClientError::Proxy { detail });
        }
        let address = proxy.to_url();
        let address = String::from_utf8_lossy(address.expose());
        reqwest::Proxy::all(address.as_ref())
            .map_err(|error| HttpClientError::Proxy { detail: root_cause(&error.without_url()) })
    }
}
