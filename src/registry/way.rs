//! The way to a registry, and how much time it may take.

use std::time::Duration;

use super::login::Fingerprint;
use super::tls::Tls;
use crate::http::ProxyChoice;

/// How long each part of a request may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until the answer begins.
    pub first_byte: Duration,
    /// Without anything new of the answer.
    pub between_bytes: Duration,
    /// Until an answer is complete, with all further pages of a list, after memory was reserved for it.
    pub with_memory: Duration,
}

impl Default for Limits {
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

/// How a registry is reached: what all requests there share.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// Whom we trust, and who we are.
    pub tls: Tls,
    /// The proxy between.
    pub proxy: ProxyChoice,
}

impl Way {
    /// Equal for equal ways.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of([self.tls.fingerprint().as_bytes(), self.proxy().as_bytes()])
    }

    /// Equal for ways by the same proxy with the same authority: the same server answers there, whatever client
    /// certificate it is shown.
    pub fn route(&self) -> Fingerprint {
        let authority = match &self.tls.authority {
            Some(authority) => Fingerprint::of([&b"own"[..], authority.expose()]),
            None => Fingerprint::of([&b"system"[..]]),
        };
        Fingerprint::of([authority.as_bytes(), self.proxy().as_bytes()])
    }

    /// Whether it is an object's own: by a proxy, or with certificates, of a secret.
    pub fn is_own(&self) -> bool {
        let Tls { authority, identity } = &self.tls;
        matches!(self.proxy, ProxyChoice::Given(_)) || authority.is_some() || identity.is_some()
    }

    fn proxy(&self) -> Fingerprint {
        match &self.proxy {
            ProxyChoice::Environment => Fingerprint::of([&b"environment"[..]]),
            ProxyChoice::Direct => Fingerprint::of([&b"direct"[..]]),
            ProxyChoice::Given(proxy) => Fingerprint::of([&b"given"[..], proxy.to_setting().expose()]),
        }
    }
}
