//! The verification of servers at the TLS handshake, and our client certificate.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// A client certificate with its chain and key.
#[derive(Debug, Clone)]
pub struct ClientCertificate {
    /// The certificate chain, leaf first.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its private key.
    pub key: Arc<PrivateKeyDer<'static>>,
}

/// Returns the TLS configuration of a client.
/// It trusts servers that the system or one of `authorities` vouches for, and presents `identity`.
pub(super) fn configuration(
    authorities: Vec<CertificateDer<'static>>,
    identity: Option<ClientCertificate>,
) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = ServerVerifier::new(authorities, Arc::clone(&provider))?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut configuration = match identity {
        Some(identity) => builder.with_client_auth_cert(identity.chain, identity.key.clone_key())?,
        None => builder.with_no_client_auth(),
    };
    configuration.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(configuration)
}

/// Trusts servers with a certificate of a trusted authority, or with a trusted certificate itself.
///
/// `openssl req -x509` makes the second kind: a certificate that is marked as an authority. The platform verifier
/// refuses it as one of a server, and other programs accept it.
#[derive(Debug)]
struct ServerVerifier {
    platform: Verifier,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerVerifier {
    fn new(trusted: Vec<CertificateDer<'static>>, provider: Arc<CryptoProvider>) -> Result<Self, Error> {
        Ok(Self { platform: Verifier::new_with_extra_roots(trusted.clone(), provider)?, trusted })
    }
}

/// The error of an untrusted server certificate that is marked as an authority.
#[derive(Debug, thiserror::Error)]
#[error("the server presents a CA certificate (CA:TRUE) that is not itself trusted")]
struct AuthorityAsServer;

/// The verifier's text for such a certificate; it comes after the check of the dates.
const AUTHORITY_AS_SERVER: &str = "CaUsedAsEndEntity";

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.platform.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(CertificateError::Other(error)))
                if error.to_string() == AUTHORITY_AS_SERVER =>
            {
                if !self.trusted.contains(end_entity) {
                    return Err(CertificateError::Other(OtherError(Arc::new(AuthorityAsServer))).into());
                }
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.platform.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.platform.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.platform.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;
    use crate::net::root_cause;

    /// Makes a certificate for `127.0.0.1` like `openssl req -x509`, valid until a year.
    fn self_signed(until: i32) -> CertificateDer<'static> {
        let mut parameters = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().der().clone()
    }

    fn verify(
        trusted: &[&CertificateDer<'static>],
        shown: &CertificateDer<'_>,
        name: &str,
    ) -> Result<(), Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trusted = trusted.iter().map(|certificate| (*certificate).clone()).collect();
        let verifier = ServerVerifier::new(trusted, provider).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_790_000_000));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier.verify_server_cert(shown, &[], &name, &[], now).map(|_| ())
    }

    #[test]
    fn a_server_may_show_the_very_authority_that_is_trusted() {
        let (ours, other, old) = (self_signed(2040), self_signed(2040), self_signed(2020));
        verify(&[&ours], &ours, "127.0.0.1").unwrap();
        verify(&[&other, &ours], &ours, "127.0.0.1").unwrap();
        let refused = |trusted: &[&CertificateDer<'static>], shown: &CertificateDer<'_>, name: &str| {
            let error = std::io::Error::other(verify(trusted, shown, name).unwrap_err());
            root_cause(&std::io::Error::other(error))
        };
        let stranger = refused(&[&other], &ours, "127.0.0.1");
        assert!(
            stranger.starts_with("invalid peer certificate: the server presents a CA certificate"),
            "{stranger}"
        );
        assert!(refused(&[&ours], &ours, "127.0.0.2").contains("not valid for name"));
        assert!(refused(&[&old], &old, "127.0.0.1").contains("expired"));
    }
}
