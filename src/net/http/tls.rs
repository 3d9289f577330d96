//! Certificates for registries: the trusted authority and the client certificate.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::net::{ClientCertificate, HttpClientOptions};
use crate::secrets::Fingerprint;
use crate::secrets::Secret;

/// The keys in a Secret, each with its legacy name.
const CERTIFICATE: [&str; 2] = ["tls.crt", "certFile"];
const KEY: [&str; 2] = ["tls.key", "keyFile"];
const AUTHORITY: [&str; 2] = ["ca.crt", "caFile"];

/// Certificates for one registry, in PEM.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Certificates that are trusted in addition to those of the system.
    pub authority: Option<Secret>,
    /// The client certificate and its key.
    pub identity: Option<ClientIdentity>,
}

/// A certificate and its private key.
#[derive(Debug, Clone)]
pub struct ClientIdentity {
    /// The certificate, with its chain.
    pub certificate: Secret,
    /// Its private key.
    pub key: Secret,
}

/// Errors of certificates, in Flux's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A client certificate without its key, or the key alone.
    #[error("secret '{secret}' contains '{present}' but missing '{missing}'")]
    IncompleteKeyPair {
        /// The secret.
        secret: String,
        /// The key that is present.
        present: &'static str,
        /// The key that is missing.
        missing: &'static str,
    },
    /// A Secret without any certificate.
    #[error("secret '{secret}' must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'")]
    Nothing {
        /// The secret.
        secret: String,
    },
    /// A client certificate that cannot be parsed.
    #[error("failed to parse TLS certificate and key: {defect}")]
    Identity {
        /// The defect.
        defect: String,
    },
    /// An authority that cannot be parsed.
    #[error("failed to parse CA certificate")]
    Authority,
}

impl Tls {
    /// Parses the Secret of `certSecretRef`, whose name is `NAMESPACE/NAME` in messages.
    ///
    /// # Errors
    ///
    /// If it has no certificate, half of a client certificate, or a malformed one.
    pub fn from_secret(secret: &str, data: &BTreeMap<String, Secret>) -> Result<Self, TlsError> {
        let half = |[present, _]: [&'static str; 2], [missing, _]: [&'static str; 2]| {
            TlsError::IncompleteKeyPair { secret: secret.to_owned(), present, missing }
        };
        let identity = match (value(data, CERTIFICATE), value(data, KEY)) {
            (Some(certificate), Some(key)) => Some(ClientIdentity { certificate, key }),
            (Some(_), None) => return Err(half(CERTIFICATE, KEY)),
            (None, Some(_)) => return Err(half(KEY, CERTIFICATE)),
            (None, None) => None,
        };
        let tls = Self { authority: value(data, AUTHORITY), identity };
        if tls.authority.is_none() && tls.identity.is_none() {
            return Err(TlsError::Nothing { secret: secret.to_owned() });
        }
        tls.certificates()?;
        tls.client_identity()?;
        Ok(tls)
    }

    /// Adds the authority and the client certificate to connections.
    pub(crate) fn apply(&self, connections: HttpClientOptions) -> Result<HttpClientOptions, TlsError> {
        let (authorities, identity) = (self.certificates()?, self.client_identity()?);
        Ok(HttpClientOptions { authorities, identity, ..connections })
    }

