//! Finds the commit that a run starts from, by a checkout reference and a listing.

use super::checkout::{CheckoutReference, Revision};
use super::error::SyncError;
use super::failure_kind::FailureKind;
use super::listing::{Listing, RefTarget};
use super::mirror::Mirror;
use super::name::{BranchName, CommitId, RefName};
use super::object;
use super::remote::{ListingQuery, Remote};
use super::server_deadline::ServerDeadline;
use crate::policy::{Constraint, Version};

/// The maximum number of references named in place of a missing one.
const MAX_NAMED: usize = 5;

/// The commit that a run starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The commit and its name.
    pub(super) revision: Revision,
    /// The object to fetch: the commit, or a tag in front of it.
    pub(super) object: CommitId,
}

/// Returns the references that must be listed to find a checkout.
pub(super) fn listing_query(checkout: &CheckoutReference) -> Option<ListingQuery> {
    match checkout {
        CheckoutReference::Branch(branch) => Some(ListingQuery::Reference(branch.reference())),
        CheckoutReference::Tag(name) | CheckoutReference::Name(name) => {
            Some(ListingQuery::Reference(name.clone()))
        }
        CheckoutReference::Semver(_) => Some(ListingQuery::Tags),
        CheckoutReference::Commit { .. } => None,
    }
}

/// Finds the commit to check out.
///
/// # Errors
///
/// If the remote does not have it.
pub(super) fn choose(
    checkout: &CheckoutReference,
    listing: &Listing,
    mirror: &Mirror,
    remote: &Remote,
    deadline: &ServerDeadline,
) -> Result<Source, SyncError> {
    let of = |name: &RefName, listed: RefTarget| Source {
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
                [] => {
                    let (url, range, existing) =
                        (remote.url.to_string(), range.clone(), existing_tags(listing));
                    return Err(SyncError::NoVersion { url, range, existing });
                }
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

/// Checks that the remote has a commit, which no listing shows.
fn find(
    commit: CommitId,
    mirror: &Mirror,
    remote: &Remote,
    deadline: &ServerDeadline,
) -> Result<(), SyncError> {
    if mirror.has(commit) {
        return Ok(());
    }
    remote.fetch(mirror, &[commit], deadline).map_err(|error| match error.failure_kind() {
        Some(FailureKind::Gone) => SyncError::UnknownCommit { url: remote.url.to_string(), commit },
        _ => error.into(),
    })
}

/// Returns the tags of the highest version within a range.
/// Several tags may differ only in build metadata or a leading `v`.
fn highest<'l>(range: &str, listing: &'l Listing) -> Result<Vec<(&'l RefName, RefTarget)>, SyncError> {
    let constraint: Constraint =
        Constraint::parse(range).map_err(|cause| SyncError::Range { range: range.to_owned(), cause })?;
    let tags = listing.tags().filter_map(|tag| Some((Version::parse_tag(tag.0.short()).ok()?, tag)));
    let tags: Vec<(Version, (&RefName, RefTarget))> = tags.collect();
    let highest = constraint.highest(tags.iter().map(|(version, _)| version));
    let is_highest = |version: &Version| highest.first().is_some_and(|highest| *highest == version);
    Ok(tags.iter().filter(|(version, _)| is_highest(version)).map(|(_, tag)| *tag).collect())
}

/// Returns the tag of the newest commit.
fn newest<'l>(
    tags: &[(&'l RefName, RefTarget)],
    mirror: &Mirror,
    remote: &Remote,
    deadline: &ServerDeadline,
) -> Result<(&'l RefName, RefTarget), SyncError> {
    let unknown = tags.iter().filter(|(_, listed)| !mirror.has(listed.commit()));
    let objects: Vec<CommitId> = unknown.map(|(_, listed)| listed.object).collect();
    if !objects.is_empty() {
        remote.fetch(mirror, &objects, deadline)?;
    }
    let mut newest = None;
    for (name, listed) in tags {
        let time = object::find_commit(&mirror.repository, listed.commit())?.time().seconds();
        if newest.is_none_or(|(before, _)| time > before) {
            newest = Some((time, (*name, *listed)));
        }
    }
    Ok(newest.map(|(_, tag)| tag).expect("several tags were given"))
}

/// Returns the error of a missing reference, with the existing ones.
fn missing(name: RefName, mirror: &Mirror, remote: &Remote, deadline: &ServerDeadline) -> SyncError {
    let url = remote.url.to_string();
    match remote.list(mirror, &[], deadline) {
        Ok(all) if all.is_empty && !remote.speaks_git(mirror, deadline) => SyncError::NotGit { url },
        Ok(all) if all.is_empty => SyncError::Empty { url },
        Ok(all) => {
            let existing = existing(&name, &all);
            SyncError::NoReference { url, name, existing: Some(existing) }
        }
        Err(_) => SyncError::NoReference { url, name, existing: None },
    }
}

/// Returns, in words, the existing references of the same kind as a missing one.
/// These are tags for a tag, else branches.
fn existing(missing: &RefName, listing: &Listing) -> String {
    if missing.as_str().starts_with("refs/tags/") {
        return existing_tags(listing);
    }
    some_names("branches", &listing.branches().collect::<Vec<_>>())
}

/// The tags that a remote has, in words.
fn existing_tags(listing: &Listing) -> String {
    some_names("tags", &listing.tags().map(|(name, _)| name.short()).collect::<Vec<_>>())
}

/// The first few names of a kind, in words.
fn some_names(kind: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return format!("it has no {kind}");
    }
    let more = if names.len() > MAX_NAMED { ", …" } else { "" };
    format!("its {kind} are {}{more}", names[..names.len().min(MAX_NAMED)].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_missing_reference_lists_existing_ones() {
        let text = |names: &[&str]| -> String {
            names.iter().map(|name| format!("{}\t{name}\n", "1".repeat(40))).collect()
        };
        let many: Vec<String> = (1..=6).map(|number| format!("refs/tags/v{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (missing, names, expected) in [
            ("refs/tags/v1", &["refs/heads/main", "refs/tags/v0"][..], "its tags are v0"),
            ("refs/tags/v1", &["refs/heads/main"], "it has no tags"),
            ("refs/tags/v0", &many, "its tags are v1, v2, v3, v4, v5, …"),
            (
                "refs/heads/x",
                &["refs/heads/a/b", "refs/heads/main", "refs/tags/x"],
                "its branches are a/b, main",
            ),
            ("refs/pull/1/head", &["refs/heads/main"], "its branches are main"),
            ("refs/heads/x", &["refs/tags/x"], "it has no branches"),
        ] {
            let listing = Listing::parse(text(names).as_bytes()).unwrap();
            assert_eq!(existing(&missing.parse().unwrap(), &listing), expected, "{missing} {names:?}");
        }
    }
}
