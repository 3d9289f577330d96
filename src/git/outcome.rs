//! What came of a proposal.

use std::fmt;

use super::checkout::{CheckoutReference, Revision};
use super::name::{BranchName, CommitId};
use super::refspec::Refspec;

/// Where a proposal starts from and where its commit goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What to start from.
    pub checkout: CheckoutReference,
    /// The branch that gets the commit. Where it exists, the commit is made on top of it; otherwise it is made from
    /// the checkout.
    pub push: BranchName,
    /// A further push of the same run.
    pub refspec: Option<Refspec>,
    /// Push options, sent as `key=value` to servers that take them.
    pub options: Vec<(String, String)>,
}

impl Target {
    /// Whether proposals for both can be made one after the other and pushed at once.
    pub(super) fn shares_transaction(&self, other: &Self) -> bool {
        (&self.checkout, &self.push, &self.options) == (&other.checkout, &other.push, &other.options)
    }
}

/// What came of a proposal that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The remote is as the last run of the same proposal left it, so nothing was fetched or looked at.
    NothingNew,
    /// The files were looked at and are as they should be.
    NothingToCommit {
        /// What was checked out.
        source: Revision,
    },
    /// A commit would have been made; this run only shows what would happen.
    Rehearsed {
        /// What was checked out.
        source: Revision,
    },
    /// A commit arrived on the remote.
    Pushed(Push),
}

/// A commit that arrived on the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// What was checked out.
    pub source: Revision,
    /// The branch that has the commit now.
    pub branch: BranchName,
    /// The commit.
    pub commit: CommitId,
    /// The refspec that was pushed too.
    pub refspec: Option<String>,
    /// The commit's message; a very long one is cut, and says so at its end.
    pub message: String,
    /// What is checked out now, where all of it was there already: an earlier run made the push and could not tell, or
    /// one at the same time did, and may have told meanwhile.
    pub found: Option<Revision>,
}

/// The maximum length of the message that an outcome keeps, in bytes: as much as an event may show, and less if the
/// messages of all `proposals` in a transaction could otherwise take more than 16 MiB.
pub(super) fn message_limit(proposals: usize) -> usize {
    const MAX_MESSAGE: usize = 255 * 1024;
    const MAX_MESSAGES: usize = 16 * 1024 * 1024;
    MAX_MESSAGE.min(MAX_MESSAGES / proposals.max(1))
}

/// The beginning of a commit's message in at most `limit` bytes.
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
            // What is cut twice says so once.
            assert_eq!(excerpt(&cut, 63).matches("cut").count(), 1);
        }
    }
}
