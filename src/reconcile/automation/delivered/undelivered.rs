//! The policies whose images are not delivered, in the message of the condition `Delivery`.
//!
//! By them `tagboat explain automation` knows what the last run did not deliver: the status has no branches.

use std::collections::{BTreeMap, BTreeSet};

use tagboat_api::Condition;

use super::super::pull_requests::{PART, PullRequestProgress};
use super::{Delivered, ForgeProgress};
use crate::git::{BranchAction, BranchName, LeftReason};
use crate::reconcile::conditions::{self, ConditionType};

/// The beginning of the part with the policies.
const UNDELIVERED: &str = "not delivered: ";

/// The maximum length of their names in bytes; a condition has 32 KiB.
const MAX_NAMES: usize = 8 << 10;

/// The names of the policies of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchPolicies {
    /// All of them.
    pub all: BTreeSet<String>,
    /// Those whose images the base lacks.
    pub changed: BTreeSet<String>,
}

/// The policies whose images are not delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undelivered {
    /// Their names, each with the pull request by which a person has refused the image.
    policies: BTreeMap<String, Option<u64>>,
    /// True if there are more than the message names.
    has_more: bool,
}

impl Undelivered {
    /// Returns the policies that the condition `Delivery` names.
    pub fn of(conditions: &[Condition]) -> Self {
        let message = conditions::find(conditions, ConditionType::Delivery).map(|one| one.message.as_str());
        let parts = message.into_iter().flat_map(|message| message.rsplit(PART));
        // Texts of a forge come before it.
        let names = parts.filter_map(|part| part.strip_prefix(UNDELIVERED)).next();
        let Some(names) = names else { return Self::default() };
        let (names, has_more) = names.split_once(" and ").map_or((names, false), |(names, _)| (names, true));
        let entry = |text: &str| match text.strip_suffix(')').and_then(|text| text.split_once(" (#")) {
            Some((name, number)) => (name.to_owned(), number.parse().ok()),
            None => (text.to_owned(), None),
        };
        Self { policies: names.split(", ").map(entry).collect(), has_more }
    }

    /// Returns true if the image of a policy did not get on a branch.
    pub fn is_kept_out(&self, policy: &str) -> bool {
        self.policies.get(policy).map_or(self.has_more, Option::is_none)
    }

    /// Returns the policies whose images people have refused, with their pull requests.
    pub fn refused(&self) -> BTreeMap<String, u64> {
        self.policies.iter().filter_map(|(name, number)| Some((name.clone(), (*number)?))).collect()
    }

    /// Returns the part of a message; empty if there is none.
    fn part(&self) -> String {
        let mut length = 0;
        let entry = |(name, number): (&String, &Option<u64>)| match number {
            Some(number) => format!("{name} (#{number})"),
            None => name.clone(),
        };
        let entries: Vec<String> = self.policies.iter().map(entry).collect();
        let is_short = |entry: &&String| {
            length += entry.len() + ", ".len();
            length <= MAX_NAMES
        };
        let named = entries.iter().take_while(is_short).count();
        match (named, entries.len() - named) {
            (0, _) => String::new(),
            (named, 0) => format!("{PART}{UNDELIVERED}{}", entries[..named].join(", ")),
            (named, more) => format!("{PART}{UNDELIVERED}{} and {more} more", entries[..named].join(", ")),
        }
    }
}

impl Delivered {
    /// Returns the part of the condition's message about the images that are not delivered.
    ///
    /// `has_problem` is false for a message that counts the refused pull requests. If all images are refused, it is enough.
    pub(super) fn undelivered_part(&self, has_problem: bool) -> String {
        let progress = match &self.forge {
            ForgeProgress::Known(progress) => Some(progress.as_ref()),
            ForgeProgress::NotAsked | ForgeProgress::Awaited => None,
        };
        let mut policies = BTreeMap::new();
        for (branch, of_branch) in &self.policies {
            let refused = progress.and_then(|progress| progress.refusal(branch));
            if refused.is_some() || (has_problem && self.is_held_by_forge(branch, progress)) {
                policies.extend(of_branch.changed.iter().map(|name| (name.clone(), refused)));
            }
        }
        let are_all_refused = self.without_branch.is_empty()
            && self.policies.values().flat_map(|one| &one.all).all(|name| policies.contains_key(name));
        // Beside an open pull request, the numbers of several branches do not tell that all are refused.
        let is_clear =
            self.policies.len() == 1 || progress.is_none_or(|progress| progress.listed().is_empty());
        if !has_problem && are_all_refused && is_clear {
            return String::new();
        }
        policies.extend(self.without_branch.iter().map(|name| (name.clone(), None)));
        Undelivered { policies, has_more: false }.part()
    }

    /// Returns true if git has left a branch as it is because the forge failed.
    fn is_held_by_forge(&self, branch: &BranchName, progress: Option<&PullRequestProgress>) -> bool {
        let awaits = |action: &BranchAction| *action == BranchAction::Left(LeftReason::AwaitingForge);
        let is_awaiting = self.branches.iter().any(|one| one.branch == *branch && awaits(&one.action));
        // A failure may be that of one branch only.
        is_awaiting
            && progress.is_some_and(|progress| progress.failure.is_some() || progress.has_failed_at(branch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> Undelivered {
        let condition = serde_json::from_value(serde_json::json!({
            "type": "Delivery", "status": "True", "reason": "Current", "message": message,
            "lastTransitionTime": "2026-12-01T00:00:00Z",
        }));
        Undelivered::of(&[condition.unwrap()])
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let policies = BTreeMap::from([("api".to_owned(), None), ("web".to_owned(), Some(9))]);
        let some = Undelivered { policies, has_more: false };
        assert_eq!(some.part(), "; not delivered: api, web (#9)");
        for end in ["", "; 1 open: #7; the next retry is at 2026-01-01T00:00:05Z"] {
            let found = read(&format!("h refuses `x; not delivered: y`{}{end}", some.part()));
            assert_eq!(found, some, "{end}");
        }
        assert!(some.is_kept_out("api") && !some.is_kept_out("web") && !some.is_kept_out("other"));
        assert_eq!(some.refused(), BTreeMap::from([("web".to_owned(), 9)]));
        let many = (100..200).map(|number| (format!("{}{number}", "p".repeat(200)), None)).collect();
        let part = Undelivered { policies: many, has_more: false }.part();
        assert!(part.len() < MAX_NAMES + 100 && part.ends_with(" more"), "{part}");
        assert!(read(&part[PART.len()..]).is_kept_out("other"));
        for message in ["", "2 open: #12, #14; refused by a person: #9"] {
            assert_eq!(read(message), Undelivered::default(), "{message}");
        }
    }
}
