//! The way to the server of an API: proxy and certificates.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::net::{ClientCertificate, HttpClientError, HttpClientOptions, LocalAddresses, ProxyChoice};
use crate::secrets::{Fingerprint, Secret};
use crate::tenancy::BlockingPool;

/// The timeout of a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The way to the server of an API: proxy and certificates of the GitRepository.
#[derive(Clone, Debug)]
pub struct ApiRoute {
    /// The proxy.
    pub proxy: ProxyChoice,
    /// Certificates in PEM that are trusted beside those of the system.
    pub authority: Option<Arc<Secret>>,
    /// The client certificate and its key, in PEM.
    pub identity: Option<(Arc<Secret>, Secret)>,
}

impl ApiRoute {
    /// Returns a fingerprint that is equal for equal routes.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let proxy = match &self.proxy {
            ProxyChoice::Environment => Fingerprint::of([&b"environment"[..]]),
            ProxyChoice::Direct => Fingerprint::of([&b"direct"[..]]),
            ProxyChoice::Given(proxy) => Fingerprint::of([&b"given"[..], proxy.to_url().expose()]),
        };
        let identity = self.identity.as_ref();
        let parts = [
            self.authority.as_deref(),
            identity.map(|(certificate, _)| &**certificate),
            identity.map(|(_, key)| key),
        ];
        let certificates = Fingerprint::of(parts.map(|part| part.map(Secret::expose).unwrap_or_default()));
        Fingerprint::of([proxy.as_bytes(), certificates.as_bytes()])
    }

    /// Makes a client for connections over this route.
    ///
    /// # Errors
    ///
    /// If the proxy or the certificates cannot be used.
    pub(super) fn connect(
        &self,
        timeout: Duration,
        local_addresses: LocalAddresses,
        lookups: BlockingPool,
    ) -> Result<reqwest::Client, HttpClientError> {
        let client = |detail: &str| HttpClientError::Client { detail: detail.to_owned() };
        let authorities = match &self.authority {
            Some(authority) => CertificateDer::pem_slice_iter(authority.expose())
                .collect::<Result<Vec<_>, _>>()
                .map_err(|_| client("ca.crt holds a malformed certificate"))?,
            None => Vec::new(),
        };
        let identity = match &self.identity {
            Some((certificate, key)) => {
                let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.expose()).collect();
                let chain = chain.map_err(|_| client("tls.crt holds a malformed certificate"))?;
                let key = PrivateKeyDer::from_pem_slice(key.expose());
                let key = key.map_err(|_| client("tls.key holds a malformed key"))?;
                Some(ClientCertificate { chain, key: Arc::new(key) })
            }
            None => None,
        };
        HttpClientOptions {
            proxy: self.proxy.clone(),
            local_addresses,
            lookups,
            authorities,
            identity,
            ..HttpClientOptions::with_timeouts(CONNECT, timeout)
        }
        .build()
    }
}
