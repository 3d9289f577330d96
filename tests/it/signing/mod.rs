//! Tests of signed commits.
//! The keys are made by gpg and ssh-keygen, the commits by `tagboat run`, and git verifies them.

mod batches;
mod corrupt_keys;
mod expiry;
mod gpg_home;
mod openpgp;
mod refusals;
mod ssh;
mod ssh_signer;

pub(crate) use gpg_home::GpgHome;
pub(crate) use ssh_signer::SshSigner;

use serde_json::{Value, json};

use crate::run::scene::Scene;

/// No further arguments.
const NONE: [&str; 0] = [];

/// Beginning of the message of each failure at this stage.
const SOURCE: &str = "failed configuring source manager";

/// The passphrase of locked keys.
const PASSPHRASE: &str = "correct horse";

/// Lets the automation sign with the Secret `key`; an empty type is left out.
fn sign_with(scene: &Scene, kind: &str) {
    let mut key = json!({"secretRef": {"name": "key"}});
    if !kind.is_empty() {
        key["type"] = kind.into();
    }
    scene.automation(json!({"git": {"commit": {"signingKey": key}}}));
}

/// A scene with a local repository whose automation signs with the key of a Secret.
fn scene(kind: &str, data: &Value) -> Scene {
    let scene = Scene::new().local();
    sign_with(&scene, kind);
    scene.secret("key", json!({"stringData": data}));
    scene
}

/// Asserts that a run and a dry run fail with a message.
/// The condition must have the message, and nothing may be pushed.
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
