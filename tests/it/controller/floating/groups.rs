//! Policies that get their digests together or not at all.

use serde_json::{Value, json};

use super::fleet::{Fleet, TAG};
use crate::controller::reflector::Reflector;
use crate::support::git_host::request::Request;
use crate::support::http_front::Reply;

fn without_gateway(request: &Request) -> Reply {
    let is_missing = request.path.contains("gateway/manifests/");
    if is_missing { Reply::body(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#) } else { Reply::Forward }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_07_a_group_changes_together_in_one_commit_or_not_at_all() {
    let fleet = Fleet::new().await;
    let first = [fleet.push("online", TAG), fleet.push("gateway", TAG)];
    fleet.write_images(&["online", "gateway"]);
    fleet.way.answer(without_gateway);
    for name in ["online", "gateway"] {
        fleet.scan(name).await;
        let group = json!({"tagboat.dev/poll-interval": "1s", "tagboat.dev/poll-group": "hawtio"});
        fleet.follow_as(name, name, &group).await;
    }
    fleet.automate().await;
    let (controller, reflector) = (fleet.scene.controller().start(), Reflector::of(&fleet.scene).start());
    let latest = async |name: &str| fleet.policy(name).await.data["status"]["latestRef"].clone();

    // The second has none, so the first gets none either.
    fleet.stale("online", "GroupIncomplete").await;
    fleet.stale("gateway", "TagNotFound").await;
    fleet.way.more_looks(4).await;
    for name in ["online", "gateway"] {
        assert_eq!(latest(name).await, Value::Null, "{name}");
    }
    assert_eq!(fleet.commits().len(), 0);
    fleet.way.heal();
    for (name, digest) in ["online", "gateway"].into_iter().zip(&first) {
        fleet.has(name, digest).await;
        fleet.lands(digest).await;
    }
    fleet.scene.ready("all").await;
    assert_eq!(fleet.commits().len(), 1, "both in one");
    assert_eq!(fleet.diff(&fleet.commits()[0]).len(), 4);

    // The same where both had one before.
    fleet.way.answer(without_gateway);
    let second = [fleet.push("online", TAG), fleet.push("gateway", TAG)];
    fleet.stale("online", "GroupIncomplete").await;
    fleet.way.more_looks(4).await;
    for (name, digest) in ["online", "gateway"].into_iter().zip(&first) {
        assert_eq!(latest(name).await["digest"], json!(digest), "{name}");
    }
    assert_eq!(fleet.commits().len(), 1);
    fleet.way.heal();
    for (name, digest) in ["online", "gateway"].into_iter().zip(&second) {
        fleet.has(name, digest).await;
        fleet.lands(digest).await;
    }
    fleet.scene.ready("all").await;
    assert_eq!(fleet.commits().len(), 2, "both in one");
    assert_eq!(fleet.diff(&fleet.commits()[0]).len(), 4);
    reflector.end().await;
    controller.end().await;
}
