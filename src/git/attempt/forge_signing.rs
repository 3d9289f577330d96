//! The signing of commits by a forge, after they were made.
//!
//! A forge makes commits of its own, with another author and time, so every commit above one is written again. The trees
//! stay the same.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use git2::{Delta, FileMode, ObjectType, Odb, Repository};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use super::Attempt;
use super::context::AttemptContext;
use super::deadline::PlanDeadline;
use super::proposal_state::ProposalState;
use crate::cancel::Cancellation;
use crate::git::attempts::AttemptOutcome;
use crate::git::commit::{assemble, rewrite_commit, split, stated_parents};
use crate::git::commit_error::CommitError;
use crate::git::commit_signer::{ChangedFile, CommitSigner, ForgeSigningError, SignerError, UnsignedCommit};
use crate::git::error::SyncError;
use crate::git::mirror::Mirror;
use crate::git::name::CommitId;
use crate::git::object::{self, MAX_COMMIT, ObjectError};
use crate::git::pack::NewObjects;
use crate::git::proposal::{Failure, Proposer};
use crate::git::push_journal::PushJournal;
use crate::git::server_deadline::{NotGranted, ServerDeadline, wait_for};

/// The time that the forge may take for one commit, with all its files.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The interval in which a long wait may release the slot of the transaction.
const INTERVAL: Duration = Duration::from_secs(1);

/// The maximum size in bytes of a file that is sent to a forge.
const MAX_FILE: usize = 32 * 1024 * 1024;

/// The maximum number of files that one commit may change.
const MAX_FILES: usize = 20_000;

/// The memory in bytes for each byte of the largest file, and in addition.
const MEMORY_FACTOR: u64 = 4;
const MEMORY: u64 = 32 * 1024 * 1024;

/// The reason why a commit is not signed.
pub(in crate::git) enum Unsigned {
    /// The forge is the reason.
    Forge(Arc<ForgeSigningError>),
    /// The mirror is, or the work was cancelled; this concerns all proposals.
    Sync(SyncError),
}

impl From<ForgeSigningError> for Unsigned {
    fn from(error: ForgeSigningError) -> Self {
        Self::Forge(Arc::new(error))
    }
}

impl<E: Into<SyncError>> From<E> for Unsigned {
    fn from(error: E) -> Self {
        Self::Sync(error.into())
    }
}

/// The state of a walk from the base to the tip.
pub(in crate::git) struct Chain {
    /// The commit on which the next one is made.
    pub(in crate::git) tip: CommitId,
    /// A tree that the forge has.
    pub(in crate::git) known_tree: CommitId,
    /// The reason why the forge signs no further commits.
    pub(in crate::git) failure: Option<Arc<ForgeSigningError>>,
}

impl<P: Proposer> Attempt<P> {
    /// Returns true if a forge is to sign a commit.
    pub(super) fn is_to_be_signed(&self) -> bool {
        self.states
            .iter()
            .any(|state| state.is_open() && state.commit.is_some() && state.proposal.signing.is_some())
    }

    /// Has the commits signed by the forge, and returns the new tip.
    ///
    /// If it does not sign one, our own commit stays, or the proposal fails and the others are attempted again.
    pub(super) fn sign(
        &mut self,
        context: &AttemptContext<'_>,
        base: CommitId,
        journal: &PushJournal,
    ) -> Result<CommitId, AttemptOutcome> {
        let repository = &context.mirror.repository;
        let database = repository.odb().map_err(SyncError::from)?;
        let mut objects = NewObjects::new(repository, &database).map_err(SyncError::from)?;
        let known_tree = tree_of(repository, base)?;
        let mut chain = Chain { tip: base, known_tree, failure: self.forge_failure.clone() };
        let mut has_failed = false;
        for state in self.states.iter_mut().filter(|state| state.is_open() && state.commit.is_some()) {
            let is_required = state.proposal.signing.as_ref().is_some_and(|signing| signing.is_required);
            // Those that need the forge fail with it, and the others are attempted again without them.
            if has_failed && !(is_required && chain.failure.is_some()) {
                break;
            }
            has_failed |= state.sign(context, journal, &mut objects, &mut chain)?.is_break();
        }
        self.forge_failure = chain.failure.clone().filter(|failure| !failure.is_of_commit());
        let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
        let packs = objects.finish(&mut |_| deadline.check()).map_err(SyncError::from)?;
        self.packs.append(packs);
        if has_failed { Err(AttemptOutcome::Repaired) } else { Ok(chain.tip) }
    }
}

