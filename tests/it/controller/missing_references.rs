//! Missing references: Flux's message in the status, and the references that exist in the log.

use serde_json::json;

use super::pod::Pod;
use super::scene::{Scene, condition};
use crate::support::eventually::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_branch_or_tag_has_the_message_of_flux() {
    let scene = Scene::new(&[]).await;
    let url = scene.host.url("fleet.git");
    scene.repository.tag("v1", "main");
    for (name, reference) in [("branch", json!({"branch": "nope"})), ("tag", json!({"tag": "nope"}))] {
        scene.create_with_source(name, &json!({"url": url, "ref": reference})).await;
    }
    let pod = Pod::start(&scene, &["--watch-all-namespaces=false"]).await;
    for (name, missing, hint) in
        [("branch", "refs/heads/nope", "its branches are main"), ("tag", "refs/tags/nope", "its tags are v1")]
    {
        let status = scene.not_ready(name, "GitOperationFailed").await;
        let message = condition(&status, "Ready").unwrap()["message"].as_str().unwrap().to_owned();
        let sentence = format!(
            "failed to checkout source: unable to clone '{url}': couldn't find remote ref {missing:?}"
        );
        assert_eq!(message, sentence);
        let wanted = format!("{sentence}; {hint}");
        let is_logged = async || pod.lines().iter().any(|line| line.to_string().contains(hint));
        eventually(&wanted, is_logged).await;
    }
}
