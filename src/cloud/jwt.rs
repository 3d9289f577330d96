//! JSON Web Tokens that are signed with RSA (RS256).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::RsaSigningKey;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::SigningKey;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::secrets::Secret;

#[derive(Serialize)]
struct Header<'h> {
    alg: &'static str,
    typ: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<&'h str>,
}

/// Signs claims, if the key is an RSA key in PEM (PKCS#1 or PKCS#8).
pub(super) fn sign(claims: &impl Serialize, key_id: Option<&str>, key: &Secret) -> Option<Zeroizing<String>> {
    let key = PrivateKeyDer::from_pem_slice(key.expose()).ok()?;
    let signer = RsaSigningKey::new(&key).ok()?.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])?;
    let header = Header { alg: "RS256", typ: "JWT", kid: key_id };
    let text = format!("{}.{}", part(&header), part(claims));
    let signature = signer.sign(text.as_bytes()).ok()?;
    Some(Zeroizing::new(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))))
}

fn part(value: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(value).expect("texts and numbers are JSON"))
}
