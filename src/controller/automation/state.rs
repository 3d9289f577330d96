//! The state that all reconciles of automations share, and the effects of changes on it.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use tagboat_api::settings::PolicySettings;
use tagboat_api::{GitRepository, ImagePolicy, ImageUpdateAutomation};

use super::compare::Comparisons;
use super::memory::Memory;
use super::namespaces::{Namespaces, sets};
use super::options::RunOptions;
use super::places::Places;
use super::predicates::{is_due_for_policy, is_due_for_source, may_have_own_branches};
use super::waiting::Waiting;
use crate::cancel::StopToken;
use crate::controller::engine::kind::{Kind, Reconciler};
use crate::controller::engine::queue::DEBOUNCE;
use crate::controller::rollout::Rollouts;
use crate::git::Writer;
use crate::objects::ObjectName;
use crate::objects::cluster::{Change, ClusterObjects, NamespaceObject};
use crate::reconcile::automation::proposal::UpdateProposal;
use crate::reconcile::automation::pull_requests::PullRequestQueue;
use crate::reconcile::automation::waiting::{FREEZE, FREEZE_ALL, WriteRules};

/// The time for which the images of policies of a group are collected.
const GROUP_DEBOUNCE: Duration = Duration::from_millis(400);

/// The state that all reconciles of automations share.
pub(super) struct Automations {
    pub(super) kind: Arc<Kind<ImageUpdateAutomation>>,
    pub(super) namespaces: Namespaces,
    pub(super) writer: Writer<UpdateProposal>,
    /// Stops transactions.
    pub(super) stop: StopToken,
    pub(super) options: RunOptions,
    pub(super) memory: Memory,
    /// The rules by which automations may write.
    pub(super) rules: WriteRules,
    /// The automations that wait.
    pub(super) waiting: Waiting,
    /// The work on pull requests, for which no reconcile waits.
    pub(super) pull_requests: PullRequestQueue,
    /// The results of compare mode; none if changes are written.
    pub(super) comparisons: Option<Comparisons>,
    /// The places of markers; none if rollouts are not reported.
    pub(super) places: Option<Places>,
    /// The reports of rollouts, which depend on policies and automations.
    pub(super) rollouts: Option<Arc<Rollouts>>,
}

impl Automations {
    pub(super) fn objects(&self) -> &ClusterObjects {
        &self.kind.context.objects
    }

    /// Makes all automations due.
    pub(super) fn enqueue_all(&self) {
        for automation in self.kind.cache.all() {
            self.kind.enqueue(ObjectName::of(automation.as_ref()));
        }
    }

    /// Returns true if places are kept, and those of an automation are unknown.
    pub(super) fn needs_scan(&self, name: &ObjectName) -> bool {
        self.places.as_ref().is_some_and(|places| places.is_on() && !places.is_known(name))
    }

    /// Handles a change of a policy.
    pub(super) fn policy_changed(&self, change: &Change<ImagePolicy>) {
        self.rollouts.iter().for_each(|rollouts| rollouts.policy_changed(change));
        // The policies of a group get their images at the same time, and these belong in one commit.
        let is_grouped = change.new.as_ref().is_some_and(|policy| {
            let annotations = policy.annotations();
            PolicySettings::has_group(annotations) || PolicySettings::release_group(annotations).is_some()
        });
        let wait = if is_grouped { GROUP_DEBOUNCE } else { DEBOUNCE };
        for automation in self.kind.cache.in_namespace(&change.name.namespace) {
            if is_due_for_policy(&automation, change.old.as_deref(), change.new.as_deref()) {
                self.kind.enqueue_after(ObjectName::of(automation.as_ref()), wait);
            }
        }
    }

    /// Handles a change of a git repository.
    pub(super) fn source_changed(&self, change: &Change<GitRepository>) {
        if !is_due_for_source(change.old.as_deref(), change.new.as_deref()) {
            return;
        }
        for automation in self.kind.cache.referrers(&change.name) {
            self.kind.enqueue(ObjectName::of(automation.as_ref()));
        }
    }

    /// Handles a change of our annotations of a Namespace.
    ///
    /// It makes the automations due that it concerns. If it freezes them, it cancels their reconciles in flight.
    pub(super) fn namespace_changed(&self, change: &Change<NamespaceObject>) {
        let namespace = &change.name.name;
        let is_own = *namespace == self.namespaces.own();
        let freezes_all = is_own && sets(change, FREEZE_ALL);
        // On the controller's Namespace, a misspelt annotation may be the freeze of all automations.
        let concerned = if is_own { self.kind.cache.all() } else { self.kind.cache.in_namespace(namespace) };
        for automation in concerned {
            let name = ObjectName::of(automation.as_ref());
            if freezes_all || (name.namespace == *namespace && sets(change, FREEZE)) {
                self.kind.cancel(&name);
            }
            self.kind.enqueue(name);
        }
    }

    /// Handles a change of an automation for those that may wait for it.
    ///
    /// Without it, or with its other settings, a branch that they share may be written now.
    fn sibling_changed(&self, change: &Change<ImageUpdateAutomation>) {
        let has_branches =
            |automation: &ImageUpdateAutomation| may_have_own_branches(automation, self.options.references);
        let Some(old) = change.old.as_deref() else { return };
        let is_same = change.new.as_deref().is_some_and(|new| has_same_settings(old, new));
        if is_same || !has_branches(old) {
            return;
        }
        for other in self.kind.cache.referrers(&old.git_repository()) {
            let name = ObjectName::of(other.as_ref());
            let is_sibling = name != change.name && name.namespace == change.name.namespace;
            if is_sibling && self.waiting.is_waiting(&name) && has_branches(&other) {
                self.kind.enqueue(name);
            }
        }
    }

    /// Forgets the unlocked key that an automation signed with, if it is unused.
    ///
    /// It is used as long as this or another automation names its Secret.
    pub(super) fn forget_unused_key(&self, old: &ImageUpdateAutomation, new: Option<&ImageUpdateAutomation>) {
        if let Some(secret) = unused_secret(old, new, |namespace| self.kind.cache.in_namespace(namespace)) {
            self.options.keyring.forget(&secret.to_string());
        }
    }
}

impl Reconciler for Automations {
    type Object = ImageUpdateAutomation;

    fn kind(&self) -> &Kind<ImageUpdateAutomation> {
        &self.kind
    }

    fn forget(&self, name: &ObjectName) {
        self.memory.forget(name);
        self.pull_requests.forget(name);
        self.waiting.forget(name);
        self.kind.context.metrics.forget_write_state(name);
        self.comparisons.iter().for_each(|comparisons| comparisons.forget(name));
        self.places.iter().for_each(|places| places.forget(name));
    }

    fn related_changes(&self, change: &Change<ImageUpdateAutomation>) {
        if let Some(old) = &change.old {
            self.forget_unused_key(old, change.new.as_deref());
        }
        self.sibling_changed(change);
        self.rollouts.iter().for_each(|rollouts| rollouts.automation_changed(change));
    }
}

/// Returns true if two versions of an automation differ at most in the status.
fn has_same_settings(old: &ImageUpdateAutomation, new: &ImageUpdateAutomation) -> bool {
    // A deletion that begins changes the generation as well.
    old.metadata.generation == new.metadata.generation && old.annotations() == new.annotations()
}

/// Returns the Secret that an automation signed with, if it is unused.
///
/// It is unused if neither this automation nor another one of its namespace names it any more.
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
