//! The state of a repository in the work queue, and its changes by a round.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tagboat_api::ObjectName;
use tokio::sync::Notify;

use super::super::delivery::{CautiousAutomation, OwnerHash};
use super::super::forge_login::ForgeAccess;
use super::super::waiting::WriteGate;
use super::merges::AskedMerges;
use super::order::{BranchContent, PullRequestOrder};
use super::outcome::{PullRequestOutcome, PullRequestVerb};
use super::progress::PullRequestProgress;
use super::records::Branches;
use super::refused_labels::RefusedLabels;
use super::round::RoundOutcome;
use super::snapshot::Snapshot;
use crate::forge::ForgeError;
use crate::git::BranchAction::{Created, Failed, Left, Rebuilt};
use crate::git::{BranchFacts, BranchName, BranchOutcome, CommitId, LeftReason};
use crate::tenancy::KeptMemory;

/// The maximum age of a list of pull requests by which git changes a branch.
///
/// Since an older one, a person may have closed a pull request, or reopened it: its branch stays as it is.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The repository of a queue.
///
/// Automations of two namespaces share nothing, even if they name the same GitRepository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepositoryKey {
    /// The namespace of the automations.
    pub namespace: String,
    /// The GitRepository.
    pub source: ObjectName,
    /// The URL of the API.
    pub api: String,
    /// The full name of the repository at the forge.
    pub repository: String,
}

/// The state of a repository in the work queue.
pub(super) struct Repository {
    /// The API, with the present login.
    pub(super) access: Arc<ForgeAccess>,
    /// The pull requests, as they were listed last.
    pub(super) snapshot: Arc<Snapshot>,
    /// The orders of its automations.
    pub(super) orders: BTreeMap<ObjectName, Arc<PullRequestOrder>>,
    /// The tips for which pull requests are refreshed already, by branch.
    ///
    /// The base does not matter: a tip has one content, and git leaves a branch alone that is open elsewhere.
    pub(super) handled: BTreeMap<BranchName, CommitId>,
    /// The progress of each automation.
    pub(super) progress: BTreeMap<ObjectName, PullRequestProgress>,
    /// The automations whose branches git can deal with, since the forge has answered.
    pub(super) needs_git: BTreeSet<ObjectName>,
    /// Ends a delay after a failure.
    ///
    /// It is notified once an order wants something else or a person asks for a round.
    pub(super) changed: Arc<Notify>,
    /// Tells a round of orders that wait for the forge.
    pub(super) arrived: Arc<Notify>,
    /// The time of the last round.
    pub(super) last_round: Option<Instant>,
    /// The time of the last listing.
    pub(super) listed: Option<Instant>,
    /// The merges that the forge was asked for.
    pub(super) merges: AskedMerges,
    /// The last refusal of labels.
    pub(super) labels: RefusedLabels,
    /// Held while an automation lists or takes branches back before git.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    /// True once a new login was asked for, since the API refused one.
    pub(super) has_renewed_login: bool,
    /// The error of a look-up before git, which the next round reports.
    pub(super) look_up_failure: Option<ForgeError>,
    /// The number of rounds that failed since the last one that did not.
    pub(super) failures: u32,
    /// The number of reports of its automations.
    pub(super) reports: u64,
    /// True if a round has put something off until the next report.
    pub(super) awaits_report: bool,
    /// True if a round is wanted.
    pub(super) is_due: bool,
    /// True if its task runs.
    pub(super) is_running: bool,
}

impl Repository {
    /// Makes the state of a repository without automations, in the memory of its namespace.
    pub(super) fn new(access: &Arc<ForgeAccess>, memory: Arc<KeptMemory>) -> Self {
        Self {
            access: Arc::clone(access),
            snapshot: Arc::new(Snapshot::within(memory)),
            orders: BTreeMap::new(),
            handled: BTreeMap::new(),
            progress: BTreeMap::new(),
            needs_git: BTreeSet::new(),
            changed: Arc::default(),
            arrived: Arc::default(),
            last_round: None,
            listed: None,
            merges: AskedMerges::default(),
            labels: RefusedLabels::default(),
            turn: Arc::default(),
            has_renewed_login: false,
            look_up_failure: None,
            failures: 0,
            reports: 0,
            awaits_report: false,
            is_due: false,
            is_running: false,
        }
    }

