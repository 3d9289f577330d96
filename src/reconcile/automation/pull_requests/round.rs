//! One round of work on the pull requests of a repository: list, decide, act.
//!
//! Each action is idempotent, because it follows from the state that the forge lists. So the next round completes one that
//! was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tagboat_api::ObjectName;

use super::super::delivery::{BranchState, OwnerHash};
use super::action::BranchError;
use super::merges::AskedMerges;
use super::order::PullRequestOrder;
use super::outcome::{OutcomeReason, PullRequestOutcome, PullRequestVerb};
use super::refused_labels::RefusedLabels;
use super::snapshot::Snapshot;
use crate::forge::{Forge, ForgeError, PullRequest, SeparateParts};
use crate::git::{BranchName, CommitId};
use crate::tenancy::BlockingPool;

/// The maximum age of a listing by which texts are changed.
///
/// That is the time of a few calls. A text of an older listing is read again right before its change, so that none of a person
/// is lost.
pub(super) const TEXT_AGE: Duration = Duration::from_secs(1);

/// One round of work on the pull requests of a repository.
pub(super) struct Round<'r, F> {
    /// The client.
    pub(super) forge: &'r F,
    /// The pool on which texts are rendered.
    pub(super) pool: &'r BlockingPool,
    /// The limit of the forge for a body.
    pub(super) limit: Option<usize>,
    /// The parts that the forge adds after opening a pull request.
    pub(super) separate: SeparateParts,
    /// The orders of all automations of the repository, by name.
    pub(super) orders: &'r BTreeMap<ObjectName, Arc<PullRequestOrder>>,
    /// The tips for which pull requests are refreshed already.
    pub(super) handled: &'r BTreeMap<BranchName, CommitId>,
    /// The maximum age of a listing by which texts are changed.
    pub(super) text_age: Duration,
    /// The manner in which it acts and is reported.
    pub(super) mode: RoundMode,
    /// Returns true while the orders about a branch with a base are present ones.
    pub(super) is_present: &'r (dyn Fn(&BranchName, &BranchName) -> bool + Sync),
}

/// The manner in which a round acts and is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RoundMode {
    /// It decides only.
    DryRun,
    /// It is the only one, and reported with all that it did.
    Single,
    /// Others come before and after it.
    Repeated {
        /// The pull requests with actions that were not reported yet.
        unreported: BTreeSet<u64>,
    },
}

impl RoundMode {
    /// Returns true if nothing is changed at the forge.
    pub(super) fn is_dry_run(&self) -> bool {
        *self == Self::DryRun
    }
}

/// The state of a repository during a round.
#[derive(Debug, Default)]
pub(super) struct RoundWork {
    /// The pull requests.
    pub(super) snapshot: Snapshot,
    /// The merges that the forge was asked for, by the number of the pull request.
    pub(super) merges: AskedMerges,
    /// The last refusal of labels.
    pub(super) labels: RefusedLabels,
    /// The outcome so far.
    pub(super) outcome: RoundOutcome,
    /// True once the forge had the time to end merges.
    pub(super) has_settled: bool,
}

/// The outcome of a round.
#[derive(Debug, Default)]
pub(super) struct RoundOutcome {
    /// The outcomes, by base and branch.
    pub(super) branches: BTreeMap<(BranchName, BranchName), PullRequestOutcome>,
    /// The outcomes of further pull requests of branches that have one.
    pub(super) seconds: Vec<PullRequestOutcome>,
    /// The error that ended the round.
    pub(super) failure: Option<ForgeError>,
    /// The rate limit that ended the look-ups of pull requests for reports alone.
    pub(super) unread: Option<ForgeError>,
    /// The time of the listing, if there was one.
    pub(super) listed: Option<Instant>,
    /// True if a change was withheld because an automation may not write now.
    pub(super) has_withheld: bool,
    /// True if nothing was changed on a branch because other orders have come for it.
    pub(super) has_outdated: bool,
    /// True if something was put off until the next report.
    pub(super) has_put_off: bool,
    /// True if the forge has put off a merge that it may accept soon.
    pub(super) has_early_merge: bool,
    /// True if the forge may still close a pull request whose branch was deleted.
    pub(super) may_close: bool,
}

