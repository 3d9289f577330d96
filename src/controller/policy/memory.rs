//! The state of policies between reconciles, beyond their status.

use std::collections::{HashMap, HashSet};

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
#[derive(Clone, Debug)]
pub(super) struct UserIntent {
    uid: Option<String>,
    request: Option<String>,
    policy: PolicyIntent,
    repository: Option<ScannedRepository>,
}

/// A repository that tags were found with.
#[derive(Clone, Debug)]
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
    fn after(mut self, before: Option<Self>) -> Self {
        if let Some(now) = &mut self.repository
            && now.intent.is_none()
        {
            now.intent = before.and_then(|before| before.repository?.intent);
        }
        self
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
    satisfied: Mutex<HashMap<ObjectName, UserIntent>>,
    /// The policies with an intent that could not be announced yet.
    deferred: Mutex<HashSet<ObjectName>>,
}

impl Memory {
    /// Returns the trigger of a run.
    ///
    /// It is the user if the last intent that was satisfied was another one. If none is known, the status
    /// decides, which shows no more than that the object has changed.
    pub(super) fn trigger(&self, name: &ObjectName, intent: &UserIntent, run: &Run) -> Trigger {
        let satisfied = self.satisfied.lock();
        let is_wanted = match satisfied.get(name) {
            Some(before) => run.is_requested() || intent.differs_from(before),
            None => run.is_wanted() || self.deferred.lock().contains(name),
        };
        if is_wanted { Trigger::User } else { Trigger::TagList }
    }

    /// Records that an intent cannot be announced yet, although the status has answered it.
    pub(super) fn defer(&self, name: &ObjectName) {
        self.deferred.lock().insert(name.clone());
    }

    /// Records that an image was selected with an intent.
    pub(super) fn satisfied(&self, name: &ObjectName, intent: UserIntent) {
        self.deferred.lock().remove(name);
        let mut satisfied = self.satisfied.lock();
        let before = satisfied.remove(name);
        satisfied.insert(name.clone(), intent.after(before));
    }

    /// Forgets a deleted policy.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.deferred.lock().remove(name);
        self.satisfied.lock().remove(name);
    }
}