    /// Returns true if git may change a branch by the last list.
    pub(super) fn is_up_to_date(&self, now: Instant) -> bool {
        self.listed.is_some_and(|at| now.saturating_duration_since(at) <= MAX_AGE)
    }

    /// Returns true if the last list is too old for git to end branches.
    pub(super) fn needs_list_for_ends(&self, now: Instant) -> bool {
        let has_closed = |order: &Arc<PullRequestOrder>| self.snapshot.has_closed(&order.base, &order.owner);
        !self.is_up_to_date(now) && self.orders.values().any(has_closed)
    }

    /// Returns the branches that policies render.
    pub(super) fn heads(&self) -> BTreeSet<BranchName> {
        self.orders.values().flat_map(|order| order.rendered.iter().cloned()).collect()
    }

    /// Returns the automations with an order on a base.
    pub(super) fn owners(&self, base: &BranchName) -> BTreeSet<OwnerHash> {
        let on_base = self.orders.values().filter(|order| order.base == *base);
        on_base.map(|order| order.owner.clone()).collect()
    }

    /// Takes a new list of the pull requests, or its failure.
    pub(super) fn take_list(
        &mut self,
        listed: Result<Snapshot, ForgeError>,
        now: Instant,
    ) -> Result<(), ForgeError> {
        match listed {
            Ok(snapshot) => {
                (self.snapshot, self.listed) = (Arc::new(snapshot), Some(now));
                Ok(())
            }
            Err(error) => Err(self.look_up_failure.insert(error).clone()),
        }
    }

    /// Sets the gate of an automation whose order stays the same.
    pub(super) fn set_gate(&mut self, automation: &ObjectName, gate: Option<WriteGate>) {
        if let Some(order) = self.orders.get_mut(automation) {
            Arc::make_mut(order).gate = gate;
        }
    }

    /// Returns true if a branch is wanted on the terms of a round's orders.
    pub(super) fn has_terms_of(
        &self,
        orders: &BTreeMap<ObjectName, Arc<PullRequestOrder>>,
        branches: (&BranchName, &BranchName),
    ) -> bool {
        let now = self.orders.values().filter_map(|order| order.terms(branches));
        now.eq(orders.values().filter_map(|order| order.terms(branches)))
    }

    /// Sets the more cautious automations of an order; returns true if they change.
    pub(super) fn set_cautious(
        &mut self,
        automation: &ObjectName,
        cautious: Vec<CautiousAutomation>,
    ) -> bool {
        let order = self.orders.get_mut(automation).filter(|order| order.cautious != cautious);
        order.map(|order| Arc::make_mut(order).cautious = cautious).is_some()
    }

    /// Ends the overrides of the orders of a round.
    ///
    /// A person has forced one run, and no later one.
    pub(super) fn end_overrides(&mut self, done: &BTreeMap<ObjectName, Arc<PullRequestOrder>>) {
        for (name, done) in done.iter().filter(|(_, done)| done.ignores_own()) {
            // The order of a later run has its own round.
            let order = self.orders.get_mut(name).filter(|order| order.made_at == done.made_at);
            for gate in order.into_iter().filter_map(|order| Arc::make_mut(order).gate.as_mut()) {
                gate.ignores_own = false;
            }
        }
    }

