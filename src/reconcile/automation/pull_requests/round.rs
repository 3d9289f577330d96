//! One round of work on the pull requests of a repository: list, decide, act.
//!
//! Each action is idempotent, because it follows from the state that the forge lists. So the next round completes one that
//! was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tagboat_api::ObjectName;

use super::super::delivery::{
    BranchState, Decision, ImageHash, OtherBranch, OwnerHash, PolicyHash, PullRequestAction,
    PullRequestOptions, PullRequestReason, PullRequestText, TextError, TextSource, UnwantedPullRequest,
    WantedPullRequest, decide, decide_unwanted,
};
use super::super::waiting::{Closed, WriteGate};
use super::merges::AskedMerges;
use super::order::{BranchContent, PullRequestOrder};
use super::outcome::{OutcomeReason, PullRequestOutcome, PullRequestVerb, WithheldChange};
use super::snapshot::Snapshot;
use crate::forge::{
    Forge, ForgeError, Merge, MergeAnswer, PullRequest, PullRequestEdit, PullRequestState, SeparateParts,
};
use crate::git::{BranchName, BranchOutcome, CommitId};
use crate::tenancy::BlockingPool;

/// The timeout of the rendering of a text.
const TEXT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum age of a listing by which texts are changed.
///
/// That is the time of a few calls. A text of an older listing is read again right before its change, so that none of a person
/// is lost.
pub(super) const TEXT_AGE: Duration = Duration::from_secs(1);

/// The time in which a forge that has changed the base ends a merge.
const MERGE_TIME: Duration = Duration::from_secs(3);

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
    /// The merges that the forge was asked for, by the number of the pull request.
    pub(super) merges: &'r Mutex<AskedMerges>,
    /// The pull requests with actions that were not reported yet.
    ///
    /// None if no report is awaited.
    pub(super) unreported: Option<&'r BTreeSet<u64>>,
    /// The maximum age of a listing by which texts are changed.
    pub(super) text_age: Duration,
    /// True once the forge had the time to end merges.
    pub(super) has_settled: AtomicBool,
    /// True once a change was withheld because an automation may not write now.
    pub(super) has_withheld: AtomicBool,
    /// True once something was put off until the next report.
    pub(super) has_put_off: AtomicBool,
    /// Decides only.
    pub(super) is_dry_run: bool,
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
    /// The time of the listing, if there was one.
    pub(super) listed: Option<Instant>,
}

impl RoundOutcome {
    /// Returns the outcomes of all pull requests.
    pub(super) fn all(&self) -> impl Iterator<Item = &PullRequestOutcome> {
        self.branches.values().chain(&self.seconds)
    }
}

/// The branch of a round, with all that is wanted of it.
struct Wanted<'r> {
    orders: Vec<&'r Arc<PullRequestOrder>>,
    owners: BTreeSet<OwnerHash>,
    images: BTreeSet<ImageHash>,
    options: PullRequestOptions,
}

impl Wanted<'_> {
    /// Returns true if a decision or report depends on closed pull requests.
    fn is_of_interest(&self, branch: &BranchName, snapshot: &Snapshot) -> bool {
        let is_there = |order: &&Arc<PullRequestOrder>| order.outcome(branch).is_some();
        let is_missing = |order: &&Arc<PullRequestOrder>| {
            order.reported_open.iter().any(|number| !snapshot.is_open(*number))
        };
        !self.images.is_empty() || self.orders.iter().any(|order| is_there(order) || is_missing(order))
    }
}

