//! Searches for the closed pull requests of branches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use futures::future::join_all;

use super::super::delivery::{OpenPullRequest, PastPullRequest, past_of};
use super::order::PullRequestOrder;
use super::records::{Branches, is_open};
use super::snapshot::Snapshot;
use crate::forge::{Forge, ForgeError, PullRequest};
use crate::git::BranchName;

/// The number of searches that wait for their turn at the same time.
///
/// The rate limiter of the forge admits fewer.
const SEARCHES: usize = 16;

/// The pull requests of a branch, without the bodies of those that have ended.
struct Searched {
    open: Option<OpenPullRequest>,
    /// The number of the newest one that has ended.
    newest: Option<u64>,
    past: Vec<PastPullRequest>,
}

impl Searched {
    /// Takes what is kept of all pull requests of a branch.
    fn of(mut found: Vec<PullRequest>) -> Self {
        found.sort_by_key(|one| std::cmp::Reverse(one.number));
        let open = found.iter().rposition(is_open).map(|at| OpenPullRequest::new(found.remove(at)));
        found.retain(|one| !is_open(one));
        Self { open, newest: found.first().map(|one| one.number), past: past_of(found) }
    }
}

impl Snapshot {
    /// Looks up the pull requests that have vanished from the list of open ones.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    pub(super) async fn look_up_vanished(&mut self, forge: &impl Forge) -> Result<(), ForgeError> {
        let mut heads: BTreeMap<BranchName, BTreeSet<BranchName>> = BTreeMap::new();
        self.vanished.retain(|branches| !self.open.contains_key(branches));
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

