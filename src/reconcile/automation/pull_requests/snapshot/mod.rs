//! The pull requests of a repository, as the forge listed them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::delivery::{
    FoundPullRequests, ImageHash, Memory, OpenPullRequest, OwnerHash, PastPullRequest, branch_facts,
};
use super::branchless::Branchless;
use super::records::{Branches, Records, is_open, key};
use crate::forge::{Forge, ForgeError, Listing, PullRequest, SizeLimit};
use crate::git::{BranchFacts, BranchName};
use crate::tenancy::{KeptMemory, KeptShare};

/// The number of listings between two looks for a new merge queue.
const QUEUE_LISTINGS: u32 = 20;

/// The maximum memory in bytes of the pull requests that are kept of a repository.
///
/// A listing takes half of it at most.
const MAX_KEPT: usize = 32 * 1024 * 1024;

/// The pull requests of a repository, as the forge listed them.
///
/// Closed ones are looked up per branch, and only again once an open one has vanished. Beside an open one they are looked up
/// once it is to get another image. Clones share the pull requests.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(super) open: BTreeMap<Branches, Arc<OpenPullRequest>>,
    /// The time before the last listing of the open ones.
    listed_after: Option<Instant>,
    pub(super) past: BTreeMap<Branches, Arc<Vec<PastPullRequest>>>,
    /// Errors of searches since the last listing, by the branch that meets them next.
    pub(super) failed: BTreeMap<Branches, ForgeError>,
    /// Branches whose open pull requests have vanished, and were not looked up since.
    pub(super) vanished: BTreeSet<Branches>,
    /// Bases without a merge queue, with the number of listings until the next look.
    without_queue: BTreeMap<BranchName, u32>,
    /// The numbers of open pull requests that the last listing left out.
    strangers: BTreeSet<u64>,
    /// Further open pull requests of branches that have one, as listed last.
    seconds: Vec<Arc<OpenPullRequest>>,
    /// The open pull requests without a branch.
    branchless: Branchless,
    /// The states that a round has made itself, with their times.
    made: Vec<(Instant, Made)>,
    /// Facts that no listing shows.
    pub(super) records: Records,
    /// The memory in which they are kept. Clones share it.
    memory: Arc<KeptShare>,
}

/// The state of a branch after a change of a round.
#[derive(Clone, Debug)]
enum Made {
    Open(Arc<OpenPullRequest>),
    Ended(Branches, PastPullRequest),
}

impl Made {
    fn branches(&self) -> Branches {
        match self {
            Self::Open(open) => key(open),
            Self::Ended(branches, _) => branches.clone(),
        }
    }
}

impl Snapshot {
    /// Makes a snapshot without pull requests, which are kept in the memory of a namespace.
    pub(super) fn within(namespace: Arc<KeptMemory>) -> Self {
        Self { memory: Arc::new(KeptShare::new(namespace)), ..Self::default() }
    }

