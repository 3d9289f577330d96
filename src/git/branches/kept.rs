//! Commits of proposers that take no part in a transaction, kept on new branches.
//!
//! Such a proposer is suspended, has failed, or was not selected. Its change is merged into the new tree, and its commit keeps
//! author and message. Nothing is lost if that is not possible: the branch stays as it is.

use std::collections::BTreeMap;

use git2::{MergeOptions, ObjectType, Odb, Oid, Repository, Tree};

use super::attempt::{Branch, BranchAttempt, Built};
use crate::git::attempt::context::AttemptContext;
use crate::git::commit::{rewrite_commit, stated_parents};
use crate::git::commit_error::CommitError;
use crate::git::error::SyncError;
use crate::git::name::CommitId;
use crate::git::object;
use crate::git::pack::NewObjects;
use crate::git::proposal::Proposer;
use crate::git::push_journal::{OwnChange, OwnTip};
use crate::update::Checkpoint;

/// A commit that is kept.
#[derive(Clone, Debug)]
pub(super) struct KeptCommit {
    /// The name of the proposer's proposals.
    pub(super) name: String,
    /// The hash of its edits.
    pub(super) hash: String,
    /// The commit; after the branch was made, the one on it.
    pub(super) commit: CommitId,
}

/// The result of keeping commits on a new branch.
pub(super) enum Keeping {
    /// They are on it.
    Done,
    /// The commit of this proposer cannot be kept.
    Impossible(String),
}

impl<P: Proposer> BranchAttempt<P> {
    /// Returns the hash of each participant's edits of a branch, by name.
    ///
    /// There is no hash of one without edits.
    pub(super) fn changes<'b>(&self, branch: &'b Branch) -> BTreeMap<&str, Option<&'b str>> {
        let owners = self.states.iter().filter(|state| state.is_open());
        let owners = owners.filter(|state| state.proposal.proposer.branches().contains_key(&branch.name));
        let names = owners.map(|state| state.proposal.name.as_str());
        names.map(|name| (name, branch.changes.get(name).map(String::as_str))).collect()
    }

    /// Returns true if a tip of ours has the wanted changes.
    ///
    /// Others that share the branch may have changes there as well.
    pub(super) fn has_changes(&self, branch: &Branch, own: &OwnTip) -> bool {
        let changes = self.changes(branch);
        let is_same = |(name, hash): (&&str, &Option<&str>)| {
            own.members.get(*name).map(|member| member.hash.as_str()) == *hash
        };
        changes.iter().all(is_same)
            && own
                .members
                .keys()
                .all(|name| changes.contains_key(name.as_str()) || self.is_shared(branch, name))
    }

    fn is_shared(&self, branch: &Branch, name: &str) -> bool {
        self.owners(&branch.name).any(|owner| owner.shares(&branch.name, name))
    }

    /// Returns the commits of a tip of ours that are to be kept.
    ///
    /// They are fetched with their parents. One that cannot be fetched is left to the merge, which fails.
    ///
    /// # Errors
    ///
    /// If the work was ended.
    pub(super) fn find_kept(
        &self,
        branch: &Branch,
        own: &OwnTip,
        context: &AttemptContext<'_>,
    ) -> Result<Vec<KeptCommit>, SyncError> {
        let changes = self.changes(branch);
        let mut kept = Vec::new();
        for (name, OwnChange { hash, commit }) in &own.members {
            let Some(commit) = commit.filter(|_| !changes.contains_key(name.as_str())) else { continue };
            if !self.is_shared(branch, name) {
                continue;
            }
            if let Err(error) = fetch_with_parent(commit, context)
                && error.is_interruption()
            {
                return Err(error);
            }
            kept.push(KeptCommit { name: name.clone(), hash: hash.clone(), commit });
        }
        Ok(kept)
    }

    /// Makes the kept commits again on top of a branch that was built.
    ///
    /// # Errors
    ///
    /// If an object cannot be written, or `checkpoint` returns an error.
    pub(super) fn keep(
        branch: &Branch,
        built: &mut Built,
        objects: &mut NewObjects<'_>,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Keeping, CommitError> {
        for kept in &branch.kept {
            let merged = merged_tree(objects.repository(), kept.commit, built.tip);
            let Ok(Some(Merged { tree, content, new })) = merged else {
                return Ok(Keeping::Impossible(kept.name.clone()));
            };
            if object::find_commit(objects.repository(), built.tip)?.tree_id() == tree {
                // The base has its values by now.
                continue;
            }
            for (kind, content) in new {
                objects.write(kind, content, checkpoint)?;
            }
            let (_, rest) = content.split_once('\n').unwrap_or_default();
            let content = format!("tree {tree}\n{rest}");
            let copy = objects.write(ObjectType::Commit, content.into_bytes(), checkpoint)?;
            built.tip = rewrite_commit(objects, copy.into(), built.tip, None, checkpoint)?;
            built.kept.push(KeptCommit { commit: built.tip, ..kept.clone() });
        }
        Ok(Keeping::Done)
    }
}

