//! The pods of a list that decide its report.

use jiff::Timestamp;

use super::container::{FAILURES, failure};
use crate::rollout::objects::{Condition, Pod, find, is_true};

/// The maximum numbers of unready and of ready pods that [`most_informative`] returns.
const KEPT: (usize, usize) = (8, 2);

/// Returns the pods with the wanted image that decide the report.
///
/// These are failed ones first, then the newest. The others tell nothing more. Unreadable pods are kept, because they are
/// reported.
#[must_use]
pub fn most_informative(
    pods: impl IntoIterator<Item = Pod>,
    is_wanted: impl Fn(&str) -> bool,
    now: Timestamp,
) -> Vec<Pod> {
    let is_kept = |pod: &Pod| pod.spec.get().map_or(true, |spec| spec.images().any(&is_wanted));
    let mut pods: Vec<Pod> = pods.into_iter().filter(is_kept).collect();
    pods.sort_by(|left, right| right.metadata.creation_timestamp.cmp(&left.metadata.creation_timestamp));
    let is_ready = |pod: &Pod| pod.status.get().is_ok_and(|status| is_true(&status.conditions, "Ready"));
    let (mut ready, mut unready): (Vec<Pod>, Vec<Pod>) = pods.into_iter().partition(is_ready);
    unready.sort_by_cached_key(|pod| (pod.metadata.deletion_timestamp.is_some(), severity(pod, now)));
    unready.truncate(KEPT.0);
    ready.truncate(KEPT.1);
    unready.extend(ready);
    unready
}

/// Returns the order of an unready pod among others.
///
/// The worst failure is the first, before pods that cannot be scheduled.
fn severity(pod: &Pod, now: Timestamp) -> usize {
    let (Ok(spec), Ok(status)) = (pod.spec.get(), pod.status.get()) else { return FAILURES.len() };
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    let ranks = containers.filter_map(|container| failure(container, spec, now).map(|(rank, _)| rank));
    let is_unscheduled = || find(&status.conditions, "PodScheduled").is_some_and(Condition::is_false);
    ranks.min().unwrap_or_else(|| FAILURES.len() + usize::from(!is_unscheduled()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{NOW, WANTED, pod, unschedulable, waiting};
    use super::*;

    #[test]
    fn the_newest_unready_pods_with_the_wanted_image_are_kept() {
        let pod = |number: u32, ready: &str, image: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": format!("{ready}{number}"),
                    "creationTimestamp": format!("2026-11-02T10:{number:02}:00Z")},
                "spec": {"containers": [{"name": "a", "image": image}]},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap()
        };
        let wanted = (0..30).flat_map(|number| [pod(number, "True", WANTED), pod(number, "False", WANTED)]);
        // A rollback from an image whose pods never became ready, and are newer.
        let broken = (30..50).map(|number| pod(number, "False", "ghcr.io/a/podinfo:7.0.0"));
        let now = NOW.parse().unwrap();
        let kept = most_informative(wanted.chain(broken), |image| image == WANTED, now);
        let names: Vec<String> = kept.into_iter().map(|pod| pod.metadata.name.unwrap()).collect();
        let expected = (22..30).rev().map(|number| format!("False{number}"));
        assert_eq!(names, expected.chain(["True29".to_owned(), "True28".to_owned()]).collect::<Vec<_>>());
    }

    /// The only failed pod of many was not among the kept ones.
    #[test]
    fn failed_pods_are_kept_before_newer_ones() {
        let named = |name: &str, minute: u32, state: &Value| {
            let mut pod = pod(name, NOW, state);
            pod["metadata"]["creationTimestamp"] = json!(format!("2026-11-02T10:{minute:02}:00Z"));
            pod
        };
        let starting =
            json!({"name": "podinfo", "ready": false, "state": {"waiting": {"reason": "ContainerCreating"}}});
        let mut pods: Vec<Value> =
            (10..30).map(|minute| named(&format!("starting{minute}"), minute, &starting)).collect();
        let mut deleted = named("deleted", 31, &waiting("ErrImagePull", "x"));
        deleted["metadata"]["deletionTimestamp"] = json!(NOW);
        let mut waits = unschedulable("waits");
        waits["metadata"]["creationTimestamp"] = json!("2026-11-02T10:03:00Z");
        pods.extend([
            deleted,
            waits,
            named("config", 1, &waiting("CreateContainerConfigError", "x")),
            named("image", 2, &waiting("ImagePullBackOff", "x")),
        ]);
        let pods = pods.into_iter().map(|pod| serde_json::from_value(pod).unwrap());
        let kept = most_informative(pods, |image| image == WANTED, NOW.parse().unwrap());
        let names: Vec<String> = kept.into_iter().map(|pod| pod.metadata.name.unwrap()).collect();
        let expected = ["image", "config", "waits", "starting29", "starting28", "starting27"];
        assert_eq!(names[..6], expected, "{names:?}");
        assert_eq!(names.len(), KEPT.0);
    }
}
