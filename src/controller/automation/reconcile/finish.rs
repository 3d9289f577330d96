//! The end of a run: what others are told, and the result that is reported.

use std::time::Duration;

use jiff::Timestamp;

use super::super::write_state::write_state;
use super::Reconcile;
use super::start::Started;
use crate::git::outcome::Outcome;
use crate::metrics::RunOutcome;
use crate::reconcile::action::Action;
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::delivered::DeliveryOutcome;
use crate::reconcile::automation::observations::Observations;
use crate::reconcile::automation::proposal::UpdateProposal;
use crate::reconcile::automation::report::interval;
use crate::reconcile::automation::reverts::RevertOutcome;
use crate::reconcile::automation::waiting::WaitOutcome;

/// The maximum number of overwritten values that a run logs.
const MAX_LOGGED_REVERTS: usize = 100;

impl Reconcile {
    pub(super) async fn finish(&mut self, conclusion: &Conclusion, proposal: Option<Box<UpdateProposal>>) {
        if matches!(conclusion, Conclusion::Failure(_)) && self.automations.stop.is_cancelled() {
            tracing::info!("reconcile cancelled: the controller is shutting down");
            self.in_flight.action = Action::AwaitChange;
            return;
        }
        if !matches!(conclusion, Conclusion::Success { .. }) && self.in_flight.cancellation.is_cancelled() {
            tracing::info!("reconcile cancelled: object deleted, suspended, frozen or no longer selected");
            // The next reconcile forgets a suspended or deleted automation; one that is active again must not be forgotten.
            self.in_flight.action = Action::RequeueAfter(Duration::ZERO);
            self.restore_status().await;
            return;
        }
        if let Some(message) = conclusion.hinted() {
            tracing::info!("{message}");
        }
        let kind = &self.automations.kind;
        let findings = proposal.as_ref().and_then(|proposal| proposal.findings.clone());
        let reverts = reverts(conclusion, proposal.as_deref());
        let wait = self.wait(conclusion, proposal.as_deref(), &reverts);
        let delivery = self.delivery(proposal.as_deref());
        log_dropped_commits(proposal.as_deref());
        let proposed = proposal.as_deref().map(UpdateProposal::proposed_policies).unwrap_or_default();
        let (plan, compare, places) =
            proposal.map_or((None, None, None), |found| (found.plan, found.compare, found.places));
        if matches!(conclusion, Conclusion::Stall(_)) {
            // Nothing is merged, opened or closed by the settings before, not even by a round that has begun.
            self.automations.pull_requests.forget(&self.in_flight.name);
        }
        if let (Some(plan), Some(findings)) = (plan, &findings) {
            let labels = kind.labels(&self.in_flight.name);
            kind.context.metrics.files_examined(&labels, plan.files as u64, findings.count() as u64);
        }
        kind.context.metrics.run_ended(outcome(conclusion, &delivery));
        let result = compare.and_then(|compare| compare.result);
        let now = Timestamp::now();
        let reported = if self.automations.comparisons.is_some() {
            Ok(self.keep_report(conclusion, findings.as_ref(), result, now))
        } else {
            let (findings, delivery, wait) = (findings.as_ref(), &delivery, &wait);
            let observed = Observations { findings, delivery, wait, reverts: &reverts };
            self.write_report(conclusion, observed, now).await
        };
        let scan = places.and_then(|scan| scan.finish(conclusion, &proposed, now));
        if let (Some(places), Some(scan)) = (&self.automations.places, scan) {
            places.put(scan);
        }
        if reported.is_ok() && matches!(conclusion, Conclusion::Success { .. }) {
            self.automations.memory.succeeded(&self.in_flight.name, self.started.inputs.clone());
        }
        self.automations.kind.end(&mut self.in_flight, reported);
    }

