//! Signing keys that take long to unlock, with a wrong passphrase.

use serde_json::json;

use super::scene::Scene;
use crate::controller::scene::Kind;
use crate::signing::SshSigner;
use crate::support::content::file;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_with_many_rounds_delay_no_other_namespace() {
    let scene = Scene::start().await;
    let attacker = &scene.attacker;
    let signing = |name: &str| {
        json!({"git": {
            "commit": {
                "author": {"name": "evil", "email": "bot@example.com"},
                "signingKey": {"secretRef": {"name": name}, "type": "ssh"},
            },
            "push": {"branch": "main"},
        }})
    };
    let make = |rounds: &str| SshSigner::new(&["-t", "ed25519", "-a", rounds], "the right one").private;
    let (slow, refused) = (make("100"), make("257"));
    attacker.repository("refused", &[file("empty.yaml", "a: 1\n")]);
    attacker.create_source("refused", &json!({})).await;
    attacker.create_secret("refused", &json!({"identity": refused, "password": "wrong"})).await;
    attacker.create_automation("refused", &signing("refused")).await;
    scene
        .assert_healthy_while(async {
            for name in ["slow-1", "slow-2", "slow-3"] {
                attacker.repository(name, &[file("empty.yaml", "a: 1\n")]);
                attacker.create_source(name, &json!({})).await;
                attacker.create_secret(name, &json!({"identity": slow, "password": "wrong\n"})).await;
                attacker.create_automation(name, &signing(name)).await;
            }
            scene.victim_is_reconciled().await;
            let sentence = attacker.ready_message(Kind::Automation, "slow-1").await;
            let end = "the passphrase in 'password' is not that of the key in 'identity'";
            assert!(sentence.ends_with(end), "{sentence}");
        })
        .await;
    let sentence = attacker.ready_message(Kind::Automation, "refused").await;
    assert!(sentence.contains("takes 257 rounds to unlock, and 256 are allowed"), "{sentence}");
    scene.delete_and_wait(Kind::Automation, "slow-2").await;
}
