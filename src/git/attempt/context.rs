//! The context of an attempt: mirror, remote and listing.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};

use git2::Odb;

use crate::directory::open;
use crate::git::commit::stated_parents;
use crate::git::commit_error::CommitError;
use crate::git::error::SyncError;
use crate::git::failure_kind::FailureKind;
use crate::git::listing::Listing;
use crate::git::mirror::Mirror;
use crate::git::name::{CommitId, RefName};
use crate::git::object::{self, ObjectError};
use crate::git::remote::Remote;
use crate::git::remote_error::RemoteError;
use crate::git::server_deadline::ServerDeadline;
use crate::update::MarkerIndex;

/// The depths of history that are fetched to find a commit.
/// A commit that is deeper counts as missing.
const DEPTHS: [u32; 2] = [64, 2_048];

/// The mirror and the remote of an attempt.
pub(in crate::git) struct AttemptContext<'a> {
    pub(in crate::git) mirror: &'a Mirror,
    pub(in crate::git) remote: &'a Remote,
    /// The remote's references at the beginning.
    pub(in crate::git) listing: Listing,
    /// The tip of the push branch in that listing.
    pub(in crate::git) old: Option<CommitId>,
    /// The deadline for all work before the push.
    pub(in crate::git) deadline: &'a ServerDeadline,
}

/// The result of a search in the history.
enum HistorySearch {
    Found,
    /// The whole history was searched, and the commit is not in it.
    NotFound,
    /// The history is longer than the part that the mirror has.
    Truncated,
}

impl AttemptContext<'_> {
    /// Fetches an object unless it is here, and returns the commit that it leads to.
    pub(in crate::git) fn fetch_commit(&self, object: CommitId) -> Result<CommitId, SyncError> {
        let is_here = match self.mirror.peel(object) {
            Ok(commit) => self.mirror.has(commit),
            Err(ObjectError::TooLarge(error)) => return Err(error.into()),
            Err(ObjectError::Git(_)) => false,
        };
        if !is_here {
            self.remote.fetch(self.mirror, &[object], self.deadline)?;
        }
        self.mirror.peel(object).map_err(|error| match error {
            ObjectError::TooLarge(error) => error.into(),
            ObjectError::Git(cause) => {
                SyncError::NoCommit { url: self.remote.url.to_string(), name: object.to_string(), cause }
            }
        })
    }

    /// Returns true if the server has a commit, be it on a branch or not.
    ///
    /// The server is asked even if the commit is here. One that serves branches only counts as a server without it. A commit
    /// for which even a new mirror has no room is one that the server was sending.
    ///
    /// # Errors
    ///
    /// If the server does not answer.
    pub(in crate::git) fn is_at_server(&self, commit: CommitId) -> Result<bool, SyncError> {
        match self.remote.fetch(self.mirror, &[commit], self.deadline) {
            Ok(()) => Ok(true),
            Err(error) if error.failure_kind() == Some(FailureKind::Gone) => Ok(false),
            Err(RemoteError::TooLarge { .. } | RemoteError::NoSpace { .. }) if self.mirror.is_new => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if a branch with this tip has the commit of a push.
    ///
    /// The push was made on `old`. If the history is too long to be fetched, the push counts as lost: the files tell whether its
    /// change is there.
    ///
    /// # Errors
    ///
    /// If the search was ended or the remote did not answer, which says nothing of the push.
    pub(in crate::git) fn has_arrived(
        &self,
        (new, old): (CommitId, Option<CommitId>),
        tip: Option<CommitId>,
    ) -> Result<bool, SyncError> {
        let Some(tip) = tip.filter(|tip| Some(*tip) != old) else { return Ok(false) };
        match self.is_in_history(new, tip, old) {
            Err(error) if error.is_too_large() => Ok(false),
            found => found,
        }
    }

    /// Returns whether `commit` is in the history of `listed`, a commit that the remote has.
    ///
    /// The mirror has next to no history, so some may be fetched. Commits below `floor` are not searched.
    pub(in crate::git) fn is_in_history(
        &self,
        commit: CommitId,
        listed: CommitId,
        floor: Option<CommitId>,
    ) -> Result<bool, SyncError> {
        let walk = || walk(&self.mirror.repository.odb()?, listed, commit, floor);
        let mut found = walk()?;
        for depth in DEPTHS {
            match found {
                HistorySearch::Found => return Ok(true),
                HistorySearch::NotFound => return Ok(false),
                HistorySearch::Truncated => self.remote.deepen(self.mirror, listed, depth, self.deadline)?,
            }
            found = walk()?;
        }
        Ok(matches!(found, HistorySearch::Found))
    }

    /// Reads the marker index of the mirror.
    pub(in crate::git) fn read_index(&self) -> MarkerIndex {
        let file = open(&self.mirror.index());
        file.map(|file| MarkerIndex::read_from(BufReader::new(file))).unwrap_or_default()
    }

    /// Stores the marker index after files were read, even if that failed.
    ///
    /// The next run continues there. Entries from damaged objects may be wrong. An index that cannot be stored is made again.
    pub(in crate::git) fn store_index<T>(&self, index: &MarkerIndex, read: &Result<T, SyncError>) {
        if index.is_modified() && !read.as_ref().is_err_and(SyncError::is_damage) {
            let _ = File::create(self.mirror.index()).and_then(|file| {
                let mut file = BufWriter::new(file);
                index.write_to(&mut file)?;
                file.flush()
            });
        }
    }

    /// Returns the commits of a tip's history that are known here.
    ///
    /// Those at its cut-off end are included.
    pub(in crate::git) fn history_here(&self, tip: CommitId) -> Result<HashSet<CommitId>, SyncError> {
        let odb = self.mirror.repository.odb()?;
        let (mut waiting, mut seen) = (vec![tip], HashSet::new());
        while let Some(commit) = waiting.pop() {
            if seen.insert(commit) && odb.exists(commit.oid()) {
                waiting.extend(stated_parents(object::read_commit(&odb, commit)?.data()));
            }
        }
        Ok(seen)
    }

    /// Returns the error of a commit that is too large for this mirror.
    /// A new mirror would have room for it. The result is `None` if the mirror is new, or for another error.
    pub(in crate::git) fn too_large(&self, error: &CommitError) -> Option<SyncError> {
        let is_mendable = matches!(error, CommitError::NoSpace) && !self.mirror.is_new;
        is_mendable.then(|| self.remote.too_large(self.mirror).into())
    }

    /// Returns the error of a reference that the remote does not update.
    pub(in crate::git) fn refusal(&self, reference: RefName, message: String) -> SyncError {
        SyncError::Refused { url: self.remote.url.to_string(), reference, message }
    }
}

fn walk(
    odb: &Odb<'_>,
    tip: CommitId,
    wanted: CommitId,
    floor: Option<CommitId>,
) -> Result<HistorySearch, ObjectError> {
    let (mut waiting, mut seen, mut is_cut_off) = (vec![tip], HashSet::new(), false);
    while let Some(commit) = waiting.pop() {
        if commit == wanted {
            return Ok(HistorySearch::Found);
        }
        if Some(commit) == floor || !seen.insert(commit) {
            continue;
        }
        if odb.exists(commit.oid()) {
            waiting.extend(stated_parents(object::read_commit(odb, commit)?.data()));
        } else {
            is_cut_off = true;
        }
    }
    Ok(if is_cut_off { HistorySearch::Truncated } else { HistorySearch::NotFound })
}
