//! The pods that must leave a node before its reboot.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use kube::core::{Selector, SelectorExt};
use serde::Deserialize;

/// The annotation of a mirror pod, which the kubelet runs from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A pod of a node, with the fields that decide whether it must leave.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = k8s_openapi::api::core::v1::Pod)]
#[serde(default)]
pub struct NodePod {
    /// The metadata.
    pub metadata: ObjectMeta,
    /// The observed state.
    pub status: NodePodStatus,
}

/// The observed state of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodePodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
}

/// The rules by which pods stay on a node.
#[derive(Clone, Debug, Default)]
pub struct DrainRules {
    /// The labels of pods that stay; none, if it is absent.
    pub skip: Option<Selector>,
    /// The namespace and name of the pod of this process.
    ///
    /// On a cluster of one node, nothing else would uncordon it.
    pub own_pod: Option<(String, String)>,
    /// The UID of the controller of that pod.
    ///
    /// Its other pods are replicas of this process: they tolerate a cordoned node, so they would come back without end.
    pub own_controller: Option<String>,
}

/// The pods that must leave a node.
#[derive(Clone, Debug, Default)]
pub struct Departures {
    /// The pods to evict.
    pub to_evict: Vec<NodePod>,
    /// The pods that are being deleted, and are awaited.
    pub leaving: Vec<NodePod>,
}

impl Departures {
    /// Returns `true` if no pod must leave any more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.to_evict.is_empty() && self.leaving.is_empty()
    }
}

impl NodePod {
    /// Returns the object that controls the pod.
    #[must_use]
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
    }
}

impl DrainRules {
    /// Returns the pods of a node that must leave it.
    ///
    /// Pods of a DaemonSet, which would come back, mirror pods and pods that have ended stay. Pods without a controller,
    /// and pods that lose an `emptyDir`, leave too: the reboot would end them anyway.
    #[must_use]
    pub fn departures(&self, pods: Vec<NodePod>) -> Departures {
        let leaving = pods.into_iter().filter(|pod| self.must_leave(pod));
        let (leaving, to_evict) = leaving.partition(|pod| pod.metadata.deletion_timestamp.is_some());
        Departures { to_evict, leaving }
    }

    fn must_leave(&self, pod: &NodePod) -> bool {
        let ObjectMeta { name, namespace, labels, annotations, .. } = &pod.metadata;
        let is_of_daemon_set = pod.controller().is_some_and(|owner| owner.kind == "DaemonSet");
        let own = self.own_controller.as_ref();
        let is_replica = pod.controller().is_some_and(|owner| Some(&owner.uid) == own);
        let is_mirror = annotations.iter().flatten().any(|(key, _)| key == MIRROR);
        let has_ended = matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
        let is_skipped =
            self.skip.as_ref().is_some_and(|skip| skip.matches(&labels.clone().unwrap_or_default()));
        let is_own = self.own_pod.as_ref().is_some_and(|(own_namespace, own_name)| {
            namespace.as_ref() == Some(own_namespace) && name.as_ref() == Some(own_name)
        });
        !(is_of_daemon_set || is_mirror || has_ended || is_skipped || is_own || is_replica)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, metadata: &Value, phase: &str) -> NodePod {
        let mut object = json!({"metadata": {"name": name, "namespace": "n"}, "status": {"phase": phase}});
        for (key, value) in metadata.as_object().into_iter().flatten() {
            object["metadata"][key] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    fn owner(kind: &str, is_controller: bool) -> Value {
        let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "u", "controller": is_controller});
        json!({"ownerReferences": [owner]})
    }

    fn names(pods: &[NodePod]) -> Vec<&str> {
        pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect()
    }

    #[test]
    fn pods_that_would_come_back_or_have_ended_stay() {
        let skip: LabelSelector = serde_json::from_value(json!({"matchLabels": {"drain": "skip"}})).unwrap();
        let rules = DrainRules {
            skip: Some(Selector::try_from(skip).unwrap()),
            own_pod: Some(("n".to_owned(), "own".to_owned())),
            own_controller: Some("own".to_owned()),
        };
        let mut replica = owner("ReplicaSet", true);
        replica["ownerReferences"][0]["uid"] = json!("own");
        let found = rules.departures(vec![
            pod("deployed", &owner("ReplicaSet", true), "Running"),
            pod("bare", &json!({}), "Running"),
            pod("pending", &json!({}), "Pending"),
            pod("owned-in-name", &owner("DaemonSet", false), "Running"),
            pod("going", &json!({"deletionTimestamp": "2026-11-23T12:00:00Z"}), "Running"),
            pod("daemon", &owner("DaemonSet", true), "Running"),
            pod("mirror", &json!({"annotations": {MIRROR: "hash"}}), "Running"),
            pod("succeeded", &owner("Job", true), "Succeeded"),
            pod("failed", &json!({}), "Failed"),
            pod("skipped", &json!({"labels": {"drain": "skip"}}), "Running"),
            pod("own", &owner("ReplicaSet", true), "Running"),
            pod("replica", &replica, "Running"),
        ]);
        assert_eq!(names(&found.to_evict), ["deployed", "bare", "pending", "owned-in-name"]);
        assert_eq!(names(&found.leaving), ["going"]);
        assert!(!found.is_empty());
    }

    #[test]
    fn a_node_without_such_pods_is_drained() {
        let rules = DrainRules::default();
        assert!(rules.departures(Vec::new()).is_empty());
        assert!(rules.departures(vec![pod("daemon", &owner("DaemonSet", true), "Running")]).is_empty());
        let going = pod("going", &json!({"deletionTimestamp": "2026-11-23T12:00:00Z"}), "Running");
        assert!(!rules.departures(vec![going]).is_empty(), "it is not gone yet");
    }
}
