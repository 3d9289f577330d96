//! The pull requests of a repository, as the forge listed them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::delivery::{FoundPullRequests, ImageHash, Memory, OwnerHash, branch_facts};
use crate::forge::{Forge, ForgeError, Listing, PullRequest, PullRequestState};
use crate::git::{BranchFacts, BranchName};

/// A base and the head branch of a pull request.
type Branches = (BranchName, BranchName);

/// The number of listings between two looks for a new merge queue.
const QUEUE_LISTINGS: u32 = 20;

/// The pull requests of a repository, as the forge listed them.
///
/// Closed ones are looked up per branch, and only again once an open one has vanished.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    open: BTreeMap<Branches, PullRequest>,
    past: BTreeMap<Branches, Vec<PullRequest>>,
    /// Branches whose open pull requests have vanished, and were not looked up since.
    vanished: BTreeSet<Branches>,
    /// Bases without a merge queue, with the number of listings until the next look.
    without_queue: BTreeMap<BranchName, u32>,
    /// The numbers of open pull requests that the last listing left out.
    strangers: BTreeSet<u64>,
}

impl Snapshot {
    /// Lists the open pull requests again.
    ///
    /// Those of people are kept only if their head is among `heads`. `is_urgent` is true if one is to be opened or closed.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    pub(super) async fn list(
        &mut self,
        forge: &impl Forge,
        heads: &BTreeSet<BranchName>,
        is_urgent: bool,
    ) -> Result<(), ForgeError> {
        let mut listing = Listing {
            is_urgent,
            strangers: self.strangers.clone(),
            ..Listing::of(heads.clone(), |body| Memory::of_body(body).is_some())
        };
        let listed = forge.open_pull_requests(&mut listing).await?;
        self.strangers = listing.left_out;
        let now: BTreeMap<Branches, PullRequest> = listed.into_iter().map(|one| (key(&one), one)).collect();
        let before = std::mem::replace(&mut self.open, now);
        self.vanished.extend(before.into_keys().filter(|branches| !self.open.contains_key(branches)));
        for gone in &self.vanished {
            self.past.remove(gone);
        }
        self.list_queues(forge).await
    }

    /// Marks the pull requests that are in the merge queue of their base.
    async fn list_queues(&mut self, forge: &impl Forge) -> Result<(), ForgeError> {
        self.without_queue.values_mut().for_each(|listings| *listings -= 1);
        self.without_queue.retain(|_, listings| *listings > 0);
        let bases: BTreeSet<BranchName> = self.open.keys().map(|(base, _)| base.clone()).collect();
        for base in bases {
            if self.without_queue.contains_key(&base) {
                continue;
            }
            let Some(queue) = forge.merge_queue(&base).await? else {
                self.without_queue.insert(base, QUEUE_LISTINGS);
                continue;
            };
            for one in self.open.values_mut().filter(|one| one.base == base) {
                one.is_in_merge_queue |= queue.contains(&one.number);
            }
        }
        Ok(())
    }

    /// Looks up the pull requests that have vanished from the list of open ones.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    pub(super) async fn look_up_vanished(&mut self, forge: &impl Forge) -> Result<(), ForgeError> {
        let mut heads: BTreeMap<BranchName, BTreeSet<BranchName>> = BTreeMap::new();
        for (base, head) in &self.vanished {
            heads.entry(base.clone()).or_default().insert(head.clone());
        }
        for (base, heads) in heads {
            self.look_up_many(forge, &base, &heads).await?;
        }
        while let Some((base, head)) = self.vanished.first().cloned() {
            self.look_up(forge, &base, &head).await?;
            self.vanished.remove(&(base, head));
        }
        Ok(())
    }

    /// Returns true if the pull request of a number is open.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.open.values().any(|one| one.number == number)
    }

    /// Returns the pull request of a number that is closed, if it was looked up.
    pub(super) fn ended(&self, number: u64) -> Option<&PullRequest> {
        self.past.values().flatten().find(|one| one.number == number)
    }

    /// Looks up the closed pull requests of a branch without an open one.
    ///
    /// Nothing is sent if they are known.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    pub(super) async fn look_up(
        &mut self,
        forge: &impl Forge,
        base: &BranchName,
        head: &BranchName,
    ) -> Result<(), ForgeError> {
        let branches = (base.clone(), head.clone());
        if self.open.contains_key(&branches) || self.past.contains_key(&branches) {
            return Ok(());
        }
        let found = forge.find(head, base).await?;
        self.note(branches, found);
        Ok(())
    }

    /// Looks up many closed pull requests at once, if the forge can.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    pub(super) async fn look_up_many(
        &mut self,
        forge: &impl Forge,
        base: &BranchName,
        heads: &BTreeSet<BranchName>,
    ) -> Result<(), ForgeError> {
        let branches = heads.iter().map(|head| (base.clone(), head.clone()));
        let is_unknown =
            |branches: &Branches| !self.open.contains_key(branches) && !self.past.contains_key(branches);
        let unknown: BTreeSet<BranchName> = branches.filter(is_unknown).map(|(_, head)| head).collect();
        if unknown.len() > 1
            && let Some(found) = forge.find_many(&unknown, base).await?
        {
            found.into_iter().for_each(|(head, found)| self.note((base.clone(), head), found));
        }
        Ok(())
    }

    /// Notes all pull requests of a branch.
    fn note(&mut self, branches: Branches, mut found: Vec<PullRequest>) {
        if let Some(at) = found.iter().position(|one| one.state == PullRequestState::Open) {
            self.open.insert(branches.clone(), found.swap_remove(at));
        }
        found.retain(|one| one.state != PullRequestState::Open);
        found.sort_by_key(|one| std::cmp::Reverse(one.number));
        self.past.insert(branches, found);
    }

    /// Records the state of a pull request after a change.
    pub(super) fn put(&mut self, changed: PullRequest) {
        let branches = key(&changed);
        if changed.state == PullRequestState::Open {
            self.open.insert(branches, changed);
            return;
        }
        self.open.remove(&branches);
        // Only if the earlier ones are known, this one makes the list complete.
        if let Some(past) = self.past.get_mut(&branches) {
            past.retain(|one| one.number != changed.number);
            past.insert(0, changed);
        }
    }

    /// Forgets the closed pull requests of branches that are not in use any more.
    pub(super) fn retain(&mut self, is_used: impl Fn(&BranchName, &BranchName) -> bool) {
        self.past.retain(|(base, head), _| is_used(base, head));
    }

    /// Returns the pull requests of a branch.
    pub(super) fn found(&self, base: &BranchName, head: &BranchName) -> FoundPullRequests<'_> {
        let branches = (base.clone(), head.clone());
        let past = self.past.get(&branches).map(Vec::as_slice);
        FoundPullRequests { open: self.open.get(&branches), past }
    }

    /// Returns the facts about a branch whose bundle has these images to set.
    ///
    /// `owner` is the automation.
    pub fn facts(
        &self,
        base: &BranchName,
        head: &BranchName,
        images: &BTreeSet<ImageHash>,
        owner: &OwnerHash,
    ) -> BranchFacts {
        branch_facts(images, owner, self.found(base, head))
    }

    /// Returns the branches with open pull requests of an automation.
    pub fn branches_of(&self, base: &BranchName, owner: &OwnerHash) -> BTreeSet<BranchName> {
        self.branches_of_any(base, &BTreeSet::from([owner.clone()]))
    }

    /// Returns the branches with open pull requests of some automations.
    pub(super) fn branches_of_any(
        &self,
        base: &BranchName,
        owners: &BTreeSet<OwnerHash>,
    ) -> BTreeSet<BranchName> {
        let is_own = |one: &&PullRequest| {
            one.base == *base
                && Memory::of_body(&one.body).is_some_and(|memory| !memory.owners.is_disjoint(owners))
        };
        self.open.values().filter(is_own).map(|one| one.head.clone()).collect()
    }
}