    /// Looks up the closed pull requests of a branch.
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
        if self.past.contains_key(&branches) {
            return Ok(());
        }
        if let Some(error) = self.failed.remove(&branches) {
            return Err(error);
        }
        let found = forge.find(head, base).await?;
        self.note(branches, Searched::of(found), Instant::now())
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
        let is_unknown = |branches: &Branches| !self.past.contains_key(branches);
        let unknown: BTreeSet<BranchName> = branches.filter(is_unknown).map(|(_, head)| head).collect();
        if unknown.len() > 1
            && let Some(found) = forge.find_many(&unknown, base).await?
        {
            for (head, found) in found {
                self.note_or_fail((base.clone(), head), Ok(Searched::of(found)));
            }
            return Ok(());
        }
        let unknown: Vec<BranchName> = unknown.into_iter().collect();
        for heads in unknown.chunks(SEARCHES) {
            let search = async |head| forge.find(head, base).await.map(Searched::of);
            let found = join_all(heads.iter().map(search)).await;
            let mut is_over = false;
            for (head, found) in heads.iter().zip(found) {
                is_over |= found.as_ref().is_err_and(ForgeError::is_of_every_request);
                self.note_or_fail((base.clone(), head.clone()), found);
            }
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Looks up pull requests that have ended since an automation reported them as open.
    ///
    /// The process that closed them may have been killed before its report, and no policy may render their branches any more.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses every request.
    pub(super) async fn look_up_lost(
        &mut self,
        forge: &impl Forge,
        order: &PullRequestOrder,
    ) -> Result<(), ForgeError> {
        let is_known = |number: u64| {
            self.is_open(number) || self.ended(number).is_some() || self.records.lost(number).is_some()
        };
        let lost: Vec<u64> =
            order.reported_open.iter().copied().filter(|number| !is_known(*number)).collect();
        for number in lost {
            let found = match forge.get(number).await {
                Err(error)
                    if error.is_of_every_request() || matches!(error, ForgeError::RateLimited { .. }) =>
                {
                    return Err(error);
                }
                // The repository may be another one by now.
                Err(_) => None,
                Ok(found) => Some(found),
            };
            let ended = found.filter(|found| !is_open(found) && found.base == order.base);
            let is_own = |ended: &PastPullRequest| {
                ended.memory.as_ref().is_some_and(|memory| memory.owners.contains(&order.owner))
            };
            self.records.lose(number, ended.as_ref().map(PastPullRequest::of).filter(is_own));
        }
        Ok(())
    }

    /// Notes all pull requests of a branch, or the error for its own look-up.
    fn note_or_fail(&mut self, branches: Branches, searched: Result<Searched, ForgeError>) {
        let noted = searched.and_then(|found| self.note(branches.clone(), found, Instant::now()));
        if let Err(error) = noted {
            self.failed.insert(branches, error);
        }
    }

    /// Notes all pull requests of a branch.
    ///
    /// # Errors
    ///
    /// If there is no room for them.
    fn note(&mut self, branches: Branches, found: Searched, now: Instant) -> Result<(), ForgeError> {
        let past: usize = found.past.iter().map(PastPullRequest::size).sum();
        self.require_room(past + found.open.as_ref().map_or(0, OpenPullRequest::size))?;
        match (found.open, found.newest) {
            // A listing tells more of it.
            (Some(open), _) => {
                self.open.entry(branches.clone()).or_insert_with(|| Arc::new(open));
            }
            (None, Some(newest)) => self.records.end(branches.clone(), newest, now),
            (None, None) => {}
        }
        self.past.insert(branches, Arc::new(found.past));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::key;
    use super::super::test_forge::open;
    use super::*;
    use crate::forge::PullRequestState;

    /// A forge with many pull requests of 16 MiB for each branch filled the memory.
    #[test]
    fn the_pull_requests_of_all_branches_have_a_bound() {
        let closed = |number, body: String| PullRequest {
            state: PullRequestState::Closed,
            body,
            title: "t".repeat(1024 * 1024),
            ..open(number, "a")
        };
        let mut snapshot = Snapshot::default();
        let mut note = |branch: usize, found| {
            let branches = ("main".parse().unwrap(), format!("b{branch}").parse().unwrap());
            snapshot.note_or_fail(branches, Ok(Searched::of(found)));
            (snapshot.past.len(), snapshot.failed.len())
        };
        // Bodies are not kept.
        assert_eq!(note(0, vec![closed(1, "x".repeat(20 * 1024 * 1024))]), (1, 0));
        for branch in 1..31 {
            assert_eq!(note(branch, vec![closed(2, String::new())]), (branch + 1, 0));
        }
        assert_eq!(note(31, vec![closed(3, String::new())]), (31, 1));
        let large = PullRequest { body: "x".repeat(2 * 1024 * 1024), ..open(4, "a") };
        assert_eq!(note(32, vec![large.clone()]), (31, 2));
        assert_eq!(note(33, vec![open(5, "a")]), (32, 2));
        let failed = snapshot.failed.values().next().unwrap().to_string();
        assert!(failed.contains("more than 33554432 bytes"), "{failed}");
        // One that was opened or edited is looked up again.
        snapshot.put(large.clone(), Instant::now());
        assert!(!snapshot.is_open(4) && snapshot.vanished.contains(&key(&large)));
    }

    /// Many repositories of a namespace, each within its own bound, filled the memory.
    #[test]
    fn the_pull_requests_of_all_repositories_of_a_namespace_have_a_bound() {
        let namespace = Arc::default();
        let mut all: Vec<Snapshot> = (0..3).map(|_| Snapshot::within(Arc::clone(&namespace))).collect();
        let mut number = 0;
        let mut fill = |snapshot: &mut Snapshot| {
            let before = snapshot.past.len();
            for _ in 0..40 {
                number += 1;
                let branches = ("main".parse().unwrap(), format!("b{number}").parse().unwrap());
                let title = "t".repeat(1024 * 1024);
                let closed = PullRequest { state: PullRequestState::Closed, title, ..open(number, "a") };
                snapshot.note_or_fail(branches, Ok(Searched::of(vec![closed])));
            }
            snapshot.past.len() - before
        };
        assert_eq!([0, 1, 2].map(|at: usize| fill(&mut all[at])), [31, 31, 1]);
        let failed = all[2].failed.values().next().unwrap().to_string();
        assert!(
            failed.starts_with("the pull requests of all GitRepositories of the namespace take more"),
            "{failed}"
        );
        // A round has forgotten them, or the last automation of another repository is gone.
        all[1].retain(|_| false, |_| false, |_| false);
        all[1].give_memory_back();
        assert_eq!(fill(&mut all[2]), 30);
        all.remove(0);
        assert_eq!(fill(&mut all[0]), 31);
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
            own.note(key(&one), Searched::of(vec![one.clone()]), Instant::now()).unwrap();
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
        let round = shared.after_round(round);
        assert_eq!((newest(&round, "a"), newest(&round, "b")), (3, 2));
    }
}