impl<F: Forge> Round<'_, F> {
    /// Lists the pull requests, and looks up those on which decisions depend.
    ///
    /// An error that concerns the whole forge ends the round.
    pub(super) async fn ask(&self, snapshot: &mut Snapshot) -> RoundOutcome {
        let mut outcome = RoundOutcome::default();
        let asked = async {
            let heads = self.orders.values().flat_map(|order| order.rendered.iter().cloned()).collect();
            let is_urgent = self.is_urgent(snapshot);
            snapshot.list(self.forge, &heads, is_urgent).await?;
            outcome.listed = Some(Instant::now());
            snapshot.look_up_vanished(self.forge).await?;
            for base in self.bases() {
                self.look_up(base, snapshot).await?;
            }
            Ok(())
        };
        let asked: Result<(), ForgeError> = asked.await;
        outcome.failure = asked.err();
        outcome
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
    pub(super) async fn act(&self, snapshot: &mut Snapshot, mut outcome: RoundOutcome) -> RoundOutcome {
        if outcome.failure.is_some() {
            return outcome;
        }
        for base in self.bases() {
            if let Err(error) = self.work_on(base, snapshot, &mut outcome).await {
                outcome.failure = Some(error);
                break;
            }
        }
        outcome
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

    /// Returns the branches that automations with a base render.
    fn rendered(&self, base: &BranchName) -> BTreeSet<BranchName> {
        self.orders_on(base).flat_map(|order| order.rendered.iter().cloned()).collect()
    }

    async fn work_on(
        &self,
        base: &BranchName,
        snapshot: &mut Snapshot,
        outcome: &mut RoundOutcome,
    ) -> Result<(), ForgeError> {
        let branches = self.rendered(base);
        let readable: BTreeSet<PolicyHash> =
            self.orders_on(base).flat_map(|order| order.readable.iter().cloned()).collect();
        for branch in &branches {
            let done = self.work_on_branch((base, branch), &readable, snapshot).await;
            settle(done, (base, branch), outcome)?;
        }
        let would_open = self.would_open(base, outcome);
        for branch in self.unwanted(base, &branches, snapshot) {
            let known = (&readable, &would_open);
            let done = self.work_on_unwanted((base, &branch), known, snapshot).await;
            settle(done, (base, &branch), outcome)?;
        }
        for second in snapshot.seconds(base) {
            let done = self.work_on_second(&second, &readable, snapshot).await;
            let (done, end) = outcome_of(done, (base, &second.head), outcome);
            let numbered = |done| PullRequestOutcome { number: Some(second.number), ..done };
            outcome.seconds.extend(done.map(numbered));
            end?;
        }
        Ok(())
    }

    /// Unites what the automations of a branch want.
    fn wanted<'s>(&'s self, base: &'s BranchName, branch: &BranchName) -> Wanted<'s> {
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
        let orders = if changing.is_empty() { rendering } else { changing };
        let options = PullRequestOptions::united(orders.iter().map(|order| &order.settings));
        Wanted { orders, owners, images, options }
    }

    async fn work_on_branch(
        &self,
        (base, branch): (&BranchName, &BranchName),
        readable: &BTreeSet<PolicyHash>,
        snapshot: &mut Snapshot,
    ) -> Result<Option<PullRequestOutcome>, BranchError> {
        let wanted = self.wanted(base, branch);
        if let Some(labelled) = snapshot.handed_back((base, branch), &self.owners_on(base))
            && self.closed(&wanted.orders).await.is_none()
        {
            snapshot.take_back(self.forge, &labelled, self.is_dry_run).await?;
        }
        if wanted.is_of_interest(branch, snapshot) {
            snapshot.look_up(self.forge, base, branch).await?;
        }
        let state = newest(&wanted.orders, branch).map_or(Some(BranchState::Absent), |order| {
            let is_handled = |outcome: &BranchOutcome| {
                outcome.tip.is_some() && self.handled.get(branch) == outcome.tip.as_ref()
            };
            order.state(branch, is_handled)
        });
        let state = state.unwrap_or(BranchState::Failed);
        let text = self.text(&wanted, branch, base).await?;
        let known = self.owners_on(base);
        let request = WantedPullRequest {
            branch,
            base,
            owners: &wanted.owners,
            known: &known,
            judged: judged(&wanted.orders, branch),
            made_at: made_at(&wanted.orders),
            images: &wanted.images,
            readable,
            options: &wanted.options,
            text: text.as_ref(),
            separate: self.separate,
            limit: self.limit,
        };
        let state = self.in_dry_run(state, &wanted, branch);
        let decision = decide(&request, state, snapshot.found(base, branch))?;
        let decision = if decision.reason == Some(PullRequestReason::NothingLeft) {
            self.await_merges(snapshot).await?;
            decide(&request, state, snapshot.found(base, branch))?
        } else {
            decision
        };
        let (decision, withheld) = self.held(decision, &wanted.orders).await;
        let decision = self.after_report(decision, state, &wanted.orders, branch);
        let opened_by_others = match self.carry_out(&decision, (base, branch), snapshot).await? {
            Done::Outcome(done) => return Ok(Some(self.with_tip(done.with_withheld(withheld), state))),
            Done::Nothing => return Ok(None),
            Done::Found => decide(&request, state, snapshot.found(base, branch))?,
        };
        let (opened_by_others, withheld) = self.held(opened_by_others, &wanted.orders).await;
        let opened_by_others = self.after_report(opened_by_others, state, &wanted.orders, branch);
        match self.carry_out(&opened_by_others, (base, branch), snapshot).await? {
            Done::Outcome(done) => Ok(Some(self.with_tip(done.with_withheld(withheld), state))),
            Done::Nothing | Done::Found => Ok(None),
        }
    }

    /// Lists the pull requests again, once the forge had the time to end merges.
    ///
    /// A forge that merges changes the base first. Until it has marked the pull request as merged, nothing seems to be left to
    /// change.
    async fn await_merges(&self, snapshot: &mut Snapshot) -> Result<(), ForgeError> {
        if self.is_dry_run || self.has_settled.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        tokio::time::sleep(MERGE_TIME).await;
        let heads = self.orders.values().flat_map(|order| order.rendered.iter().cloned()).collect();
        snapshot.list(self.forge, &heads, true).await?;
        snapshot.look_up_vanished(self.forge).await
    }

    /// Withholds a change while one of the automations may not write.
    ///
    /// The second value is the change, if it is withheld.
    pub(super) async fn held(
        &self,
        decision: Decision,
        orders: &[&Arc<PullRequestOrder>],
    ) -> (Decision, Option<WithheldChange>) {
        use PullRequestAction::{Keep, Leave, Nothing, Open};
        let is_change = decision.merge.is_some() || !matches!(decision.action, Nothing | Keep | Leave);
        let closed = if is_change { self.closed(orders).await } else { None };
        let Some(rule) = closed else { return (decision, None) };
        let delays_images = decision.merge.is_some() || matches!(decision.action, Open(_));
        let left = Decision { action: Leave, merge: None, ..decision };
        (left, Some(WithheldChange { rule, delays_images }))
    }

    /// Puts a text and a merge off that would hide an unreported refresh.
    ///
    /// The refresh is an action of its own, and once it is reported, the text is changed without another.
    fn after_report(
        &self,
        decision: Decision,
        state: BranchState,
        orders: &[&Arc<PullRequestOrder>],
        branch: &BranchName,
    ) -> Decision {
        use PullRequestAction::{Edit, Keep, Refresh};
        let (Refresh(Some(edit)), Some(number), BranchState::Current { tip, .. }) =
            (&decision.action, decision.number, state)
        else {
            return decision;
        };
        if !decision.hides_refresh || self.unreported.is_none() {
            return decision;
        }
        let is_handled = self.handled.get(branch) == Some(&tip);
        if is_handled && self.is_reported(number, orders) {
            return Decision { action: Edit(edit.clone()), ..decision };
        }
        self.has_put_off.store(true, Ordering::Relaxed);
        // The round that handled the tip has the event of the refresh.
        let action = if is_handled { Keep } else { Refresh(None) };
        Decision { action, merge: None, ..decision }
    }

    /// Returns true once all automations have reported a pull request and its last action.
    ///
    /// Until then nothing is done that would hide this action from the next process.
    fn is_reported(&self, number: u64, orders: &[&Arc<PullRequestOrder>]) -> bool {
        let Some(unreported) = self.unreported else { return true };
        let is_reported =
            !unreported.contains(&number) && orders.iter().all(|order| order.reported_open.contains(&number));
        self.has_put_off.fetch_or(!is_reported, Ordering::Relaxed);
        is_reported
    }

    /// Returns the rule by which one of the automations may not write now.
    async fn closed(&self, orders: &[&Arc<PullRequestOrder>]) -> Option<Closed> {
        let gates: Vec<WriteGate> = orders.iter().filter_map(|order| order.gate.clone()).collect();
        let closed = closed_gate(self.pool, gates).await?;
        tracing::info!("a change of a pull request waits: {}", closed.by);
        self.has_withheld.store(true, Ordering::Relaxed);
        Some(closed)
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
        self.pool.run(&namespace, move || render(&orders, &branch, &base)).await
    }

    /// Returns the state that a branch would have after a dry run.
    fn in_dry_run(&self, state: BranchState, wanted: &Wanted<'_>, branch: &BranchName) -> BranchState {
        let outcome = wanted.orders.iter().find_map(|order| order.outcome(branch));
        match outcome {
            // Any commit stands for the one that is not made.
            Some(outcome) if self.is_dry_run && outcome.is_changed() && !wanted.images.is_empty() => {
                let tip = outcome.tip.unwrap_or_else(no_commit);
                BranchState::Current { tip, is_new: true }
            }
            _ => state,
        }
    }

    fn with_tip(&self, done: PullRequestOutcome, state: BranchState) -> PullRequestOutcome {
        match state {
            BranchState::Current { tip, .. } if !self.is_dry_run => {
                PullRequestOutcome { commit: Some(tip), ..done }
            }
            _ => done,
        }
    }

    /// Returns the branches with open pull requests of these automations that none of them renders.
    fn unwanted(
        &self,
        base: &BranchName,
        rendered: &BTreeSet<BranchName>,
        snapshot: &Snapshot,
    ) -> Vec<BranchName> {
        let own = snapshot.branches_of_any(base, &self.owners_on(base));
        own.into_iter().filter(|branch| !rendered.contains(branch)).collect()
    }

    /// Returns the branches whose pull requests a dry run would have opened by now.
    fn would_open(&self, base: &BranchName, outcome: &RoundOutcome) -> BTreeSet<BranchName> {
        let is_opened = |one: &&PullRequestOutcome| {
            self.is_dry_run && one.base == *base && one.action == PullRequestVerb::Opened
        };
        outcome.branches.values().filter(is_opened).map(|one| one.branch.clone()).collect()
    }

    /// Works on a branch that no automation renders.
    ///
    /// `would_open` are the branches that a dry run takes for open.
    async fn work_on_unwanted(
        &self,
        (base, branch): (&BranchName, &BranchName),
        (readable, would_open): (&BTreeSet<PolicyHash>, &BTreeSet<BranchName>),
        snapshot: &mut Snapshot,
    ) -> Result<Option<PullRequestOutcome>, BranchError> {
        let Some(open) = snapshot.found(base, branch).open.cloned() else { return Ok(None) };
        let owners = self.owners_on(base);
        // Git looks at the branch in the next run; until then, commits of others may be on it.
        let order = self.orders_on(base).find(|order| order.facts.contains_key(branch));
        let Some(state) = order.and_then(|order| order.state(branch, |_| true)) else { return Ok(None) };
        let wanted: BTreeMap<BranchName, BTreeSet<ImageHash>> = self
            .orders_on(base)
            .flat_map(|order| &order.contents)
            .map(|(branch, _)| (branch.clone(), self.wanted(base, branch).images))
            .collect();
        let others: Vec<OtherBranch<'_>> = wanted
            .iter()
            .map(|(branch, images)| OtherBranch {
                branch,
                images,
                has_open_pull_request: snapshot.found(base, branch).open.is_some()
                    || would_open.contains(branch),
            })
            .collect();
        let decision = decide_unwanted(&UnwantedPullRequest {
            pull_request: &open,
            branch: state,
            judged: judged(&self.orders_on(base).collect::<Vec<_>>(), branch),
            owners: &owners,
            readable,
            others: &others,
            limit: self.limit,
        })?;
        let (decision, withheld) = self.held(decision, &self.orders_on(base).collect::<Vec<_>>()).await;
        match self.carry_out(&decision, (base, branch), snapshot).await? {
            Done::Outcome(done) => {
                let done = done.with_withheld(withheld);
                if let PullRequestAction::Close(edit) = decision.action
                    && !self.is_dry_run
                    && !done.is_open
                {
                    let body = edit.body.unwrap_or(open.body);
                    let closed = PullRequest { state: PullRequestState::Closed, body, ..open };
                    snapshot.close_unwanted(closed);
                }
                Ok(Some(done))
            }
            Done::Nothing | Done::Found => Ok(None),
        }
    }

    /// Carries a decision out.
    async fn carry_out(
        &self,
        decision: &Decision,
        (base, branch): (&BranchName, &BranchName),
        snapshot: &mut Snapshot,
    ) -> Result<Done, BranchError> {
        use PullRequestAction::{Close, Edit, Keep, Leave, Nothing, Open, Refresh};
        let action = match &decision.action {
            Nothing => return Ok(Done::Nothing),
            Open(_) => PullRequestVerb::Opened,
            Keep | Edit(_) => PullRequestVerb::Kept,
            Refresh(_) => PullRequestVerb::Refreshed,
            Close(_) => PullRequestVerb::Closed,
            Leave => PullRequestVerb::Left,
        };
        let mut done = PullRequestOutcome::without(branch, base, action);
        done.reason = decision.reason.map(OutcomeReason::Decided);
        done.number = decision.number;
        let found = snapshot.found(base, branch);
        let refused = found.past.into_iter().flatten().find(|one| Some(one.number) == decision.number);
        let current = found.open.or(refused).cloned();
        let after = match (&decision.action, current) {
            (Open(new), _) if self.is_dry_run => {
                let body = new.completed_body.as_ref().unwrap_or(&new.body);
                (done.title, done.body) = (new.title.clone(), Some(body.clone()));
                return Ok(Done::Outcome(Box::new(done)));
            }
            (Open(new), _) => {
                let opened = self.forge.open(new).await?;
                let (is_new, after) = (opened.is_new, opened.pull_request);
                snapshot.put(after.clone(), Instant::now());
                if !is_new {
                    return Ok(Done::Found);
                }
                (done.refused, done.is_opened) = (opened.refused, true);
                after
            }
            (Edit(edit) | Refresh(Some(edit)) | Close(edit), Some(current)) if !self.is_dry_run => {
                let is_text_recent = snapshot.is_recent(self.text_age);
                let edit = &PullRequestEdit { is_text_recent, ..PullRequestEdit::clone(edit) };
                let after = self.forge.edit(&current, edit).await?;
                snapshot.put(after.clone(), Instant::now());
                if after.state != PullRequestState::Open && !edit.is_closed {
                    // A person was faster, which is reported.
                    snapshot.look_up(self.forge, base, branch).await?;
                }
                after
            }
            (Nothing | Keep | Leave | Edit(_) | Refresh(_) | Close(_), Some(current)) => current,
            (_, None) => return Ok(Done::Outcome(Box::new(done))),
        };
        done.is_open = after.state == PullRequestState::Open;
        (done.number, done.url, done.title) = (Some(after.number), after.url.clone(), after.title.clone());
        if let Some(merge) = decision.merge.as_ref().filter(|_| !self.is_dry_run && done.is_open) {
            self.merge(after, merge, &mut done, snapshot).await?;
        }
        Ok(Done::Outcome(Box::new(done)))
    }

    async fn merge(
        &self,
        current: PullRequest,
        merge: &Merge,
        done: &mut PullRequestOutcome,
        snapshot: &mut Snapshot,
    ) -> Result<(), BranchError> {
        let known = self.merges.lock().answer(current.number, merge, Instant::now());
        let orders = self.wanted(&done.base, &done.branch).orders;
        let answer = match known {
            Some(answer) => answer,
            None if !self.is_reported(current.number, &orders) => {
                let Some(refusal) = self.merges.lock().refusal(current.number) else { return Ok(()) };
                refusal
            }
            None => {
                let answer = self.forge.merge(&current, merge).await?;
                self.merges.lock().add(current.number, merge.clone(), answer.clone(), Instant::now());
                answer
            }
        };
        match answer {
            MergeAnswer::Merged => {
                (done.action, done.is_open) = (PullRequestVerb::Merged, false);
                snapshot.put(PullRequest { state: PullRequestState::Merged, ..current }, Instant::now());
            }
            MergeAnswer::Scheduled => {
                snapshot.put(PullRequest { has_auto_merge: true, ..current }, Instant::now());
            }
            MergeAnswer::NothingRequired => {
                let reason = "the forge requires neither a check nor an approval, so it would merge at once";
                done.merge_refusal = Some(reason.to_owned());
            }
            MergeAnswer::NotYet { .. } => {}
            MergeAnswer::Refused { reason } => done.merge_refusal = Some(reason),
        }
        Ok(())
    }
}

/// Returns the tip at which git looked at a branch.
fn judged(orders: &[&Arc<PullRequestOrder>], branch: &BranchName) -> Option<CommitId> {
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

/// Returns the cause for which one of some automations may not write.
pub(super) async fn closed_gate(pool: &BlockingPool, gates: Vec<WriteGate>) -> Option<Closed> {
    let namespace = gates.first()?.automation.namespace.clone();
    pool.run(&namespace, move || gates.iter().find_map(|gate| gate.state().closed)).await
}

/// Renders the text of automations; there is none if nothing is left to change.
fn render(
    orders: &[Arc<PullRequestOrder>],
    branch: &BranchName,
    base: &BranchName,
) -> Result<Option<PullRequestText>, TextError> {
    let sources: Vec<TextSource<'_>> = orders
        .iter()
        .filter_map(|order| {
            let content = order.contents.get(branch)?;
            Some(TextSource {
                data: &content.data,
                message: content.message.as_deref(),
                title: order.settings.title.text(),
                body: order.settings.body.text(),
                language: order.language,
            })
        })
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

/// The end of an action.
enum Done {
    /// There is nothing to report.
    Nothing,
    /// A pull request was found in place of the one that was to be opened.
    Found,
    /// The outcome.
    Outcome(Box<PullRequestOutcome>),
}

/// The error of one branch.
#[derive(Debug, thiserror::Error)]
pub(super) enum BranchError {
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Text(#[from] TextError),
}

/// Records the outcome of a branch, or the error that ended it.
///
/// # Errors
///
/// If the error concerns the other branches as well.
fn settle(
    done: Result<Option<PullRequestOutcome>, BranchError>,
    (base, branch): (&BranchName, &BranchName),
    outcome: &mut RoundOutcome,
) -> Result<(), ForgeError> {
    let (done, end) = outcome_of(done, (base, branch), outcome);
    outcome.branches.extend(done.map(|done| ((base.clone(), branch.clone()), done)));
    end
}

/// Returns the outcome of a pull request, also of one that failed.
///
/// The second value is an error that concerns other branches as well.
fn outcome_of(
    done: Result<Option<PullRequestOutcome>, BranchError>,
    (base, branch): (&BranchName, &BranchName),
    outcome: &mut RoundOutcome,
) -> (Option<PullRequestOutcome>, Result<(), ForgeError>) {
    let failed = |reason| PullRequestOutcome {
        reason: Some(reason),
        ..PullRequestOutcome::without(branch, base, PullRequestVerb::Left)
    };
    match done {
        Ok(done) => (done, Ok(())),
        Err(BranchError::Text(error)) => (Some(failed(OutcomeReason::NoText(error.to_string()))), Ok(())),
        // The outcome of the branch stays the known one.
        Err(BranchError::Forge(error @ ForgeError::RateLimited { .. })) => {
            outcome.failure.get_or_insert(error);
            (None, Ok(()))
        }
        Err(BranchError::Forge(error)) => {
            let end = if error.is_of_every_request() { Err(error.clone()) } else { Ok(()) };
            (Some(failed(OutcomeReason::ForgeFailed(error))), end)
        }
    }
}
