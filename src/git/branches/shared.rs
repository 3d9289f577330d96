//! Compares a branch that we pushed with the wanted change.
//!
//! It may have commits of proposers without a part in the transaction.

use std::collections::{BTreeMap, BTreeSet};

use super::decision::FoundBranch;
use crate::git::push_journal::OwnTip;

/// The wanted change of a branch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// The hash of all edits.
    pub(super) change: &'a str,
    /// The hash of the edits of each proposer that changes the branch, by name.
    pub(super) members: &'a BTreeMap<String, String>,
    /// The names of all proposers of the transaction.
    pub(super) participants: &'a BTreeSet<&'a str>,
    /// True if the branch need not be made anew for the base's sake.
    pub(super) is_fresh: bool,
}

/// Compares a tip of ours with the wanted change.
///
/// `awaited` returns the name of a proposer whose commit must not be dropped. So a branch with such a commit is the same if
/// each other commit is as wanted.
pub(super) fn compare(
    own: &OwnTip,
    wanted: &Wanted<'_>,
    awaited: &dyn Fn(&str) -> Option<String>,
) -> FoundBranch {
    if wanted.is_fresh && own.change == wanted.change {
        return FoundBranch::Same;
    }
    let (mut name, mut is_same) = (None, wanted.is_fresh);
    for (member, hash) in &own.members {
        if wanted.participants.contains(member.as_str()) {
            is_same &= wanted.members.get(member) == Some(hash);
            continue;
        }
        match awaited(member) {
            Some(found) => name = name.or(Some(found)),
            // Its commit is dropped.
            None => is_same = false,
        }
    }
    is_same &= wanted.members.keys().all(|member| own.members.contains_key(member));
    match name {
        Some(_) if is_same && !wanted.members.is_empty() => FoundBranch::Same,
        Some(name) => FoundBranch::Shared(name),
        None => FoundBranch::Ours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the edits of proposers, as `one=1 two=2`.
    fn edits(text: &str) -> BTreeMap<String, String> {
        let parts = text.split_whitespace().map(|part| part.split_once('=').unwrap());
        parts.map(|(name, hash)| (name.to_owned(), hash.to_owned())).collect()
    }

    #[test]
    fn a_commit_of_an_absent_automation_is_awaited_or_dropped_and_never_changed() {
        use FoundBranch::{Ours, Same};
        let shared = |name: &str| FoundBranch::Shared(name.to_owned());
        for (on_branch, participants, wanted, is_fresh, expected) in [
            // All take part.
            ("one=1 active=1", "one active", "one=1 active=1", true, Same),
            ("one=1 active=1", "one active", "one=2 active=1", true, Ours),
            ("one=1 active=1", "one active", "one=1 active=1", false, Ours),
            // One that takes part has nothing to change any more.
            ("one=1 active=1", "one active", "one=1", true, Ours),
            ("one=1", "one active", "one=1 active=1", true, Ours),
            // An active one takes no part.
            ("one=1 active=1", "one", "one=1", true, Same),
            ("one=1 active=1", "one", "one=2", true, shared("active")),
            ("one=1 active=1", "one", "one=1", false, shared("active")),
            ("one=1 active=1", "one", "", true, shared("active")),
            ("active=1", "one", "one=1", true, shared("active")),
            ("active=1", "one", "", true, shared("active")),
            // One that fails, is suspended or deleted does not delay the branch.
            ("one=1 gone=1", "one", "one=1", true, Ours),
            ("one=1 gone=1", "one", "one=2", true, Ours),
            ("gone=1", "one", "one=1", true, Ours),
            // The commit of the one is dropped once the other takes part.
            ("one=1 active=1 gone=1", "one", "one=1", true, shared("active")),
            ("one=1 active=1 gone=1", "one active", "one=1 active=1", true, Ours),
        ] {
            let (members, participants) = (edits(wanted), participants.split_whitespace().collect());
            let change = |members: &BTreeMap<String, String>| format!("{members:?}");
            let tip = "1".repeat(40).parse().unwrap();
            let own = OwnTip {
                tip,
                base: tip,
                change: change(&edits(on_branch)),
                members: edits(on_branch),
                verified: None,
                commits: Vec::new(),
            };
            let change = change(&members);
            let wanted = Wanted { change: &change, members: &members, participants: &participants, is_fresh };
            let awaited = |name: &str| (name == "active").then(|| name.to_owned());
            let found = compare(&own, &wanted, &awaited);
            assert_eq!(found, expected, "{on_branch} / {participants:?} {members:?} {is_fresh}");
        }
    }
}
