//! A step as a merge patch of the node.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tagboat_api::node_pool::MAX_VERSION;

use super::keys;
use super::node::digest_of;
use super::{Action, Node, Pool, Step};
use crate::printable::printable;
use crate::rollout::bounds::cut;

/// The labels, annotations and fields that a patch changes; null removes one.
#[derive(Default)]
struct Changes {
    labels: BTreeMap<String, Value>,
    annotations: BTreeMap<String, Value>,
    is_unschedulable: Option<bool>,
}

/// Returns the merge patch of a step.
///
/// It has the resource version of the node, so it is refused if the node has changed meanwhile.
#[must_use]
pub fn patch(node: &Node, pool: &Pool, step: &Step, now: Timestamp) -> Value {
    let mut changes = Changes::default();
    if node.stage() != Ok(step.to) || !node.is_labeled() {
        changes.label(keys::STATE, step.to.as_str());
        changes.annotate(keys::STATE_SINCE, &seconds(now));
        // Within a rollout, the pool stays the one in which it began.
        if !(node.holds_slot() && step.to.holds_slot()) {
            changes.record_pool(node, pool);
        }
    }
    for action in &step.actions {
        changes.apply(node, pool, *action, now);
    }
    changes.into_patch(node)
}

/// Returns the merge patch that removes all keys of Tagboat.
///
/// It uncordons the node if Tagboat cordoned it.
#[must_use]
pub fn removal(node: &Node, pool: &Pool) -> Value {
    let mut changes = Changes::default();
    changes.clear(node, pool.hooks.all());
    changes.uncordon(node);
    changes.remove_guards(node);
    let (labels, annotations) = ([keys::STATE, keys::AGENT], keys::ANNOTATIONS);
    for key in labels.into_iter().filter(|key| node.labels.contains_key(*key)) {
        changes.labels.insert(key.to_owned(), Value::Null);
    }
    for key in annotations.into_iter().filter(|key| node.annotations.contains_key(*key)) {
        changes.annotations.insert(key.to_owned(), Value::Null);
    }
    changes.into_patch(node)
}

fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

impl Changes {
    fn label(&mut self, key: &str, value: &str) {
        self.labels.insert(key.to_owned(), json!(value));
    }

    fn annotate(&mut self, key: &str, value: &str) {
        self.annotations.insert(key.to_owned(), json!(value));
    }

    /// Records the pool of a node, unless the node leaves all pools.
    ///
    /// The last deployment was one of the pool before.
    fn record_pool(&mut self, node: &Node, pool: &Pool) {
        if pool.name.is_empty() || node.annotation(keys::POOL) == Some(pool.name.as_str()) {
            return;
        }
        self.annotate(keys::POOL, &pool.name);
        if node.is_of_another_pool(&pool.name) {
            for key in [keys::LAST_DEPLOYED, keys::LAST_DEPLOYED_AT] {
                self.annotations.insert(key.to_owned(), Value::Null);
            }
        }
    }

    fn apply(&mut self, node: &Node, pool: &Pool, action: Action, now: Timestamp) {
        match action {
            Action::ClearHooks(point) => self.clear(node, pool.hooks.of(point)),
            Action::ClearAllHooks => self.clear(node, pool.hooks.all()),
            Action::Cordon if node.is_unschedulable => {}
            Action::Cordon => {
                self.is_unschedulable = Some(true);
                self.annotate(keys::MADE_UNSCHEDULABLE, "true");
            }
            Action::Uncordon => self.uncordon(node),
            Action::SetGuards => self.set_guards(node),
            Action::RemoveGuards => self.remove_guards(node),
            Action::SetImage => {
                self.annotations.insert(keys::DESIRED_IMAGE.to_owned(), json!(pool.image));
                // The time in which the agent must report begins now, also in the stage `idle`.
                self.annotate(keys::STATE_SINCE, &seconds(now));
            }
            Action::KeepBooted => {
                self.annotate(keys::DESIRED_IMAGE, "");
                // The time of the agent begins now, also in the stage `idle`.
                self.annotate(keys::STATE_SINCE, &seconds(now));
            }
            Action::SetSince => self.annotate(keys::STATE_SINCE, &seconds(now)),
            Action::JoinPool => self.record_pool(node, pool),
            Action::RecordDeployment => {
                let digest = node.annotation(keys::DESIRED_IMAGE).and_then(digest_of);
                if let Some(deployed) = digest.or_else(|| node.annotation(keys::BOOTED_VERSION)) {
                    self.annotate(keys::LAST_DEPLOYED, &cut(printable(deployed).into(), MAX_VERSION));
                    self.annotate(keys::LAST_DEPLOYED_AT, &seconds(now));
                }
            }
        }
    }

