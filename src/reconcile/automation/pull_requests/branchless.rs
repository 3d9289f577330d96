//! Open pull requests without a branch.
//!
//! A forge that tells of them closes a pull request whose branch is deleted, but some moments later. So a person has reopened one
//! that stays open.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::forge::PullRequest;

/// The time in which a forge closes the pull request of a deleted branch.
pub(super) const CLOSING_TIME: Duration = Duration::from_secs(10);

/// The open pull requests without a branch, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Branchless {
    /// The times before the first listing that shows each so, and before the last one.
    listed: BTreeMap<u64, (Instant, Instant)>,
}

impl Branchless {
    /// Takes a listing of the open pull requests, which began at a time.
    pub(super) fn list(&mut self, open: &[PullRequest], begin: Instant) {
        let before = std::mem::take(&mut self.listed);
        let without = open.iter().filter(|one| one.lacks_branch).map(|one| one.number);
        let first = |number: &u64| before.get(number).map_or(begin, |(first, _)| *first);
        self.listed = without.map(|number| (number, (first(&number), begin))).collect();
    }

    /// Forgets a pull request whose branch a later run of git has seen.
    ///
    /// One that began before the first listing says nothing about it.
    pub(super) fn see(&mut self, number: u64, began: Instant) {
        self.listed.retain(|of, (first, _)| *of != number || began < *first);
    }

    /// Returns true if a person has reopened a pull request.
    pub(super) fn is_reopened(&self, number: u64) -> bool {
        self.listed.get(&number).is_some_and(is_long)
    }

    /// Returns true if the forge may still close a pull request.
    pub(super) fn may_close(&self, number: u64) -> bool {
        self.listed.get(&number).is_some_and(|times| !is_long(times))
    }
}

fn is_long((first, last): &(Instant, Instant)) -> bool {
    last.saturating_duration_since(*first) >= CLOSING_TIME
}

#[cfg(test)]
mod tests {
    use super::super::test_forge::open;
    use super::*;

    /// A pull request that was reopened without its branch counted as refused for ever.
    #[test]
    fn a_pull_request_that_stays_open_without_its_branch_was_reopened() {
        let earlier = Instant::now();
        let begin = earlier + Duration::from_secs(1);
        let without = PullRequest { lacks_branch: true, ..open(7, "a") };
        for (name, listings, expected) in [
            ("never listed", &[][..], (false, false)),
            ("its branch was deleted a moment ago", &[(0, true)], (false, true)),
            ("the forge had too little time", &[(0, true), (9, true)], (false, true)),
            ("it stays open", &[(0, true), (10, true)], (true, false)),
            ("its branch is there again", &[(0, true), (10, true), (20, false)], (false, false)),
            ("its branch was deleted again", &[(0, true), (10, false), (20, true)], (false, true)),
        ] {
            let mut branchless = Branchless::default();
            for (seconds, lacks_branch) in listings {
                let one = PullRequest { lacks_branch: *lacks_branch, ..without.clone() };
                branchless.list(&[one], begin + Duration::from_secs(*seconds));
            }
            assert_eq!((branchless.is_reopened(7), branchless.may_close(7)), expected, "{name}");
            let last = begin + Duration::from_secs(listings.last().map_or(0, |(seconds, _)| *seconds));
            branchless.see(8, last);
            branchless.see(7, earlier);
            assert_eq!((branchless.is_reopened(7), branchless.may_close(7)), expected, "{name}");
            branchless.see(7, last);
            assert_eq!((branchless.is_reopened(7), branchless.may_close(7)), (false, false), "{name}");
        }
        // The forge has closed it.
        let mut branchless = Branchless::default();
        branchless.list(&[without], begin);
        branchless.list(&[], begin + CLOSING_TIME);
        assert_eq!((branchless.is_reopened(7), branchless.may_close(7)), (false, false));
    }
}
