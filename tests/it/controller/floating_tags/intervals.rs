//! The polling interval, as the program's arguments set it.

use std::time::Duration;

use serde_json::{Value, json};

use super::fleet::{Fleet, TAG};
use crate::controller::pod::{Pod, get};
use crate::controller::reflector::{chosen, next_poll, requested, until};
use crate::controller::scene::Kind;
use crate::support::eventually::eventually;

const ARGUMENTS: [&str; 3] = ["controller", "--watch-all-namespaces=false", "--controllers=reflector"];

const HOUR: u64 = 3600;

fn start(fleet: &Fleet, kubeconfig: &std::path::Path, value: Option<&str>) -> Pod {
    let variable = value.map(|value| ("UPDATE_POLLING_INTERVAL", value));
    Pod::start_in(&fleet.scene, kubeconfig, variable.as_slice(), &ARGUMENTS)
}

fn logs(pod: &Pod, words: &str) -> bool {
    pod.lines().iter().any(|line| line["msg"].as_str().is_some_and(|message| message.contains(words)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_variable_sets_the_interval_and_zero_turns_polling_off() {
    let fleet = Fleet::new().await;
    fleet.push("web", TAG);
    fleet.scan("web").await;
    fleet.follow_as("web", "web", &json!({"tagboat.dev/poll-interval": "default"})).await;
    let kubeconfig = fleet.scene.cluster.kubeconfig(&fleet.scene.cluster.token_with_the_roles().await);

    // No lookup, though the tag moves and a reconcile is requested.
    let mut pod = start(&fleet, &kubeconfig, Some("0"));
    chosen(&fleet.scene, "web", &json!({"name": fleet.image("web"), "tag": TAG})).await;
    fleet.push("web", TAG);
    fleet.scene.patch(Kind::Policy, "web", &requested("0")).await;
    let answered =
        |object: &kube::core::DynamicObject| object.data["status"]["lastHandledReconcileAt"] == "0";
    let status = until(&fleet.scene, Kind::Policy, "web", answered).await;
    assert_eq!(status["latestRef"]["digest"], Value::Null);
    assert!(logs(&pod, "polling is disabled"), "{:?}", pod.lines());
    assert_eq!(next_poll(&get(&pod.metrics, "metrics").await, "web"), None);
    assert_eq!(fleet.front.lookups().len(), 0);
    pod.terminate();

    for (value, hours, complaint) in [
        (None, 12, ""),
        (Some("6h"), 6, ""),
        (Some("180h"), 180, ""),
        (Some("abc"), 12, "UPDATE_POLLING_INTERVAL is invalid, using 12h0m0s"),
        (Some("-1h"), 12, "UPDATE_POLLING_INTERVAL is invalid, using 12h0m0s"),
    ] {
        let mut pod = start(&fleet, &kubeconfig, value);
        let (least, most) = (
            Duration::from_secs(hours * HOUR).mul_f64(0.94),
            Duration::from_secs(hours * HOUR).mul_f64(1.06),
        );
        let begins = async || logs(&pod, "the digests of floating tags are looked up");
        eventually("the program has begun", begins).await;
        let is_known = async || {
            let found = next_poll(&get(&pod.metrics, "metrics").await, "web");
            found.is_some_and(|wait| (least..most).contains(&wait))
        };
        eventually(&format!("the next lookup is {hours} hours away with {value:?}"), is_known).await;
        assert!(complaint.is_empty() || logs(&pod, complaint), "{value:?}: {:?}", pod.lines());
        pod.terminate();
    }
}
