//! What is remembered of policies from one run to the next, beyond their status.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use kube::ResourceExt;
use parking_lot::Mutex;
use tagboat_api::settings::PREFIX;
use tagboat_api::{ImagePolicy, ImageRepository, RECONCILE_REQUEST_ANNOTATION};

use super::shared::Kind;
use crate::objects::ObjectName;
use crate::policy::downgrade::Trigger;
use crate::policy::{PolicyIntent, RepositoryIntent};
use crate::reconcile::lookup::Staleness;
use crate::reconcile::policy::run::Run;
use crate::reconcile::repository::report::Conclusion;

/// How long nothing is recorded of an object after word that nothing has changed, unless something has. In the long run
/// Flux's controllers record as much: their client lets no more through.
const UNCHANGED: Duration = Duration::from_secs(300);

/// What persons asked for when a policy was carried out.
///
/// Of the repository that is what its tags were found with: a changed spec counts once it has been scanned with.
#[derive(Clone, Debug)]
pub(super) struct UserIntent {
    uid: Option<String>,
    request: Option<String>,
    policy: PolicyIntent,
    repository: Option<Scanned>,
}

/// A repository that tags were found with.
#[derive(Clone, Debug)]
struct Scanned {
    uid: Option<String>,
    /// What was wanted of it; `None` while it has not been scanned with that.
    intent: Option<RepositoryIntent>,
}

impl UserIntent {
    pub(super) fn of(policy: &ImagePolicy, repository: Option<&ImageRepository>) -> Self {
        let scanned = |repository: &ImageRepository| {
            let observed = repository.status.as_ref().and_then(|status| status.observed_generation);
            let is_observed = observed == repository.metadata.generation;
            Scanned { uid: repository.uid(), intent: is_observed.then(|| RepositoryIntent::of(repository)) }
        };
        Self {
            uid: policy.uid(),
            request: policy.annotations().get(RECONCILE_REQUEST_ANNOTATION).cloned(),
            policy: PolicyIntent::of(policy),
            repository: repository.map(scanned),
        }
    }

    /// Whether a person wants something else than before.
    fn differ_from(&self, before: &Self) -> bool {
        let repository = match (&self.repository, &before.repository) {
            (Some(now), Some(before)) => now.differs_from(before),
            (now, before) => now.is_some() != before.is_some(),
        };
        repository
            || (&self.uid, &self.request, &self.policy) != (&before.uid, &before.request, &before.policy)
    }

    /// The same with what was known before of a repository that is yet to be scanned with what is wanted now.
    fn after(mut self, before: Option<Self>) -> Self {
        if let Some(now) = &mut self.repository
            && now.intent.is_none()
        {
            now.intent = before.and_then(|before| before.repository?.intent);
        }
        self
    }
}

impl Scanned {
    fn differs_from(&self, before: &Self) -> bool {
        let is_other = match (&self.intent, &before.intent) {
            (Some(now), Some(before)) => now != before,
            _ => false,
        };
        is_other || self.uid != before.uid
    }
}