impl RoundOutcome {
    /// Returns the outcomes of all pull requests.
    pub(super) fn all(&self) -> impl Iterator<Item = &PullRequestOutcome> {
        self.branches.values().chain(&self.seconds)
    }

    /// Returns true if the forge failed, or a pull request has no text.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some() || self.all().any(PullRequestOutcome::has_failed)
    }

    /// Records the outcome of a branch, or the error that ended it.
    ///
    /// `open` is its open pull request.
    ///
    /// # Errors
    ///
    /// If the error concerns the other branches as well.
    fn settle(
        &mut self,
        done: Result<Option<PullRequestOutcome>, BranchError>,
        (base, branch): (&BranchName, &BranchName),
        open: Option<&PullRequest>,
    ) -> Result<(), ForgeError> {
        let (done, end) = self.end_of(done, (base, branch), open);
        self.branches.extend(done.map(|done| ((base.clone(), branch.clone()), done)));
        end
    }

    /// Returns the outcome of a pull request, also of one that failed.
    ///
    /// The second value is an error that concerns other branches as well.
    fn end_of(
        &mut self,
        done: Result<Option<PullRequestOutcome>, BranchError>,
        (base, branch): (&BranchName, &BranchName),
        open: Option<&PullRequest>,
    ) -> (Option<PullRequestOutcome>, Result<(), ForgeError>) {
        let left = || PullRequestOutcome::without(branch, base, PullRequestVerb::Left);
        let failed = |reason| PullRequestOutcome {
            reason: Some(reason),
            action: PullRequestVerb::Left,
            ..open.map_or_else(left, PullRequestOutcome::kept)
        };
        match done {
            Ok(done) => (done, Ok(())),
            Err(BranchError::Text(error)) => (Some(failed(OutcomeReason::NoText(error.to_string()))), Ok(())),
            // The outcome of the branch stays the known one.
            Err(BranchError::Forge(error @ ForgeError::RateLimited { .. })) => {
                self.failure.get_or_insert(error);
                (None, Ok(()))
            }
            Err(BranchError::Forge(error)) => {
                let end = if error.is_of_every_request() { Err(error.clone()) } else { Ok(()) };
                (Some(failed(OutcomeReason::ForgeFailed(error))), end)
            }
        }
    }
}

