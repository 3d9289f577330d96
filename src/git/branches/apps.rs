//! The App for which the forge signs our commits.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use git2::Repository;

use super::model::CommitPeople;
use super::ownership::with_people;
use crate::error::chain;
use crate::git::attempt::forge_signing::{Unsigned, ask};
use crate::git::commit_error::CommitError;
use crate::git::commit_signer::{CommitSigner, ForgeSigningError, SignerError};
use crate::git::error::SyncError;
use crate::git::mirror::Mirror;
use crate::git::object;
use crate::git::push_journal::PushJournal;

/// The maximum number of tips whose commits are read.
const MAX_TIPS: usize = 100;

/// Tells the commits that the forge signed for our App from those of other Apps.
///
/// The authors of our pushed commits tell; without one, the forge is asked once. Both wait until there is a commit of an App.
pub(super) struct OwnApp<'a> {
    pub(super) mirror: &'a Mirror,
    pub(super) journal: &'a PushJournal,
    pub(super) signer: Option<&'a dyn CommitSigner>,
    pub(super) known: OnceCell<Known>,
}

/// What is known of our App.
pub(super) enum Known {
    /// The addresses of the authors of our pushed commits.
    Pushed(BTreeSet<Vec<u8>>),
    /// The answer of the forge: the name of the author.
    Asked(Result<String, Arc<ForgeSigningError>>),
}

impl OwnApp<'_> {
    /// Returns true for a commit of our App, and false for one of another.
    ///
    /// # Errors
    ///
    /// If the forge must be asked, and does not tell.
    pub(super) fn is_author(&self, people: CommitPeople<'_>) -> Result<bool, SyncError> {
        let known = match self.known.get() {
            Some(known) => known,
            None => {
                let found = self.find()?;
                self.known.get_or_init(|| found)
            }
        };
        match known {
            Known::Pushed(authors) => Ok(authors.contains(people.author_email)),
            Known::Asked(Ok(name)) => Ok(people.author_name == name.as_bytes()),
            Known::Asked(Err(error)) => Err(CommitError::from(Arc::clone(error)).into()),
        }
    }

    fn find(&self) -> Result<Known, SyncError> {
        let pushed = pushed_authors(&self.mirror.repository, self.journal)?;
        if !pushed.is_empty() {
            return Ok(Known::Pushed(pushed));
        }
        let unknown = |error: SignerError| ForgeSigningError::UnknownApp { cause: chain(&*error.cause) };
        Ok(Known::Asked(match self.signer.map(|signer| ask(self.mirror, signer.author(), unknown)) {
            None => Err(Arc::new(ForgeSigningError::NoSigner)),
            Some(Ok(name)) => Ok(name),
            Some(Err(Unsigned::Forge(error))) => Err(error),
            Some(Err(Unsigned::Sync(error))) => return Err(error),
        }))
    }
}

/// Reads the authors of pushed commits that the mirror still has.
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