/// The annotations of an object that are settings of ours.
pub(super) fn settings(object: &impl ResourceExt) -> BTreeMap<String, String> {
    let own = object.annotations().iter().filter(|(name, _)| name.starts_with(PREFIX));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What is remembered. It is lost with the process; then only what the objects themselves say counts as a wish.
#[derive(Debug, Default)]
pub(super) struct Memory {
    policies: Mutex<HashMap<ObjectName, UserIntent>>,
    /// The policies of which a person wants what could not be announced yet.
    unmet: Mutex<HashSet<ObjectName>>,
    /// The repositories that this process has carried out.
    seen: Mutex<HashSet<ObjectName>>,
    /// Why the registries of repositories cannot be asked.
    troubles: Mutex<HashMap<ObjectName, Staleness>>,
    /// The number of names that are no tags in the lists of repositories, if there are any.
    left_out: Mutex<HashMap<ObjectName, usize>>,
    /// When it was last recorded of an object that nothing has changed.
    unchanged: Mutex<HashMap<(Kind, ObjectName), Instant>>,
}

impl Memory {
    /// Who is behind a run: a person, if other intent was met last. Where nothing is known of that, the status decides,
    /// which knows no more than that the object has changed.
    pub(super) fn trigger(&self, name: &ObjectName, intent: &UserIntent, run: &Run) -> Trigger {
        let entries = self.policies.lock();
        let is_wanted = match entries.get(name) {
            Some(before) => run.is_requested() || intent.differ_from(before),
            None => run.is_wanted() || self.unmet.lock().contains(name),
        };
        if is_wanted { Trigger::User } else { Trigger::TagList }
    }

    /// Takes note that what a person wants cannot be announced yet, though the status has answered to it.
    pub(super) fn put_off(&self, name: &ObjectName) {
        self.unmet.lock().insert(name.clone());
    }

    /// Takes note that an image was chosen.
    pub(super) fn met(&self, name: &ObjectName, intent: UserIntent) {
        self.unmet.lock().remove(name);
        let mut entries = self.policies.lock();
        let before = entries.remove(name);
        entries.insert(name.clone(), intent.after(before));
    }

    /// Takes note that a repository has been carried out, and says whether that is new.
    pub(super) fn see(&self, repository: &ObjectName) -> bool {
        self.seen.lock().insert(repository.clone())
    }

    /// Whether this process has carried out a repository. Before that, there is nothing to say about its tags: they may
    /// have been lost with the process before.
    pub(super) fn has_seen(&self, repository: &ObjectName) -> bool {
        self.seen.lock().contains(repository)
    }

    /// Takes note of how a scan ended.
    pub(super) fn scanned(&self, repository: &ImageRepository, conclusion: &Conclusion) {
        let mut troubles = self.troubles.lock();
        let trouble = match conclusion {
            Conclusion::Stopped(stop) => stop.staleness(&repository.spec.image),
            Conclusion::Scanned(..) | Conclusion::Rested(_) => None,
        };
        match trouble {
            Some(trouble) => troubles.insert(ObjectName::of(repository), trouble),
            None => troubles.remove(&ObjectName::of(repository)),
        };
    }

    /// The number of names that are no tags in the list of a repository, if there are any and that is news.
    pub(super) fn newly_left_out(&self, repository: &ObjectName, conclusion: &Conclusion) -> Option<usize> {
        let Conclusion::Scanned(_, Some(number)) = conclusion else { return None };
        let mut left_out = self.left_out.lock();
        let before = match number {
            0 => left_out.remove(repository),
            number => left_out.insert(repository.clone(), *number),
        };
        Some(*number).filter(|number| *number > 0 && before != Some(*number))
    }

    /// Why the registry of a repository cannot be asked, if the last scan failed at that.
    pub(super) fn scan_trouble(&self, repository: &ObjectName) -> Option<Staleness> {
        self.troubles.lock().get(repository).cloned()
    }

    /// Whether it is to be recorded that nothing has changed in an object; if so, it counts as done.
    pub(super) fn is_worth_recording(&self, kind: Kind, name: &ObjectName, now: Instant) -> bool {
        let mut unchanged = self.unchanged.lock();
        let key = (kind, name.clone());
        if unchanged.get(&key).is_some_and(|last| now.duration_since(*last) < UNCHANGED) {
            return false;
        }
        unchanged.insert(key, now);
        true
    }

    fn forget_records(&self, kind: Kind, name: &ObjectName) {
        self.unchanged.lock().remove(&(kind, name.clone()));
    }

    /// Forgets a repository.
    pub(super) fn forget_repository(&self, name: &ObjectName) {
        self.forget_records(Kind::Repository, name);
        self.seen.lock().remove(name);
        self.troubles.lock().remove(name);
        self.left_out.lock().remove(name);
    }

    /// Forgets a policy.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.forget_records(Kind::Policy, name);
        self.unmet.lock().remove(name);
        self.policies.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use tagboat_api::repository::ScanResult;

    use super::*;

    #[test]
    fn names_that_are_no_tags_are_told_of_once_until_their_number_changes() {
        let (memory, name) =
            (Memory::default(), ObjectName { namespace: "n".to_owned(), name: "r".to_owned() });
        for (number, expected) in [
            (Some(0), None),
            (Some(3), Some(3)),
            (Some(3), None),
            (None, None),
            (Some(3), None),
            (Some(2), Some(2)),
            (Some(0), None),
            (Some(2), Some(2)),
        ] {
            let conclusion = Conclusion::Scanned(ScanResult::default(), number);
            assert_eq!(memory.newly_left_out(&name, &conclusion), expected, "{number:?}");
        }
        memory.forget_repository(&name);
        assert_eq!(memory.left_out.lock().len(), 0);
    }

    #[test]
    fn that_nothing_changes_is_recorded_now_and_then() {
        let (memory, start) = (Memory::default(), Instant::now());
        let name = |name: &str| ObjectName { namespace: "n".to_owned(), name: name.to_owned() };
        for (kind, one, minute, expected) in [
            (Kind::Repository, "a", 0, true),
            (Kind::Repository, "a", 1, false),
            (Kind::Policy, "a", 1, true),
            (Kind::Repository, "b", 1, true),
            (Kind::Repository, "a", 4, false),
            (Kind::Repository, "a", 5, true),
            (Kind::Repository, "a", 9, false),
        ] {
            let now = start + Duration::from_secs(minute * 60);
            assert_eq!(memory.is_worth_recording(kind, &name(one), now), expected, "{kind:?} {one} {minute}");
        }
        memory.forget_repository(&name("a"));
        assert!(memory.is_worth_recording(Kind::Repository, &name("a"), start));
    }
}