    /// Takes the outcome of a round, and returns the automations to notify.
    ///
    /// `begun` has the login with which the round began.
    pub(super) fn take(
        &mut self,
        orders: &BTreeMap<ObjectName, Arc<PullRequestOrder>>,
        outcome: &RoundOutcome,
        retry: Option<Timestamp>,
        begun: &ForgeAccess,
    ) -> Vec<ObjectName> {
        // A Secret may have changed since the round began.
        let (mut notified, redactor) = (Vec::new(), self.access.redactor().with(&begun.redactor()));
        for (name, order) in orders.iter().filter(|(name, _)| self.orders.contains_key(*name)) {
            let is_own =
                |one: &&PullRequestOutcome| one.base == order.base && order.facts.contains_key(&one.branch);
            let mut outcomes: Vec<PullRequestOutcome> =
                outcome.branches.values().filter(is_own).cloned().collect();
            // Automations that share a branch may know different tips of it. The round went by the one of the outcome.
            // A pull request that was left alone may still have to be refreshed for the tip.
            let is_left = |one: &PullRequestOutcome| one.action == PullRequestVerb::Left;
            for one in outcomes.iter().filter(|one| !is_left(one) && one.withheld().is_none()) {
                if let Some(tip) = one.commit {
                    self.handled.insert(one.branch.clone(), tip);
                }
            }
            outcomes.extend(outcome.seconds.iter().filter(is_own).cloned());
            let before = self.progress.get(name);
            if outcome.failure.is_some() {
                // Of the other branches nothing new is known.
                let is_missing = |one: &&PullRequestOutcome| {
                    !outcomes.iter().any(|now| (&now.base, &now.branch) == (&one.base, &one.branch))
                };
                // A pushed image ends the refusal of the one before it.
                let is_current = |one: &&PullRequestOutcome| {
                    let action = order.outcome(&one.branch).map(|outcome| &outcome.action);
                    let is_pushed = matches!(action, Some(Created | Rebuilt));
                    one.refusal().is_none() || one.base != order.base || !is_pushed
                };
                let known = before.iter().flat_map(|before| &before.outcomes).filter(is_current);
                let missing: Vec<_> = known.filter(is_missing).map(PullRequestOutcome::settled).collect();
                outcomes.extend(missing);
                let is_told = |branch: &BranchName| {
                    outcomes.iter().any(|one| (&one.base, &one.branch) == (&order.base, branch))
                };
                let not_reached = |branch| {
                    let open = self.snapshot.found(&order.base, branch).open;
                    PullRequestOutcome::not_reached((&order.base, branch), open.map(Deref::deref))
                };
                let unreached = order.to_have_pull_requests().filter(|branch| !is_told(branch));
                let unreached: Vec<_> = unreached.map(not_reached).collect();
                outcomes.extend(unreached);
            } else {
                // Git has not looked at their branches yet. The next process must know that they were open.
                let told: BTreeSet<u64> = outcomes.iter().filter_map(|outcome| outcome.number).collect();
                let open = self.snapshot.open_of(&order.base, &order.owner);
                let missing = open.filter(|one| !told.contains(&one.number));
                outcomes.extend(missing.map(|one| PullRequestOutcome::kept(one)));
            }
            outcomes.iter_mut().for_each(|one| one.redact(&redactor));
            let outcomes = (outcomes, outcome.failure.clone());
            let mut now = PullRequestProgress::after(before, outcomes, &order.reported_open, &self.snapshot);
            now.redact_ended(&redactor);
            now.retry = retry;
            let is_reported = before.is_some_and(|before| !before.differs(&now));
            // Git may have gone on since the round began.
            if self.orders.get(name).is_some_and(|latest| self.awaits_git(latest)) {
                self.needs_git.insert(name.clone());
            }
            if !is_reported || self.needs_git.contains(name) {
                notified.push(name.clone());
            }
            self.progress.insert(name.clone(), now);
        }
        notified
    }

    /// Lets git go on where the forge has answered, and returns the automations to notify.
    pub(super) fn release_git(&mut self) -> Vec<ObjectName> {
        let is_free = |(name, order): &(&ObjectName, &Arc<PullRequestOrder>)| {
            order.awaiting_forge().next().is_some()
                && !self.needs_git.contains(*name)
                && self.awaits_git(order)
        };
        let free: Vec<ObjectName> =
            self.orders.iter().filter(is_free).map(|(name, _)| name.clone()).collect();
        self.needs_git.extend(free.iter().cloned());
        free
    }

