//! JWT assertions of service account keys, signed with RSA.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::RsaSigningKey;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::SigningKey;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::secrets::Secret;

/// The lifetime in seconds, the longest that Google allows.
const TOKEN_LIFETIME: i64 = 3600;

#[derive(Serialize)]
struct Header<'h> {
    alg: &'static str,
    typ: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<&'h str>,
}

/// The claims of the JWT.
#[derive(Serialize)]
struct Claims<'c> {
    iss: &'c str,
    scope: &'c str,
    aud: &'c str,
    iat: i64,
    exp: i64,
}

/// An assertion before it is signed.
pub(super) struct Assertion<'a> {
    /// The owner of the key.
    pub(super) issuer: &'a str,
    /// The ID of the key.
    pub(super) key_id: Option<&'a str>,
    /// The token endpoint.
    pub(super) audience: &'a str,
    /// The requested scopes.
    pub(super) scope: &'a str,
    /// The time at which it is issued.
    pub(super) now: Timestamp,
}

impl Assertion<'_> {
    /// Signs the assertion, if the key is an RSA key in PEM.
    pub(super) fn sign(&self, key: &Secret) -> Option<Zeroizing<String>> {
        let key = PrivateKeyDer::from_pem_slice(key.expose()).ok()?;
        let signer = RsaSigningKey::new(&key).ok()?.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])?;
        let begin = self.now.as_second();
        let claims = Claims {
            iss: self.issuer,
            scope: self.scope,
            aud: self.audience,
            iat: begin,
            exp: begin.saturating_add(TOKEN_LIFETIME),
        };
        let header = Header { alg: "RS256", typ: "JWT", kid: self.key_id };
        let text = format!("{}.{}", part(&header), part(&claims));
        let signature = signer.sign(text.as_bytes()).ok()?;
        Some(Zeroizing::new(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

fn part(value: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(value).expect("texts and numbers are JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected signature is that of `openssl dgst -sha256 -sign`.
    #[test]
    fn the_signature_is_that_of_openssl() {
        let assertion = Assertion {
            issuer: "puller@project-1.iam.gserviceaccount.com",
            key_id: Some("key-1"),
            audience: "https://oauth2.googleapis.com/token",
            scope: &super::super::exchange::SCOPES.join(" "),
            now: "2026-01-02T03:04:05Z".parse().unwrap(),
        };
        let key = Secret::new(include_bytes!("../../../testdata/clouds/google-key.pem"));
        let expected = include_str!("../../../testdata/clouds/google-assertion.txt");
        assert_eq!(assertion.sign(&key).unwrap().as_str(), expected.trim_end());
        assert!(assertion.sign(&Secret::new("hunter2")).is_none());
    }
}
