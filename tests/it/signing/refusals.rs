//! Secrets without a key that can sign, each with its message.

use serde_json::{Value, json};

use super::gpg_home::GpgHome;
use super::ssh_signer::SshSigner;
use super::{PASSPHRASE, SOURCE, assert_refused, scene, sign_with};
use crate::run::scene::Scene;

/// A DSA key for this test only.
/// Newer versions of ssh-keygen do not make DSA keys any more.
const DSA_KEY: &str = include_str!("../../../testdata/signing/openssh-dsa-key");

#[test]
fn a_missing_signing_secret_is_reported_in_the_namespace_of_the_automation() {
    let scene = Scene::new().local();
    sign_with(&scene, "");
    let run = scene.run(["--dry-run"]).with_status(1);
    let begin = format!(
        "default/fleet: {SOURCE}: could not find signing key secret 'key': secret 'default/key' not found"
    );
    assert!(run.only_error().starts_with(&begin), "{run:?}");
    // The caller's own login cannot replace a signing key.
    let advice = "; give it as a Secret among the manifests or as --secret NAMESPACE/NAME=DIR";
    assert!(run.only_error().ends_with(advice), "{run:?}");
}

#[test]
fn openpgp_secrets_without_a_key() {
    let home = GpgHome::new();
    let key = home.key("ed25519", "sign", PASSPHRASE);
    let other = home.key("ed25519", "sign", "");
    let brainpool = home.key("brainpoolP256r1", "sign", "");
    let koblitz = home.key("secp256k1", "sign", "");
    let locked = home.secret_key(&key, PASSPHRASE);
    let open = home.secret_key(&other, "");
    let public = String::from_utf8(home.export(&["--armor", "--export"], &other, "")).unwrap();
    let both = home.gpg(&["--armor", "--passphrase", PASSPHRASE, "--export-secret-keys", &key, &other], b"");
    let both = String::from_utf8(both).unwrap();
    let ssh = SshSigner::new(&["-t", "ed25519"], "").private;
    let id = &key[key.len() - 16..];
    let unread = |flaw: &str| format!("could not read signing key from secret 'key': {flaw}");
    let no_key =
        unread("'git.asc' holds no OpenPGP key: give what `gpg --armor --export-secret-keys` prints");
    let damaged = unread("the key in 'git.asc' is damaged or cut off: export it again");
    let several =
        "multiple entities read from secret 'key', could not determine which signing key to use: give what `gpg \
         --armor --export-secret-keys FINGERPRINT` prints for one of them".to_owned();
    let missing = "signing key secret 'key' does not contain a 'git.asc' key".to_owned();
    let no_passphrase =
        "can not use passphrase protected signing key without 'passphrase' field present in secret key"
            .to_owned();
    // Keys differ in length by a few bytes: a number with leading zeros is shorter.
    let cut = open[..300].to_owned() + "\n-----END PGP PRIVATE KEY BLOCK-----\n";
    let unknown = |key: &str| {
        format!(
            "signing key in secret 'key' cannot be used: key {} has an unsupported algorithm (supported are RSA, DSA, \
             ECDSA on NIST's curves and Ed25519)",
            &key[key.len() - 16..]
        )
    };
    let rows: Vec<(Value, String)> = vec![
        (json!({}), missing.clone()),
        (json!({"git.asc": ""}), format!("{missing}; its 'git.asc' is empty")),
        (
            json!({"git.asc": "\n"}),
            unread("'git.asc' is empty: give what `gpg --armor --export-secret-keys` prints"),
        ),
        (json!({"GIT.ASC": open}), missing.clone()),
        (json!({"identity": ssh}), missing + "; its 'identity' is for spec.git.commit.signingKey.type ssh"),
        (
            json!({"git.asc": ssh}),
            unread(
                "'git.asc' holds an SSH key: set spec.git.commit.signingKey.type to ssh, and give the key in 'identity'",
            ),
        ),
        (json!({"git.asc": "hunter2"}), no_key.clone()),
        (json!({"git.asc": "-----BEGIN PGP MESSAGE-----\n\nYWJj\n-----END PGP MESSAGE-----\n"}), no_key),
        (
            json!({"git.asc": public}),
            unread(
                "'git.asc' holds a public key only: give the secret one, which `gpg --armor --export-secret-keys` prints",
            ),
        ),
        (json!({"git.asc": cut}), damaged.clone()),
        (json!({"git.asc": open.replace("-----END", "----END")}), damaged),
        (json!({"git.asc": both, "passphrase": PASSPHRASE}), several.clone()),
        (json!({"git.asc": format!("{locked}{open}"), "passphrase": PASSPHRASE}), several),
        (json!({"git.asc": locked}), no_passphrase.clone()),
        (json!({"git.asc": locked, "passphrase": ""}), no_passphrase.clone()),
        (json!({"git.asc": locked, "password": PASSPHRASE}), no_passphrase),
        (
            json!({"git.asc": locked, "passphrase": "hunter2"}),
            format!(
                "could not decrypt private key of the signing key present in secret key: the passphrase in 'passphrase' is \
                 not that of key {id}"
            ),
        ),
        (json!({"git.asc": home.secret_key(&brainpool, "")}), unknown(&brainpool)),
        (json!({"git.asc": home.secret_key(&koblitz, "")}), unknown(&koblitz)),
    ];
    for (data, sentence) in rows {
        assert_refused(&scene("", &data), &sentence);
    }
}