    /// Lists the open pull requests again.
    ///
    /// Those of people are kept only if their head is among `heads`. `is_urgent` is true if one is to be opened or closed. Of
    /// several with the same branches, the oldest counts, and the others are set aside.
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
            memory: Arc::clone(&self.memory),
            ..Listing::of(heads.clone(), |body| Memory::of_body(body).is_some())
        };
        let begin = Instant::now();
        let mut listed = forge.open_pull_requests(&mut listing).await?;
        let size = listed.iter().map(PullRequest::size).sum::<usize>() + self.closed_size();
        self.reserve(size)?;
        self.listed_after = Some(begin);
        self.failed.clear();
        self.strangers = listing.left_out;
        self.branchless.list(&listed, begin);
        listed.sort_by_key(|one| one.number);
        let (mut now, mut seconds) = (BTreeMap::new(), Vec::new());
        for one in listed {
            let one = Arc::new(OpenPullRequest::new(one));
            match now.entry(key(&one)) {
                Entry::Vacant(vacant) => drop(vacant.insert(one)),
                Entry::Occupied(_) => seconds.push(one),
            }
        }
        self.seconds = seconds;
        let before = std::mem::replace(&mut self.open, now);
        let queued = before.values().filter(|one| one.is_in_merge_queue).map(|one| one.number).collect();
        self.vanished.extend(before.into_keys().filter(|branches| !self.open.contains_key(branches)));
        self.records.compare(&self.open);
        for gone in &self.vanished {
            self.past.remove(gone);
            self.records.forget_end(gone);
        }
        self.list_queues(forge, &queued).await
    }

    /// Marks the pull requests that are in the merge queue of their base.
    ///
    /// `before` are those that were in one. They count as long as the forge does not tell, so that none is rebuilt there.
    async fn list_queues(&mut self, forge: &impl Forge, before: &BTreeSet<u64>) -> Result<(), ForgeError> {
        self.without_queue.values_mut().for_each(|listings| *listings -= 1);
        self.without_queue.retain(|_, listings| *listings > 0);
        let bases: BTreeSet<BranchName> = self.open.keys().map(|(base, _)| base.clone()).collect();
        let mut failure = None;
        for base in bases {
            if self.without_queue.contains_key(&base) {
                continue;
            }
            let asked =
                if failure.is_none() { forge.merge_queue(&base).await } else { Ok(Some(before.clone())) };
            let queue = match asked {
                Ok(Some(queue)) => queue,
                Ok(None) => {
                    self.without_queue.insert(base, QUEUE_LISTINGS);
                    continue;
                }
                Err(error) => {
                    failure = Some(error);
                    before.clone()
                }
            };
            let is_queued = |one: &&mut Arc<OpenPullRequest>| one.base == base && queue.contains(&one.number);
            for one in self.open.values_mut().filter(is_queued) {
                Arc::make_mut(one).enter_merge_queue();
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Returns true if the open pull requests were listed once.
    pub(super) fn was_listed(&self) -> bool {
        self.listed_after.is_some()
    }

    /// Returns true if the open pull requests were listed within a time.
    pub(super) fn is_recent(&self, age: Duration) -> bool {
        self.listed_after.is_some_and(|begin| begin.elapsed() <= age)
    }

    /// Returns true if the forge may still close a pull request of some branches.
    ///
    /// The branch was deleted a moment ago, or a person has reopened the pull request.
    pub(super) fn may_close_one(&self, base: &BranchName, heads: &BTreeSet<BranchName>) -> bool {
        let may_close = |head: &BranchName| {
            let open = self.found(base, head).open;
            open.is_some_and(|open| self.branchless.may_close(open.number))
        };
        heads.iter().any(may_close)
    }

    /// Takes note of a branch that a run of git has seen.
    pub(super) fn see(&mut self, base: &BranchName, head: &BranchName, began: Instant) {
        if let Some(open) = self.found(base, head).open {
            self.branchless.see(open.number, began);
        }
    }

    /// Returns the branches with open pull requests.
    pub(super) fn open_heads(&self) -> impl Iterator<Item = &BranchName> {
        self.open.keys().map(|(_, head)| head)
    }

    /// Returns the open pull requests with a base whose branch has an older one.
    pub(super) fn seconds(&self, base: &BranchName) -> Vec<Arc<OpenPullRequest>> {
        self.seconds.iter().filter(|one| one.base == *base).cloned().collect()
    }

    /// Forgets a pull request that was set aside and is closed by now.
    pub(super) fn forget_second(&mut self, number: u64) {
        self.seconds.retain(|one| one.number != number);
    }

    /// Returns true if the pull request of a number is open.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.open.values().chain(&self.seconds).any(|one| one.number == number)
    }

    /// Returns the pull request of a number that has ended, if it was looked up.
    pub(super) fn ended(&self, number: u64) -> Option<&PastPullRequest> {
        let mut past = self.past.values().flat_map(|past| past.iter());
        past.find(|one| one.number == number).or_else(|| self.records.lost(number)?.as_deref())
    }

    /// Records the state of a pull request after a change.
    pub(super) fn put(&mut self, changed: PullRequest, now: Instant) {
        let made = if is_open(&changed) {
            Made::Open(Arc::new(OpenPullRequest::new(changed)))
        } else {
            Made::Ended(key(&changed), PastPullRequest::of(&changed))
        };
        self.apply(&made, now);
        self.made.push((now, made));
    }

    fn apply(&mut self, made: &Made, now: Instant) {
        let branches = &made.branches();
        self.open.remove(branches);
        let ended = match made {
            Made::Ended(_, ended) => ended,
            Made::Open(open) => {
                match self.require_room(open.size()) {
                    Ok(()) => drop(self.open.insert(branches.clone(), Arc::clone(open))),
                    Err(_) => self.lose(branches.clone()),
                }
                return;
            }
        };
        self.records.end(branches.clone(), ended.number, now);
        // The outcome of this action tells of it.
        self.records.lose(ended.number, None);
        // Only if the earlier ones are known, this one makes the list complete.
        if let Some(past) = self.past.get_mut(branches) {
            let past = Arc::make_mut(past);
            past.retain(|one| one.number != ended.number);
            past.insert(0, ended.clone());
        }
    }

    /// Returns the state after a round, whose own snapshot is `round`.
    ///
    /// This one was made beside the round. The later of the two listings counts, with what the other one has beside it.
    pub(super) fn after_round(&self, mut round: Self) -> Self {
        let after = if self.listed_after > round.listed_after {
            let mut after = self.clone();
            after.take_round(&round);
            after
        } else {
            round.complete(self);
            round
        };
        Self { made: Vec::new(), ..after }
    }

    /// Takes what a round has made and learnt by an earlier listing than this one.
    fn take_round(&mut self, round: &Self) {
        let is_seen = |at: Instant| self.listed_after.is_some_and(|begin| at < begin);
        let (seen, unseen): (Vec<_>, Vec<_>) = round.made.iter().partition(|(at, _)| is_seen(*at));
        let applied: BTreeSet<Branches> = unseen.iter().map(|(_, made)| made.branches()).collect();
        unseen.into_iter().for_each(|(at, made)| self.apply(made, *at));
        let seen = seen.into_iter().map(|(_, made)| made.branches());
        for branches in round.open.keys().cloned().chain(seen) {
            // That it has vanished may be known, and why.
            let is_known = self.vanished.contains(&branches) || applied.contains(&branches);
            if !is_known && !self.open.contains_key(&branches) {
                self.lose(branches);
            }
        }
        self.complete(round);
        self.records.join(&round.records, &self.vanished);
        self.records.compare(&self.open);
    }

    /// Has a branch looked up again whose open pull request is not known any more.
    fn lose(&mut self, branches: Branches) {
        self.past.remove(&branches);
        self.records.forget_end(&branches);
        self.vanished.insert(branches);
    }

    /// Returns an error if no room is left for pull requests of some bytes.
    pub(super) fn require_room(&self, size: usize) -> Result<(), ForgeError> {
        let size = self.size() + size;
        if size > MAX_KEPT {
            return Err(ForgeError::TooMuchKept { of: "the branches", limit: SizeLimit::Bytes(MAX_KEPT) });
        }
        self.reserve(size)
    }

    /// Reserves memory of the namespace for all pull requests together.
    fn reserve(&self, size: usize) -> Result<(), ForgeError> {
        let limit = SizeLimit::Bytes(KeptMemory::LIMIT);
        let of = "all GitRepositories of the namespace";
        if self.memory.grow(size) { Ok(()) } else { Err(ForgeError::TooMuchKept { of, limit }) }
    }

    /// Gives the memory back that is not needed any more.
    pub(super) fn give_memory_back(&self) {
        self.memory.shrink(self.size());
    }

    fn size(&self) -> usize {
        let open = self.open.values().chain(&self.seconds).map(|one| one.size());
        open.sum::<usize>() + self.closed_size()
    }

    fn closed_size(&self) -> usize {
        let past = self.past.values().flat_map(|past| past.iter()).map(PastPullRequest::size);
        past.sum::<usize>() + self.records.size()
    }

    /// Records that we closed a pull request whose branch no policy renders.
    ///
    /// Git deletes the branch.
    pub(super) fn close_unwanted(&mut self, closed: &PullRequest) {
        self.records.close(key(closed), PastPullRequest::of(closed));
    }

    /// Forgets closed pull requests that are of no use any more.
    ///
    /// Their branches are not in use, or git has dealt with them.
    pub(super) fn retain(
        &mut self,
        is_used: impl Fn(&Branches) -> bool,
        is_dealt_with: impl Fn(&Branches) -> bool,
        is_reported: impl Fn(u64) -> bool,
    ) {
        self.records.retain_lost(is_reported);
        self.past.retain(|branches, _| is_used(branches));
        self.records.retain(&self.open, is_used, is_dealt_with);
    }

    /// Takes what another state of the repository has about some branches.
    pub(super) fn take(&mut self, other: &Self, base: &BranchName, heads: &BTreeSet<BranchName>) {
        for head in heads {
            let branches = (base.clone(), head.clone());
            self.open.extend(other.open.get(&branches).map(|open| (branches.clone(), open.clone())));
            self.past.extend(other.past.get(&branches).map(|past| (branches.clone(), past.clone())));
            self.records.take(&branches, &other.records);
        }
    }

    /// Takes what another state has about branches of which this one knows nothing.
    ///
    /// Of one with an open pull request, these are the closed ones.
    fn complete(&mut self, other: &Self) {
        let is_unknown =
            |branches: &&Branches| !self.past.contains_key(*branches) && !self.vanished.contains(*branches);
        let missing: Vec<Branches> = other.past.keys().filter(is_unknown).cloned().collect();
        for (base, head) in missing {
            let branches = (base, head);
            if self.open.contains_key(&branches) {
                let past = other.past.get(&branches).cloned().unwrap_or_default();
                self.past.insert(branches, past);
            } else {
                self.take(other, &branches.0, &BTreeSet::from([branches.1.clone()]));
            }
        }
    }

    /// Returns the pull requests of a branch.
    pub(super) fn found(&self, base: &BranchName, head: &BranchName) -> FoundPullRequests<'_> {
        let branches = (base.clone(), head.clone());
        let past = self.past.get(&branches).map(|past| past.as_slice());
        let (handed_back, ended_at) = (self.records.handed_back(&branches), self.records.ended(&branches));
        let open = self.open.get(&branches).map(Arc::as_ref);
        let is_reopened = open.is_some_and(|open| self.branchless.is_reopened(open.number));
        FoundPullRequests { open, past, handed_back, ended_at, is_reopened }
    }

    /// Returns the facts about a branch whose bundle has these images to set.
    ///
    /// There are none if no policy renders the branch. `owner` is the automation.
    pub fn facts(
        &self,
        base: &BranchName,
        head: &BranchName,
        images: Option<&BTreeSet<ImageHash>>,
        owner: &OwnerHash,
    ) -> BranchFacts {
        let found = self.found(base, head);
        let facts = match images {
            Some(images) => branch_facts(images, owner, found),
            None => {
                let closed = self.records.closed(&(base.clone(), head.clone()));
                let past = found.past.or(closed.map(slice::from_ref));
                branch_facts(&BTreeSet::new(), owner, FoundPullRequests { past, ..found })
            }
        };
        let elsewhere = self.open_elsewhere((base, head), &BTreeSet::from([owner.clone()]));
        BranchFacts { open_elsewhere: elsewhere.map(|one| one.number), ..facts }
    }

    /// Returns an open pull request of some automations that merges a branch into another base.
    ///
    /// It was opened while another branch was checked out, or a person has changed its base.
    pub(super) fn open_elsewhere(
        &self,
        (base, head): (&BranchName, &BranchName),
        owners: &BTreeSet<OwnerHash>,
    ) -> Option<&OpenPullRequest> {
        let is_elsewhere =
            |one: &&Arc<OpenPullRequest>| one.head == *head && one.base != *base && one.is_of_any(owners);
        self.open.values().find(is_elsewhere).map(Arc::as_ref)
    }

    /// Returns the number of the open pull request of a branch, if others own it.
    ///
    /// Others are all automations but `owners`. One without a last line belongs to none yet.
    pub fn owned_by_others(
        &self,
        base: &BranchName,
        head: &BranchName,
        owners: &BTreeSet<OwnerHash>,
    ) -> Option<u64> {
        let open = self.found(base, head).open?;
        open.memory().filter(|memory| memory.is_of_others(owners)).map(|_| open.number)
    }

    /// Returns the branches of an automation that git has to look at.
    ///
    /// Their pull requests are open, or we closed them while no policy rendered the branch.
    pub fn branches_for_git(&self, base: &BranchName, owner: &OwnerHash) -> BTreeSet<BranchName> {
        let closed = self.closed(base, owner).cloned();
        self.branches_of(base, owner).into_iter().chain(closed).collect()
    }

    /// Returns true if git may have to delete branches of closed pull requests.
    ///
    /// The automation does not render these branches any more, or they were handed back.
    pub(super) fn has_closed(&self, base: &BranchName, owner: &OwnerHash) -> bool {
        self.closed(base, owner).next().is_some() || self.given_up(base).next().is_some()
    }

    /// Returns the branches that were handed back, and whose pull requests have ended.
    pub fn given_up<'s>(&'s self, base: &'s BranchName) -> impl Iterator<Item = &'s BranchName> {
        self.records.given_up(base)
    }

    /// Returns the branches of an automation whose pull requests we closed as unwanted.
    fn closed(&self, base: &BranchName, owner: &OwnerHash) -> impl Iterator<Item = &BranchName> {
        let is_own = move |((of, _), one): &(&Branches, &PastPullRequest)| {
            of == base && one.memory.as_ref().is_some_and(|memory| memory.owners.contains(owner))
        };
        self.records.all_closed().filter(is_own).map(|((_, head), _)| head)
    }

    /// Returns the branches with open pull requests of an automation.
    pub(super) fn branches_of(&self, base: &BranchName, owner: &OwnerHash) -> BTreeSet<BranchName> {
        self.open_of(base, owner).map(|one| one.head.clone()).collect()
    }

    /// Returns the branches with open pull requests of some automations.
    pub(super) fn branches_of_any(
        &self,
        base: &BranchName,
        owners: &BTreeSet<OwnerHash>,
    ) -> BTreeSet<BranchName> {
        let is_own = |one: &&Arc<OpenPullRequest>| one.base == *base && one.is_of_any(owners);
        self.open.values().filter(is_own).map(|one| one.head.clone()).collect()
    }

    /// Returns the open pull requests of an automation.
    pub(super) fn open_of(
        &self,
        base: &BranchName,
        owner: &OwnerHash,
    ) -> impl Iterator<Item = &OpenPullRequest> {
        let is_own = move |one: &&OpenPullRequest| one.base == *base && one.is_of(owner);
        self.open.values().map(Arc::as_ref).filter(is_own)
    }
}

#[cfg(test)]
mod tests;
