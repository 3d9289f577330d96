//! The state of policies between reconciles, beyond their status.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use kube::ResourceExt;
use parking_lot::Mutex;
use tagboat_api::{ImagePolicy, ImageRepository};

use crate::controller::engine::predicates::request;
use crate::objects::ObjectName;
use crate::policy::downgrade::Trigger;
use crate::policy::{PolicyIntent, RepositoryIntent};
use crate::reconcile::policy::run::Run;

/// The user's inputs of a reconcile.
///
/// A change of them, other than of tags, lets a downgrade apply at once. Those of the repository are the ones
/// that its tags were found with: a changed spec counts once it was scanned with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UserIntent {
    uid: Option<String>,
    request: Option<String>,
    policy: PolicyIntent,
    repository: Option<ScannedRepository>,
}

/// A repository that tags were found with.
#[derive(Clone, Debug, PartialEq)]
struct ScannedRepository {
    uid: Option<String>,
    /// The user's inputs; `None` while it was not scanned with them.
    intent: Option<RepositoryIntent>,
}

impl UserIntent {
    pub(super) fn of(policy: &ImagePolicy, repository: Option<&ImageRepository>) -> Self {
        let scanned = |repository: &ImageRepository| {
            let observed = repository.status.as_ref().and_then(|status| status.observed_generation);
            let is_observed = observed == repository.metadata.generation;
            let intent = is_observed.then(|| RepositoryIntent::of(repository));
            ScannedRepository { uid: repository.uid(), intent }
        };
        Self {
            uid: policy.uid(),
            request: request(policy).cloned(),
            policy: PolicyIntent::of(policy),
            repository: repository.map(scanned),
        }
    }

    /// Returns whether a user wants something else than before.
    fn differs_from(&self, before: &Self) -> bool {
        let repository = match (&self.repository, &before.repository) {
            (Some(now), Some(before)) => now.differs_from(before),
            (now, before) => now.is_some() != before.is_some(),
        };
        repository
            || (&self.uid, &self.request, &self.policy) != (&before.uid, &before.request, &before.policy)
    }

    /// Takes the repository's inputs from `before`, unless it was scanned with the present ones.
    fn after(mut self, before: Option<&Self>) -> Self {
        if let Some(now) = &mut self.repository
            && now.intent.is_none()
        {
            now.intent = before.and_then(|before| before.repository.as_ref()?.intent.clone());
        }
        self
    }
}

/// The user's inputs of a policy and of the other members of its release group.
///
/// A change of one member lets a downgrade of all apply at once.
#[derive(Clone, Debug)]
pub(super) struct GroupIntent {
    pub(super) own: UserIntent,
    pub(super) members: BTreeMap<ObjectName, UserIntent>,
}

/// The inputs with which an image was selected.
#[derive(Clone, Debug)]
struct Satisfied {
    own: Arc<UserIntent>,
    /// Those of the other members.
    ///
    /// Each is stored once for the whole group while it is the same.
    members: BTreeMap<ObjectName, Arc<UserIntent>>,
}

impl Satisfied {
    /// Returns whether a user wants something else now.
    fn differs_from(&self, now: &GroupIntent) -> bool {
        let is_other = |(name, intent): (&ObjectName, &UserIntent)| {
            self.members.get(name).is_none_or(|before| intent.differs_from(before))
        };
        now.own.differs_from(&self.own)
            || now.members.len() != self.members.len()
            || now.members.iter().any(is_other)
    }
}

impl ScannedRepository {
    fn differs_from(&self, before: &Self) -> bool {
        let is_other = match (&self.intent, &before.intent) {
            (Some(now), Some(before)) => now != before,
            _ => false,
        };
        is_other || self.uid != before.uid
    }
}

/// The state of policies between reconciles.
///
/// If it is lost with the process, only the objects themselves show an intent.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    satisfied: Mutex<HashMap<ObjectName, Satisfied>>,
    /// The policies with an intent that could not be announced yet.
    deferred: Mutex<HashSet<ObjectName>>,
}

impl Memory {
    /// Returns the trigger of a run.
    ///
    /// It is the user if the last intent that was satisfied was another one. If none is known, the status
    /// decides, which shows no more than that the object has changed.
    ///
    /// The `runs` are those of the policy and of the other members of its release group.
    pub(super) fn trigger<'r>(
        &self,
        name: &ObjectName,
        intent: &GroupIntent,
        mut runs: impl Iterator<Item = &'r Run>,
    ) -> Trigger {
        let satisfied = self.satisfied.lock();
        let is_wanted = match satisfied.get(name) {
            Some(before) => runs.any(Run::is_requested) || before.differs_from(intent),
            None => runs.any(Run::is_wanted) || self.deferred.lock().contains(name),
        };
        if is_wanted { Trigger::User } else { Trigger::TagList }
    }

    /// Records that an intent cannot be announced yet, although the status has answered it.
    pub(super) fn defer(&self, name: &ObjectName) {
        self.deferred.lock().insert(name.clone());
    }

    /// Records an intent of a user for the unknown members of a release group.
    ///
    /// After a restart, the status of the member with the intent may answer it before they are reconciled.
    pub(super) fn share<'n>(&self, members: impl Iterator<Item = &'n ObjectName>) {
        let satisfied = self.satisfied.lock();
        let unknown = members.filter(|name| !satisfied.contains_key(*name)).cloned();
        self.deferred.lock().extend(unknown);
    }

    /// Records that an image was selected with an intent.
    pub(super) fn satisfied(&self, name: &ObjectName, intent: GroupIntent) {
        self.deferred.lock().remove(name);
        let mut satisfied = self.satisfied.lock();
        let before = satisfied.remove(name);
        let own = Arc::new(intent.own.after(before.as_ref().map(|before| before.own.as_ref())));
        let members = intent.members.into_iter().map(|(member, intent)| {
            let before = before.as_ref().and_then(|before| before.members.get(&member));
            let intent = intent.after(before.map(Arc::as_ref));
            let known = satisfied.get(&member).map(|known| &known.own).filter(|known| ***known == intent);
            let intent = known.map_or_else(|| Arc::new(intent), Arc::clone);
            (member, intent)
        });
        let members = members.collect();
        satisfied.insert(name.clone(), Satisfied { own, members });
    }

    /// Forgets a deleted policy.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.deferred.lock().remove(name);
        self.satisfied.lock().remove(name);
    }
}
