//! The state that all reconciles of automations share.

use std::sync::Arc;

use kube::ResourceExt;
use tagboat_api::ImageUpdateAutomation;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::memory::Memory;
use super::options::RunOptions;
use super::queue::{GATHERING, Signal};
use super::run_ids::RunIds;
use super::shadow::Shadows;
use super::under_way::UnderWay;
use crate::cancel::StopToken;
use crate::git::Writer;
use crate::metrics::{Metrics, ObjectLabels};
use crate::objects::ObjectName;
use crate::objects::cluster::{Announcer, ClusterObjects};
use crate::reconcile::automation::proposal::UpdateProposal;

/// The kind in metrics and spans.
pub(super) const KIND: &str = "ImageUpdateAutomation";

/// The state that all reconciles of automations share.
pub(super) struct Shared {
    pub(super) objects: ClusterObjects,
    pub(super) announcer: Announcer,
    pub(super) writer: Writer<UpdateProposal>,
    pub(super) stop: StopToken,
    pub(super) options: RunOptions,
    pub(super) metrics: Metrics,
    pub(super) memory: Memory,
    pub(super) under_way: UnderWay,
    /// The results of a dry run; none if changes are written.
    pub(super) shadows: Option<Shadows>,
    pub(super) run_ids: RunIds,
    /// True while this process is the leader, which writes.
    pub(super) is_leader: watch::Sender<bool>,
    pub(super) signals: UnboundedSender<Signal>,
}

impl Shared {
    /// Makes an automation due.
    pub(super) fn wake(&self, name: ObjectName) {
        self.signal(Signal::Wake(name, GATHERING));
    }

    pub(super) fn signal(&self, signal: Signal) {
        // The receiver is gone at the end of the process.
        let _ = self.signals.send(signal);
    }

    /// Puts an automation of an answer of the API server into the cache. A change that another client made meanwhile takes
    /// effect here, for the watch reports nothing that the cache has.
    pub(super) fn observe(&self, automation: &ImageUpdateAutomation) {
        let mut automation = automation.clone();
        automation.metadata.managed_fields = None;
        if let Some(change) = self.objects.automations.refresh(automation) {
            self.automation_changed(&change);
        }
    }

    /// Forgets an automation that was deleted while it was reconciled, or is another controller's by now: no further event
    /// will arrive for it.
    pub(super) fn forget_if_gone(&self, name: &ObjectName) {
        if self.objects.automations.get(name).is_none() {
            self.forget(name);
        }
    }

    /// Forgets the unlocked key that an automation signed with, unless it or another one still names its Secret.
    pub(super) fn forget_unused_key(&self, old: &ImageUpdateAutomation, new: Option<&ImageUpdateAutomation>) {
        if let Some(secret) =
            unused_secret(old, new, |namespace| self.objects.automations.in_namespace(namespace))
        {
            self.options.keyring.forget(&secret.to_string());
        }
    }

    /// Forgets an automation that was deleted.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.memory.forget(name);
        self.shadows.iter().for_each(|shadows| shadows.forget(name));
        self.metrics.forget(&labels(name));
    }
}

/// Returns the labels of an automation's metrics.
pub(super) fn labels(name: &ObjectName) -> ObjectLabels {
    let ObjectName { namespace, name } = name.clone();
    ObjectLabels { kind: KIND, name, namespace }
}

/// Returns the Secret that an automation signed with, if neither it nor another one of its namespace names it any more.
fn unused_secret(
    old: &ImageUpdateAutomation,
    new: Option<&ImageUpdateAutomation>,
    all: impl FnOnce(&str) -> Vec<Arc<ImageUpdateAutomation>>,
) -> Option<ObjectName> {
    let secret = signing_secret(old)?;
    let names_it = |automation: &ImageUpdateAutomation| signing_secret(automation).as_ref() == Some(&secret);
    // Most changes leave it as it is, and need no look at the others.
    let is_used = new.is_some_and(names_it) || all(&secret.namespace).iter().any(|other| names_it(other));
    (!is_used).then_some(secret)
}

/// Returns the Secret with the key that an automation signs with.
fn signing_secret(automation: &ImageUpdateAutomation) -> Option<ObjectName> {
    let key = automation.spec.git.as_ref()?.commit.signing_key.as_ref()?;
    let namespace = automation.namespace().unwrap_or_default();
    Some(ObjectName { namespace, name: key.secret_ref.name.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn signing(name: &str, secret: Option<&str>) -> ImageUpdateAutomation {
        let author = json!({"name": "bot", "email": "bot@example.com"});
        let mut commit = json!({"author": author});
        if let Some(secret) = secret {
            commit["signingKey"] = json!({"secretRef": {"name": secret}});
        }
        serde_json::from_value(json!({
            "metadata": {"namespace": "n", "name": name},
            "spec": {
                "interval": "1m",
                "sourceRef": {"kind": "GitRepository", "name": "r"},
                "git": {"commit": commit},
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_signing_key_is_forgotten_with_the_last_automation_that_names_its_secret() {
        let old = signing("a", Some("key"));
        for (new, others, expected) in [
            (None, &[][..], true),
            (Some(signing("a", None)), &[], true),
            (Some(signing("a", Some("other"))), &[signing("b", Some("other"))], true),
            (Some(signing("a", Some("key"))), &[], false),
            (None, &[signing("b", Some("key"))], false),
        ] {
            let all = |_: &str| others.iter().cloned().map(Arc::new).collect();
            let found = unused_secret(&old, new.as_ref(), all).map(|secret| secret.to_string());
            assert_eq!(found, expected.then(|| "n/key".to_owned()), "{new:?} {others:?}");
        }
        assert_eq!(unused_secret(&signing("a", None), None, |_| Vec::new()), None);
    }
}