impl<P: Proposer> ProposalState<P> {
    /// Has the commit signed, or writes it again; breaks if the proposal fails.
    fn sign(
        &mut self,
        context: &AttemptContext<'_>,
        journal: &PushJournal,
        objects: &mut NewObjects<'_>,
        chain: &mut Chain,
    ) -> Result<ControlFlow<()>, SyncError> {
        let Some(commit) = &mut self.commit else { return Ok(ControlFlow::Continue(())) };
        let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
        if let Some(signing) = &self.proposal.signing {
            let earlier =
                journal.pending.get(&self.proposal.name).filter(|pending| pending.is_signed_by_forge);
            let earlier = earlier.and_then(|pending| {
                Some(object::read_commit(objects.database(), pending.commit).ok()?.data().to_vec())
            });
            let known = [self.signed.take(), earlier];
            let signed = match chain.failure.clone() {
                Some(failure) => Err(Unsigned::Forge(failure)),
                None => signed_commit(context, &*signing.signer, (commit.id, chain), known),
            };
            match signed {
                Ok(content) => {
                    let id = objects.write(ObjectType::Commit, content.clone(), &mut |_| deadline.check())?;
                    chain.tip = id.into();
                    chain.known_tree = tree_of(objects.repository(), commit.id)?;
                    (commit.id, commit.is_signed_by_forge) = (chain.tip, true);
                    self.signed = Some(content);
                    self.proposal.proposer.observe_signing(Ok(()));
                    return Ok(ControlFlow::Continue(()));
                }
                Err(Unsigned::Sync(error)) => return Err(error),
                Err(Unsigned::Forge(error)) if signing.is_required => {
                    chain.failure = Some(&error).filter(|error| !error.is_of_commit()).cloned();
                    self.result = Some(Err(Failure::from(SyncError::from(CommitError::from(error)))));
                    return Ok(ControlFlow::Break(()));
                }
                Err(Unsigned::Forge(error)) => {
                    let unknown = || Arc::new(ForgeSigningError::UnknownParent);
                    let rest = if error.is_of_commit() { unknown() } else { Arc::clone(&error) };
                    chain.failure.get_or_insert(rest);
                    self.proposal.proposer.observe_signing(Err(error));
                }
            }
        }
        let raw = object::read_commit(objects.database(), commit.id)?.data().to_vec();
        if stated_parents(&raw) != [chain.tip] {
            let signing = (commit.signer.as_ref(), commit.time);
            commit.id = rewrite_commit(objects, commit.id, chain.tip, signing, &mut |_| deadline.check())?;
        }
        chain.tip = commit.id;
        Ok(ControlFlow::Continue(()))
    }
}

