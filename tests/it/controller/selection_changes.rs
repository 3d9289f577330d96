//! Images that change while a reconcile waits.

use std::time::Duration;

use serde_json::json;

use super::scene::{IMAGE, Scene};
use crate::support::eventually::eventually;
use crate::support::git_host::{Fault, Operation};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_was_replaced_while_the_run_waited_for_its_server_is_not_committed() {
    let scene = Scene::new(&["app"]).await;
    let controller = scene.controller().start();
    scene.ready("app").await;
    scene.host.always(Operation::ListForFetch, Fault::Delay(Duration::from_secs(3)));
    let before = scene.host.requests_for(Operation::ListForFetch).len();
    scene.choose("app", "1.1.0").await;
    eventually("a listing is in flight", async || {
        scene.host.requests_for(Operation::ListForFetch).len() > before
    })
    .await;
    scene.choose("app", "1.2.0").await;
    scene.lands("app", "1.2.0").await;
    scene.host.heal();
    let selected = json!({"name": IMAGE, "tag": "1.2.0"});
    eventually("the status names the new image", async || {
        scene.ready("app").await["observedPolicies"]["app"] == selected
    })
    .await;
    // The image that was selected when the reconcile began is not committed.
    assert_eq!(scene.commits().len(), 1, "{:?}", scene.commits());
    controller.end().await;
}
