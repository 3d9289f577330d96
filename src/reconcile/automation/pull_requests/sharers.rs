//! The automations that share a pull request, by the last line of its body.
//!
//! Others of the same base have no say about it: neither their windows nor their files, policies and branches count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::delivery::{BranchState, ImageHash, OpenPullRequest, PolicyHash};
use super::order::{BranchContent, PullRequestOrder};
use super::round::Round;
use crate::forge::Forge;
use crate::git::BranchName;

/// The orders of the automations that share a pull request.
#[derive(Debug, Default)]
pub(super) struct Sharers<'r> {
    pub(super) orders: Vec<&'r Arc<PullRequestOrder>>,
}

impl<F: Forge> Round<'_, F> {
    /// Returns the known automations in the last line of a pull request.
    pub(super) fn sharers(&self, pull_request: &OpenPullRequest) -> Sharers<'_> {
        let is_sharer = |order: &&Arc<PullRequestOrder>| {
            order.base == pull_request.base && pull_request.is_of(&order.owner)
        };
        Sharers { orders: self.orders.values().filter(is_sharer).collect() }
    }
}

impl Sharers<'_> {
    /// Returns the policies of which it is known whether the base needs a change.
    ///
    /// One that is not readable for an automation is none, even if it is for another one with other files.
    pub(super) fn readable(&self) -> BTreeSet<PolicyHash> {
        let all = |policies: fn(&PullRequestOrder) -> &BTreeSet<PolicyHash>| -> BTreeSet<PolicyHash> {
            self.orders.iter().flat_map(|order| policies(order)).cloned().collect()
        };
        &all(|order| &order.readable) - &all(|order| &order.unreadable)
    }

    /// Returns the state of a branch by the last run that has looked at it.
    pub(super) fn state(&self, branch: &BranchName) -> Option<BranchState> {
        let looked = self.orders.iter().filter(|order| order.facts.contains_key(branch));
        looked.max_by_key(|order| order.made_at)?.state(branch, |_| true)
    }

    /// Returns the images that the automations set on each branch.
    pub(super) fn changes(&self) -> BTreeMap<BranchName, BTreeSet<ImageHash>> {
        let mut changes: BTreeMap<BranchName, BTreeSet<ImageHash>> = BTreeMap::new();
        for (branch, content) in self.orders.iter().flat_map(|order| &order.contents) {
            changes.entry(branch.clone()).or_default().extend(BranchContent::images(content));
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::delivery::{Memory, OwnerHash};
    use super::super::super::waiting::WriteRules;
    use super::super::round_tests::{decided, order, pull_request};
    use super::*;
    use crate::forge::PullRequest;
    use crate::git::{BranchAction, BranchFacts, BranchOutcome, LeftReason};
    use crate::message::MessageData;

    fn content() -> BranchContent {
        BranchContent { data: MessageData::plain_sample(), path: None, message: None }
    }

    /// The order of an automation, with true if its policies are readable.
    fn sharer(name: &str, branch: &str, is_readable: bool) -> PullRequestOrder {
        let mut order = order(&[branch]);
        name.clone_into(&mut order.automation.name);
        order.owner = OwnerHash::of(&order.automation, None);
        let policies = content().images().iter().map(|image| image.policy().clone()).collect();
        *(if is_readable { &mut order.readable } else { &mut order.unreadable }) = policies;
        order
    }

    /// Adds a branch as git has found it.
    fn with(mut order: PullRequestOrder, branch: &str, action: BranchAction) -> PullRequestOrder {
        let branch: BranchName = branch.parse().unwrap();
        if action == BranchAction::Kept {
            order.contents.insert(branch.clone(), content());
        }
        order.facts.insert(branch.clone(), BranchFacts::default());
        let (tip, message) = (Some("1".repeat(40).parse().unwrap()), String::new());
        let outcome = BranchOutcome { branch, action, tip, commit: None, message, dropped: Vec::new() };
        order.delivered.branches.push(outcome);
        order
    }

    fn own(number: u64, branch: &str, owners: &[&PullRequestOrder]) -> PullRequest {
        let owners = owners.iter().map(|order| order.owner.clone()).collect();
        let memory = Memory { owners, images: content().images(), ..Memory::default() };
        PullRequest { number, body: memory.to_string(), ..pull_request(branch) }
    }

    /// A policy that another automation could read counted as readable.
    #[tokio::test]
    async fn a_pull_request_is_closed_only_if_each_of_its_automations_can_read_its_policies() {
        let nothing_left = || BranchAction::Left(LeftReason::NothingLeft);
        let abandoned = || BranchAction::Left(LeftReason::Abandoned);
        for (prod_reads, staging_reads, shares, is_closed) in [
            (true, true, false, true),
            (false, true, false, false),
            (true, false, false, true),
            (true, true, true, true),
            (true, false, true, false),
            (false, true, true, false),
        ] {
            let staging = with(sharer("staging", "b", staging_reads), "a", nothing_left());
            let verb = if is_closed { "closed #7" } else { "left #7" };
            // Nothing is left to change on a branch that is rendered, or on one that is not any more.
            for (rendered, action) in [("a", nothing_left()), ("c", abandoned())] {
                let prod = with(sharer("prod", rendered, prod_reads), "a", action);
                let owners = if shares { vec![&prod, &staging] } else { vec![&prod] };
                let open = own(7, "a", &owners);
                let found = decided(vec![prod.clone(), staging.clone()], vec![open]).await;
                assert_eq!(found, [verb], "{rendered} {prod_reads} {staging_reads} {shares}");
            }
            // A branch has two.
            let prod = with(sharer("prod", "a", prod_reads), "a", BranchAction::Kept);
            let owners = if shares { vec![&prod, &staging] } else { vec![&prod] };
            let listed = vec![own(6, "a", &owners), own(7, "a", &owners)];
            let found = decided(vec![prod.clone(), staging.clone()], listed).await;
            assert_eq!(found[0], "kept #6");
            assert_eq!(found.get(1).is_some(), is_closed, "{prod_reads} {staging_reads} {shares}");
        }
    }

    /// Branches of another automation with the same policy counted, and windows of all.
    #[tokio::test]
    async fn only_branches_and_windows_of_its_own_automations_keep_a_superseded_pull_request_open() {
        let abandoned = || BranchAction::Left(LeftReason::Abandoned);
        let deny = "[{name: long, kind: deny, from: 2020-01-01T00:00, until: 2200-01-01T00:00}]";
        let denied = |order: PullRequestOrder| {
            let windows = Some(Arc::new(deny.parse().unwrap()));
            let gate = WriteRules::default().gate(order.automation.clone(), windows, None);
            PullRequestOrder { gate: Some(gate), ..order }
        };
        let prod = || with(with(sharer("prod", "c", true), "a", abandoned()), "c", BranchAction::Kept);
        let waiting = || with(sharer("staging", "d", true), "d", abandoned());
        let staging = || {
            let mut order = waiting();
            order.contents.insert("d".parse().unwrap(), content());
            order
        };
        let (of_prod, of_both) = (vec![prod()], vec![prod(), staging()]);
        for (name, prod, staging, owners, expected) in [
            ("the other has no pull request", prod(), staging(), &of_prod, "closed #7"),
            ("it shares the old one", prod(), staging(), &of_both, "left #7"),
            ("the other may not write", prod(), denied(waiting()), &of_prod, "closed #7"),
            ("it shares the old one and may not write", prod(), denied(waiting()), &of_both, "left #7"),
            ("its own may not write", denied(prod()), waiting(), &of_prod, "left #7"),
        ] {
            let owners: Vec<&PullRequestOrder> = owners.iter().collect();
            let listed = vec![own(7, "a", &owners), own(8, "c", &[&prod])];
            let found = decided(vec![prod, staging], listed).await;
            assert!(found.contains(&expected.to_owned()), "{name}: {found:?}");
        }
    }
}
