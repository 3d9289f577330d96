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
        let is_unknown = |branches: &Branches| !self.past.contains_key(branches);
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

    /// Notes all pull requests of a branch.
    fn note(&mut self, branches: Branches, mut found: Vec<PullRequest>, now: Instant) {
        found.sort_by_key(|one| std::cmp::Reverse(one.number));
        let open = found.iter().rposition(is_open).map(|at| found.remove(at));
        found.retain(|one| !is_open(one));
        match (open, found.first()) {
            // A listing tells more of it.
            (Some(open), _) => {
                let open = || Arc::new(OpenPullRequest::new(open));
                self.open.entry(branches.clone()).or_insert_with(open);
            }
            (None, Some(newest)) => self.records.end(branches.clone(), newest.number, now),
            (None, None) => {}
        }
        self.past.insert(branches, Arc::new(past_of(found)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::key;
    use super::super::snapshot::tests::open;
    use super::*;
    use crate::forge::PullRequestState;

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
}
