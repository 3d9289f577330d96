//! The outcome of a proposal, and its target.

use std::fmt;

use super::branches::{BranchOutcome, Refresh};
use super::checkout::{CheckoutReference, Revision};
use super::name::{BranchName, CommitId};
use super::refspec::Refspec;

/// The source and the destination of a proposal's commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The reference to start from.
    pub checkout: CheckoutReference,
    /// The branch that gets the commit.
    /// If it exists, the commit is made on top of it, otherwise on the checkout.
    pub push: BranchName,
    /// A further push of the same run.
    pub refspec: Option<Refspec>,
    /// The rule for the proposer's own branches, if it has some.
    ///
    /// Then the push branch is the base.
    pub own_branches: Option<Refresh>,
    /// Push options, sent as `key=value` to servers that take them.
    pub options: Vec<(String, String)>,
}

/// A setting by which two proposals cannot be part of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separation {
    /// One has branches of its own, and the other has a push branch.
    Kind,
    /// They have different push branches; with branches of their own, different bases.
    Branch,
    /// They start from different references.
    Checkout,
    /// They have different push options.
    Options,
}

impl Target {
    /// Returns the first setting that separates proposals for both, if there is one.
    ///
    /// Without one, they can be made in sequence and pushed at once.
    pub fn separation(&self, other: &Self) -> Option<Separation> {
        let kind = |target: &Self| target.own_branches.is_some();
        if kind(self) != kind(other) {
            Some(Separation::Kind)
        } else if self.push != other.push {
            Some(Separation::Branch)
        } else if !kind(self) && self.checkout != other.checkout {
            // Branches of their own start from the base, also if it is checked out by another name.
            Some(Separation::Checkout)
        } else if self.options != other.options {
            Some(Separation::Options)
        } else {
            None
        }
    }

    /// Returns true if proposals for both can be made in sequence and pushed at once.
    pub fn shares_transaction(&self, other: &Self) -> bool {
        self.separation(other).is_none()
    }

    /// Returns the target of a proposer with branches of its own on this base.
    #[must_use]
    pub fn with_own_branches(self, base: BranchName, refresh: Refresh) -> Self {
        Self { push: base, own_branches: Some(refresh), ..self }
    }

    /// Returns the branches to which a proposer without branches of its own pushes.
    pub fn pushed_branches(&self) -> impl Iterator<Item = BranchName> {
        let further = self.refspec.as_ref().and_then(|refspec| refspec.destination.branch());
        [self.push.clone()].into_iter().chain(further)
    }
}

/// The outcome of a proposal that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The remote is unchanged since the last run, so nothing was fetched or read.
    NothingNew,
    /// The files need no change.
    NothingToCommit {
        /// The revision that was checked out.
        source: Revision,
    },
    /// Something would have been pushed, but this is a dry run.
    DryRun {
        /// The revision that was checked out.
        source: Revision,
        /// The refspec of an earlier commit, if that is all.
        refspec: Option<String>,
    },
    /// A commit would have been made or pushed, but the proposer waits.
    Waiting {
        /// The revision that was checked out.
        source: Revision,
    },
    /// A commit was pushed.
    Pushed(Push),
    /// The proposer's own branches were looked at, and pushed if that was necessary.
    Branches {
        /// The revision of the base.
        base: Revision,
        /// The result for each branch, by name.
        branches: Vec<BranchOutcome>,
        /// True if nothing was pushed, because it is a dry run.
        is_dry_run: bool,
    },
}

/// A commit that was pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// The revision that was checked out.
    pub source: Revision,
    /// The branch that has the commit now.
    pub branch: BranchName,
    /// The commit.
    pub commit: CommitId,
    /// The refspec that was pushed too.
    pub refspec: Option<String>,
    /// The commit's message; a very long one is cut, and says so at its end.
    pub message: String,
    /// The revision that is checked out now, if the push was found there.
    /// An earlier run pushed it without learning the result, or a concurrent run did, which may have reported it.
    pub found: Option<Revision>,
}

