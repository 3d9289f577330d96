//! The runs that are under way, so that one can be given up that nobody wants any more.

use std::collections::HashMap;
use std::sync::Arc;

use kube::ResourceExt;
use parking_lot::Mutex;
use tagboat_api::ImageUpdateAutomation;

use crate::cancel::Cancellation;
use crate::objects::ObjectName;
use crate::objects::cluster::Change;

/// The runs that are under way, at most one an automation. Clones are one and the same.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay(Arc<Mutex<HashMap<ObjectName, Cancellation>>>);

/// A run that is under way.
#[derive(Debug)]
pub(super) struct Entry {
    runs: UnderWay,
    name: ObjectName,
    pub(super) cancellation: Cancellation,
}

impl UnderWay {
    /// Takes note of a run. Whatever becomes known of its automation from now on counts.
    pub(super) fn begin(&self, name: &ObjectName) -> Entry {
        let cancellation = Cancellation::default();
        self.0.lock().insert(name.clone(), cancellation.clone());
        Entry { runs: self.clone(), name: name.clone(), cancellation }
    }

    /// Has a run given up that nobody wants any more, now that its automation has changed.
    pub(super) fn observe(&self, change: &Change<ImageUpdateAutomation>) {
        if is_unwanted(change.old.as_deref(), change.new.as_deref())
            && let Some(cancellation) = self.0.lock().get(&change.name)
        {
            cancellation.cancel();
        }
    }
}

impl Entry {
    /// Takes note of the end of the run, before anybody may begin another one.
    pub(super) fn end(&self) {
        self.runs.0.lock().remove(&self.name);
    }
}

/// Whether nobody wants what began before a change: the automation is to go or to rest, has gone or is another's to
/// carry out, or is another of the same name.
fn is_unwanted(old: Option<&ImageUpdateAutomation>, new: Option<&ImageUpdateAutomation>) -> bool {
    new.is_none_or(|new| {
        new.metadata.deletion_timestamp.is_some()
            || new.spec.suspend
            || old.is_none_or(|old| old.uid() != new.uid())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn automation(metadata: &Value, suspend: bool) -> ImageUpdateAutomation {
        let mut whole = json!({
            "metadata": {"namespace": "n", "name": "a", "uid": "1", "generation": 1},
            "spec": {"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "r"}, "suspend": suspend},
        });
        whole["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_run_is_unwanted_when_its_automation_goes_or_rests() {
        let one = automation(&json!({}), false);
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        for (new, expected) in [
            (Some(automation(&json!({"generation": 2, "labels": {"a": "b"}}), false)), false),
            (Some(automation(&going, false)), true),
            (Some(automation(&json!({}), true)), true),
            (Some(automation(&json!({"uid": "2"}), false)), true),
            (None, true),
        ] {
            assert_eq!(is_unwanted(Some(&one), new.as_ref()), expected, "{new:?}");
        }
        assert!(is_unwanted(None, Some(&one)));
    }

    #[test]
    fn only_the_run_of_that_automation_is_given_up() {
        let runs = UnderWay::default();
        let name = |name: &str| ObjectName { namespace: "n".to_owned(), name: name.to_owned() };
        let (one, other) = (runs.begin(&name("a")), runs.begin(&name("b")));
        let gone = Change { name: name("a"), old: None, new: None };
        runs.observe(&gone);
        assert!(one.cancellation.is_cancelled() && !other.cancellation.is_cancelled());
        one.end();
        runs.observe(&gone);
        assert!(!runs.begin(&name("a")).cancellation.is_cancelled());
    }
}
