//! The pull requests of a repository, as the forge listed them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::time::{Duration, Instant};

use futures::future::join_all;

use super::super::delivery::{FoundPullRequests, ImageHash, Memory, OwnerHash, REBUILD_LABEL, branch_facts};
use super::records::{Branches, Records, is_open, key};
use crate::forge::{Forge, ForgeError, Listing, PullRequest, PullRequestEdit};
use crate::git::{BranchFacts, BranchName};

/// The number of listings between two looks for a new merge queue.
const QUEUE_LISTINGS: u32 = 20;

/// The number of searches that wait for their turn at the same time.
///
/// The rate limiter of the forge admits fewer.
const SEARCHES: usize = 16;

/// The pull requests of a repository, as the forge listed them.
///
/// Closed ones are looked up per branch, and only again once an open one has vanished.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    open: BTreeMap<Branches, PullRequest>,
    /// The time before the last listing of the open ones.
    listed_after: Option<Instant>,
    past: BTreeMap<Branches, Vec<PullRequest>>,
    /// Errors of searches since the last listing, by the branch that meets them next.
    failed: BTreeMap<Branches, ForgeError>,
    /// Branches whose open pull requests have vanished, and were not looked up since.
    vanished: BTreeSet<Branches>,
    /// Bases without a merge queue, with the number of listings until the next look.
    without_queue: BTreeMap<BranchName, u32>,
    /// The numbers of open pull requests that the last listing left out.
    strangers: BTreeSet<u64>,
    /// Further open pull requests of branches that have one, as listed last.
    seconds: Vec<PullRequest>,
    /// Facts that no listing shows.
    records: Records,
}

