//! Secrets of several namespaces: the GitRepository's is the login, the automation's signs.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tagboat::objects::cluster::Scope;

use super::scene::{Kind, Scene, condition, line};
use crate::support::content::file;
use crate::support::git_host::{Access, GitHost, Settings};
use crate::support::git_program::harden;
use crate::support::program::{installed, run};
use crate::support::ssh_key::SshKey;

/// The secrets that the controller read, as NAMESPACE/NAME.
fn secrets_read(scene: &Scene) -> Vec<String> {
    let mut read: Vec<String> = scene
        .cluster
        .audit("tagboat")
        .into_iter()
        .filter(|request| request.resource.starts_with("secrets"))
        .map(|request| format!("{}/{}", request.namespace, request.name))
        .collect();
    read.sort();
    read.dedup();
    read
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_login_is_the_repositorys_and_the_signature_the_automations() {
    let scene = Scene::new(&[]).await;
    let own = scene.cluster.namespace().to_owned();
    let theirs = scene.cluster.another_namespace().await;
    scene.repository.commit("main", "App", &[file("fleet.yaml", line(&own, "app", "1.0.0"))]);
    let settings = Settings { access: Access::basic("theirs", "their password"), tls: None };
    let host = GitHost::start(&scene.root().join("served"), settings);
    let directory = tempfile::tempdir().unwrap();
    let keys = ["own", "theirs"].map(|name| SshKey::generate(directory.path(), name, "ed25519", ""));
    for (namespace, key) in [&own, &theirs].into_iter().zip(&keys) {
        let password = if *namespace == theirs { "their password" } else { "another" };
        scene.create_secret(namespace, "login", &[("username", "theirs"), ("password", password)]).await;
        scene.create_secret(namespace, "signer", &[("identity", &key.private())]).await;
    }
    let api = kube::Api::namespaced_with(
        scene.cluster.client(),
        &theirs,
        &kube::core::ApiResource::erase::<tagboat_api::GitRepository>(&()),
    );
    let object = |name: &str, secret: &str| -> kube::core::DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": {"name": name},
            "spec": {"url": host.url("fleet.git"), "interval": "1m", "ref": {"branch": "main"}, "secretRef": {"name": secret}},
        }))
        .unwrap()
    };
    api.create(&Default::default(), &object("fleet-of-others", "login")).await.unwrap();
    // A name that looks like a path out of the namespace is no Secret's name.
    let ways_out = [
        format!("../../{theirs}/secrets/login"),
        format!("../../../namespaces/{theirs}/secrets/login"),
        format!("..%2f..%2f{theirs}%2fsecrets%2flogin"),
        "login?x=y".to_owned(),
    ];
    for (number, name) in ways_out.iter().enumerate() {
        let source = json!({"url": host.url("fleet.git"), "secretRef": {"name": name}});
        scene.create_with_source(&format!("out-{number}"), &source).await;
    }
    scene.create_policy("app", "2.0.0").await;
    let mut spec = Scene::spec("app");
    spec["sourceRef"] = json!({"kind": "GitRepository", "name": "fleet-of-others", "namespace": theirs});
    spec["git"]["commit"]["signingKey"] = json!({"type": "ssh", "secretRef": {"name": "signer"}});
    scene.create(Kind::Automation, "app", &spec).await;
    let all: Vec<String> = (0..ways_out.len()).map(|number| format!("out-{number}")).collect();
    for name in all.iter().map(String::as_str).chain(["app"]) {
        let label = json!({"metadata": {"labels": {"tenant": own}}});
        scene.patch(Kind::Automation, name, &label).await;
    }
    let client = scene.cluster.client_with(&scene.cluster.token_with_the_roles().await).await;
    let mut builder = scene.controller().through(client);
    // The controller watches the other namespace, but not the automations of other tests.
    builder.options.controller.scope = Scope { namespace: None, labels: Some(format!("tenant={own}")) };
    let controller = builder.start();
    scene.lands("app", "2.0.0").await;
    scene.ready("app").await;
    for (name, way_out) in all.iter().zip(&ways_out) {
        let status: Value = scene.not_ready(name, "SourceManagerFailed").await;
        let message = condition(&status, "Ready").unwrap()["message"].as_str().unwrap();
        assert!(
            message.ends_with(&format!("'{own}/{way_out}': secrets \"{way_out}\" not found")),
            "{message}"
        );
    }
    controller.end().await;
    assert_eq!(secrets_read(&scene), {
        let mut expected = [format!("{own}/signer"), format!("{theirs}/login")];
        expected.sort();
        expected
    });
    let signers = directory.path().join("signers");
    fs::write(&signers, format!("bot@example.com namespaces=\"git\" {}\n", keys[0].public())).unwrap();
    let mut command = Command::new(installed("git"));
    harden(&mut command).current_dir(scene.repository.path());
    let setting = format!("gpg.ssh.allowedSignersFile={}", signers.display());
    let check = run(command.args(["-c", &setting, "verify-commit", "main"]));
    assert_eq!(check.status, Some(0), "{check:?}");
}
