//! A generated state with the answers of the judges, and our own.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tagboat_api::deployment_status::State;

use super::super::testing::{NOW, Scene, watched};

/// The image that each object has.
const IMAGE: &str = "podinfo:2.0.0";

/// A program or library that judges workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Judge {
    Kubectl,
    Kstatus,
    ArgoCd,
}

impl Judge {
    pub(super) const ALL: [Self; 3] = [Self::Kubectl, Self::Kstatus, Self::ArgoCd];

    /// Returns the name as in the documentation.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kubectl => "kubectl",
            Self::Kstatus => "kstatus",
            Self::ArgoCd => "Argo CD",
        }
    }
}

/// A result that all judges have words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    InProgress,
    Complete,
    Failed,
    Deleted,
    /// The judge has no answer for the object.
    None,
}

/// A row of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) object: Value,
    /// The rollout of the same image was complete at the last observation.
    #[serde(default)]
    pub(super) installed: bool,
    #[serde(default)]
    kubectl: String,
    kstatus: String,
    #[serde(default)]
    argo: String,
}

impl Row {
    /// Returns the answer of a judge.
    pub(super) fn answer(&self, judge: Judge) -> Outcome {
        let answer = match judge {
            Judge::Kubectl => &self.kubectl,
            Judge::Kstatus => &self.kstatus,
            Judge::ArgoCd => &self.argo,
        };
        match answer.as_str() {
            "done" | "Current" | "Healthy" => Outcome::Complete,
            "waiting" | "InProgress" | "Progressing" | "Suspended" => Outcome::InProgress,
            "failed" | "Failed" | "Degraded" => Outcome::Failed,
            "Terminating" => Outcome::Deleted,
            "refused" | "Error" | "Unknown" | "" => Outcome::None,
            other => panic!("unknown answer {other}"),
        }
    }

    /// Returns our result: the state of the component.
    pub(super) fn ours(&self) -> Outcome {
        let id = format!("{}/apps/podinfo", self.kind());
        let api_version = self.object["apiVersion"].as_str().unwrap();
        let mut scene = Scene::new(&format!(
            "policies: {{podinfo: '{IMAGE}'}}\nautomations:\n- name: fleet\n  places:\n  - {{policy: podinfo, \
             at: 'podinfo.yaml:7', document: {api_version} {} apps/podinfo, field: reference}}\n",
            self.kind()
        ));
        scene.clusters[0].index.insert(watched(self.object.clone()));
        if let Some(generation) = self.workload_generation() {
            scene.clusters[0].index.insert(watched(workload(generation)));
        }
        // A rollout that is observed from its beginning on, as the others assess it, unless it has ended.
        let state = if self.installed { "installed" } else { "installing" };
        scene.previous.insert("podinfo".to_owned(), previous(&id, state));
        let found = scene.components("podinfo");
        let component = found.components.iter().find(|component| component.status.name == id);
        match component.expect("the object is a component").status.state {
            State::Installing => Outcome::InProgress,
            State::Installed => Outcome::Complete,
            State::Failed => Outcome::Failed,
            State::Removing => Outcome::Deleted,
            state @ (State::Pending | State::Removed) => panic!("{id} is {state}"),
        }
    }

    pub(super) fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap()
    }

    /// Returns a number of the spec; `absent` if it has none.
    pub(super) fn spec(&self, path: &str, absent: i64) -> i64 {
        self.object["spec"].pointer(path).and_then(Value::as_i64).unwrap_or(absent)
    }

    /// Returns a number of the status, 0 if it has none.
    pub(super) fn count(&self, key: &str) -> i64 {
        self.object["status"][key].as_i64().unwrap_or(0)
    }

    /// Returns a text of the status.
    pub(super) fn text(&self, key: &str) -> &str {
        self.object["status"][key].as_str().unwrap_or_default()
    }

    /// Returns the desired number of pods.
    pub(super) fn desired(&self) -> i64 {
        self.spec("/replicas", 1)
    }

    /// Returns the condition of a type: its status and reason.
    pub(super) fn condition(&self, kind: &str) -> Option<(&str, &str)> {
        let conditions = self.object["status"]["conditions"].as_array()?;
        let found = conditions.iter().find(|condition| condition["type"] == kind)?;
        Some((found["status"].as_str()?, found["reason"].as_str().unwrap_or_default()))
    }

    /// Returns `true` for a condition that is `True`.
    pub(super) fn is_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|(status, _)| status == "True")
    }

    /// Returns the generations of the spec and of the status.
    pub(super) fn generations(&self) -> (i64, i64) {
        let generation = self.object["metadata"]["generation"].as_i64().unwrap_or(0);
        (generation, self.count("observedGeneration"))
    }

    /// Returns `true` if the status describes the generation or a later one.
    pub(super) fn is_observed(&self) -> bool {
        let (generation, observed) = self.generations();
        observed >= generation
    }

    /// Returns `true` if the status describes exactly the generation, or none.
    pub(super) fn is_observed_or_silent(&self) -> bool {
        let (generation, observed) = self.generations();
        observed == generation || observed == 0
    }

    /// Returns `true` for the strategy that updates pods when a user deletes them.
    pub(super) fn is_on_delete(&self) -> bool {
        self.object["spec"]["updateStrategy"]["type"] == "OnDelete"
    }

    pub(super) fn is_deleted(&self) -> bool {
        !self.object["metadata"]["deletionTimestamp"].is_null()
    }

    /// Returns the generation of the workload to which a Rollout refers.
    pub(super) fn workload_generation(&self) -> Option<i64> {
        let noted = &self.object["metadata"]["annotations"]["rollout.argoproj.io/workload-generation"];
        noted.as_str()?.parse().ok()
    }
}

/// Returns the Deployment to which a Rollout refers.
fn workload(generation: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "podinfo", "namespace": "apps", "generation": generation},
        "spec": {"replicas": 0, "template": {"spec": {"containers": [{"name": "podinfo", "image": IMAGE}]}}},
    })
}

/// Returns the status with a component in a state.
fn previous(name: &str, state: &str) -> tagboat_api::deployment_status::DeploymentStatusStatus {
    let component = json!({"name": name, "state": state, "since": NOW, "image": IMAGE});
    let summary: Map<String, Value> = Map::new();
    serde_json::from_value(json!({
        "deploymentId": "uid", "timeStamp": NOW, "state": state, "since": NOW, "summary": summary,
        "progress": "1/1", "components": [component],
    }))
    .unwrap()
}
