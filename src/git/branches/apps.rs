//! The Apps for which a forge has signed commits that we pushed.

use std::collections::BTreeSet;

use git2::Repository;

use super::model::CommitPeople;
use super::ownership::with_people;
use crate::git::error::SyncError;
use crate::git::object;
use crate::git::push_journal::PushJournal;

/// The maximum number of tips whose commits are read.
const MAX_TIPS: usize = 100;

/// The addresses of the Apps that are the authors of our pushed commits.
#[derive(Debug, Default)]
pub(super) struct KnownApps(BTreeSet<Vec<u8>>);

impl KnownApps {
    /// Reads the authors of pushed commits that the mirror still has.
    pub(super) fn read(repository: &Repository, journal: &PushJournal) -> Result<Self, SyncError> {
        let mut found = BTreeSet::new();
        for own in journal.own_tips.values().filter_map(|tips| tips.last()).take(MAX_TIPS) {
            for commit in own.commits.iter().filter(|commit| object::has_commit(repository, **commit)) {
                let app = with_people(repository, *commit, |people| {
                    people.are_of_app().then(|| people.author_email.to_vec())
                });
                found.extend(app?);
            }
        }
        Ok(Self(found))
    }

    /// Returns true for a commit of another App than ours, as far as ours is known.
    pub(super) fn exclude(&self, people: CommitPeople<'_>) -> bool {
        !self.0.is_empty() && people.are_of_app() && !self.0.contains(people.author_email)
    }
}
