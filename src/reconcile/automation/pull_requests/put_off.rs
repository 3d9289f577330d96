//! Changes that wait for a rule of an automation, or for a report.

use std::sync::Arc;

use super::super::delivery::{BranchState, Decision, PullRequestAction};
use super::super::waiting::{Closed, WriteGate};
use super::order::PullRequestOrder;
use super::outcome::WithheldChange;
use super::round::{Round, RoundMode, RoundOutcome};
use crate::forge::Forge;
use crate::git::BranchName;
use crate::tenancy::BlockingPool;

impl<F: Forge> Round<'_, F> {
    /// Withholds a change while one of the automations may not write.
    ///
    /// The second value is the change, if it is withheld. Nothing is changed by orders that are no longer the present ones.
    pub(super) async fn held(
        &self,
        decision: Decision,
        (branches, orders): ((&BranchName, &BranchName), &[&Arc<PullRequestOrder>]),
        outcome: &mut RoundOutcome,
    ) -> (Decision, Option<WithheldChange>) {
        use PullRequestAction::{Keep, Leave, Nothing, Open};
        let is_change = decision.merge.is_some() || !matches!(decision.action, Nothing | Keep | Leave);
        if !is_change {
            return (decision, None);
        }
        // The look at windows takes time.
        let closed = self.closed(orders, outcome).await;
        if self.is_outdated(branches, outcome) {
            return (Decision { action: Nothing, merge: None, ..decision }, None);
        }
        let Some(rule) = closed else { return (decision, None) };
        let delays_images = decision.merge.is_some() || matches!(decision.action, Open(_));
        let left = Decision { action: Leave, merge: None, ..decision };
        (left, Some(WithheldChange { rule, delays_images }))
    }

    /// Puts a text and a merge off that would hide an unreported refresh.
    ///
    /// The refresh is an action of its own, and once it is reported, the text is changed without another.
    pub(super) fn after_report(
        &self,
        decision: Decision,
        state: BranchState,
        (branch, orders): (&BranchName, &[&Arc<PullRequestOrder>]),
        outcome: &mut RoundOutcome,
    ) -> Decision {
        use PullRequestAction::{Edit, Keep, Refresh};
        let (Refresh(Some(edit)), Some(number), BranchState::Current { tip, .. }) =
            (&decision.action, decision.number, state)
        else {
            return decision;
        };
        if !decision.hides_refresh || !matches!(self.mode, RoundMode::Repeated { .. }) {
            return decision;
        }
        let is_handled = self.handled.get(branch) == Some(&tip);
        if is_handled && self.is_reported(number, orders, outcome) {
            return Decision { action: Edit(edit.clone()), ..decision };
        }
        outcome.has_put_off = true;
        // The round that handled the tip has the event of the refresh.
        let action = if is_handled { Keep } else { Refresh(None) };
        Decision { action, merge: None, ..decision }
    }

    /// Returns true for a decision whose text and merge [`Self::after_report`] has put off.
    pub(super) fn is_put_off(&self, decision: &Decision) -> bool {
        use PullRequestAction::{Keep, Refresh};
        decision.hides_refresh
            && decision.merge.is_none()
            && matches!(decision.action, Keep | Refresh(None))
            && matches!(self.mode, RoundMode::Repeated { .. })
    }

    /// Returns true once all automations have reported a pull request and its last action.
    ///
    /// Until then nothing is done that would hide this action from the next process.
    pub(super) fn is_reported(
        &self,
        number: u64,
        orders: &[&Arc<PullRequestOrder>],
        outcome: &mut RoundOutcome,
    ) -> bool {
        let RoundMode::Repeated { unreported } = &self.mode else { return true };
        let is_reported =
            !unreported.contains(&number) && orders.iter().all(|order| order.reported_open.contains(&number));
        outcome.has_put_off |= !is_reported;
        is_reported
    }

    /// Returns true if other orders have come for a branch since the round began.
    ///
    /// An automation may be suspended by now, or merge otherwise. The next round goes by the new ones.
    fn is_outdated(&self, (base, branch): (&BranchName, &BranchName), outcome: &mut RoundOutcome) -> bool {
        let is_outdated = !(self.is_present)(base, branch);
        outcome.has_outdated |= is_outdated;
        is_outdated
    }

    /// Returns true if a branch may be taken back now.
    pub(super) async fn may_take_back(
        &self,
        branches: (&BranchName, &BranchName),
        orders: &[&Arc<PullRequestOrder>],
        outcome: &mut RoundOutcome,
    ) -> bool {
        self.closed(orders, outcome).await.is_none() && !self.is_outdated(branches, outcome)
    }

    /// Returns the rule by which one of the automations may not write now.
    async fn closed(&self, orders: &[&Arc<PullRequestOrder>], outcome: &mut RoundOutcome) -> Option<Closed> {
        let gates: Vec<WriteGate> = orders.iter().filter_map(|order| order.gate.clone()).collect();
        let closed = closed_gate(self.pool, gates).await?;
        tracing::info!("a change of a pull request waits: {}", closed.by);
        outcome.has_withheld = true;
        Some(closed)
    }
}

/// Returns the cause for which one of some automations may not write.
pub(super) async fn closed_gate(pool: &BlockingPool, gates: Vec<WriteGate>) -> Option<Closed> {
    let namespace = gates.first()?.automation.namespace.clone();
    pool.run(&namespace, move || gates.iter().find_map(|gate| gate.state().closed)).await
}
