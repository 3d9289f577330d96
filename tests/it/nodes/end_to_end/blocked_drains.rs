//! Drains that are blocked for long, and a controller that is restarted meanwhile.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::scene::Controller;
use crate::nodes::controller::drains::blocked_on;
use crate::nodes::controller::scene::{NodeScene, ROLES, image, start_server};
use crate::support::eventually::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_that_is_blocked_for_five_minutes_is_announced_once_also_by_the_next_controller() {
    let (server, _controllers) = start_server("blocked-drains");
    let scene = NodeScene::on(server, "").await;
    let token = scene.cluster().token_with_roles(&ROLES).await;
    let mut controller = Controller::start(&scene, &scene.cluster().kubeconfig(&token), "tagboat");
    let scene = blocked_on(scene, &json!({"image": {"ref": image("2")}})).await;
    scene.reaches("a", "draining").await;
    let refused = || {
        let requests = scene.cluster().audit("tagboat");
        requests.iter().filter(|request| request.resource == "pods/eviction" && request.code == 429).count()
    };
    let evictions = async |count: usize| {
        let before = refused();
        eventually("the eviction is tried again", async || refused() >= before + count).await;
    };
    let announced = async || {
        let mut events = scene.events("p").await;
        events.retain(|event| event.starts_with("DrainBlocked "));
        events
    };
    evictions(1).await;
    assert!(announced().await.is_empty(), "it is not blocked for long");
    // The drain in progress began before that.
    let past = (Timestamp::now() - SignedDuration::from_mins(6)).to_string();
    scene.mark("a", json!({}), json!({"tagboat.dev/state-since": past})).await;
    let expected = format!(
        "DrainBlocked a cannot be drained: pod {}/db: The disruption budget quorum needs 1 healthy pods and has 1 currently",
        scene.cluster().namespace()
    );
    eventually("it is announced", async || announced().await == [expected.as_str()]).await;
    controller.restart();
    evictions(3).await;
    assert_eq!(announced().await, [expected]);
}
