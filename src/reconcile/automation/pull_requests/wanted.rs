//! Branches that automations render: what is wanted of each, and the work on it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tagboat_api::ObjectName;
use tagboat_api::settings::MergeTime;

use super::super::delivery::{
    BranchState, CautiousAutomation, Decision, ImageHash, OpenPullRequest, OwnerHash, PullRequestOptions,
    PullRequestReason, PullRequestText, TextError, TextSource, WantedPullRequest, decide,
};
use super::action::{BranchError, Done};
use super::order::{BranchContent, PullRequestOrder};
use super::outcome::{OutcomeReason, PullRequestOutcome, PullRequestVerb};
use super::round::{Round, RoundWork};
use super::snapshot::Snapshot;
use crate::forge::{Forge, ForgeError};
use crate::git::{BranchName, BranchOutcome, CommitId};

/// The timeout of the rendering of a text.
const TEXT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time in which a forge that has changed the base ends a merge.
const MERGE_TIME: Duration = Duration::from_secs(3);

/// The branch of a round, with all that is wanted of it.
pub(super) struct Wanted<'r> {
    base: &'r BranchName,
    pub(super) orders: Vec<&'r Arc<PullRequestOrder>>,
    owners: BTreeSet<OwnerHash>,
    pub(super) images: BTreeSet<ImageHash>,
    options: PullRequestOptions,
    /// The merge time that the automations themselves want.
    own_merge: MergeTime,
    /// The other automations for which a merge may wait.
    ///
    /// Each comes with true if it may render the branch.
    others: Vec<(&'r CautiousAutomation, bool)>,
}

impl Wanted<'_> {
    /// Returns true if a decision or report depends on closed pull requests.
    pub(super) fn is_of_interest(&self, branch: &BranchName, snapshot: &Snapshot) -> bool {
        let found = snapshot.found(self.base, branch);
        if found.open.is_some() {
            return found.lack_past(&self.images);
        }
        let is_there = |order: &&Arc<PullRequestOrder>| order.outcome(branch).is_some();
        let is_missing = |order: &&Arc<PullRequestOrder>| {
            order.reported_open.iter().any(|number| !snapshot.is_open(*number))
        };
        !self.images.is_empty() || self.orders.iter().any(|order| is_there(order) || is_missing(order))
    }

    /// Returns a sentence about an automation for which the merge waits until people do something.
    fn standstill(&self, open: &OpenPullRequest) -> Option<String> {
        if self.own_merge == MergeTime::ByHand || self.options.is_draft || open.is_draft {
            return None;
        }
        let mut remedies = self.others.iter().filter_map(|(one, may_render)| {
            let is_sharer = open.is_of(&one.owner);
            one.remedy(is_sharer).filter(|_| is_sharer || *may_render)
        });
        let first = remedies.next()?;
        Some(match remedies.count() {
            0 => first,
            1 => format!("{first}; and for another automation"),
            more => format!("{first}; and for {more} other automations"),
        })
    }

    /// Returns the outcome for a branch that an open pull request merges elsewhere.
    fn open_elsewhere(&self, branch: &BranchName, snapshot: &Snapshot) -> Option<PullRequestOutcome> {
        let owners = self.orders.iter().map(|order| order.owner.clone()).collect();
        let elsewhere = snapshot.open_elsewhere((self.base, branch), &owners)?;
        snapshot.found(self.base, branch).open.is_none().then(|| PullRequestOutcome {
            number: Some(elsewhere.number),
            url: elsewhere.url.clone(),
            title: elsewhere.title.clone(),
            reason: Some(OutcomeReason::Decided(PullRequestReason::OtherBase)),
            is_open: true,
            ..PullRequestOutcome::without(branch, self.base, PullRequestVerb::Left)
        })
    }
}