    /// Records the wait of the run, and returns it.
    fn wait(
        &self,
        conclusion: &Conclusion,
        proposal: Option<&UpdateProposal>,
        reverts: &RevertOutcome,
    ) -> WaitOutcome {
        let (waiting, name) = (&self.automations.waiting, &self.in_flight.name);
        let outcome = proposal.map_or(WaitOutcome::Unknown, |found| self.wait_outcome(found, conclusion));
        let is_skipped = matches!(conclusion, Conclusion::Success { outcome: Outcome::NothingNew, .. });
        match (&outcome, proposal.and_then(|found| found.known_wait(conclusion, &outcome))) {
            (_, Some(known)) => waiting.set(name, known),
            (WaitOutcome::Waiting(wait), None) => waiting.postpone(name, wait.next_look()),
            (WaitOutcome::Unknown, None) => {}
            (WaitOutcome::NoRules | WaitOutcome::Nothing, None) if is_skipped => {}
            (WaitOutcome::NoRules | WaitOutcome::Nothing, None) => waiting.forget(name),
        }
        let gate = proposal.and_then(|proposal| proposal.wait.gate_state());
        let held = reverts.held_policies(&self.started.previous.conditions);
        if let Some(state) = write_state(gate.as_ref(), &outcome, held, Timestamp::now()) {
            self.automations.kind.context.metrics.set_write_state(name, state);
        }
        outcome
    }

    /// Returns the wait of the run, or that of withheld changes at the forge.
    fn wait_outcome(&self, proposal: &UpdateProposal, conclusion: &Conclusion) -> WaitOutcome {
        let outcome = proposal.wait_outcome(conclusion);
        let is_closed = proposal.wait.gate_state().is_some_and(|gate| gate.closed.is_some());
        if outcome != WaitOutcome::Nothing || !is_closed {
            return outcome;
        }
        let known = self.automations.pull_requests.progress(&self.in_flight.name);
        let withheld = known.and_then(|(progress, order)| order.withheld(&progress));
        withheld.map_or(outcome, WaitOutcome::Waiting)
    }

    /// Hands the pull requests over, and returns the delivery of the run.
    fn delivery(&self, proposal: Option<&UpdateProposal>) -> DeliveryOutcome {
        let (queue, name) = (&self.automations.pull_requests, &self.in_flight.name);
        let known = queue.progress(name);
        let known = known.as_ref().map(|(progress, order)| (progress.clone(), &order.delivered));
        // A run that fails before git reports what the forge has answered since.
        let Some(proposal) = proposal else { return DeliveryOutcome::Unknown.with_pull_requests(known) };
        if proposal.pull_requests.is_none() {
            queue.forget(name);
            return proposal.delivery();
        }
        let Started { automation, previous, run, .. } = self.started.as_ref();
        // A person who requests a run has changed something at the forge.
        let interval = if run.is_requested(previous) { Duration::ZERO } else { interval(automation) };
        proposal.submit_pull_requests(interval);
        proposal.delivery().with_pull_requests(known)
    }
}

/// Logs the commits of other automations that branches of a run have lost.
fn log_dropped_commits(proposal: Option<&UpdateProposal>) {
    let delivered = proposal.and_then(|proposal| proposal.delivered.as_ref());
    for branch in delivered.iter().flat_map(|delivered| &delivered.branches) {
        for sentence in branch.dropped_sentences(false) {
            tracing::warn!("{sentence}");
        }
    }
}

/// Returns what a run says of reverts, and logs those that are overwritten.
fn reverts(conclusion: &Conclusion, proposal: Option<&UpdateProposal>) -> RevertOutcome {
    let Some(proposal) = proposal else { return RevertOutcome::Unknown };
    for overwritten in proposal.overwritten(conclusion).iter().take(MAX_LOGGED_REVERTS) {
        tracing::warn!("{overwritten}");
    }
    proposal.revert_outcome(conclusion)
}

fn outcome(conclusion: &Conclusion, delivery: &DeliveryOutcome) -> RunOutcome {
    match conclusion {
        Conclusion::Success { .. } if delivery.has_pushed() => RunOutcome::pushed,
        Conclusion::Success { outcome: Outcome::Pushed(_), .. } => RunOutcome::pushed,
        Conclusion::Success { outcome: Outcome::NothingNew, .. } => RunOutcome::skipped,
        Conclusion::Success { .. } => RunOutcome::unchanged,
        Conclusion::Stall(_) => RunOutcome::stalled,
        Conclusion::Failure(_) => RunOutcome::failed,
    }
}
