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
}

impl Default for Limits {
    fn default() -> Self {
        let limit = Duration::from_secs(30);
        Self { connect: Duration::from_secs(10), first_byte: limit, between_bytes: limit }
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
        let tls = self.tls.fingerprint();
        let proxy = match &self.proxy {
            ProxyChoice::Environment => Fingerprint::of([&b"environment"[..]]),
            ProxyChoice::Direct => Fingerprint::of([&b"direct"[..]]),
            ProxyChoice::Given(proxy) => Fingerprint::of([&b"given"[..], proxy.to_setting().expose()]),
        };
        Fingerprint::of([tls.as_bytes(), proxy.as_bytes()])
    }
}
