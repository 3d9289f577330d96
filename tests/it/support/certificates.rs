//! Certificates of one test: an authority, and the certificates that it issues.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PublicKeyData,
};
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use tempfile::TempDir;

/// A certificate authority; its files are removed with it.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
    file: PathBuf,
}

/// A certificate with its key, in PEM files.
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
    certificate_file: PathBuf,
    key_file: PathBuf,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::of(CertificateParams::default())
    }

    /// An authority that is itself a server on loopback, as `openssl req -x509` makes it.
    pub(crate) fn of_loopback() -> Self {
        Self::of(CertificateParams::new(["127.0.0.1".to_owned()]).unwrap())
    }

    fn of(mut parameters: CertificateParams) -> Self {
        parameters.distinguished_name.push(DnType::CommonName, "authority of a test");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("authority.crt");
        fs::write(&file, pem("CERTIFICATE", issuer.der())).unwrap();
        Self { issuer, directory, file }
    }

    /// The authority's own certificate, as PEM in a file.
    pub(crate) fn certificate_file(&self) -> &Path {
        &self.file
    }

    /// A certificate for a server (`127.0.0.1`, `localhost`) or a client (any name).
    pub(crate) fn issue(&self, name: &str) -> Identity {
        let mut parameters = CertificateParams::new([name.to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        let file = |ending: &str| self.directory.path().join(format!("{name}.{ending}"));
        let (certificate_file, key_file) = (file("crt"), file("key"));
        fs::write(&certificate_file, pem("CERTIFICATE", certificate.der())).unwrap();
        fs::write(&key_file, pem("PRIVATE KEY", key.serialized_der())).unwrap();
        fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600)).unwrap();
        Identity {
            certificate: certificate.der().clone(),
            key: key.serialize_der(),
            certificate_file,
            key_file,
        }
    }

    /// A key and its public half, as PEM, for a server that signs tokens.
    pub(crate) fn signing_key() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        (pem("PRIVATE KEY", key.serialized_der()), pem("PUBLIC KEY", &key.subject_public_key_info()))
    }

    /// Returns the TLS configuration of a server on loopback.
    /// With `client_certificates`, clients need a certificate of this authority.
    pub(crate) fn server(&self, client_certificates: bool) -> Arc<ServerConfig> {
        self.server_named("127.0.0.1", client_certificates)
    }

    /// The TLS configuration of a server with the authority's own certificate.
    pub(crate) fn server_of_its_own(&self) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.issuer.key().serialize_der()));
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        Arc::new(builder.with_single_cert(vec![self.issuer.der().clone()], key).unwrap())
    }

    /// The TLS configuration of a server of another name.
    pub(crate) fn server_named(&self, name: &str, client_certificates: bool) -> Arc<ServerConfig> {
        let identity = self.issue(name);
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(identity.key));
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = if client_certificates {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        Arc::new(builder.with_single_cert(vec![identity.certificate], key).unwrap())
    }
}

impl Identity {
    pub(crate) fn certificate_file(&self) -> &Path {
        &self.certificate_file
    }

    pub(crate) fn key_file(&self) -> &Path {
        &self.key_file
    }
}

/// Bytes as a PEM block.
fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