/// Returns the maximum length, in bytes, of the message in an outcome.
///
/// It is as much as an event may show, and less if the messages of all `proposals` in a transaction could
/// otherwise take more than 16 MiB.
pub(super) fn message_limit(proposals: usize) -> usize {
    const MAX_MESSAGE: usize = 255 * 1024;
    const MAX_MESSAGES: usize = 16 * 1024 * 1024;
    MAX_MESSAGE.min(MAX_MESSAGES / proposals.max(1))
}

/// Returns the beginning of a commit's message in at most `limit` bytes.
pub(super) fn excerpt(message: &str, limit: usize) -> String {
    const NOTE: &str = "… (cut: the commit has the whole message)";
    if message.len() <= limit {
        return message.to_owned();
    }
    format!("{}{NOTE}", &message[..message.floor_char_boundary(limit - NOTE.len())])
}

/// Prints as Flux sums up a push: `pushed commit 'ff3f5bd' to branch 'main'` (`docs/flux-behaviour.md`, Events).
impl fmt::Display for Push {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "pushed commit '{}' to branch '{}'", self.commit.short(), self.branch)?;
        match &self.refspec {
            Some(refspec) => write!(formatter, " and refspecs '{refspec}'"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_proposals_for_one_branch_or_on_one_base() {
        use Separation::{Branch, Checkout, Kind, Options};
        // A target as `checkout push options`; an empty push branch stands for own branches.
        let target = |text: &str| {
            let [checkout, push, options] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
            let checkout = match checkout.strip_prefix("refs/heads/") {
                Some(_) => CheckoutReference::Name(checkout.parse().unwrap()),
                None => CheckoutReference::Branch(checkout.parse().unwrap()),
            };
            let options = options.chars().map(|key| (key.to_string(), "1".to_owned())).collect();
            let base = checkout.branch().unwrap();
            let own = push.is_empty();
            let push = if own { base.clone() } else { push.parse().unwrap() };
            let target = Target { checkout, push, refspec: None, own_branches: None, options };
            if own { target.with_own_branches(base, Refresh::WhenNeeded) } else { target }
        };
        for (one, other, expected) in [
            ("main main ", "main main ", None),
            ("main auto ", "main main ", Some(Branch)),
            ("main auto ", "release auto ", Some(Checkout)),
            ("main auto ", "refs/heads/main auto ", Some(Checkout)),
            ("main auto a", "main auto ", Some(Options)),
            ("main main ", "main  ", Some(Kind)),
            ("main  ", "main  ", None),
            ("main  ", "release  ", Some(Branch)),
            // Two names of one base.
            ("main  ", "refs/heads/main  ", None),
            ("main  a", "main  b", Some(Options)),
            ("main  ab", "main  ab", None),
        ] {
            let (one, other) = (target(one), target(other));
            assert_eq!(
                (one.separation(&other), other.separation(&one)),
                (expected, expected),
                "{one:?} {other:?}"
            );
        }
    }

    #[test]
    fn the_messages_of_a_transaction_take_at_most_16_mib() {
        assert_eq!([0, 1, 64].map(message_limit), [255 * 1024; 3]);
        assert_eq!(message_limit(256), 64 * 1024);
    }

    /// A batch held each message of up to 900 KiB several times over.
    #[test]
    fn a_long_message_is_cut_at_a_character() {
        assert_eq!(excerpt("ä\nb", 64), "ä\nb");
        assert_eq!(excerpt(&"b".repeat(64), 64), "b".repeat(64));
        for prefix in ["", "b"] {
            let cut = excerpt(&format!("{prefix}{}", "ä".repeat(1000)), 64);
            assert!(cut.ends_with("ä… (cut: the commit has the whole message)"), "{cut}");
            assert!((62..=64).contains(&cut.len()), "{}", cut.len());
            // A text that is cut twice is marked once.
            assert_eq!(excerpt(&cut, 63).matches("cut").count(), 1);
        }
    }
}