/// Returns the members of a branch that was built, by the proposer's name.
pub(super) fn members(
    branch: &Branch,
    built: &Built,
    commits: impl Iterator<Item = (String, CommitId)>,
) -> BTreeMap<String, OwnChange> {
    let mut members: BTreeMap<String, OwnChange> = branch
        .changes
        .iter()
        .map(|(name, hash)| (name.clone(), OwnChange { hash: hash.clone(), commit: None }))
        .collect();
    for (name, commit) in commits {
        members.entry(name).and_modify(|member| member.commit = Some(commit));
    }
    let kept = built.kept.iter();
    members.extend(kept.map(|KeptCommit { name, hash, commit }| {
        (name.clone(), OwnChange { hash: hash.clone(), commit: Some(*commit) })
    }));
    members
}

fn fetch_with_parent(commit: CommitId, context: &AttemptContext<'_>) -> Result<(), SyncError> {
    context.fetch_commit(commit)?;
    let objects = context.mirror.repository.odb()?;
    let parents = stated_parents(object::read_commit(&objects, commit)?.data());
    parents.first().map_or(Ok(()), |parent| context.fetch_commit(*parent).map(|_| ()))
}

/// The change of a commit, merged into another tree.
struct Merged {
    tree: Oid,
    /// The content of the commit.
    content: String,
    /// The trees and files that neither of the two had.
    new: Vec<(ObjectType, Vec<u8>)>,
}

/// Merges the change of a commit into the tree of another.
///
/// There is none if the two conflict, or if the commit is signed: nothing but its proposer can sign it again.
fn merged_tree(
    repository: &Repository,
    commit: CommitId,
    onto: CommitId,
) -> Result<Option<Merged>, SyncError> {
    let objects = repository.odb()?;
    let content = object::read_commit(&objects, commit)?.data().to_vec();
    let Some(parent) = stated_parents(&content).first().copied() else { return Ok(None) };
    let Ok(content) = String::from_utf8(content) else { return Ok(None) };
    let headers = content.split("\n\n").next().unwrap_or_default();
    if headers.lines().any(|line| line.starts_with("gpgsig")) {
        return Ok(None);
    }
    let tree = |commit| -> Result<_, SyncError> { Ok(object::find_commit(repository, commit)?.tree()?) };
    let options = MergeOptions::new();
    let mut merged = repository.merge_trees(&tree(parent)?, &tree(onto)?, &tree(commit)?, Some(&options))?;
    if merged.has_conflicts() {
        return Ok(None);
    }
    let root = merged.write_tree_to(repository)?;
    let mut new = Vec::new();
    add_new(&objects, repository, root, [Some(tree(onto)?), Some(tree(commit)?)], &mut new)?;
    Ok(Some(Merged { tree: root, content, new }))
}

/// Adds the objects of a tree that neither of two other trees has there.
fn add_new(
    objects: &Odb<'_>,
    repository: &Repository,
    tree: Oid,
    known: [Option<Tree<'_>>; 2],
    new: &mut Vec<(ObjectType, Vec<u8>)>,
) -> Result<(), SyncError> {
    if known.iter().flatten().any(|other| other.id() == tree) {
        return Ok(());
    }
    new.push((ObjectType::Tree, objects.read(tree)?.data().to_vec()));
    for entry in &repository.find_tree(tree)? {
        let before = known.each_ref().map(|other| other.as_ref()?.get_name_bytes(entry.name_bytes()));
        if before.iter().flatten().any(|other| other.id() == entry.id()) {
            continue;
        }
        match entry.kind() {
            Some(ObjectType::Tree) => {
                let below = before.map(|other| repository.find_tree(other?.id()).ok());
                add_new(objects, repository, entry.id(), below, new)?;
            }
            Some(ObjectType::Blob) => {
                new.push((ObjectType::Blob, objects.read(entry.id())?.data().to_vec()));
            }
            _ => {}
        }
    }
    Ok(())
}
