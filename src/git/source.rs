//! From a checkout reference and a listing to the commit that a run starts from.

use std::time::Instant;

use super::checkout::{CheckoutReference, Revision};
use super::diagnosis::Trouble;
use super::error::SyncError;
use super::listing::{Listed, Listing};
use super::mirror::Mirror;
use super::name::{BranchName, CommitId, RefName};
use super::object;
use super::remote::{Remote, Wanted};
use crate::policy::{Constraint, Version};

/// The commit that a run starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The commit and how it was named.
    pub(super) revision: Revision,
    /// The object to fetch: the commit, or a tag in front of it.
    pub(super) object: CommitId,
}

/// What has to be listed to find a checkout.
pub(super) fn wanted(checkout: &CheckoutReference) -> Option<Wanted> {
    match checkout {
        CheckoutReference::Branch(branch) => Some(Wanted::Reference(branch.reference())),
        CheckoutReference::Tag(name) | CheckoutReference::Name(name) => Some(Wanted::Reference(name.clone())),
        CheckoutReference::Semver(_) => Some(Wanted::Tags),
        CheckoutReference::Commit { .. } => None,
    }
}

/// Finds what is checked out.
///
/// # Errors
///
/// When the remote does not have it.
pub(super) fn choose(
    checkout: &CheckoutReference,
    listing: &Listing,
    mirror: &Mirror,
    remote: &Remote,
    deadline: Instant,
) -> Result<Source, SyncError> {
    let of = |name: &RefName, listed: Listed| Source {
        revision: Revision { reference: Some(name.clone()), commit: listed.commit() },
        object: listed.object,
    };
    match checkout {
        CheckoutReference::Branch(branch) => {
            let name = branch.reference();
            listing
                .get(&name)
                .map(|listed| of(&name, listed))
                .ok_or_else(|| missing(name, mirror, remote, deadline))
        }
        CheckoutReference::Tag(name) | CheckoutReference::Name(name) => listing
            .get(name)
            .map(|listed| of(name, listed))
            .ok_or_else(|| missing(name.clone(), mirror, remote, deadline)),
        CheckoutReference::Semver(range) => {
            let tied = highest(range, listing)?;
            let newest = match tied.as_slice() {
                [] => return Err(SyncError::NoVersion { url: remote.url.to_string(), range: range.clone() }),
                [one] => *one,
                several => newest(several, mirror, remote, deadline)?,
            };
            Ok(of(newest.0, newest.1))
        }
        CheckoutReference::Commit { commit, branch } => {
            find(*commit, mirror, remote, deadline)?;
            let reference = branch.as_ref().map(BranchName::reference);
            Ok(Source { revision: Revision { reference, commit: *commit }, object: *commit })
        }
    }
}

/// Makes sure that the remote has a commit, which no listing tells.
fn find(commit: CommitId, mirror: &Mirror, remote: &Remote, deadline: Instant) -> Result<(), SyncError> {
    if mirror.has(commit) {
        return Ok(());
    }
    remote.fetch(mirror, &[commit], deadline).map_err(|error| match error.trouble() {
        Some(Trouble::Gone) => SyncError::UnknownCommit { url: remote.url.to_string(), commit },
        _ => error.into(),
    })
}

/// The tags of the highest version within a range; several may differ only in build metadata or a leading `v`.
fn highest<'l>(range: &str, listing: &'l Listing) -> Result<Vec<(&'l RefName, Listed)>, SyncError> {
    let constraint: Constraint =
        Constraint::parse(range).map_err(|cause| SyncError::Range { range: range.to_owned(), cause })?;
    let tags = listing.tags().filter_map(|tag| Some((Version::parse_tag(tag.0.short()).ok()?, tag)));
    let tags: Vec<(Version, (&RefName, Listed))> = tags.collect();
    let highest = constraint.highest(tags.iter().map(|(version, _)| version));
    let is_highest = |version: &Version| highest.first().is_some_and(|highest| *highest == version);
    Ok(tags.iter().filter(|(version, _)| is_highest(version)).map(|(_, tag)| *tag).collect())
}

/// The tag of the newest commit.
fn newest<'l>(
    tags: &[(&'l RefName, Listed)],
    mirror: &Mirror,
    remote: &Remote,
    deadline: Instant,
) -> Result<(&'l RefName, Listed), SyncError> {
    let unknown = tags.iter().filter(|(_, listed)| !mirror.has(listed.commit()));
    let objects: Vec<CommitId> = unknown.map(|(_, listed)| listed.object).collect();
    if !objects.is_empty() {
        remote.fetch(mirror, &objects, deadline)?;
    }
    let mut newest = None;
    for (name, listed) in tags {
        let time = object::find_commit(mirror.repository(), listed.commit())?.time().seconds();
        if newest.is_none_or(|(before, _)| time > before) {
            newest = Some((time, (*name, *listed)));
        }
    }
    Ok(newest.map(|(_, tag)| tag).expect("several tags were given"))
}

/// Says what there is instead of a reference that there is not.
fn missing(name: RefName, mirror: &Mirror, remote: &Remote, deadline: Instant) -> SyncError {
    let url = remote.url.to_string();
    match remote.list(mirror, &[], deadline) {
        Ok(all) if all.is_empty && !remote.speaks_git(mirror, deadline) => SyncError::NotGit { url },
        Ok(all) if all.is_empty => SyncError::Empty { url },
        Ok(all) => {
            SyncError::NoReference { url, name, branches: all.branches().map(str::to_owned).collect() }
        }
        Err(_) => SyncError::NoReference { url, name, branches: Vec::new() },
    }
}
