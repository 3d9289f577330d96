//! Commits that GitHub signs, with the annotations of a GitRepository.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::scene::{Kind, Scene, condition};
use crate::github::server::GithubServer;
use crate::support::git_host::{Access, Operation, Settings};

const TOKEN: &str = "ghs_planted0123456789abcdef";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_are_signed_by_github_once_the_git_repository_names_it() {
    let settings = Settings { access: Access::basic("x-access-token", TOKEN), tls: None };
    let scene = Scene::with_host(settings, &["one", "two"]).await;
    symlink(".", scene.repository.path().parent().unwrap().join("acme")).unwrap();
    let github = GithubServer::start(&scene.repository, &scene.host, TOKEN, "github.json");
    let login = [("username", "x-access-token"), ("password", TOKEN)];
    scene.create_secret(scene.cluster.namespace(), "login", &login).await;
    let source = json!({"spec": {"url": github.git_url(), "secretRef": {"name": "login"}}});
    scene.patch(Kind::Source, "fleet", &source).await;
    let signed_by = json!({"metadata": {"annotations": {"tagboat.dev/signed-by": "forge"}}});
    for name in ["one", "two"] {
        scene.patch(Kind::Automation, name, &signed_by).await;
    }
    let builder = scene.controller();
    let metrics = builder.metrics.clone();
    let controller = builder.start();
    // The host of a test is no public forge.
    let status = scene.not_ready("one", "InvalidSourceConfiguration").await;
    let words = condition(&status, "Stalled").unwrap()["message"].as_str().unwrap();
    assert!(words.contains("add the annotation tagboat.dev/forge to the GitRepository"), "{words}");
    let forge = json!({"metadata": {"annotations": {"tagboat.dev/forge": "github"}}});
    scene.patch(Kind::Source, "fleet", &forge).await;
    tokio::join!(scene.ready("one"), scene.ready("two"));
    tokio::join!(scene.choose("one", "2.0.0"), scene.choose("two", "2.0.0"));
    tokio::join!(scene.lands("one", "2.0.0"), scene.lands("two", "2.0.0"));
    let is_signed = |object: &kube::core::DynamicObject| {
        condition(&object.data["status"], "CommitsSigned").is_some_and(|found| found["status"] == "True")
    };
    for name in ["one", "two"] {
        let status = scene.until(name, "signed", is_signed).await;
        let commit = status["lastPushCommit"].as_str().unwrap();
        github.home.assert_signed_in(&scene.repository, commit, &github.key);
    }
    assert_eq!(scene.repository.log("main").len(), 3);
    assert!(scene.host.requests_for(Operation::Push).len() <= 2);
    // A person's token signs nothing, and nothing is pushed.
    github.demote();
    scene.choose("one", "3.0.0").await;
    scene.not_ready("one", "GitOperationFailed").await;
    assert_eq!(scene.repository.log("main").len(), 3);
    // Another setting ends the wait, and its condition.
    let by_key = json!({"metadata": {"annotations": {"tagboat.dev/signed-by": "key"}}});
    scene.patch(Kind::Automation, "one", &by_key).await;
    scene.lands("one", "3.0.0").await;
    scene.ready("one").await;
    let is_unsigned =
        |object: &kube::core::DynamicObject| condition(&object.data["status"], "CommitsSigned").is_none();
    scene.until("one", "without a condition of signatures", is_unsigned).await;
    controller.end().await;
    let encoded = metrics.to_text();
    let requests = "tagboat_forge_requests_total{forge=\"github\",operation=\"sign a commit\",code=\"201\"}";
    assert!(
        encoded.contains(requests)
            && encoded.contains("tagboat_forge_limit_remaining{host=\"127.0.0.1\"} 4900"),
        "{encoded}"
    );
    assert!(!encoded.contains("planted"));
}