#[test]
fn ssh_secrets_without_a_key() {
    let home = GpgHome::new();
    let pgp = home.secret_key(&home.key("ed25519", "sign", ""), "");
    let open = SshSigner::new(&["-t", "ed25519"], "");
    let unparsed = |flaw: &str| format!("could not parse SSH signing key from secret 'key': {flaw}");
    let missing = "signing key secret 'key' does not contain an 'identity' key".to_owned();
    let no_passphrase =
        "can not use passphrase protected signing key without 'password' field present in secret key";
    let wrong = unparsed("the passphrase in 'password' is not that of the key in 'identity'");
    let sort = |sort: &str| {
        unparsed(&format!(
            "the key in 'identity' has the type {sort}, which cannot sign commits: use ed25519, ECDSA or RSA"
        ))
    };
    let short = unparsed("the RSA key in 'identity' has 1024 bits, and a signature needs at least 2048");
    let no_key =
        unparsed("'identity' holds no private key: give one in OpenSSH or PEM form, as ssh-keygen writes it");
    let private = |options: &[&str]| SshSigner::new(options, "").private;
    let mut rows: Vec<(Value, String)> = vec![
        (json!({}), missing.clone()),
        (json!({"git.asc": pgp}), missing + "; its 'git.asc' is for spec.git.commit.signingKey.type gpg"),
        (
            json!({"identity": pgp}),
            unparsed(
                "'identity' holds an OpenPGP key: set spec.git.commit.signingKey.type to gpg, and give the key in 'git.asc'",
            ),
        ),
        (json!({"identity": "hunter2"}), no_key),
        (
            json!({"identity": open.public}),
            unparsed(
                "'identity' holds a public key: give the private one, the file without .pub that ssh-keygen writes",
            ),
        ),
        (
            json!({"identity": open.private.replace("b3BlbnNz", "b3BlbnNa")}),
            unparsed("the key in 'identity' is damaged or cut off"),
        ),
        (json!({"identity": DSA_KEY}), sort("DSA")),
        (
            json!({"identity": "-----BEGIN DSA PRIVATE KEY-----\nYWJj\n-----END DSA PRIVATE KEY-----\n"}),
            sort("DSA"),
        ),
        (json!({"identity": private(&["-t", "rsa", "-b", "1024"])}), short.clone()),
        (json!({"identity": private(&["-t", "rsa", "-b", "1024", "-m", "PEM"])}), short),
    ];
    for options in [&["-t", "ed25519"][..], &["-t", "ecdsa", "-m", "PEM"]] {
        let locked = SshSigner::new(options, PASSPHRASE).private;
        rows.push((json!({"identity": locked}), no_passphrase.to_owned()));
        rows.push((json!({"identity": locked, "passphrase": PASSPHRASE}), no_passphrase.to_owned()));
        rows.push((json!({"identity": locked, "password": "hunter2"}), wrong.clone()));
    }
    for (data, sentence) in rows {
        assert_refused(&scene("ssh", &data), &sentence);
    }
}

#[test]
fn an_unknown_sort_of_key_is_refused() {
    let scene = scene("x509", &json!({"git.asc": "", "identity": ""}));
    assert_refused(&scene, "unknown signing key type \"x509\"; known are gpg, ssh");
}
