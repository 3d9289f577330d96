//! OpenPGP keys of every algorithm and form.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::gpg_home::GpgHome;
use super::{NONE, PASSPHRASE, scene, sign_with};
use crate::run::scene::Scene;

#[test]
fn keys_of_every_sort_sign() {
    let home = GpgHome::new();
    for kind in ["ed25519", "rsa2048", "rsa3072", "rsa4096", "nistp256", "nistp384", "nistp521", "dsa2048"] {
        let key = home.key(kind, "sign", "");
        let scene = scene("", &json!({"git.asc": home.secret_key(&key, "")}));
        scene.run(NONE).with_status(0);
        home.assert_signed(&scene, "main", &key);
        assert_eq!(scene.repository.log("main")[0].message, "Update from image update automation", "{kind}");
    }
}

#[test]
fn locked_keys_sign() {
    let home = GpgHome::new();
    for kind in ["ed25519", "rsa2048", "nistp256"] {
        let key = home.key(kind, "sign", PASSPHRASE);
        let secret = home.secret_key(&key, PASSPHRASE);
        for passphrase in [PASSPHRASE.to_owned(), format!("{PASSPHRASE}\n")] {
            let scene = scene("gpg", &json!({"git.asc": secret, "passphrase": passphrase}));
            scene.run(NONE).with_status(0);
            home.assert_signed(&scene, "main", &key);
        }
    }
}

#[test]
fn the_newest_subkey_for_signing_signs() {
    let home = GpgHome::new();
    for passphrase in ["", PASSPHRASE] {
        let key = home.dated_key("ed25519", "cert", passphrase, ("20200101T000000", "never"));
        for (kind, usage, time, signs) in [
            ("ed25519", "sign", "20200102T000000", true),
            ("nistp256/ecdsa", "sign", "20210102T000000", true),
            ("cv25519", "encr", "20220102T000000", false),
        ] {
            let subkey = home.dated_subkey(&key, kind, usage, passphrase, (time, "never"));
            let data = json!({"git.asc": home.secret_key(&key, passphrase), "passphrase": passphrase});
            let scene = scene("", &data);
            scene.run(NONE).with_status(0);
            if signs {
                home.assert_signed(&scene, "main", &subkey);
            }
        }
    }
}

#[test]
fn a_primary_key_signs_beside_a_subkey_for_encryption() {
    let home = GpgHome::new();
    let key = home.key("rsa2048", "sign,cert", "");
    home.subkey(&key, "rsa2048", "encr", "");
    let scene = scene("", &json!({"git.asc": home.secret_key(&key, "")}));
    scene.run(NONE).with_status(0);
    home.assert_signed(&scene, "main", &key);
}

/// As exported by `--export-secret-subkeys`, without the secret half of the primary key.
#[test]
fn a_key_whose_primary_part_is_a_stub_signs() {
    let home = GpgHome::new();
    for (primary, sub, passphrase) in [
        ("rsa2048", "ed25519", ""),
        ("ed25519", "rsa2048", PASSPHRASE),
        ("nistp256", "nistp384/ecdsa", PASSPHRASE),
    ] {
        let key = home.key(primary, "cert,sign", passphrase);
        let subkey = home.subkey(&key, sub, "sign", passphrase);
        home.subkey(&key, "cv25519", "encr", passphrase);
        for wanted in [key.clone(), format!("{subkey}!")] {
            let text = home.export(&["--armor", "--export-secret-subkeys"], &wanted, passphrase);
            let text = String::from_utf8(text).unwrap();
            let scene = scene("", &json!({"git.asc": text, "passphrase": passphrase}));
            scene.run(NONE).with_status(0);
            home.assert_signed(&scene, "main", &subkey);
        }
    }
}

#[test]
fn a_key_may_be_binary_or_armored_in_any_form() {
    let home = GpgHome::new();
    let key = home.key("ed25519", "sign", PASSPHRASE);
    let scene = Scene::new().local();
    sign_with(&scene, "");
    let bytes = STANDARD.encode(home.export(&["--export-secret-keys"], &key, PASSPHRASE));
    scene.secret("key", json!({"data": {"git.asc": bytes}, "stringData": {"passphrase": PASSPHRASE}}));
    scene.run(NONE).with_status(0);
    home.assert_signed(&scene, "main", &key);

    let text = home.secret_key(&key, PASSPHRASE);
    let public = String::from_utf8(home.export(&["--armor", "--export"], &key, "")).unwrap();
    for (number, text) in [
        text.replace('\n', "\r\n"),
        format!("My key:\n\n{}", text.replace('\n', "\n    ")),
        text.trim_end().to_owned(),
        text.replace("\n\n", "\nVersion: GnuPG v2\nComment: for the bot\n\n"),
        format!("{public}{text}"),
        format!("{text}{text}"),
    ]
    .into_iter()
    .enumerate()
    {
        scene.latest(&format!("6.0.{number}"));
        scene.secret("key", json!({"stringData": {"git.asc": text, "passphrase": PASSPHRASE}}));
        scene.run(NONE).with_status(0);
        assert_eq!(scene.tag("main"), format!("6.0.{number}"));
        home.assert_signed(&scene, "main", &key);
    }
}

#[test]
fn a_passphrase_that_is_not_needed_does_not_matter() {
    let home = GpgHome::new();
    let key = home.key("ed25519", "sign", "");
    let scene = scene("gpg", &json!({"git.asc": home.secret_key(&key, ""), "passphrase": "whatever"}));
    scene.run(NONE).with_status(0);
    home.assert_signed(&scene, "main", &key);
}