    /// Returns the orders that wait for the forge and came after those of a round.
    pub(super) fn arrivals(
        &self,
        known: &BTreeMap<ObjectName, Arc<PullRequestOrder>>,
    ) -> Vec<Arc<PullRequestOrder>> {
        let is_new = |order: &&Arc<PullRequestOrder>| {
            order.awaiting_forge().next().is_some()
                && known.get(&order.automation).is_none_or(|known| known.made_at != order.made_at)
        };
        self.orders.values().filter(is_new).cloned().collect()
    }

    /// Takes note of the progress that an automation has reported.
    ///
    /// Returns true if something waits for a report. It is due at once: a failure of another automation does not delay it.
    pub(super) fn announced(&mut self, automation: &ObjectName, reported: &PullRequestProgress) -> bool {
        self.reports += 1;
        if let Some(progress) = self.progress.get_mut(automation) {
            progress.announced(reported);
        }
        if let Some(order) = self.orders.get_mut(automation) {
            Arc::make_mut(order).reported_open = reported.listed();
        }
        let is_due = std::mem::take(&mut self.awaits_report);
        if is_due {
            self.changed.notify_one();
        }
        is_due
    }

    /// Returns the pull requests with actions that were not reported yet.
    pub(super) fn awaiting_report(&self) -> BTreeSet<u64> {
        self.progress.values().flat_map(PullRequestProgress::awaiting_report).collect()
    }

    /// Returns true if git would decide otherwise by now.
    ///
    /// It left a branch for a reason that holds no more, or may have read the base before a merge.
    fn awaits_git(&self, order: &PullRequestOrder) -> bool {
        let mut owners = self.owners(&order.base);
        owners.insert(order.owner.clone());
        let is_free = |outcome: &BranchOutcome| {
            let Left(reason) = &outcome.action else { return false };
            let images = order.contents.get(&outcome.branch).map(BranchContent::images);
            let images = images.unwrap_or_default();
            let images = order.rendered.contains(&outcome.branch).then_some(&images);
            let facts = self.snapshot.facts(&order.base, &outcome.branch, images, &order.owner);
            let owned_by_others = self.snapshot.owned_by_others(&order.base, &outcome.branch, &owners);
            let facts = BranchFacts { owned_by_others, is_abandoned: images.is_none(), ..facts };
            if order.facts.get(&outcome.branch) == Some(&facts) {
                // Git would decide the same again.
                return false;
            }
            match reason {
                LeftReason::AwaitingForge => !facts.is_unknown,
                LeftReason::Refused => {
                    // The branch has the refused tip, or was deleted with it.
                    let has_refused = |tip: CommitId| outcome.tip.is_none_or(|now| now == tip);
                    let is_refused =
                        facts.is_refused_at(outcome.tip) || facts.refused_tip.is_some_and(has_refused);
                    !facts.is_unknown && !is_refused
                }
                LeftReason::OpenElsewhere { .. } => !facts.is_unknown && facts.open_elsewhere.is_none(),
                LeftReason::OwnedByOthers { .. } => facts.owned_by_others.is_none(),
                LeftReason::InMergeQueue => !facts.is_unknown && !facts.is_in_merge_queue,
                // Its pull request has ended: with nothing to change, the commits do not matter any more.
                LeftReason::EditedByOthers { .. } | LeftReason::Unreadable { .. } => {
                    facts.handed_back.is_some()
                        || facts.merged_tip.is_some() && facts.merged_tip == outcome.tip
                        || !facts.has_pull_request && !order.contents.contains_key(&outcome.branch)
                }
                // The run is repeated anyway.
                LeftReason::SharedWith { .. } => facts.handed_back.is_some(),
                LeftReason::NothingLeft | LeftReason::Abandoned => facts.is_finished && !facts.is_refused,
                LeftReason::Waiting { .. } | LeftReason::UnparsableBase | LeftReason::UnparsableOf { .. } => {
                    false
                }
            }
        };
        let is_new =
            |branch: &BranchName| !order.rendered.contains(branch) && order.outcome(branch).is_none();
        let is_stale =
            |branch: &BranchName| self.snapshot.found(&order.base, branch).have_ended_since(order.made_at);
        order.delivered.branches.iter().any(is_free)
            || order.contents.keys().any(is_stale)
            || self.snapshot.branches_of(&order.base, &order.owner).iter().any(is_new)
    }

