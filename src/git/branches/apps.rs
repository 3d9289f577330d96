//! The App for which the forge signs our commits.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use git2::Repository;

use super::model::CommitPeople;
use super::ownership::with_people;
use crate::git::attempt::forge_signing::{Unsigned, author_of};
use crate::git::commit_error::CommitError;
use crate::git::commit_signer::{CommitSigner, ForgeSigningError};
use crate::git::error::SyncError;
use crate::git::mirror::Mirror;
use crate::git::object;
use crate::git::push_journal::PushJournal;

/// The maximum number of tips whose commits are read.
const MAX_TIPS: usize = 100;

/// Tells the commits that the forge signed for our App from those of other Apps.
///
/// The authors of our pushed commits tell; without one, the forge is asked once.
pub(super) struct OwnApp<'a> {
    mirror: &'a Mirror,
    signer: Option<&'a dyn CommitSigner>,
    /// The addresses of the authors of our pushed commits.
    pushed: BTreeSet<Vec<u8>>,
    /// The answer of the forge: the name of the author.
    asked: OnceCell<Result<String, Arc<ForgeSigningError>>>,
}

impl<'a> OwnApp<'a> {
    /// Reads the authors of pushed commits that the mirror still has.
    pub(super) fn read(
        mirror: &'a Mirror,
        journal: &PushJournal,
        signer: Option<&'a dyn CommitSigner>,
    ) -> Result<Self, SyncError> {
        let pushed = pushed_authors(&mirror.repository, journal)?;
        Ok(Self { mirror, signer, pushed, asked: OnceCell::new() })
    }

    /// Returns true for a commit of our App, and false for one of another.
    ///
    /// # Errors
    ///
    /// If the forge must be asked, and does not tell.
    pub(super) fn is_author(&self, people: CommitPeople<'_>) -> Result<bool, SyncError> {
        if !self.pushed.is_empty() {
            return Ok(self.pushed.contains(people.author_email));
        }
        if self.asked.get().is_none() {
            let asked = match self.signer.map(|signer| author_of(self.mirror, signer)) {
                None => Err(Arc::new(ForgeSigningError::NoSigner)),
                Some(Ok(name)) => Ok(name),
                Some(Err(Unsigned::Forge(error))) => Err(error),
                Some(Err(Unsigned::Sync(error))) => return Err(error),
            };
            let _ = self.asked.set(asked);
        }
        match self.asked.get().expect("it was just set") {
            Ok(name) => Ok(people.author_name == name.as_bytes()),
            Err(error) => Err(CommitError::from(Arc::clone(error)).into()),
        }
    }
}

fn pushed_authors(repository: &Repository, journal: &PushJournal) -> Result<BTreeSet<Vec<u8>>, SyncError> {
    let mut found = BTreeSet::new();
    for own in journal.own_tips.values().filter_map(|tips| tips.last()).take(MAX_TIPS) {
        for commit in own.commits.iter().filter(|commit| object::has_commit(repository, **commit)) {
            let app = with_people(repository, *commit, |people| {
                people.are_of_app().then(|| people.author_email.to_vec())
            });
            found.extend(app?);
        }
    }
    Ok(found)
}
