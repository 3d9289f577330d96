//! Keys that may not sign: expired, revoked, for another use, or without their secret half.

use serde_json::json;

use super::gpg_home::GpgHome;
use super::{NONE, assert_refused, scene};

const UNUSABLE: &str = "signing key in secret 'key' cannot be used";

/// The short form of a fingerprint, as gpg prints it.
fn id(fingerprint: &str) -> &str {
    &fingerprint[fingerprint.len() - 16..]
}

#[test]
fn an_expired_key_is_refused_until_it_is_extended() {
    let home = GpgHome::new();
    let key = home.dated_key("ed25519", "sign", "", ("20200101T000000", "20200201T000000"));
    let expired = scene("", &json!({"git.asc": home.secret_key(&key, "")}));
    let sentence = format!("{UNUSABLE}: key {} expired at 2020-02-01T00:00:00Z", id(&key));
    assert_refused(&expired, &sentence);
    home.gpg(&["--quick-set-expire", &key, "1y"], b"");
    expired.secret("key", json!({"stringData": {"git.asc": home.secret_key(&key, "")}}));
    expired.run_with_state(NONE).with_status(0);
    home.assert_signed(&expired, "main", &key);
}

#[test]
fn an_expired_or_revoked_subkey_leaves_the_signature_to_others() {
    let home = GpgHome::new();
    let early = "20200101T000000";
    let key = home.dated_key("ed25519", "sign,cert", "", (early, "never"));
    let dead = home.dated_subkey(&key, "ed25519", "sign", "", (early, "20200201T000000"));
    let found = scene("", &json!({"git.asc": home.secret_key(&key, "")}));
    found.run(NONE).with_status(0);
    home.assert_signed(&found, "main", &key);
    let certifier = home.dated_key("ed25519", "cert", "", (early, "never"));
    let dead_too = home.dated_subkey(&certifier, "ed25519", "sign", "", (early, "20200201T000000"));
    let refused = scene("", &json!({"git.asc": home.secret_key(&certifier, "")}));
    let sentence = format!("{UNUSABLE}: subkey {} expired at 2020-02-01T00:00:00Z", id(&dead_too));
    assert_refused(&refused, &sentence);
    assert_ne!(dead, dead_too);
}

#[test]
fn a_revoked_key_is_refused() {
    let home = GpgHome::new();
    let key = home.key("ed25519", "sign", "");
    home.revoke(&key);
    let refused = scene("", &json!({"git.asc": home.secret_key(&key, "")}));
    assert_refused(&refused, &format!("{UNUSABLE}: key {} is revoked", id(&key)));

    let key = home.key("ed25519", "cert", "");
    let subkey = home.subkey(&key, "ed25519", "sign", "");
    home.revoke_subkey(&key);
    let refused = scene("", &json!({"git.asc": home.secret_key(&key, "")}));
    assert_refused(&refused, &format!("{UNUSABLE}: subkey {} is revoked", id(&subkey)));
}

#[test]
fn a_key_not_for_signing_is_refused() {
    let home = GpgHome::new();
    let key = home.key("ed25519", "cert", "");
    let refused = scene("", &json!({"git.asc": home.secret_key(&key, "")}));
    assert_refused(&refused, &format!("{UNUSABLE}: key {} is not for signing", id(&key)));
    let subkey = home.subkey(&key, "cv25519", "encr", "");
    let refused = scene("", &json!({"git.asc": home.secret_key(&key, "")}));
    let both = format!("key {} is not for signing, subkey {} is not for signing", id(&key), id(&subkey));
    assert_refused(&refused, &format!("{UNUSABLE}: {both}"));
}

#[test]
fn a_key_without_the_secret_half_that_signs_is_refused() {
    let home = GpgHome::new();
    let key = home.key("ed25519", "sign,cert", "");
    home.subkey(&key, "cv25519", "encr", "");
    let text = String::from_utf8(home.export(&["--armor", "--export-secret-subkeys"], &key, "")).unwrap();
    let refused = scene("", &json!({"git.asc": text}));
    assert_refused(&refused, &format!("{UNUSABLE}: it does not contain the secret half of key {}", id(&key)));
}

#[test]
fn a_key_of_the_future_is_refused() {
    let home = GpgHome::new();
    let key = home.dated_key("ed25519", "sign", "", ("20600101T000000", "never"));
    let refused = scene("", &json!({"git.asc": home.secret_key(&key, "")}));
    let sentence =
        format!("{UNUSABLE}: key {} was created at 2060-01-01T00:00:00Z, which is in the future", id(&key));
    assert_refused(&refused, &sentence);
}