/// Returns a commit that the forge signed, as git stores it.
pub(in crate::git) fn signed_commit(
    context: &AttemptContext<'_>,
    signer: &dyn CommitSigner,
    (ours, chain): (CommitId, &Chain),
    known: [Option<Vec<u8>>; 2],
) -> Result<Vec<u8>, Unsigned> {
    let mirror = context.mirror;
    let database = mirror.repository.odb()?;
    let raw = object::read_commit(&database, ours)?.data().to_vec();
    let wanted =
        Wanted { tree: tree_of(&mirror.repository, ours)?, parent: chain.tip, message: split(&raw).1 };
    if let Some(known) = known.into_iter().flatten().find(|known| wanted.difference(known).is_none()) {
        return Ok(known);
    }
    let message = std::str::from_utf8(wanted.message).map_err(|_| ForgeSigningError::Message)?;
    let files = changed_files(&mirror.repository, &database, chain.known_tree, wanted.tree)?;
    let largest = files.iter().map(|file| file.size as u64).max().unwrap_or_default();
    let memory = &mirror.context.capacity.memory;
    let reserved = memory.reserve(mirror.slot.namespace(), MEMORY + MEMORY_FACTOR * largest);
    let _memory =
        wait_for(&mirror.context, &mirror.cancellations, reserved).map_err(|reason| match reason {
            NotGranted::Cancelled => mirror.check_cancelled().err().unwrap_or(SyncError::Interrupted),
            NotGranted::TooLong => SyncError::NoCapacity,
        })?;
    let read = |file: &ChangedFile| Ok(database.read(file.blob.oid())?.data().to_vec());
    let commit = UnsignedCommit {
        base_tree: chain.known_tree,
        tree: wanted.tree,
        parent: wanted.parent,
        message,
        files,
        read: &read,
    };
    let made = ask(mirror, signer.sign(&commit), ForgeSigningError::from)?;
    let content = match assemble(&made.payload, &made.signature, made.id) {
        Some(content) => content,
        None => fetch(context, made.id)?,
    };
    match wanted.difference(&content) {
        Some(part) => Err(ForgeSigningError::OtherCommit { commit: made.id, part }.into()),
        None => Ok(content),
    }
}

/// The cause of an answer that is missing.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", TIMEOUT.as_secs())]
struct NoAnswer;

/// Awaits an answer of the forge, with a deadline and until the work is cancelled.
///
/// # Errors
///
/// If the forge does not answer in time, or refuses, for which `reason` makes the error; or if the work was cancelled.
pub(in crate::git) fn ask<T>(
    mirror: &Mirror,
    answer: impl Future<Output = Result<T, SignerError>>,
    reason: fn(SignerError) -> ForgeSigningError,
) -> Result<T, Unsigned> {
    mirror.check_cancelled()?;
    let mut wait = mirror.slot.wait();
    let answered = Handle::current().block_on(async {
        let mut answer = std::pin::pin!(timeout(TIMEOUT, answer));
        loop {
            tokio::select! {
                biased;
                answered = &mut answer => return Some(answered),
                () = mirror.context.stop.cancelled() => return None,
                () = Cancellation::any_cancelled(&mirror.cancellations) => return None,
                () = sleep(INTERVAL) => wait.go_on(),
            }
        }
    });
    let Some(answered) = answered else {
        return Err(Unsigned::Sync(mirror.check_cancelled().err().unwrap_or(SyncError::Interrupted)));
    };
    let too_late = |_| Err(SignerError { cause: Arc::new(NoAnswer), is_of_commit: false });
    Ok(answered.unwrap_or_else(too_late).map_err(reason)?)
}

/// Fetches a commit that the forge made, and returns it as git stores it.
fn fetch(context: &AttemptContext<'_>, commit: CommitId) -> Result<Vec<u8>, Unsigned> {
    let AttemptContext { mirror, remote, .. } = context;
    let missing = |cause: String| ForgeSigningError::NoCommit { commit, cause };
    let deadline = ServerDeadline::after(remote.timeout);
    remote.fetch(mirror, &[commit], &deadline).map_err(|error| {
        let cancelled = mirror.check_cancelled().err().map(Unsigned::Sync);
        cancelled.unwrap_or_else(|| missing(crate::error::chain(&error)).into())
    })?;
    mirror.join_to_parents(commit).map_err(|error| missing(error.to_string()))?;
    let database = mirror.repository.odb()?;
    match object::read_commit(&database, commit) {
        Ok(content) => Ok(content.data().to_vec()),
        Err(ObjectError::TooLarge(error)) => Err(missing(error.to_string()).into()),
        Err(ObjectError::Git(error)) => Err(missing(error.message().to_owned()).into()),
    }
}

