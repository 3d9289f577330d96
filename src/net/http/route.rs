//! The route to a server, and the timeouts of requests.

use std::time::Duration;

use super::tls::Tls;
use crate::net::ProxyChoice;
use crate::secrets::Fingerprint;

/// Timeouts of the parts of a request.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Until the connection is made.
    pub connect: Duration,
    /// Until the first byte of the response.
    pub first_byte: Duration,
    /// Between two reads of the response.
    pub between_bytes: Duration,
    /// From the reservation of memory until the response, or the list of pages, is complete.
    pub with_memory: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let limit = Duration::from_secs(30);
        Self {
            connect: Duration::from_secs(10),
            first_byte: limit,
            between_bytes: limit,
            with_memory: Duration::from_secs(120),
        }
    }
}

/// The route to a server: TLS and proxy, shared by all its requests.
#[derive(Debug, Clone, Default)]
pub struct Route {
    /// The trusted authority and the client certificate.
    pub tls: Tls,
    /// The proxy.
    pub proxy: ProxyChoice,
}

impl Route {
    /// Returns a fingerprint that is equal for equal routes.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of([self.tls.fingerprint().as_bytes(), self.proxy().as_bytes()])
    }

    /// Returns a fingerprint of the proxy and the certificate authority.
    ///
    /// Routes with an equal one reach the same server, with any client certificate.
    pub fn server_fingerprint(&self) -> Fingerprint {
        let authority = match &self.tls.authority {
            Some(authority) => Fingerprint::of([&b"own"[..], authority.expose()]),
            None => Fingerprint::of([&b"system"[..]]),
        };
        Fingerprint::of([authority.as_bytes(), self.proxy().as_bytes()])
    }

    /// Returns `true` if the proxy or certificates come from an object's own Secret.
    pub fn is_own(&self) -> bool {
        let Tls { authority, identity } = &self.tls;
        matches!(self.proxy, ProxyChoice::Given(_)) || authority.is_some() || identity.is_some()
    }

    fn proxy(&self) -> Fingerprint {
        match &self.proxy {
            ProxyChoice::Environment => Fingerprint::of([&b"environment"[..]]),
            ProxyChoice::Direct => Fingerprint::of([&b"direct"[..]]),
            ProxyChoice::Given(proxy) => Fingerprint::of([&b"given"[..], proxy.to_url().expose()]),
        }
    }
}
