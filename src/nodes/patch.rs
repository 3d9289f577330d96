//! A step as a merge patch of the node.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::keys;
use super::node::digest_of;
use super::{Action, Node, Pool, Stage, Step};

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
        changes.record_pool(node, pool, step.to);
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

    /// Records the pool of a node until the node gives its slot back.
    fn record_pool(&mut self, node: &Node, pool: &Pool, to: Stage) {
        if !to.holds_slot() && node.annotation(keys::POOL).is_some() {
            self.annotations.insert(keys::POOL.to_owned(), Value::Null);
        } else if to.holds_slot() && !node.holds_slot() {
            self.annotate(keys::POOL, &pool.name);
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
            Action::RecordDeployment => {
                let digest = node.annotation(keys::DESIRED_IMAGE).and_then(digest_of);
                if let Some(deployed) = digest.or_else(|| node.annotation(keys::BOOTED_VERSION)) {
                    self.annotate(keys::LAST_DEPLOYED, deployed);
                    self.annotate(keys::LAST_DEPLOYED_AT, &seconds(now));
                }
            }
        }
    }

    fn clear<'k>(&mut self, node: &Node, hooks: impl IntoIterator<Item = &'k String>) {
        for key in hooks {
            if node.labels.contains_key(key) {
                self.labels.insert(key.clone(), Value::Null);
            }
            if node.annotations.contains_key(key) {
                self.annotations.insert(key.clone(), Value::Null);
            }
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
