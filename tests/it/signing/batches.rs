//! Several automations in one push, each with a key of its own.

use serde_json::json;

use super::gpg_home::GpgHome;
use super::ssh_signer::{self, SshSigner};
use super::{NONE, SOURCE};
use crate::run::scene::Scene;
use crate::support::content::file;
use crate::support::manifests::{marker, policy_with_status};

/// Creates a scene in which the automations `pgp`, `ssh` and `plain` change a line each.
/// The first two sign with the Secrets of their names; `plain` does not sign.
fn scene() -> Scene {
    let names = ["pgp", "plain", "ssh"];
    let line = |name: &&str| format!("{name}: 1.0.0 {}\n", marker(&format!("default:{name}:tag")));
    let lines: String = names.iter().map(line).collect();
    let scene = Scene::with_files(&[file("app.yaml", lines)]).local();
    std::fs::remove_file(scene.root().join("manifests/automation.yaml")).unwrap();
    for name in names {
        let status = format!("latestRef: {{name: ghcr.io/org/{name}, tag: 2.0.0}}");
        let policy = policy_with_status("default", name, &format!("app: {name}"), &status);
        scene.write(&format!("policy-{name}.yaml"), &policy);
        let mut automation = json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1",
            "kind": "ImageUpdateAutomation",
            "metadata": {"namespace": "default", "name": name},
            "spec": {
                "interval": "10m",
                "sourceRef": {"kind": "GitRepository", "name": "fleet"},
                "git": {"commit": {"author": {"name": name, "email": "bot@example.com"}}},
                "policySelector": {"matchLabels": {"app": name}},
            },
        });
        if name != "plain" {
            let kind = if name == "pgp" { "gpg" } else { "ssh" };
            automation["spec"]["git"]["commit"]["signingKey"] =
                json!({"secretRef": {"name": name}, "type": kind});
        }
        scene.write(&format!("automation-{name}.yaml"), &automation.to_string());
    }
    scene
}

#[test]
fn each_commit_of_a_push_has_the_signature_of_its_own_automation() {
    let scene = scene();
    let home = GpgHome::new();
    let key = home.key("ed25519", "sign", "");
    let signer = SshSigner::new(&["-t", "ed25519"], "");
    scene.secret("pgp", json!({"stringData": {"git.asc": home.secret_key(&key, "")}}));
    scene.secret("ssh", json!({"stringData": {"identity": signer.private}}));
    scene.run(NONE).with_status(0);
    let log = scene.repository.log("main");
    assert_eq!(log.len(), 4, "one commit each: {log:?}");
    for commit in &log[..3] {
        match commit.author.as_str() {
            "pgp <bot@example.com>" => home.assert_signed(&scene, &commit.id, &key),
            "ssh <bot@example.com>" => ssh_signer::assert_signed(&scene, &commit.id, &signer.public),
            other => {
                assert_eq!(other, "plain <bot@example.com>");
                let content = scene.repository.git(["cat-file", "commit", &commit.id]);
                assert!(!String::from_utf8(content).unwrap().contains("gpgsig"));
            }
        }
    }
}

#[test]
fn an_automation_without_its_key_does_not_fail_the_others() {
    let scene = scene();
    let signer = SshSigner::new(&["-t", "ed25519"], "");
    scene.secret("ssh", json!({"stringData": {"identity": signer.private}}));
    let run = scene.run(NONE).with_status(1);
    assert!(
        run.only_error()
            .starts_with(&format!("default/pgp: {SOURCE}: could not find signing key secret 'pgp': ")),
        "{run:?}"
    );
    let log = scene.repository.log("main");
    assert_eq!(log.len(), 3, "{log:?}");
    let signed = log.iter().find(|commit| commit.author.starts_with("ssh ")).unwrap();
    ssh_signer::assert_signed(&scene, &signed.id, &signer.public);
}
