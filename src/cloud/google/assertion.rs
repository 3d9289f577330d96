//! JWT assertions of service account keys, signed with RSA.

use jiff::Timestamp;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::cloud::jwt;
use crate::secrets::Secret;

/// The lifetime in seconds, the longest that Google allows.
const TOKEN_LIFETIME: i64 = 3600;

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
        let begin = self.now.as_second();
        let claims = Claims {
            iss: self.issuer,
            scope: self.scope,
            aud: self.audience,
            iat: begin,
            exp: begin.saturating_add(TOKEN_LIFETIME),
        };
        jwt::sign(&claims, self.key_id, key)
    }
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