impl<F: Forge> Round<'_, F> {
    /// Lists the pull requests, and looks up those on which decisions depend.
    ///
    /// An error that concerns the whole forge ends the round.
    pub(super) async fn ask(&self, work: &mut RoundWork) {
        work.outcome.failure = self.try_to_ask(work).await.err();
    }

    async fn try_to_ask(&self, work: &mut RoundWork) -> Result<(), ForgeError> {
        let is_urgent = self.is_urgent(&work.snapshot);
        work.snapshot.list(self.forge, &self.heads(), is_urgent).await?;
        work.outcome.listed = Some(Instant::now());
        let may_close = |base: &&BranchName| work.snapshot.may_close_one(base, &self.rendered(base));
        work.outcome.may_close = self.bases().iter().any(may_close);
        work.snapshot.look_up_vanished(self.forge).await?;
        for base in self.bases() {
            self.look_up(base, &mut work.snapshot).await?;
        }
        for order in self.orders.values() {
            match work.snapshot.look_up_lost(self.forge, order).await {
                // What is left of the limit is for openings and closings.
                Err(error @ ForgeError::RateLimited { .. }) => {
                    work.outcome.unread = Some(error);
                    break;
                }
                done => done?,
            }
        }
        Ok(())
    }

    /// Looks up the closed pull requests of the branches with a base.
    async fn look_up(&self, base: &BranchName, snapshot: &mut Snapshot) -> Result<(), ForgeError> {
        let of_interest = self
            .rendered(base)
            .into_iter()
            .filter(|branch| self.wanted(base, branch).is_of_interest(branch, snapshot))
            .collect();
        match snapshot.look_up_many(self.forge, base, &of_interest).await {
            Err(error) if error.is_of_every_request() || matches!(error, ForgeError::RateLimited { .. }) => {
                Err(error)
            }
            // Another error is that of one branch, which meets it again.
            _ => Ok(()),
        }
    }

    /// Acts on each branch, unless an error has ended the round.
    pub(super) async fn act(&self, work: &mut RoundWork) {
        if work.outcome.failure.is_some() {
            return;
        }
        for base in self.bases() {
            if let Err(error) = self.work_on(base, work).await {
                work.outcome.failure = Some(error);
                return;
            }
        }
        // The next try looks the others up.
        let RoundOutcome { failure, unread, .. } = &mut work.outcome;
        *failure = failure.take().or(unread.take());
    }

    fn bases(&self) -> BTreeSet<&BranchName> {
        self.orders.values().map(|order| &order.base).collect()
    }

    /// Returns true if the last listing suggests that something is opened or closed.
    fn is_urgent(&self, snapshot: &Snapshot) -> bool {
        self.bases().into_iter().any(|base| {
            let is_to_open = |order: &Arc<PullRequestOrder>, branch: &BranchName| {
                snapshot.found(base, branch).open.is_none()
                    && matches!(order.state(branch, |_| true), None | Some(BranchState::Current { .. }))
            };
            let changed =
                |order: &Arc<PullRequestOrder>, branch: &BranchName| order.contents.contains_key(branch);
            self.orders_on(base).any(|order| order.contents.keys().any(|branch| is_to_open(order, branch)))
                || snapshot
                    .branches_of_any(base, &self.owners_on(base))
                    .iter()
                    .any(|branch| !self.orders_on(base).any(|order| changed(order, branch)))
        })
    }

    /// Returns the orders with a base.
    pub(super) fn orders_on<'s>(
        &'s self,
        base: &'s BranchName,
    ) -> impl Iterator<Item = &'s Arc<PullRequestOrder>> {
        self.orders.values().filter(move |order| order.base == *base)
    }

    /// Returns the automations with a base.
    pub(super) fn owners_on(&self, base: &BranchName) -> BTreeSet<OwnerHash> {
        self.orders_on(base).map(|order| order.owner.clone()).collect()
    }

    /// Returns the branches that automations render.
    pub(super) fn heads(&self) -> BTreeSet<BranchName> {
        self.orders.values().flat_map(|order| order.rendered.iter().cloned()).collect()
    }

    /// Returns the branches that automations with a base render.
    fn rendered(&self, base: &BranchName) -> BTreeSet<BranchName> {
        self.orders_on(base).flat_map(|order| order.rendered.iter().cloned()).collect()
    }

    async fn work_on(&self, base: &BranchName, work: &mut RoundWork) -> Result<(), ForgeError> {
        let branches = self.rendered(base);
        for branch in &branches {
            let done = self.work_on_branch((base, branch), work).await;
            work.outcome.settle(
                done,
                (base, branch),
                work.snapshot.found(base, branch).open.map(Deref::deref),
            )?;
        }
        let would_deliver = self.would_deliver(base, &work.outcome);
        for branch in self.unwanted(base, &branches, &work.snapshot) {
            let done = self.work_on_unwanted((base, &branch), &would_deliver, work).await;
            work.outcome.settle(
                done,
                (base, &branch),
                work.snapshot.found(base, &branch).open.map(Deref::deref),
            )?;
        }
        for second in work.snapshot.seconds(base) {
            let done = self.work_on_second(&second, work).await;
            let (done, end) = work.outcome.end_of(done, (base, &second.head), Some(&second));
            work.outcome.seconds.extend(done);
            end?;
        }
        Ok(())
    }
}