    /// Returns a fingerprint that is equal for equal certificates.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let identity = self.identity.as_ref();
        let parts = [
            self.authority.as_ref(),
            identity.map(|identity| &identity.certificate),
            identity.map(|identity| &identity.key),
        ];
        Fingerprint::of(parts.map(|part| part.map(Secret::expose).unwrap_or_default()))
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let Some(authority) = &self.authority else { return Ok(Vec::new()) };
        let found: Vec<_> = CertificateDer::pem_slice_iter(authority.expose())
            .collect::<Result<_, _>>()
            .map_err(|_| TlsError::Authority)?;
        if found.is_empty() { Err(TlsError::Authority) } else { Ok(found) }
    }

    fn client_identity(&self) -> Result<Option<ClientCertificate>, TlsError> {
        let Some(ClientIdentity { certificate, key }) = &self.identity else { return Ok(None) };
        let both = Secret::new([certificate.expose(), b"\n", key.expose()].concat());
        let flawed = |defect: &str| TlsError::Identity { defect: defect.to_owned() };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(both.expose()).collect();
        let chain = chain.map_err(|_| flawed("invalid identity PEM file"))?;
        match PrivateKeyDer::from_pem_slice(both.expose()) {
            Ok(key) if !chain.is_empty() => Ok(Some(ClientCertificate { chain, key: Arc::new(key) })),
            _ => Err(flawed("private key or certificate not found")),
        }
    }
}

/// Returns the value of a key, or else of its legacy name.
fn value(data: &BTreeMap<String, Secret>, names: [&str; 2]) -> Option<Secret> {
    let mut found = names.into_iter().filter_map(|name| data.get(name));
    found.find(|value| !value.expose().is_empty()).cloned()
}

/// Returns the legacy names that a Secret uses, each with its replacement.
pub fn legacy_keys(data: &BTreeMap<String, Secret>) -> Vec<[&'static str; 2]> {
    let pairs = [CERTIFICATE, KEY, AUTHORITY].into_iter();
    pairs
        .filter(|[name, legacy]| !data.contains_key(*name) && data.contains_key(*legacy))
        .map(|[name, legacy]| [legacy, name])
        .collect()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn pem(label: &str, der: &[u8]) -> String {
        use base64::Engine;
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        let lines: Vec<&str> =
            (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    }

    fn read(values: &[(&str, &str)]) -> Result<Tls, TlsError> {
        let data: BTreeMap<String, Secret> =
            values.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect();
        Tls::from_secret("apps/tls", &data)
    }

    #[test]
    fn certificates_have_two_key_names() {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["a".to_owned()]).unwrap().self_signed(&key).unwrap();
        let (certificate, key) =
            (pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", key.serialized_der()));
        let (certificate, key) = (certificate.as_str(), key.as_str());
        for (values, has_authority, has_identity) in [
            (&[("tls.crt", certificate), ("tls.key", key)][..], false, true),
            (&[("certFile", certificate), ("keyFile", key), ("caFile", certificate)], true, true),
            (&[("ca.crt", certificate), (".dockerconfigjson", "{}")], true, false),
            (&[("ca.crt", ""), ("caFile", certificate)], true, false),
        ] {
            let tls = read(values).unwrap();
            assert_eq!((tls.authority.is_some(), tls.identity.is_some()), (has_authority, has_identity));
        }
        assert_ne!(
            read(&[("ca.crt", certificate)]).unwrap().fingerprint(),
            read(&[("ca.crt", certificate), ("tls.crt", certificate), ("tls.key", key)])
                .unwrap()
                .fingerprint()
        );
        let data = BTreeMap::from([
            ("caFile".to_owned(), Secret::new("x")),
            ("tls.crt".to_owned(), Secret::new("x")),
        ]);
        assert_eq!(legacy_keys(&data), [["caFile", "ca.crt"]]);
    }

    #[test]
    fn malformed_certificates_are_refused_with_the_message_of_flux() {
        for (values, message) in [
            (&[][..], "secret 'apps/tls' must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'"),
            (&[("tls.crt", "x")], "secret 'apps/tls' contains 'tls.crt' but missing 'tls.key'"),
            (&[("tls.key", "x")], "secret 'apps/tls' contains 'tls.key' but missing 'tls.crt'"),
            (&[("ca.crt", "hunter2")], "failed to parse CA certificate"),
            (&[("tls.crt", "x"), ("tls.key", "hunter2")], "failed to parse TLS certificate and key: "),
        ] {
            let error = read(values).unwrap_err();
            assert!(
                error.to_string().starts_with(message) && !error.to_string().contains("hunter2"),
                "{error}"
            );
        }
    }
}