/// The parts that a signed commit must have.
struct Wanted<'c> {
    tree: CommitId,
    parent: CommitId,
    message: &'c [u8],
}

impl Wanted<'_> {
    /// Returns the part by which a commit differs, if there is one.
    ///
    /// Line breaks at the end of the message do not count: forges may remove them.
    fn difference(&self, commit: &[u8]) -> Option<&'static str> {
        let (headers, message) = split(commit);
        let tree = format!("tree {}\n", self.tree);
        if commit.len() > MAX_COMMIT {
            Some("size")
        } else if !headers.starts_with(tree.as_bytes()) {
            Some("tree")
        } else if stated_parents(commit) != [self.parent] {
            Some("parent")
        } else if message.trim_ascii_end() != self.message.trim_ascii_end() {
            Some("message")
        } else if !headers.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"gpgsig ")) {
            Some("signature: none")
        } else {
            None
        }
    }
}

pub(in crate::git) fn tree_of(repository: &Repository, commit: CommitId) -> Result<CommitId, SyncError> {
    Ok(object::find_commit(repository, commit)?.tree_id().into())
}

/// Returns the files by which two trees differ.
fn changed_files(
    repository: &Repository,
    database: &Odb<'_>,
    before: CommitId,
    after: CommitId,
) -> Result<Vec<ChangedFile>, Unsigned> {
    let (before, after) = (repository.find_tree(before.oid())?, repository.find_tree(after.oid())?);
    let diff = repository.diff_tree_to_tree(Some(&before), Some(&after), None)?;
    let mut files = Vec::new();
    for delta in diff.deltas() {
        let file = delta.new_file();
        let bytes = file.path_bytes().unwrap_or_default();
        let refused = |defect| {
            let path = String::from_utf8_lossy(bytes).into_owned();
            Unsigned::from(ForgeSigningError::File { path, defect })
        };
        let path = std::str::from_utf8(bytes).map_err(|_| refused("its path is not UTF-8"))?;
        let is_executable = match (delta.status(), file.mode()) {
            (Delta::Modified | Delta::Added, FileMode::Blob | FileMode::BlobGroupWritable) => false,
            (Delta::Modified | Delta::Added, FileMode::BlobExecutable) => true,
            _ => return Err(refused("it is no file")),
        };
        let (size, _) = database.read_header(file.id())?;
        if size > MAX_FILE {
            return Err(refused("it has more than 32 MiB"));
        }
        if files.len() == MAX_FILES {
            return Err(refused("it changes more than 20,000 files"));
        }
        files.push(ChangedFile { path: path.to_owned(), is_executable, blob: file.id().into(), size });
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_commit_must_have_our_tree_parent_and_message() {
        let id = |digit: &str| digit.repeat(40).parse::<CommitId>().unwrap();
        let wanted = Wanted { tree: id("1"), parent: id("2"), message: b"m\n" };
        let commit = |tree: &str, parents: &[&str], signature: &str, message: &str| {
            let parents: String = parents.iter().map(|parent| format!("parent {}\n", id(parent))).collect();
            format!("tree {}\n{parents}author a\ncommitter c{signature}\n\n{message}", id(tree))
        };
        let signature = "\ngpgsig x";
        for (commit, difference) in [
            (commit("1", &["2"], signature, "m\n"), None),
            (commit("1", &["2"], signature, "m"), None),
            (commit("3", &["2"], signature, "m"), Some("tree")),
            (commit("1", &["3"], signature, "m"), Some("parent")),
            (commit("1", &["2", "3"], signature, "m"), Some("parent")),
            (commit("1", &[], signature, "m"), Some("parent")),
            (commit("1", &["2"], signature, "m\n\nCo-authored-by: x"), Some("message")),
            (commit("1", &["2"], "", "m"), Some("signature: none")),
        ] {
            assert_eq!(wanted.difference(commit.as_bytes()), difference, "{commit}");
        }
    }
}