fn key(pull_request: &PullRequest) -> Branches {
    (pull_request.base.clone(), pull_request.head.clone())
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use parking_lot::Mutex;

    use super::*;
    use crate::forge::{Merge, MergeAnswer, NewPullRequest, Opened, PullRequestEdit};

    /// A forge with two open pull requests, and perhaps a merge queue.
    #[derive(Default)]
    struct Queued {
        queue: Mutex<Option<BTreeSet<u64>>>,
        queries: Mutex<u32>,
    }

    fn open(number: u64, head: &str) -> PullRequest {
        PullRequest {
            number,
            url: String::new(),
            state: PullRequestState::Open,
            head: head.parse().unwrap(),
            head_commit: None,
            base: "main".parse().unwrap(),
            title: String::new(),
            body: String::new(),
            is_draft: false,
            labels: Vec::new(),
            is_in_merge_queue: false,
            has_auto_merge: false,
            version: None,
        }
    }

    impl Forge for Queued {
        async fn open_pull_requests(&self, _: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
            Ok(vec![open(1, "a"), open(2, "b")])
        }

        async fn merge_queue(&self, _: &BranchName) -> Result<Option<BTreeSet<u64>>, ForgeError> {
            *self.queries.lock() += 1;
            Ok(self.queue.lock().clone())
        }

        async fn find(&self, _: &BranchName, _: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
            Ok(Vec::new())
        }

        async fn open(&self, _: &NewPullRequest) -> Result<Opened, ForgeError> {
            unreachable!("a listing opens nothing")
        }

        async fn edit(&self, _: &PullRequest, _: &PullRequestEdit) -> Result<PullRequest, ForgeError> {
            unreachable!("a listing edits nothing")
        }

        async fn merge(&self, _: &PullRequest, _: &Merge) -> Result<MergeAnswer, ForgeError> {
            unreachable!("a listing merges nothing")
        }
    }

    #[test]
    fn pull_requests_in_the_merge_queue_are_marked_and_a_base_without_one_is_rarely_asked() {
        let (forge, mut snapshot) = (Queued::default(), Snapshot::default());
        let heads = BTreeSet::from(["a", "b"].map(|name| name.parse().unwrap()));
        let mut list = |times: u32| {
            for _ in 0..times {
                snapshot.list(&forge, &heads, false).now_or_never().unwrap().unwrap();
            }
            let queued = snapshot.open.values().filter(|one| one.is_in_merge_queue).map(|one| one.number);
            (queued.collect::<Vec<_>>(), *forge.queries.lock())
        };
        assert_eq!(list(QUEUE_LISTINGS), (vec![], 1));
        *forge.queue.lock() = Some(BTreeSet::from([2, 7]));
        assert_eq!(list(1), (vec![2], 2));
        assert_eq!(list(2), (vec![2], 4));
        *forge.queue.lock() = Some(BTreeSet::new());
        assert_eq!(list(1), (vec![], 5));
    }
}
