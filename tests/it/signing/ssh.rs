//! SSH keys of every algorithm and format.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::ssh_signer::{SshSigner, assert_signed};
use super::{NONE, PASSPHRASE, assert_refused, scene};

/// The options of ssh-keygen for each algorithm.
const SORTS: [&[&str]; 6] = [
    &["-t", "ed25519"],
    &["-t", "ecdsa", "-b", "256"],
    &["-t", "ecdsa", "-b", "384"],
    &["-t", "ecdsa", "-b", "521"],
    &["-t", "rsa", "-b", "2048"],
    &["-t", "rsa", "-b", "3072"],
];

#[track_caller]
fn assert_signs(options: &[&str], passphrase: &str) {
    let signer = SshSigner::new(options, passphrase);
    let mut data = json!({"identity": signer.private});
    if !passphrase.is_empty() {
        data["password"] = passphrase.into();
    }
    let scene = scene("ssh", &data);
    let run = scene.run(NONE);
    assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{options:?}");
    assert_signed(&scene, "main", &signer.public);
}

#[test]
fn keys_of_every_sort_sign_in_openssh_s_form() {
    for sort in SORTS {
        for passphrase in ["", PASSPHRASE] {
            assert_signs(sort, passphrase);
        }
    }
    for cipher in ["aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes128-cbc"] {
        assert_signs(&["-t", "ed25519", "-Z", cipher], PASSPHRASE);
    }
}

/// PKCS#1 and SEC1 with the headers of OpenSSL, and PKCS#8 without a passphrase.
#[test]
fn keys_of_every_sort_sign_in_the_forms_of_pem() {
    for sort in &SORTS[1..] {
        for (form, passphrase) in [("PEM", ""), ("PEM", PASSPHRASE), ("PKCS8", "")] {
            assert_signs(&[*sort, &["-m", form]].concat(), passphrase);
        }
    }
}

/// Flux reads no such key, and deriving its encryption key may take any time.
#[test]
fn a_key_in_encrypted_pkcs8_is_refused_and_signs_once_rewritten_by_the_advice() {
    let signer = SshSigner::new(&["-t", "ecdsa", "-m", "PKCS8"], PASSPHRASE);
    let data = |identity: &str| json!({"identity": identity, "password": PASSPHRASE});
    let sentence = "could not parse SSH signing key from secret 'key': the key in 'identity' is in encrypted PKCS#8, which \
                    is not supported: rewrite it in OpenSSH's form with `ssh-keygen -p -f FILE` (OpenSSH 9.6 or newer if it \
                    is an Ed25519 key)";
    assert_refused(&scene("ssh", &data(&signer.private)), sentence);
    let scene = scene("ssh", &data(&signer.rewritten(PASSPHRASE)));
    scene.run(NONE).with_status(0);
    assert_signed(&scene, "main", &signer.public);
}

/// An Ed25519 key in PKCS#8 form signs.
/// ssh-keygen does not write this form, but other programs do. The key is that of RFC 8032's first test.
#[test]
fn an_ed25519_key_signs_in_pkcs8() {
    let bytes = |hex: &str| -> Vec<u8> {
        let pair = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(pair).collect()
    };
    let head = bytes("302e020100300506032b657004220420");
    let seed = bytes("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
    let public = bytes("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    let pem = |seed: &[u8]| {
        let text = STANDARD.encode([head.as_slice(), seed].concat());
        format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
    };
    let scene = scene("ssh", &json!({"identity": pem(&seed)}));
    scene.run(NONE).with_status(0);
    let wire = [&[0, 0, 0, 11][..], b"ssh-ed25519", &[0, 0, 0, 32], &public].concat();
    assert_signed(&scene, "main", &format!("ssh-ed25519 {}", STANDARD.encode(wire)));
}

#[test]
fn keys_in_any_text_form_are_read_and_an_unneeded_passphrase_is_ignored() {
    let signer = SshSigner::new(&["-t", "ed25519"], "");
    for text in [
        signer.private.replace('\n', "\r\n"),
        signer.private.trim_end().to_owned(),
        format!("# the bot's key\n    {}", signer.private.replace('\n', "\n    ")),
    ] {
        let scene = scene("ssh", &json!({"identity": text, "password": "whatever"}));
        scene.run(NONE).with_status(0);
        assert_signed(&scene, "main", &signer.public);
    }
    let locked = SshSigner::new(&["-t", "ed25519"], PASSPHRASE);
    let scene = scene("ssh", &json!({"identity": locked.private, "password": format!("{PASSPHRASE}\n")}));
    scene.run(NONE).with_status(0);
    assert_signed(&scene, "main", &locked.public);
}

#[test]
fn a_key_may_come_from_a_directory() {
    let signer = SshSigner::new(&["-t", "ed25519"], "");
    let scene = crate::run::scene::Scene::new().local();
    super::sign_with(&scene, "ssh");
    let directory = scene.secret_directory(&[("identity", &signer.private)]);
    let secret = format!("default/key={}", directory.display());
    let run = scene.run(["--secret", &secret]).with_status(0);
    assert_eq!(run.errors, "");
    assert_signed(&scene, "main", &signer.public);
}
