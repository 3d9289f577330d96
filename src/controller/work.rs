//! What all passes share, and carrying out those that go together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::ResourceExt;
use tagboat_api::ImageUpdateAutomation;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::RunOptions;
use super::memory::Memory;
use super::pass;
use super::queue::GATHERING;
use super::shadow::Shadows;
use super::under_way::UnderWay;
use super::watches::Signal;
use crate::git::{StopSignal, Writer};
use crate::metrics::Metrics;
use crate::objects::ObjectName;
use crate::objects::cluster::{Announcer, ClusterObjects};
use crate::reconcile::automation::batch::{self, Job};
use crate::reconcile::automation::batch_logins::BatchLogins;
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::proposal::UpdateProposal;
use crate::reconcile::automation::transaction::Prepared;

/// What all passes share.
pub(super) struct Shared {
    pub(super) objects: ClusterObjects,
    pub(super) announcer: Announcer,
    pub(super) writer: Writer<UpdateProposal>,
    pub(super) stop: StopSignal,
    pub(super) options: RunOptions,
    pub(super) metrics: Metrics,
    pub(super) memory: Memory,
    pub(super) under_way: UnderWay,
    /// What is remembered where nothing is written.
    pub(super) shadows: Option<Shadows>,
    pub(super) run_ids: RunIds,
    /// Whether this process is the one that writes.
    pub(super) is_leader: watch::Sender<bool>,
    pub(super) signals: UnboundedSender<Signal>,
}

/// Gives each run a name of its own.
#[derive(Debug)]
pub(super) struct RunIds {
    /// What tells the runs of this process from those of others: 32 hexadecimal digits with dashes, as a UUID has.
    process: String,
    count: AtomicU64,
}

impl RunIds {
    /// Names that are this process's own if `process` is random.
    pub(super) fn new(process: String) -> Self {
        Self { process, count: AtomicU64::new(0) }
    }

    /// The next name: that of the process, with a number in the place of its end.
    pub(super) fn next(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let end = self.process.len().saturating_sub(12);
        format!("{}{count:012x}", self.process.get(..end).unwrap_or_default())
    }
}

impl Shared {
    /// Makes an automation due.
    pub(super) fn wake(&self, name: ObjectName) {
        self.signal(Signal::Wake(name, GATHERING));
    }

    pub(super) fn signal(&self, signal: Signal) {
        // Nobody listens at the end of the process.
        let _ = self.signals.send(signal);
    }

    /// Takes note of an automation as an answer of the API server has it. What somebody else changed in it meanwhile
    /// counts, for the watch tells nothing of what is known.
    pub(super) fn observe(&self, automation: &ImageUpdateAutomation) {
        let mut automation = automation.clone();
        automation.metadata.managed_fields = None;
        if let Some(change) = self.objects.automations.refresh(automation) {
            self.automation_changed(&change);
        }
    }

    /// Forgets an automation that has gone while it was reconciled, or is another controller's by now: nothing will be
    /// told of it again.
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

    /// Forgets an automation that has gone.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.memory.forget(name);
        self.shadows.iter().for_each(|shadows| shadows.forget(name));
        self.metrics.forget(&pass::labels(name));
    }
}

/// The Secret that an automation signed with, if neither it nor another one of its namespace names it any more.
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

/// The Secret with the key that an automation signs with.
fn signing_secret(automation: &ImageUpdateAutomation) -> Option<ObjectName> {
    let key = automation.spec.git.as_ref()?.commit.signing_key.as_ref()?;
    let namespace = automation.namespace().unwrap_or_default();
    Some(ObjectName { namespace, name: key.secret_ref.name.clone() })
}

/// An automation that is due. Its run begins as the first step of its job, so that none waits for the beginning of another.
struct Due {
    shared: Arc<Shared>,
    objects: ClusterObjects,
    logins: BatchLogins,
    name: ObjectName,
    /// The run; none if it has not begun, or there is to be none.
    pass: Option<pass::Pass>,
}

impl Job for Due {
    async fn prepare(&mut self, is_first: bool) -> Result<Prepared, Conclusion> {
        if is_first {
            self.pass = pass::begin(&self.shared, &self.objects, &self.logins, self.name.clone()).await;
        }
        match &mut self.pass {
            Some(pass) => pass.prepare(is_first).await,
            None => Err(Conclusion::cancelled()),
        }
    }

    async fn conclude(&mut self, conclusion: Conclusion, proposal: Option<UpdateProposal>) {
        if let Some(pass) = &mut self.pass {
            pass.conclude(conclusion, proposal).await;
        }
    }
}

/// Carries out automations that go to one repository.
pub(super) async fn carry_out(shared: Arc<Shared>, names: Vec<ObjectName>) {
    let objects = shared.objects.for_a_batch();
    let logins = BatchLogins::default();
    let due = |name| {
        let (shared, objects, logins) = (Arc::clone(&shared), objects.clone(), logins.clone());
        Due { shared, objects, logins, name, pass: None }
    };
    let mut jobs: Vec<Due> = names.into_iter().map(due).collect();
    batch::carry_out(jobs.iter_mut().collect(), &shared.writer, &shared.stop).await;
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

    #[test]
    fn each_run_has_a_name_of_its_own() {
        let ids = RunIds::new("0b5f60e2-93d5-4d7c-8a52-3f1de25a70cc".to_owned());
        assert_eq!(ids.next(), "0b5f60e2-93d5-4d7c-8a52-000000000000");
        assert_eq!(ids.next(), "0b5f60e2-93d5-4d7c-8a52-000000000001");
    }
}
