//! What is remembered of policies from one run to the next, beyond their status.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::ResourceExt;
use tagboat_api::settings::PREFIX;
use tagboat_api::{ImagePolicy, ImageRepository, RECONCILE_REQUEST_ANNOTATION};

use crate::objects::ObjectName;
use crate::policy::regression::Cause;

/// For how long a policy waits quietly for a repository that has never been scanned.
const QUIET: Duration = Duration::from_secs(4);

/// What persons asked for when a policy was carried out.
///
/// Of the repository that is what its tags were found with: a changed spec counts once it has been scanned with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wishes {
    uid: Option<String>,
    generation: Option<i64>,
    request: Option<String>,
    settings: BTreeMap<String, String>,
    repository: Option<Scanned>,
}

/// A repository that tags were found with: who it is, the generation that was scanned with, and our settings.
type Scanned = (Option<String>, Option<i64>, BTreeMap<String, String>);

impl Wishes {
    pub(super) fn of(policy: &ImagePolicy, repository: Option<&ImageRepository>) -> Self {
        let scanned = |repository: &ImageRepository| {
            let observed = repository.status.as_ref().and_then(|status| status.observed_generation);
            (repository.uid(), observed, settings(repository))
        };
        Self {
            uid: policy.uid(),
            generation: policy.metadata.generation,
            request: policy.annotations().get(RECONCILE_REQUEST_ANNOTATION).cloned(),
            settings: settings(policy),
            repository: repository.map(scanned),
        }
    }
}

/// The annotations of an object that are settings of ours.
pub(super) fn settings(object: &impl ResourceExt) -> BTreeMap<String, String> {
    let own = object.annotations().iter().filter(|(name, _)| name.starts_with(PREFIX));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What is remembered. It is lost with the process; then only what the objects themselves say counts as a wish.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<ObjectName, Entry>>);

#[derive(Debug, Default)]
struct Entry {
    wishes: Option<Wishes>,
    waiting: Option<Instant>,
}

impl Memory {
    /// Who is behind a run: a person, if the status says so or others wishes were met last.
    pub(super) fn cause(&self, name: &ObjectName, wishes: &Wishes, is_wanted: bool) -> Cause {
        let entries = self.lock();
        let before = entries.get(name).and_then(|entry| entry.wishes.as_ref());
        if is_wanted || before.is_some_and(|before| before != wishes) { Cause::Person } else { Cause::Tags }
    }

    /// Takes note that an image was chosen.
    pub(super) fn met(&self, name: &ObjectName, wishes: Wishes) {
        let mut entries = self.lock();
        let entry = entries.entry(name.clone()).or_default();
        (entry.wishes, entry.waiting) = (Some(wishes), None);
    }

    /// Whether a policy has waited for tags for so long only that there is nothing to say about it yet.
    pub(super) fn waits_quietly(&self, name: &ObjectName, now: Instant) -> bool {
        let mut entries = self.lock();
        let since = *entries.entry(name.clone()).or_default().waiting.get_or_insert(now);
        now.duration_since(since) < QUIET
    }

    /// Forgets a policy.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectName, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