impl<F: Forge> Round<'_, F> {
    /// Unites what the automations of a branch want.
    pub(super) fn wanted<'s>(&'s self, base: &'s BranchName, branch: &BranchName) -> Wanted<'s> {
        let rendering: Vec<&Arc<PullRequestOrder>> =
            self.orders_on(base).filter(|order| order.rendered.contains(branch)).collect();
        let changing: Vec<&Arc<PullRequestOrder>> =
            rendering.iter().copied().filter(|order| order.contents.contains_key(branch)).collect();
        let images = changing.iter().filter_map(|order| order.contents.get(branch));
        let images: BTreeSet<ImageHash> = images.flat_map(BranchContent::images).collect();
        // A pull request with nothing left may be that of an automation that renders another branch now.
        let owners = if changing.is_empty() {
            self.owners_on(base)
        } else {
            changing.iter().map(|order| order.owner.clone()).collect()
        };
        // One that has nothing to change at the moment may have later, so its caution counts.
        let mut options = PullRequestOptions::united(rendering.iter().map(|order| &order.settings));
        let (own_merge, others) = (options.merge, self.others(&rendering, branch));
        let counting = others.iter().filter(|(_, may_render)| *may_render).map(|(one, _)| one.merge);
        options.merge = counting.chain([own_merge]).min().unwrap_or(own_merge);
        let orders = if changing.is_empty() { rendering } else { changing };
        Wanted { base, orders, owners, images, options, own_merge, others }
    }

    /// Returns the automations without an order for which a merge may wait.
    ///
    /// Each comes with true if it may render the branch: it takes no part, has failed, is stalled, or had no run since the start.
    /// The others may have a part in the pull request from before.
    fn others<'s>(
        &'s self,
        rendering: &[&'s Arc<PullRequestOrder>],
        branch: &BranchName,
    ) -> Vec<(&'s CautiousAutomation, bool)> {
        let has_order = |name: &ObjectName| rendering.iter().any(|order| order.automation == *name);
        let other = |one: &'s CautiousAutomation| {
            let has_any = self.orders.contains_key(&one.automation);
            let may_render = one.counts_for(branch, has_any);
            (!has_order(&one.automation) && (may_render || !has_any)).then_some((one, may_render))
        };
        rendering.iter().flat_map(|order| &order.cautious).filter_map(other).collect()
    }

    /// Works on a branch that automations render.
    pub(super) async fn work_on_branch(
        &self,
        (base, branch): (&BranchName, &BranchName),
        work: &mut RoundWork,
    ) -> Result<Option<PullRequestOutcome>, BranchError> {
        let wanted = self.wanted(base, branch);
        if let Some(labelled) = work.snapshot.handed_back((base, branch), &self.owners_on(base))
            && self.may_take_back((base, branch), &wanted.orders, &mut work.outcome).await
        {
            work.snapshot.take_back(self.forge, &labelled, self.mode.is_dry_run()).await?;
        }
        if let Some(elsewhere) = wanted.open_elsewhere(branch, &work.snapshot) {
            return Ok(Some(elsewhere));
        }
        if wanted.is_of_interest(branch, &work.snapshot) {
            work.snapshot.look_up(self.forge, base, branch).await?;
        }
        let state = newest(&wanted.orders, branch).map_or(Some(BranchState::Absent), |order| {
            let is_handled = |outcome: &BranchOutcome| {
                outcome.tip.is_some() && self.handled.get(branch) == outcome.tip.as_ref()
            };
            order.state(branch, is_handled)
        });
        let state = state.unwrap_or(BranchState::Failed);
        if let (BranchState::Current { .. }, Some(order)) = (state, newest(&wanted.orders, branch)) {
            work.snapshot.see(base, branch, order.made_at);
        }
        let text = self.text(&wanted, branch, base).await?;
        let known = self.owners_on(base);
        let open = work.snapshot.found(base, branch).open;
        let readable = open.map(|open| self.sharers(open).readable()).unwrap_or_default();
        let joined = open.map(|open| joined(&wanted.orders, open)).unwrap_or_default();
        let request = WantedPullRequest {
            branch,
            base,
            owners: &wanted.owners,
            known: &known,
            judged: judged(&wanted.orders, branch),
            made_at: made_at(&wanted.orders),
            images: &wanted.images,
            readable: &readable,
            options: &wanted.options,
            joined: &joined,
            text: text.as_ref(),
            separate: self.separate,
            limit: self.limit,
        };
        let state = self.in_dry_run(state, &wanted, branch);
        let decision = decide(&request, state, work.snapshot.found(base, branch))?;
        let decision = if decision.reason == Some(PullRequestReason::NothingLeft) {
            self.await_merges(work).await?;
            decide(&request, state, work.snapshot.found(base, branch))?
        } else {
            decision
        };
        let done = match self.carry_out_if_due(decision, state, (branch, &wanted), work).await? {
            Done::Found => {
                let opened_by_others = decide(&request, state, work.snapshot.found(base, branch))?;
                self.carry_out_if_due(opened_by_others, state, (branch, &wanted), work).await?
            }
            done => done,
        };
        match done {
            Done::Outcome(mut done) => {
                let open = work.snapshot.found(base, branch).open.filter(|_| done.reason.is_none());
                done.refused.extend(open.and_then(|open| wanted.standstill(open)));
                Ok(Some(self.with_tip(*done, state)))
            }
            Done::Nothing | Done::Found => Ok(None),
        }
    }

    /// Carries a decision out, but for what waits.
    async fn carry_out_if_due(
        &self,
        decision: Decision,
        state: BranchState,
        (branch, wanted): (&BranchName, &Wanted<'_>),
        work: &mut RoundWork,
    ) -> Result<Done, BranchError> {
        let of = ((wanted.base, branch), wanted.orders.as_slice());
        let (decision, withheld) = self.held(decision, of, &mut work.outcome).await;
        let decision = self.after_report(decision, state, (branch, &wanted.orders), &mut work.outcome);
        let done = self.carry_out(&decision, (wanted.base, branch), work).await?;
        Ok(match done {
            Done::Outcome(done) => Done::Outcome(Box::new(done.with_withheld(withheld))),
            done => done,
        })
    }

    /// Lists the pull requests again, once the forge had the time to end merges.
    ///
    /// A forge that merges changes the base first. Until it has marked the pull request as merged, nothing seems to be left to
    /// change.
    async fn await_merges(&self, work: &mut RoundWork) -> Result<(), ForgeError> {
        if self.mode.is_dry_run() || std::mem::replace(&mut work.has_settled, true) {
            return Ok(());
        }
        tokio::time::sleep(MERGE_TIME).await;
        work.snapshot.list(self.forge, &self.heads(), true).await?;
        work.snapshot.look_up_vanished(self.forge).await
    }

    /// Renders the text of a branch on the blocking pool.
    async fn text(
        &self,
        wanted: &Wanted<'_>,
        branch: &BranchName,
        base: &BranchName,
    ) -> Result<Option<PullRequestText>, TextError> {
        let orders: Vec<Arc<PullRequestOrder>> = wanted.orders.iter().copied().cloned().collect();
        let Some(first) = orders.first() else { return Ok(None) };
        let namespace = first.automation.namespace.clone();
        let (branch, base) = (branch.clone(), base.clone());
        let text = self.pool.run(&namespace, move || render(&orders, &branch, &base)).await?;
        Ok(text.map(|text| text.without_draft_prefix(self.forge.draft_prefixes())))
    }

    /// Returns the state that a branch would have after a dry run.
    fn in_dry_run(&self, state: BranchState, wanted: &Wanted<'_>, branch: &BranchName) -> BranchState {
        let outcome = wanted.orders.iter().find_map(|order| order.outcome(branch));
        match outcome {
            // Any commit stands for the one that is not made.
            Some(outcome) if self.mode.is_dry_run() && outcome.is_changed() && !wanted.images.is_empty() => {
                let tip = outcome.tip.unwrap_or_else(no_commit);
                BranchState::Current { tip, is_new: true }
            }
            _ => state,
        }
    }

    fn with_tip(&self, done: PullRequestOutcome, state: BranchState) -> PullRequestOutcome {
        match state {
            BranchState::Current { tip, .. } if !self.mode.is_dry_run() => {
                PullRequestOutcome { commit: Some(tip), ..done }
            }
            _ => done,
        }
    }
}