    /// Puts the order of a run, and returns the one before it.
    ///
    /// An automation whose commit the run has dropped from a branch has an order of an earlier run, which counts there no more.
    pub(super) fn put_order(&mut self, order: &Arc<PullRequestOrder>) -> Option<Arc<PullRequestOrder>> {
        for outcome in &order.delivered.branches {
            for dropped in &outcome.dropped {
                let mut orders = self.orders.iter_mut();
                if let Some((_, other)) = orders.find(|(name, _)| name.to_string() == dropped.name) {
                    Arc::make_mut(other).contents.remove(&outcome.branch);
                }
            }
        }
        self.orders.insert(order.automation.clone(), Arc::clone(order))
    }

    /// Returns true if a new token is to be requested after a round.
    ///
    /// It is requested once until the forge has answered.
    pub(super) fn renews_login(&mut self, outcome: &RoundOutcome) -> bool {
        self.has_renewed_login &= outcome.listed.is_none();
        let is_refused = matches!(outcome.failure, Some(ForgeError::Unauthenticated { .. }));
        is_refused && !std::mem::replace(&mut self.has_renewed_login, true)
    }

    /// Forgets the closed pull requests that no order needs any more.
    ///
    /// `begun` are the orders of the round that ends. Present ones may have come since.
    pub(super) fn forget_past(&mut self, begun: &BTreeMap<ObjectName, Arc<PullRequestOrder>>) {
        let orders: Vec<&Arc<PullRequestOrder>> = begun.values().chain(self.orders.values()).collect();
        let is_known = |branch: &BranchName| {
            orders.iter().any(|order| order.rendered.contains(branch) || order.facts.contains_key(branch))
        };
        self.handled.retain(|branch, _| is_known(branch));
        let is_used = |(base, head): &Branches| {
            orders.iter().any(|order| order.base == *base && order.rendered.contains(head))
        };
        let is_dealt_with = |(base, head): &Branches| {
            orders.iter().any(|order| order.base == *base && has_finished(order, head))
        };
        let is_reported = |number| self.orders.values().any(|order| order.reported_open.contains(&number));
        Arc::make_mut(&mut self.snapshot).retain(is_used, is_dealt_with, is_reported);
        self.snapshot.give_memory_back();
    }

    /// Returns true if the last round is older than a time, or there was none.
    pub(super) fn is_older(&self, age: Duration) -> bool {
        self.last_round.is_none_or(|last| last.elapsed() >= age)
    }

    /// Ends a delay after a failure for a person who asked for a round.
    ///
    /// Such a round is wanted at any age of the last one.
    pub(super) fn end_delay(&self, age: Duration) {
        if age.is_zero() {
            self.changed.notify_one();
        }
    }

    /// Begins a round if one is due; else the task ends.
    pub(super) fn begin(&mut self) -> bool {
        self.is_running = self.is_due;
        std::mem::take(&mut self.is_due)
    }
}

/// Returns true if git has dealt with a branch that has served its purpose.
fn has_finished(order: &PullRequestOrder, branch: &BranchName) -> bool {
    let is_open = |outcome: &BranchOutcome| {
        matches!(
            outcome.action,
            Failed { .. }
                | Left(
                    LeftReason::AwaitingForge
                        | LeftReason::Waiting { .. }
                        | LeftReason::SharedWith { .. }
                        | LeftReason::UnparsableBase
                        | LeftReason::UnparsableOf { .. }
                )
        )
    };
    order.facts.get(branch).is_some_and(|facts| facts.is_finished && !facts.is_unknown)
        && !order.outcome(branch).is_some_and(is_open)
}

#[cfg(test)]
pub(super) mod tests;
