use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::error::chain;
use crate::secrets::Secret;

fn unlock_text(text: &[u8], passphrase: &str) -> Result<UnlockedKey, SigningKeyError> {
    let mut data = BTreeMap::from([("identity".to_owned(), Secret::new(text))]);
    data.insert("password".to_owned(), Secret::new(passphrase));
    let secret = SecretData { name: "n/key", data: &data };
    unlock(secret, &Passphrase::of(secret, PASSPHRASE))
}

/// One key in every format that OpenSSL writes.
#[test]
fn the_same_key_is_found_in_every_form() {
    let mut fingerprints = Vec::new();
    for file in fs::read_dir("testdata/signing/pem").unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("refused-") {
            continue;
        }
        let text = fs::read(&path).unwrap();
        let key = unlock_text(&text, "correct horse").map_err(|error| format!("{name}: {}", chain(&error)));
        fingerprints.push(key.unwrap().fingerprint());
        if memchr::memmem::find(&text, b"ENCRYPTED").is_some() {
            let wrong = unlock_text(&text, "hunter2").err().map(|error| chain(&error)).unwrap();
            assert!(
                wrong.ends_with("the passphrase in 'password' is not that of the key in 'identity'"),
                "{name}: {wrong}"
            );
        }
    }
    assert_eq!(fingerprints.len(), 9);
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 1, "{fingerprints:?}");
}

/// `flux create secret git` writes an Ed25519 key in PKCS#8.
/// Other keys are left to ssh, and cost nothing here.
#[test]
fn an_ed25519_key_in_pkcs8_is_brought_into_the_form_of_openssh() {
    let convert =
        |path: &str| ed25519_to_openssh(&Secret::new(fs::read(format!("testdata/{path}")).unwrap()));
    let public = fs::read_to_string("testdata/login/ed25519.pub").unwrap();
    let key = convert("login/ed25519-pkcs8.pem").unwrap();
    let key = PrivateKey::from_openssh(key.expose()).unwrap();
    assert!(public.starts_with(key.public_key().to_openssh().unwrap().trim()));
    for path in [
        "login/ed25519-pkcs8-locked.pem",
        "login/ed25519.pub",
        "signing/pem/pkcs8.pem",
        "signing/pem/refused-encrypted-pkcs8.pem",
        "signing/pem/sec1.pem",
    ] {
        assert!(convert(path).is_none(), "{path}");
    }
}

#[test]
fn unsupported_ssh_keys_are_refused_with_advice() {
    let encrypted = "the key in 'identity' is in encrypted PKCS#8, which is not supported: rewrite it in OpenSSH's form with \
                     `ssh-keygen -p -f FILE` (OpenSSH 9.6 or newer if it is an Ed25519 key)";
    let sort = |sort: &str| {
        format!(
            "the key in 'identity' has the type {sort}, which cannot sign commits: use ed25519, ECDSA or RSA"
        )
    };
    for (name, defect) in [
        ("encrypted-pkcs8", encrypted.to_owned()),
        ("secp256k1", sort("EC on a curve other than NIST's")),
        ("ed448", sort("Ed448")),
    ] {
        let text = fs::read(format!("testdata/signing/pem/refused-{name}.pem")).unwrap();
        let error = unlock_text(&text, "correct horse").err().map(|error| chain(&error));
        assert_eq!(error, Some(format!("could not parse SSH signing key from secret 'key': {defect}")));
    }
}

/// A signature contains the strings that `ssh-keygen -Y sign -n git` puts into it.
#[test]
fn a_signature_is_for_git_and_of_sha512() {
    let text = fs::read("testdata/signing/pem/pkcs8.pem").unwrap();
    let key = unlock_text(&text, "").map_err(|error| chain(&error)).unwrap();
    let armored = key.sign(b"text").unwrap();
    let signature = ssh_key::SshSig::from_pem(&armored).unwrap();
    assert_eq!((signature.namespace(), signature.hash_alg()), ("git", HashAlg::Sha512));
    assert!(
        armored.starts_with("-----BEGIN SSH SIGNATURE-----\n")
            && armored.ends_with("-----END SSH SIGNATURE-----\n")
    );
    assert_eq!(armored, key.sign(b"text").unwrap(), "a signature has no chance in it");
}