/// Returns the tip at which git looked at a branch.
pub(super) fn judged(orders: &[&Arc<PullRequestOrder>], branch: &BranchName) -> Option<CommitId> {
    newest(orders, branch)?.outcome(branch)?.tip
}

/// Returns the order of the last run that has looked at a branch.
fn newest<'r>(
    orders: &[&'r Arc<PullRequestOrder>],
    branch: &BranchName,
) -> Option<&'r Arc<PullRequestOrder>> {
    let looked = orders.iter().copied().filter(|order| order.outcome(branch).is_some());
    looked.max_by_key(|order| order.made_at)
}

/// Returns the time at which the first of the runs of automations began.
fn made_at(orders: &[&Arc<PullRequestOrder>]) -> Instant {
    orders.iter().map(|order| order.made_at).min().unwrap_or_else(Instant::now)
}

/// Returns the settings of the automations that the last line of a pull request lacks.
fn joined(orders: &[&Arc<PullRequestOrder>], open: &OpenPullRequest) -> PullRequestOptions {
    let Some(memory) = open.memory() else { return PullRequestOptions::default() };
    let (known, new): (Vec<_>, Vec<_>) =
        orders.iter().partition(|order| memory.owners.contains(&order.owner));
    let united = |orders: Vec<&&Arc<PullRequestOrder>>| {
        PullRequestOptions::united(orders.into_iter().map(|order| &order.settings))
    };
    united(new).without_people_of(&united(known))
}

/// Renders the text of automations; there is none if nothing is left to change.
fn render(
    orders: &[Arc<PullRequestOrder>],
    branch: &BranchName,
    base: &BranchName,
) -> Result<Option<PullRequestText>, TextError> {
    let sources: Vec<TextSource<'_>> = orders
        .iter()
        .filter_map(|order| Some(order.contents.get(branch)?.source(&order.settings, order.language)))
        .collect();
    if sources.is_empty() {
        return Ok(None);
    }
    let begin = Instant::now();
    let is_late = || begin.elapsed() > TEXT_TIMEOUT;
    PullRequestText::render(&sources, branch.as_str(), base.as_str(), &is_late).map(Some)
}

/// Returns the id that stands for a commit which is not made.
fn no_commit() -> CommitId {
    "0".repeat(40).parse().expect("40 zeros are an id")
}