    /// Removes the keys of hooks.
    ///
    /// An annotation is removed also if it is not known: one with another value than `true` is not kept.
    fn clear<'k>(&mut self, node: &Node, hooks: impl IntoIterator<Item = &'k String>) {
        for key in hooks {
            if node.labels.contains_key(key) {
                self.labels.insert(key.clone(), Value::Null);
            }
            self.annotations.insert(key.clone(), Value::Null);
        }
    }

    fn uncordon(&mut self, node: &Node) {
        if node.is_made_unschedulable() {
            self.annotations.insert(keys::MADE_UNSCHEDULABLE.to_owned(), Value::Null);
            self.is_unschedulable = Some(false);
        }
    }

    fn set_guards(&mut self, node: &Node) {
        let made = guards_of(node);
        let added = keys::AUTOSCALER_GUARDS.into_iter().filter(|key| !node.annotations.contains_key(*key));
        let added: Vec<&str> = added.collect();
        if added.is_empty() {
            return;
        }
        added.iter().for_each(|key| self.annotate(key, "true"));
        let all: Vec<&str> =
            made.into_iter().filter(|key| !added.contains(key)).chain(added.clone()).collect();
        self.annotate(keys::MADE_ANNOTATIONS, &all.join(","));
    }

    fn remove_guards(&mut self, node: &Node) {
        if !node.annotations.contains_key(keys::MADE_ANNOTATIONS) {
            return;
        }
        // With another value, it is that of a user by now.
        let made = guards_of(node).into_iter().filter(|key| node.annotation(key) == Some("true"));
        for key in made.chain([keys::MADE_ANNOTATIONS]) {
            self.annotations.insert(key.to_owned(), Value::Null);
        }
    }

    fn into_patch(self, node: &Node) -> Value {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), json!(node.resource_version));
        if !self.labels.is_empty() {
            metadata.insert("labels".to_owned(), json!(self.labels));
        }
        if !self.annotations.is_empty() {
            metadata.insert("annotations".to_owned(), json!(self.annotations));
        }
        let mut patch = Map::from_iter([("metadata".to_owned(), Value::Object(metadata))]);
        if let Some(is_unschedulable) = self.is_unschedulable {
            // An absent field means the same as `false`, and is how kubectl writes it.
            let value = if is_unschedulable { Value::Bool(true) } else { Value::Null };
            patch.insert("spec".to_owned(), json!({ "unschedulable": value }));
        }
        Value::Object(patch)
    }
}

