//! A token server, whose tokens are signed so that the real registry accepts them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{CertificateParams, KeyPair};
use rustls::SignatureScheme;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;

use super::{PASSWORD, USER};
use crate::support::git_host::request::Request;
use crate::support::http_front::{Front, Reply};

pub(super) const SERVICE: &str = "test-registry";
pub(super) const ISSUER: &str = "test-issuer";

/// A running server.
pub(crate) struct TokenServer {
    front: Front,
    /// The certificate of the signing key, for the registry.
    pub(super) certificate: String,
    lifetime: Arc<Mutex<Lifetime>>,
}

/// Lifetime of tokens.
#[derive(Clone, Copy)]
struct Lifetime {
    /// The lifetime in the response, in seconds.
    stated_seconds: u64,
    /// True if the tokens have expired for the registry.
    is_over: bool,
}

impl TokenServer {
    /// Starts a server that issues tokens for pulling to the one user.
    /// Others get tokens without permissions.
    pub(crate) fn start() -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["tokens".to_owned()]).unwrap().self_signed(&key).unwrap();
        let text = STANDARD.encode(certificate.der());
        let lines: Vec<&str> =
            (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
        let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"));
        let lifetime = Arc::new(Mutex::new(Lifetime { stated_seconds: 300, is_over: false }));
        let (key, shared) = (key.serialize_der(), Arc::clone(&lifetime));
        let front = Front::alone(move |request| answer(request, &key, &text, *shared.lock().unwrap()));
        Self { front, certificate: pem, lifetime }
    }

    pub(crate) fn realm(&self) -> String {
        self.front.url("/token")
    }

    /// Issues expired tokens from now on, though the response has another lifetime.
    pub(crate) fn expire(&self, is_over: bool) {
        self.lifetime.lock().unwrap().is_over = is_over;
    }

    /// Sets the lifetime in the response, in seconds.
    pub(crate) fn state_seconds(&self, seconds: u64) {
        self.lifetime.lock().unwrap().stated_seconds = seconds;
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.front.requests()
    }
}

fn answer(request: &Request, key: &[u8], certificate: &str, lifetime: Lifetime) -> Reply {
    let pairs: Vec<(String, String)> =
        url::form_urlencoded::parse(request.query.as_bytes()).into_owned().collect();
    let login = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
    let is_user = match request.authorization() {
        None => false,
        Some(given) if given == login => true,
        Some(_) => return Reply::body(401, r#"{"errors":[{"code":"DENIED","message":"wrong password"}]}"#),
    };
    let scopes = pairs.iter().filter(|(name, _)| name == "scope");
    let access: Vec<_> = scopes
        .filter(|_| is_user)
        .filter_map(|(_, scope)| {
            let mut parts = scope.split(':');
            Some(json!({"type": parts.next()?, "name": parts.next()?, "actions": parts.next()?.split(',').collect::<Vec<_>>()}))
        })
        .collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let begin = if lifetime.is_over { now - Duration::from_secs(1000) } else { now };
    let header = json!({"alg": "ES256", "typ": "JWT", "x5c": [certificate]});
    let claims = json!({
        "iss": ISSUER, "sub": USER, "aud": SERVICE, "exp": begin.as_secs() + 300, "nbf": begin.as_secs(),
        "iat": begin.as_secs(), "jti": "1", "access": access,
    });
    let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(&header), part(&claims));
    let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature(key, message.as_bytes())));
    Reply::body(200, json!({"token": token, "expires_in": lifetime.stated_seconds}).to_string())
}

/// A signature in the form of tokens: two numbers of 32 bytes.
fn signature(key: &[u8], message: &[u8]) -> Vec<u8> {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.to_vec()));
    let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    let signer = key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]).unwrap();
    let der = signer.sign(message).unwrap();
    // SEQUENCE of two INTEGERs, each with its length in one byte.
    let number = |bytes: &[u8]| {
        let bytes = &bytes[bytes.len().saturating_sub(32)..];
        [vec![0; 32 - bytes.len()], bytes.to_vec()].concat()
    };
    let first = usize::from(der[3]);
    let (one, two) = (&der[4..4 + first], &der[6 + first..]);
    [number(one), number(two)].concat()
}
