//! The reference that a run checks out, and the revision that it found.

use std::fmt;

use super::name::{BranchName, CommitId, NameError, RefName};

/// The reference that an automation checks out.
///
/// The precedence of the fields is Flux's: commit, name, tag, semver, branch (`docs/flux-behaviour.md`,
/// Checkout and push).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckoutReference {
    /// The tip of a branch.
    Branch(BranchName),
    /// A tag.
    Tag(RefName),
    /// The highest tag within a version range, in the syntax of Masterminds.
    Semver(String),
    /// Any reference by its full name.
    Name(RefName),
    /// One commit, and the branch that it is on, if that is known.
    Commit {
        /// The commit.
        commit: CommitId,
        /// The branch.
        branch: Option<BranchName>,
    },
}

/// The fields of a reference as Flux's kinds have them; empty ones count as absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReferenceFields<'a> {
    /// `branch`.
    pub branch: &'a str,
    /// `tag`.
    pub tag: &'a str,
    /// `semver`.
    pub semver: &'a str,
    /// `name`.
    pub name: &'a str,
    /// `commit`.
    pub commit: &'a str,
}

impl CheckoutReference {
    /// Returns the reference that `fields` ask for; the branch `master` if all are empty.
    ///
    /// # Errors
    ///
    /// If the field that counts is not a valid name in git.
    pub fn from_fields(fields: ReferenceFields<'_>) -> Result<Self, NameError> {
        let branch = || (!fields.branch.is_empty()).then(|| fields.branch.parse()).transpose();
        Ok(if !fields.commit.is_empty() {
            Self::Commit { commit: fields.commit.parse()?, branch: branch()? }
        } else if !fields.name.is_empty() {
            Self::Name(fields.name.parse()?)
        } else if !fields.tag.is_empty() {
            Self::Tag(RefName::of_tag(fields.tag)?)
        } else if !fields.semver.is_empty() {
            Self::Semver(fields.semver.to_owned())
        } else {
            Self::Branch(branch()?.unwrap_or_else(|| "master".parse().expect("master is a name")))
        })
    }

    /// Returns the branch that is checked out, if it is one.
    pub fn branch(&self) -> Option<BranchName> {
        match self {
            Self::Branch(branch) => Some(branch.clone()),
            Self::Name(name) => name.branch(),
            _ => None,
        }
    }
}

/// Prints as in `branch main`.
impl fmt::Display for CheckoutReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Branch(branch) => write!(formatter, "branch {branch}"),
            Self::Tag(tag) => write!(formatter, "tag {}", tag.short()),
            Self::Semver(range) => write!(formatter, "semver {range}"),
            Self::Name(name) => write!(formatter, "reference {name}"),
            Self::Commit { commit, .. } => write!(formatter, "commit {commit}"),
        }
    }
}

/// The commit that a run started from, and the reference that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The reference, if there is one.
    pub reference: Option<RefName>,
    /// The commit.
    pub commit: CommitId,
}

/// Prints as in Flux's status: `main@sha1:…`, or `sha1:…` without a reference (`docs/flux-behaviour.md`, Observations).
impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reference {
            Some(reference) => write!(formatter, "{}@sha1:{}", reference.short(), self.commit),
            None => write!(formatter, "sha1:{}", self.commit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_beats_name_beats_tag_beats_semver_beats_branch() {
        const COMMIT: &str = "00112233445566778899aabbccddeeff00112233";
        let all = ReferenceFields {
            branch: "b",
            tag: "t",
            semver: ">=1",
            name: "refs/pull/1/head",
            commit: COMMIT,
        };
        for (fields, expected) in [
            (all, format!("commit {COMMIT}")),
            (ReferenceFields { commit: "", ..all }, "reference refs/pull/1/head".to_owned()),
            (ReferenceFields { commit: "", name: "", ..all }, "tag t".to_owned()),
            (
                ReferenceFields { branch: "b", semver: ">=1", ..ReferenceFields::default() },
                "semver >=1".to_owned(),
            ),
            (ReferenceFields { branch: "b", ..ReferenceFields::default() }, "branch b".to_owned()),
            (ReferenceFields::default(), "branch master".to_owned()),
        ] {
            assert_eq!(CheckoutReference::from_fields(fields).unwrap().to_string(), expected);
        }
        for fields in [
            ReferenceFields { commit: "abc", ..all },
            ReferenceFields { name: "main", commit: "", ..all },
            ReferenceFields { tag: "a b", ..ReferenceFields::default() },
            ReferenceFields { branch: "-b", ..ReferenceFields::default() },
        ] {
            assert!(CheckoutReference::from_fields(fields).is_err(), "{fields:?}");
        }
    }

    #[test]
    fn revisions_print_as_in_a_status() {
        let commit: CommitId = "00112233445566778899aabbccddeeff00112233".parse().unwrap();
        for (reference, expected) in [
            (Some("refs/heads/feature/x"), "feature/x@sha1:00112233445566778899aabbccddeeff00112233"),
            (Some("refs/tags/v1"), "v1@sha1:00112233445566778899aabbccddeeff00112233"),
            (None, "sha1:00112233445566778899aabbccddeeff00112233"),
        ] {
            let reference = reference.map(|name| name.parse().unwrap());
            assert_eq!(Revision { reference, commit }.to_string(), expected);
        }
    }
}