/// Returns the annotations for autoscalers that Tagboat set.
///
/// Others in the record are ignored: an edited record must not remove annotations of users.
fn guards_of(node: &Node) -> Vec<&'static str> {
    let recorded: Vec<&str> =
        node.annotation(keys::MADE_ANNOTATIONS).unwrap_or_default().split(',').collect();
    keys::AUTOSCALER_GUARDS.into_iter().filter(|key| recorded.contains(key)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::testing::{IMAGE, apply, node_of};
    use super::super::{AgentState, Availability, Hooks, Situation, Stage, availability, step};
    use super::*;

    fn now() -> Timestamp {
        "2026-11-23T12:00:00Z".parse().unwrap()
    }

    fn pool() -> Pool {
        let hooks = Hooks { before_reboot: vec!["example.com/volumes".to_owned()], ..Hooks::default() };
        Pool { name: "b".to_owned(), image: Some(IMAGE.to_owned()), hooks, ..Pool::default() }
    }

    fn with(mut node: Node, annotations: &[(&str, &str)]) -> Node {
        for (key, value) in annotations {
            Arc::make_mut(&mut node.annotations).insert((*key).to_owned(), (*value).to_owned());
        }
        node
    }

    fn without(mut node: Node, keys: &[&str]) -> Node {
        keys.iter().for_each(|key| drop(Arc::make_mut(&mut node.annotations).remove(*key)));
        node
    }

    /// Returns the node after its next step.
    fn after(node: &Node, pool: &Pool) -> Node {
        let situation = Situation { is_drained: true, ..Situation::default() };
        let step = step(node, pool, situation).unwrap();
        let mut patched = node.clone();
        assert!(apply(&mut patched, &patch(node, pool, &step, now())));
        patched
    }

    fn deployed(node: &Node) -> Option<&str> {
        node.annotation(keys::LAST_DEPLOYED)
    }

    /// Its value is not known, because annotations of other programs are not kept.
    #[test]
    fn an_annotation_of_a_hook_is_removed_with_any_value() {
        let node = node_of(Stage::Draining, AgentState::UpdateStaged);
        let step = step(&node, &pool(), Situation { is_drained: true, ..Situation::default() }).unwrap();
        let patch = patch(&node, &pool(), &step, now());
        let removed = patch["metadata"]["annotations"].get("example.com/volumes");
        assert_eq!((step.to, removed), (Stage::BeforeReboot, Some(&Value::Null)));
        assert_eq!(patch["metadata"]["labels"].get("example.com/volumes"), None);
        let removed = removal(&node, &pool())["metadata"]["annotations"].get("example.com/volumes").cloned();
        assert_eq!(removed, Some(Value::Null));
    }

    /// The host came back with another image, or a user set the stage.
    #[test]
    fn an_image_that_is_not_booted_is_not_recorded_as_deployed() {
        let coordinating = Pool { image: None, ..pool() };
        let images = [keys::DESIRED_IMAGE, keys::BOOTED_DIGEST, keys::STAGED_DIGEST];
        for (agent, booted, of_image, of_host) in [
            (AgentState::UpToDate, "sha256:v2", Some("sha256:v2"), Some("4230.2.1")),
            (AgentState::UpToDate, "sha256:v1", None, Some("4230.2.1")),
            (AgentState::UpdateStaged, "sha256:v1", None, None),
            // A host that updates itself looks for the next update while the hooks run.
            (AgentState::Staging, "sha256:v2", Some("sha256:v2"), Some("4230.2.1")),
        ] {
            let node = with(
                node_of(Stage::BeforeUncordon, agent),
                &[(keys::BOOTED_DIGEST, booted), (keys::BOOTED_VERSION, "4230.2.1")],
            );
            let idle = after(&node, &pool());
            assert_eq!((idle.stage(), deployed(&idle)), (Ok(Stage::Idle), of_image), "{agent:?} {booted}");
            let idle = after(&without(node, &images), &coordinating);
            assert_eq!((idle.stage(), deployed(&idle)), (Ok(Stage::Idle), of_host), "{agent:?}");
        }
    }

    #[test]
    fn the_record_of_a_deployment_stays_with_its_pool() {
        let delayed = Pool { post_complete_delay: Duration::from_hours(1), ..pool() };
        let record = [(keys::LAST_DEPLOYED, "sha256:v1"), (keys::LAST_DEPLOYED_AT, "2026-11-23T11:55:00Z")];
        let own = with(with(node_of(Stage::Idle, AgentState::UpToDate), &record), &[(keys::POOL, "b")]);
        assert!(matches!(availability(&[&own], &delayed, now()), Availability::Delayed(_)));
        for stage in [Stage::Idle, Stage::Draining, Stage::BeforeUncordon] {
            let agent =
                if stage == Stage::Draining { AgentState::UpdateStaged } else { AgentState::UpToDate };
            let moved = with(with(node_of(stage, agent), &record), &[(keys::POOL, "a")]);
            assert_eq!(availability(&[&moved], &delayed, now()), Availability::Open, "{stage}");
            let joined = after(&moved, &pool());
            assert_eq!(joined.stage(), Ok(Stage::Idle));
            assert_eq!((joined.annotation(keys::POOL), deployed(&joined)), (Some("b"), None), "{stage}");
            assert_eq!(joined.annotation(keys::LAST_DEPLOYED_AT), None, "{stage}");
            assert_eq!(step(&joined, &pool(), Situation::default()), None, "{stage}");
        }
        // A reboot that the agent has begun ends as a rollout of the pool before.
        let back = with(node_of(Stage::Rebooting, AgentState::UpToDate), &[(keys::POOL, "a")]);
        let last = after(&back, &pool());
        assert_eq!((last.stage(), last.annotation(keys::POOL)), (Ok(Stage::BeforeUncordon), Some("a")));
    }

    #[test]
    fn the_version_that_a_host_reports_is_recorded_short_and_printable() {
        let version = format!("1\u{1b}[2J{}", "x".repeat(1000));
        let node = with(
            node_of(Stage::BeforeUncordon, AgentState::UpToDate),
            &[(keys::BOOTED_VERSION, version.as_str())],
        );
        let node = without(node, &[keys::DESIRED_IMAGE, keys::BOOTED_DIGEST, keys::STAGED_DIGEST]);
        let idle = after(&node, &Pool { image: None, ..pool() });
        let recorded = deployed(&idle).unwrap();
        assert!(
            recorded.starts_with(r"1\u{1b}[2Jxxx") && recorded.chars().count() == MAX_VERSION,
            "{recorded}"
        );
    }
}
