//! Reconciles the automations of one namespace and one repository together.
//!
//! One listing of the remote serves them all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::ResourceExt;
use tokio::task::JoinSet;

use super::predicates::may_have_own_branches;
use super::reconcile::Reconcile;
use super::state::Automations;
use crate::controller::engine::queue::{DueNow, Queue};
use crate::objects::ObjectName;
use crate::objects::cluster::ClusterObjects;
use crate::reconcile::automation::batch::{self, Job};
use crate::reconcile::automation::batch_logins::BatchLogins;
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::proposal::UpdateProposal;
use crate::reconcile::automation::siblings::Siblings;
use crate::reconcile::automation::transaction::Prepared;
use crate::reconcile::conditions;

/// The automations that are due and have one namespace and one repository.
#[derive(Default)]
struct Group {
    names: Vec<ObjectName>,
    /// The longest of the intervals that have ended.
    interval: Option<Duration>,
}

/// Takes the automations that are due, and starts their reconciles.
pub(super) fn start_due(automations: &Arc<Automations>, queue: &mut Queue, reconciles: &mut JoinSet<()>) {
    let now = Instant::now();
    let mut groups: BTreeMap<(String, ObjectName), Group> = BTreeMap::new();
    for DueNow { name, interval } in queue.take_due(now) {
        // A deleted automation has no repository, and no batch.
        let known = automations.kind.cache.get(&name);
        let source = known.map_or_else(|| name.clone(), |automation| automation.git_repository());
        let group = groups.entry((name.namespace.clone(), source)).or_default();
        group.interval = group.interval.max(interval);
        group.names.push(name);
    }
    for ((namespace, source), Group { mut names, interval }) in groups {
        let mut all = automations.kind.cache.referrers(&source);
        all.retain(|automation| automation.namespace().as_ref() == Some(&namespace));
        let others: Vec<ObjectName> = all.iter().map(|one| ObjectName::of(one.as_ref())).collect();
        let (sharing, others): (Vec<ObjectName>, Vec<ObjectName>) = {
            let may_share = |name: &ObjectName| {
                let automation = automations.kind.cache.get(name);
                automation.is_some_and(|known| may_have_own_branches(&known, automations.options.references))
            };
            // Automations with branches of their own may share one, and it has a commit of each.
            if names.iter().any(may_share) {
                others.into_iter().partition(may_share)
            } else {
                all.clear();
                (Vec::new(), others)
            }
        };
        names.extend(queue.take_batched(now, interval, others).into_iter().map(|due| due.name));
        names.extend(queue.take_waiting(now, sharing).into_iter().map(|due| due.name));
        let tried: BTreeSet<&ObjectName> = names.iter().collect();
        let siblings = Siblings::new(all, |automation| {
            // A stalled one has no run before it changes.
            let status = automation.status.as_ref();
            tried.contains(&ObjectName::of(automation))
                || status.is_some_and(|status| conditions::is_stalled(&status.conditions))
        });
        reconciles.spawn(reconcile(automations.clone(), names, siblings));
    }
}

/// Reconciles automations of one repository.
async fn reconcile(automations: Arc<Automations>, names: Vec<ObjectName>, siblings: Siblings) {
    let objects = automations.objects().with_secret_cache();
    let logins = BatchLogins::default();
    let batch_size = names.len();
    let member = |name| {
        let (automations, objects, logins) = (Arc::clone(&automations), objects.clone(), logins.clone());
        let siblings = siblings.clone();
        Member { automations, objects, logins, siblings, name, batch_size, reconcile: None }
    };
    let mut members: Vec<Member> = names.into_iter().map(member).collect();
    batch::reconcile(members.iter_mut().collect(), &automations.writer, &automations.stop).await;
}

/// An automation of a batch.
///
/// Its reconcile begins as the first step of its job, so that none waits for another to begin.
struct Member {
    automations: Arc<Automations>,
    objects: ClusterObjects,
    logins: BatchLogins,
    siblings: Siblings,
    name: ObjectName,
    batch_size: usize,
    /// The reconcile, unless it has not begun or has ended.
    reconcile: Option<Reconcile>,
}

impl Job for Member {
    async fn prepare(&mut self, is_first: bool) -> Result<Prepared, Conclusion> {
        if is_first {
            let (objects, logins) = (&self.objects, &self.logins);
            self.reconcile = Reconcile::begin(&self.automations, objects, logins, self.name.clone()).await;
        }
        match &self.reconcile {
            Some(reconcile) => reconcile.prepare(self.batch_size, &self.siblings).await,
            None => Err(Conclusion::cancelled()),
        }
    }

    async fn conclude(&mut self, conclusion: Conclusion, proposal: Option<Box<UpdateProposal>>) {
        // Its guard is dropped here: the members of a batch need not end together.
        if let Some(reconcile) = self.reconcile.take() {
            reconcile.conclude(conclusion, proposal).await;
        }
    }
}
