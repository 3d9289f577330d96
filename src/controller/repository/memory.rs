//! The state of repositories between reconciles, beyond their status.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use tagboat_api::ImageRepository;

use crate::objects::ObjectName;
use crate::reconcile::lookup::Staleness;
use crate::reconcile::repository::report::Conclusion;

/// The state of repositories between reconciles. It is lost with the process.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The repositories that this process has reconciled.
    reconciled: Mutex<HashSet<ObjectName>>,
    /// The reasons for which registries of repositories cannot be asked.
    failures: Mutex<HashMap<ObjectName, Staleness>>,
    /// The number of names that are no tags, for repositories whose list has any.
    left_out: Mutex<HashMap<ObjectName, usize>>,
}

impl Memory {
    /// Records a repository's reconcile, and returns whether it was the first in this process.
    pub(super) fn set_reconciled(&self, repository: &ObjectName) -> bool {
        self.reconciled.lock().insert(repository.clone())
    }

    /// Returns whether this process has reconciled a repository.
    ///
    /// Before that, nothing can be said about its tags: they may have been lost with the last process.
    pub(crate) fn is_reconciled(&self, repository: &ObjectName) -> bool {
        self.reconciled.lock().contains(repository)
    }

    /// Records the end of a scan.
    pub(super) fn scanned(&self, repository: &ImageRepository, conclusion: &Conclusion) {
        let mut failures = self.failures.lock();
        let failure = match conclusion {
            Conclusion::Failed(failure) => failure.staleness(&repository.spec.image),
            Conclusion::Scanned(..) | Conclusion::Skipped(_) => None,
        };
        match failure {
            Some(failure) => failures.insert(ObjectName::of(repository), failure),
            None => failures.remove(&ObjectName::of(repository)),
        };
    }

    /// Returns the reason for which a repository's registry cannot be asked.
    ///
    /// There is one if the last scan failed because of that.
    pub(crate) fn scan_failure(&self, repository: &ObjectName) -> Option<Staleness> {
        self.failures.lock().get(repository).cloned()
    }

    /// Returns the number of names in a repository's list that are no tags.
    ///
    /// Returns `None` if there are none, or if the number has not changed.
    pub(super) fn newly_left_out(&self, repository: &ObjectName, conclusion: &Conclusion) -> Option<usize> {
        let Conclusion::Scanned(_, Some(number)) = conclusion else { return None };
        let mut left_out = self.left_out.lock();
        let before = match number {
            0 => left_out.remove(repository),
            number => left_out.insert(repository.clone(), *number),
        };
        Some(*number).filter(|number| *number > 0 && before != Some(*number))
    }

    /// Forgets a deleted repository.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.reconciled.lock().remove(name);
        self.failures.lock().remove(name);
        self.left_out.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use tagboat_api::repository::ScanResult;

    use super::*;

    #[test]
    fn invalid_tag_names_are_reported_once_until_their_number_changes() {
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
        memory.forget(&name);
        assert_eq!(memory.left_out.lock().len(), 0);
    }
}
