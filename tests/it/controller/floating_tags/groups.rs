//! Policies that get their digests together or not at all.

use serde_json::{Value, json};

use super::fleet::{Fleet, TAG};
use crate::controller::reflector::{Reflector, chosen};
use crate::controller::scene::{Kind, condition};
use crate::support::eventually::eventually;
use crate::support::git_host::request::Request;
use crate::support::http_front::Reply;

fn without_gateway(request: &Request) -> Reply {
    let is_missing = request.path.contains("gateway/manifests/");
    if is_missing { Reply::body(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#) } else { Reply::Forward }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_changes_together_in_one_commit_or_not_at_all() {
    let fleet = Fleet::new().await;
    let first = [fleet.push("online", TAG), fleet.push("gateway", TAG)];
    fleet.write_images(&["online", "gateway"]);
    fleet.front.answer(without_gateway);
    for name in ["online", "gateway"] {
        fleet.scan(name).await;
        let group = json!({"tagboat.dev/poll-interval": "1s", "tagboat.dev/poll-group": "hawtio"});
        fleet.follow_as(name, name, &group).await;
    }
    fleet.automate().await;
    let (controller, reflector) = (fleet.scene.controller().start(), Reflector::of(&fleet.scene).start());
    let latest = async |name: &str| fleet.policy(name).await.data["status"]["latestRef"].clone();

    // The second policy has no digest, so the first gets none either.
    let waits_for_gateway = async || {
        let policy = fleet.policy("online").await;
        let stale = condition(&policy.data["status"], "Stale").cloned().unwrap_or_default();
        let message = stale["message"].as_str().unwrap_or_default().to_owned();
        stale["reason"] == "GroupIncomplete" && message.ends_with("/gateway of the group hawtio is not known")
    };
    eventually("the policy reports the missing member", waits_for_gateway).await;
    fleet.stale("gateway", "TagNotFound").await;
    fleet.front.more_lookups(4).await;
    for name in ["online", "gateway"] {
        assert_eq!(latest(name).await, Value::Null, "{name}");
    }
    assert_eq!(fleet.commits().len(), 0);
    fleet.front.heal();
    for (name, digest) in ["online", "gateway"].into_iter().zip(&first) {
        fleet.has(name, digest).await;
        fleet.lands(digest).await;
    }
    fleet.scene.ready("all").await;
    assert_eq!(fleet.commits().len(), 1, "both in one");
    assert_eq!(fleet.diff(&fleet.commits()[0]).len(), 4);

    // The same if both had a digest before.
    fleet.front.answer(without_gateway);
    let second = [fleet.push("online", TAG), fleet.push("gateway", TAG)];
    fleet.stale("online", "GroupIncomplete").await;
    fleet.front.more_lookups(4).await;
    for (name, digest) in ["online", "gateway"].into_iter().zip(&first) {
        assert_eq!(latest(name).await["digest"], json!(digest), "{name}");
    }
    assert_eq!(fleet.commits().len(), 1);
    fleet.front.heal();
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

/// A wanted lower tag of a group counts as soon as its digest is known.
/// The digest of a tag that a user wants comes from the poller, so it is known later than the intent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lower_tag_of_a_user_change_counts_in_a_group_once_its_digest_is_known() {
    let fleet = Fleet::new().await;
    let digests = ["2.3", TAG].map(|tag| fleet.push("online", tag));
    let reflector = Reflector::of(&fleet.scene).start();
    fleet.scan("online").await;
    let spec = json!({
        "imageRepositoryRef": {"name": "online"},
        "policy": {"alphabetical": {}},
        "digestReflectionPolicy": "Always",
        "interval": "1h",
    });
    fleet.create_policy("online", &spec, &json!({"tagboat.dev/poll-group": "hawtio"})).await;
    fleet.has("online", &digests[1]).await;
    let without = json!({"metadata": {"annotations": {"tagboat.dev/exclude": format!("['{TAG}']")}}});
    fleet.scene.patch(Kind::Policy, "online", &without).await;
    let image = json!({"name": fleet.image("online"), "tag": "2.3", "digest": digests[0]});
    chosen(&fleet.scene, "online", &image).await;
    reflector.end().await;
}
