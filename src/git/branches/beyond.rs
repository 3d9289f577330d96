//! The commits of a branch beyond the base.
//!
//! The mirror has next to no history, so a commit below a tip is looked up in steps: a little of the base's history is
//! fetched once for all branches; then the server is asked for the history of the commit without that of the base. A
//! server that refuses need not say why, and only a commit that is found in the base counts as part of it.

use std::collections::HashSet;

use crate::error::chain;
use crate::git::attempt::context::AttemptContext;
use crate::git::commit::stated_parents;
use crate::git::error::SyncError;
use crate::git::name::{CommitId, RefName};
use crate::git::object;

/// The depth of the base's history that is fetched for all branches together.
const DEPTH: u32 = 64;

/// The maximum number of commits of a branch that are looked at.
const MAX_COMMITS: usize = 100;

/// A commit of a branch beyond the base, with its parents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OwnCommit {
    /// A commit with its parent.
    Change { commit: CommitId, parent: CommitId },
    /// A merge of a commit of the base.
    Merge { commit: CommitId, parent: CommitId, base: CommitId },
}

impl OwnCommit {
    /// Returns the commit.
    pub(super) fn commit(&self) -> CommitId {
        match *self {
            Self::Change { commit, .. } | Self::Merge { commit, .. } => commit,
        }
    }
}

/// A branch with commits beyond the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beyond {
    /// The commits, the newest first.
    pub(super) commits: Vec<OwnCommit>,
    /// The newest commit of the base in the branch.
    pub(super) under: CommitId,
    /// The commit of the base on which the oldest commit is made.
    pub(super) root: CommitId,
}

/// The result of reading a branch.
pub(super) enum ReadBranch {
    /// The commits beyond the base.
    Beyond(Beyond),
    /// A commit that none of us makes: it has several parents, or none.
    Foreign(CommitId),
    /// The commits cannot be read.
    Unreadable(String),
    /// The server does not tell whether a commit is in the base.
    Unknown(CommitId),
}

/// The base, as far as its history is known.
pub(super) struct BaseHistory<'a> {
    pub(super) context: &'a AttemptContext<'a>,
    pub(super) base: CommitId,
    pub(super) reference: RefName,
    /// Commits that are known to be in the base.
    known: HashSet<CommitId>,
    /// Commits that are known to be missing there.
    missing: HashSet<CommitId>,
    is_deepened: bool,
}

impl<'a> BaseHistory<'a> {
    /// Creates the history of a base of which only the tip is known.
    pub(super) fn new(context: &'a AttemptContext<'a>, base: CommitId, reference: RefName) -> Self {
        let (known, missing) = (HashSet::from([base]), HashSet::new());
        Self { context, base, reference, known, missing, is_deepened: false }
    }

    /// Returns true if a commit was found in the base.
    ///
    /// # Errors
    ///
    /// If the mirror is damaged, the work was cancelled, or the remote does not answer.
    pub(super) fn has(&mut self, commit: CommitId) -> Result<bool, SyncError> {
        if self.missing.contains(&commit) {
            return Ok(false);
        }
        let is_there = self.is_in_base(commit)? == Some(true);
        if !is_there {
            self.missing.insert(commit);
        }
        Ok(is_there)
    }

    /// Reads a branch whose tip is here.
    ///
    /// # Errors
    ///
    /// If the mirror is damaged, or the work was cancelled.
    pub(super) fn read(
        &mut self,
        tip: CommitId,
        is_ours: &dyn Fn(CommitId) -> Result<bool, SyncError>,
    ) -> Result<ReadBranch, SyncError> {
        match self.walk(tip, is_ours) {
            Ok(read) => Ok(read),
            Err(error) if error.is_damage() || error.is_interruption() => Err(error),
            Err(error) => Ok(ReadBranch::Unreadable(chain(&error))),
        }
    }

    fn walk(
        &mut self,
        tip: CommitId,
        is_ours: &dyn Fn(CommitId) -> Result<bool, SyncError>,
    ) -> Result<ReadBranch, SyncError> {
        let (mut commits, mut under, mut current) = (Vec::new(), None, tip);
        while !self.known.contains(&current) {
            self.context.fetch_commit(current)?;
            let parents = self.parents(current)?;
            let is_own = parents.len() == 1 && is_ours(current)?;
            // A tip of ours may be in the base, if it was merged. That makes no difference.
            if !(is_own && current == tip) {
                match self.is_in_base(current)? {
                    Some(true) => break,
                    Some(false) => {}
                    None => return Ok(ReadBranch::Unknown(current)),
                }
            }
            match *parents.as_slice() {
                _ if commits.len() == MAX_COMMITS => return Ok(ReadBranch::Foreign(current)),
                [parent] if is_own => {
                    commits.push(OwnCommit::Change { commit: current, parent });
                    current = parent;
                }
                [parent, merged] if self.is_in_base(merged)? == Some(true) => {
                    self.context.fetch_commit(merged)?;
                    commits.push(OwnCommit::Merge { commit: current, parent, base: merged });
                    under = under.or(Some(merged));
                    current = parent;
                }
                _ => return Ok(ReadBranch::Foreign(current)),
            }
        }
        self.context.fetch_commit(current)?;
        Ok(ReadBranch::Beyond(Beyond { commits, under: under.unwrap_or(current), root: current }))
    }

    fn parents(&self, commit: CommitId) -> Result<Vec<CommitId>, SyncError> {
        let objects = self.context.mirror.repository.odb()?;
        Ok(stated_parents(object::read_commit(&objects, commit)?.data()))
    }

    /// Returns whether a commit is in the base, or `None` if that is unknown.
    fn is_in_base(&mut self, commit: CommitId) -> Result<Option<bool>, SyncError> {
        let AttemptContext { mirror, remote, deadline, .. } = self.context;
        if self.known.contains(&commit) {
            return Ok(Some(true));
        }
        if !std::mem::replace(&mut self.is_deepened, true) {
            // Without it, the server is asked for each commit.
            let _ = remote.deepen(mirror, self.base, DEPTH, deadline);
            self.known = self.context.history_here(self.base)?;
            if self.known.contains(&commit) {
                return Ok(Some(true));
            }
        }
        if remote.fetch_beyond(mirror, commit, &self.reference, deadline).is_ok() {
            return Ok(Some(false));
        }
        mirror.check_cancelled()?;
        let is_found = self.context.is_in_history(commit, self.base, None)?;
        self.known = self.context.history_here(self.base)?;
        Ok(is_found.then_some(true))
    }
}

/// Returns the sentence about a commit that may be in the base, or not.
pub(super) fn unknown_origin(commit: CommitId) -> String {
    format!(
        "it is unknown whether {} is in the base: its history is too long, or the server does not serve a part of it",
        commit.short()
    )
}
