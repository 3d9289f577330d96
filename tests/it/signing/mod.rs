//! Signed commits: keys made by gpg and ssh-keygen, commits made by `tagboat run`, and git's own word on them.

mod batches;
mod corrupt_keys;
mod expiry;
mod gpg_home;
mod openpgp;
mod refusals;
mod ssh;
mod ssh_signer;

pub(crate) use ssh_signer::SshSigner;

use serde_json::{Value, json};

use crate::run::scene::Scene;

/// No further arguments.
const NONE: [&str; 0] = [];

/// How the message of each failure at this stage begins.
const SOURCE: &str = "failed configuring source manager";

/// The passphrase of keys that have one.
const PASSPHRASE: &str = "correct horse";

/// Lets the automation sign with the secret `key`; an empty type is left out.
fn sign_with(scene: &Scene, kind: &str) {
    let mut key = json!({"secretRef": {"name": "key"}});
    if !kind.is_empty() {
        key["type"] = kind.into();
    }
    scene.automation(json!({"git": {"commit": {"signingKey": key}}}));
}

/// A scene with a local repository whose automation signs with what a secret holds.
fn scene(kind: &str, data: &Value) -> Scene {
    let scene = Scene::new().local();
    sign_with(&scene, kind);
    scene.secret("key", json!({"stringData": data}));
    scene
}

/// Insists that a run fails with a sentence, also a dry one; that the condition has it; and that nothing is pushed.
#[track_caller]
fn assert_refused(scene: &Scene, sentence: &str) {
    let before = scene.repository.id("main");
    let sentence = format!("{SOURCE}: {sentence}");
    for arguments in [&["--dry-run"][..], &[]] {
        let run = scene.run_with_state(arguments).with_status(1);
        assert_eq!(run.only_error(), format!("default/fleet: {sentence}"), "{arguments:?}");
    }
    let status = scene.status();
    let ready = status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Ready").unwrap();
    assert_eq!(
        (&ready["status"], &ready["reason"], &ready["message"]),
        (&json!("False"), &json!("SourceManagerFailed"), &json!(sentence))
    );
    assert!(status["lastPushCommit"].is_null(), "{status}");
    assert_eq!(scene.repository.id("main"), before);
}