impl Snapshot {
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
            ..Listing::of(heads.clone(), |body| Memory::of_body(body).is_some())
        };
        let begin = Instant::now();
        let mut listed = forge.open_pull_requests(&mut listing).await?;
        self.listed_after = Some(begin);
        self.failed.clear();
        self.strangers = listing.left_out;
        listed.sort_by_key(|one| one.number);
        let (mut now, mut seconds) = (BTreeMap::new(), Vec::new());
        for one in listed {
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
            for one in self.open.values_mut().filter(|one| one.base == base) {
                one.is_in_merge_queue |= queue.contains(&one.number);
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Returns the open pull request whose label hands a branch back.
    ///
    /// It is one of some automations, or of people.
    pub(super) fn handed_back(
        &self,
        (base, head): (&BranchName, &BranchName),
        owners: &BTreeSet<OwnerHash>,
    ) -> Option<PullRequest> {
        let open = self.open.get(&(base.clone(), head.clone()))?;
        let is_own = Memory::of_body(&open.body).is_none_or(|memory| !memory.is_of_others(owners));
        let is_labelled = open.labels.iter().any(|label| label == REBUILD_LABEL);
        (is_own && is_labelled && !open.is_in_merge_queue).then(|| open.clone())
    }

    /// Takes the branch of a pull request back that people have handed back.
    ///
    /// The label is removed first, and only then the head counts that the branch had with it. So a commit that comes after the
    /// label was removed is never lost. A dry run leaves the label.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    pub(super) async fn take_back(
        &mut self,
        forge: &impl Forge,
        labelled: &PullRequest,
        is_dry_run: bool,
    ) -> Result<(), ForgeError> {
        if !is_dry_run {
            let removed_labels = vec![REBUILD_LABEL.to_owned()];
            let edit = PullRequestEdit { removed_labels, ..PullRequestEdit::default() };
            let after = forge.edit(labelled, &edit).await?;
            self.open.insert(key(labelled), after);
        }
        if let Some(head) = labelled.head_commit {
            self.records.hand_back(key(labelled), head);
        }
        Ok(())
    }

    /// Takes the branches of several pull requests back.
    ///
    /// An error of one of them does not stop it, and the first one is returned. An error of the whole forge does.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    pub(super) async fn take_back_all(
        &mut self,
        forge: &impl Forge,
        labelled: &[PullRequest],
        is_dry_run: bool,
    ) -> Result<(), ForgeError> {
        let mut failure = None;
        for one in labelled {
            let Err(error) = self.take_back(forge, one, is_dry_run).await else { continue };
            if error.is_of_every_request() || matches!(error, ForgeError::RateLimited { .. }) {
                return Err(error);
            }
            failure.get_or_insert(error);
        }
        failure.map_or(Ok(()), Err)
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

    /// Returns true if the open pull requests were listed within a time.
    pub(super) fn is_recent(&self, age: Duration) -> bool {
        self.listed_after.is_some_and(|begin| begin.elapsed() <= age)
    }

    /// Returns the open pull requests with a base whose branch has an older one.
    pub(super) fn seconds(&self, base: &BranchName) -> Vec<PullRequest> {
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
        if let Some(error) = self.failed.remove(&branches) {
            return Err(error);
        }
        let found = forge.find(head, base).await?;
        self.note(branches, found, Instant::now());
        Ok(())
    }

    /// Looks up the closed pull requests of branches at once.
    ///
    /// It takes one call if the forge can do that, else several calls at the same time. The error of one branch is that of its
    /// own look-up, which comes next.
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
            let now = Instant::now();
            found.into_iter().for_each(|(head, found)| self.note((base.clone(), head), found, now));
            return Ok(());
        }
        let unknown: Vec<BranchName> = unknown.into_iter().collect();
        for heads in unknown.chunks(SEARCHES) {
            let found = join_all(heads.iter().map(|head| forge.find(head, base))).await;
            let mut is_over = false;
            for (head, found) in heads.iter().zip(found) {
                let branches = (base.clone(), head.clone());
                match found {
                    Ok(found) => self.note(branches, found, Instant::now()),
                    Err(error) => {
                        is_over |= error.is_of_every_request();
                        self.failed.insert(branches, error);
                    }
                }
            }
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Notes all pull requests of a branch.
    fn note(&mut self, branches: Branches, mut found: Vec<PullRequest>, now: Instant) {
        found.sort_by_key(|one| std::cmp::Reverse(one.number));
        let open = found.iter().rposition(is_open).map(|at| found.remove(at));
        found.retain(|one| !is_open(one));
        match (open, found.first()) {
            (Some(open), _) => {
                self.open.insert(branches.clone(), open);
            }
            (None, Some(newest)) => self.records.end(branches.clone(), newest.number, now),
            (None, None) => {}
        }
        self.past.insert(branches, found);
    }

    /// Records the state of a pull request after a change.
    pub(super) fn put(&mut self, changed: PullRequest, now: Instant) {
        let branches = key(&changed);
        if is_open(&changed) {
            self.open.insert(branches, changed);
            return;
        }
        self.open.remove(&branches);
        self.records.end(branches.clone(), changed.number, now);
        // Only if the earlier ones are known, this one makes the list complete.
        if let Some(past) = self.past.get_mut(&branches) {
            past.retain(|one| one.number != changed.number);
            past.insert(0, changed);
        }
    }

    /// Records that we closed a pull request whose branch no policy renders.
    ///
    /// Git deletes the branch.
    pub(super) fn close_unwanted(&mut self, closed: PullRequest) {
        self.records.close(key(&closed), closed);
    }

    /// Forgets closed pull requests that are of no use any more.
    ///
    /// Their branches are not in use, or git has dealt with them.
    pub(super) fn retain(
        &mut self,
        is_used: impl Fn(&Branches) -> bool,
        is_dealt_with: impl Fn(&Branches) -> bool,
    ) {
        self.past.retain(|branches, _| is_used(branches));
        self.records.retain(is_used, is_dealt_with);
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
    pub(super) fn complete(&mut self, other: &Self) {
        let is_unknown =
            |branches: &&Branches| !self.open.contains_key(branches) && !self.past.contains_key(branches);
        let missing: Vec<Branches> = other.past.keys().filter(is_unknown).cloned().collect();
        for (base, head) in missing {
            self.take(other, &base, &BTreeSet::from([head]));
        }
    }

    /// Returns the pull requests of a branch.
    pub(super) fn found(&self, base: &BranchName, head: &BranchName) -> FoundPullRequests<'_> {
        let branches = (base.clone(), head.clone());
        let past = self.past.get(&branches).map(Vec::as_slice);
        let (handed_back, ended_at) = (self.records.handed_back(&branches), self.records.ended(&branches));
        FoundPullRequests { open: self.open.get(&branches), past, handed_back, ended_at }
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
        match images {
            Some(images) => branch_facts(images, owner, found),
            None => {
                let closed = self.records.closed(&(base.clone(), head.clone()));
                let past = found.past.or(closed.map(slice::from_ref));
                branch_facts(&BTreeSet::new(), owner, FoundPullRequests { past, ..found })
            }
        }
    }

    /// Returns the branches of an automation that git has to look at.
    ///
    /// Their pull requests are open, or we closed them while no policy rendered the branch.
    pub fn branches_for_git(&self, base: &BranchName, owner: &OwnerHash) -> BTreeSet<BranchName> {
        let closed = self.closed(base, owner).map(|one| one.head.clone());
        self.branches_of(base, owner).into_iter().chain(closed).collect()
    }

    /// Returns true if an automation has closed pull requests that it does not render.
    pub(super) fn has_closed(&self, base: &BranchName, owner: &OwnerHash) -> bool {
        self.closed(base, owner).next().is_some()
    }

    fn closed(&self, base: &BranchName, owner: &OwnerHash) -> impl Iterator<Item = &PullRequest> {
        self.records.all_closed().filter(move |one| {
            one.base == *base
                && Memory::of_body(&one.body).is_some_and(|memory| memory.owners.contains(owner))
        })
    }

    /// Returns the branches with open pull requests of an automation.
    pub(super) fn branches_of(&self, base: &BranchName, owner: &OwnerHash) -> BTreeSet<BranchName> {
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

#[cfg(test)]
pub(super) mod tests {
    use futures::FutureExt;
    use parking_lot::Mutex;

    use super::*;
    use crate::forge::{Merge, MergeAnswer, NewPullRequest, Opened, PullRequestState};

    /// A forge with two open pull requests, and perhaps a merge queue.
    #[derive(Default)]
    struct Queued {
        queue: Mutex<Option<BTreeSet<u64>>>,
        is_failing: Mutex<bool>,
        queries: Mutex<u32>,
    }

    pub(in super::super) fn open(number: u64, head: &str) -> PullRequest {
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
            if *self.is_failing.lock() {
                return Err(ForgeError::Unavailable { host: String::new(), detail: String::new() });
            }
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

    /// A forge with open pull requests of the same head, whose labels can be removed.
    struct Labelled {
        head: Mutex<&'static str>,
        /// True if it refuses to change the first of them.
        is_refusing: Mutex<bool>,
        edits: Mutex<Vec<PullRequestEdit>>,
    }

    impl Labelled {
        fn now(&self) -> PullRequest {
            let head_commit = Some(self.head.lock().repeat(40).parse().unwrap());
            let labels =
                if self.edits.lock().is_empty() { vec![REBUILD_LABEL.to_owned()] } else { Vec::new() };
            PullRequest { head_commit, labels, ..open(1, "a") }
        }
    }

    impl Forge for Labelled {
        async fn open_pull_requests(&self, _: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
            Ok(vec![self.now()])
        }

        async fn find(&self, _: &BranchName, _: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
            Ok(Vec::new())
        }

        async fn open(&self, _: &NewPullRequest) -> Result<Opened, ForgeError> {
            unreachable!("nothing is opened")
        }

        async fn edit(&self, one: &PullRequest, edit: &PullRequestEdit) -> Result<PullRequest, ForgeError> {
            if one.number == 1 && *self.is_refusing.lock() {
                let (host, detail) = (String::new(), String::new());
                return Err(ForgeError::Forbidden { host, operation: "remove a label", detail });
            }
            self.edits.lock().push(edit.clone());
            Ok(PullRequest { labels: Vec::new(), ..one.clone() })
        }

        async fn merge(&self, _: &PullRequest, _: &Merge) -> Result<MergeAnswer, ForgeError> {
            unreachable!("nothing is merged")
        }
    }

    #[test]
    fn a_branch_is_handed_back_with_its_head_of_that_time_and_only_without_the_label() {
        let (base, head): (BranchName, BranchName) = ("main".parse().unwrap(), "a".parse().unwrap());
        let heads = BTreeSet::from([head.clone()]);
        let owner = OwnerHash::of(
            &tagboat_api::ObjectName { namespace: "apps".to_owned(), name: "fleet".to_owned() },
            None,
        );
        let owners = BTreeSet::from([owner.clone()]);
        let forge =
            Labelled { head: Mutex::new("1"), is_refusing: Mutex::new(true), edits: Mutex::default() };
        let mut snapshot = Snapshot::default();
        let list = |snapshot: &mut Snapshot| {
            snapshot.list(&forge, &heads, false).now_or_never().unwrap().unwrap();
            snapshot.handed_back((&base, &head), &owners)
        };
        let take_back = |snapshot: &mut Snapshot, labelled: &PullRequest| {
            snapshot.take_back(&forge, labelled, false).now_or_never().unwrap()
        };
        let known =
            |snapshot: &Snapshot| snapshot.facts(&base, &head, Some(&BTreeSet::new()), &owner).handed_back;
        // While the label stays, nothing is handed back.
        let labelled = list(&mut snapshot).unwrap();
        assert!(take_back(&mut snapshot, &labelled).is_err());
        assert_eq!(known(&snapshot), None);
        *forge.is_refusing.lock() = false;
        // A person commits between the listing and the removal.
        *forge.head.lock() = "2";
        take_back(&mut snapshot, &labelled).unwrap();
        assert_eq!(forge.edits.lock()[0].removed_labels, [REBUILD_LABEL]);
        assert_eq!(known(&snapshot), labelled.head_commit);
        // The next listing shows another head than the one that was handed back.
        assert_eq!(list(&mut snapshot), None);
        assert_eq!(known(&snapshot), None);
    }

    /// The second was not taken back, although its label was gone.
    #[test]
    fn a_label_that_stays_keeps_no_other_branch_from_being_taken_back() {
        let forge =
            Labelled { head: Mutex::new("1"), is_refusing: Mutex::new(true), edits: Mutex::default() };
        let mut snapshot = Snapshot::default();
        let labelled = [forge.now(), PullRequest { number: 2, head: "b".parse().unwrap(), ..forge.now() }];
        let done = snapshot.take_back_all(&forge, &labelled, false).now_or_never().unwrap();
        assert!(done.is_err());
        let handed_back = |head: &str| snapshot.records.handed_back(&key(&open(0, head)));
        assert_eq!((handed_back("a"), handed_back("b")), (None, labelled[1].head_commit));
    }

    /// The last automation overwrote what the others had looked up.
    #[test]
    fn what_two_automations_look_up_at_the_same_time_is_merged() {
        let merged =
            |number, head: &str| PullRequest { state: PullRequestState::Merged, ..open(number, head) };
        let base: BranchName = "main".parse().unwrap();
        let mut shared = Snapshot::default();
        let looked_up = |before: &Snapshot, number, head: &str| {
            let one = merged(number, head);
            let mut own = before.clone();
            own.note(key(&one), vec![one.clone()], Instant::now());
            (own, BTreeSet::from([one.head]))
        };
        let both = [looked_up(&shared, 1, "a"), looked_up(&shared, 2, "b")];
        for (own, heads) in &both {
            shared.take(own, &base, heads);
        }
        let newest = |snapshot: &Snapshot, head: &str| {
            let found = snapshot.found(&base, &head.parse().unwrap());
            assert!(found.open.is_some() || found.ended_at.is_some());
            found.open.map_or_else(|| found.past.unwrap()[0].number, |open| open.number)
        };
        assert_eq!((newest(&shared, "a"), newest(&shared, "b")), (1, 2));
        // A round has opened another one meanwhile, and has not looked the second branch up.
        let mut round = looked_up(&Snapshot::default(), 1, "a").0;
        round.put(open(3, "a"), Instant::now());
        round.complete(&shared);
        assert_eq!((newest(&round, "a"), newest(&round, "b")), (3, 2));
    }

    #[test]
    fn git_is_told_of_the_branch_of_a_superseded_pull_request_until_it_has_dealt_with_it() {
        let name =
            |name: &str| tagboat_api::ObjectName { namespace: "apps".to_owned(), name: name.to_owned() };
        let (owner, other) = (OwnerHash::of(&name("fleet"), None), OwnerHash::of(&name("other"), None));
        let memory = Memory {
            owners: [owner.clone()].into(),
            closed: Some(crate::reconcile::automation::delivery::ClosedReason::Superseded),
            ..Memory::default()
        };
        let closed =
            PullRequest { state: PullRequestState::Closed, body: memory.to_string(), ..open(1, "a") };
        let (base, head) = (closed.base.clone(), closed.head.clone());
        let mut snapshot = Snapshot::default();
        snapshot.close_unwanted(closed);
        let facts = |snapshot: &Snapshot, images, owner| snapshot.facts(&base, &head, images, owner);
        assert_eq!(snapshot.branches_for_git(&base, &owner), BTreeSet::from([head.clone()]));
        assert!(snapshot.branches_for_git(&base, &other).is_empty());
        assert!(facts(&snapshot, None, &owner).is_finished);
        // A branch that is rendered again needs its whole past.
        assert!(facts(&snapshot, Some(&BTreeSet::new()), &owner).is_unknown);
        snapshot.retain(|_| false, |_| false);
        assert!(!snapshot.branches_for_git(&base, &owner).is_empty());
        snapshot.retain(|_| false, |_| true);
        assert!(snapshot.branches_for_git(&base, &owner).is_empty());
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

    /// Git would have rebuilt a branch in the queue after an answer that was lost.
    #[test]
    fn a_merge_queue_that_cannot_be_read_keeps_the_marks_of_the_last_answer() {
        let (forge, mut snapshot) = (Queued::default(), Snapshot::default());
        let heads = BTreeSet::from(["a", "b"].map(|name| name.parse().unwrap()));
        *forge.queue.lock() = Some(BTreeSet::from([2]));
        for is_failing in [false, true, true, false] {
            *forge.is_failing.lock() = is_failing;
            let listed = snapshot.list(&forge, &heads, false).now_or_never().unwrap();
            assert_eq!(listed.is_err(), is_failing);
            let queued = snapshot.open.values().filter(|one| one.is_in_merge_queue).map(|one| one.number);
            assert_eq!(queued.collect::<Vec<_>>(), [2]);
        }
    }
}
