//! The report of a run: events, log and status.

use jiff::Timestamp;
use tagboat_api::automation::ImageUpdateAutomationStatus;

use super::Reconcile;
use super::start::Started;
use crate::controller::engine::reconcile_steps::{log_event, patch_final_status, record, status_of};
use crate::error::chain;
use crate::git::outcome::Outcome;
use crate::objects::cluster::{ClusterError, EventIdentity};
use crate::objects::{Event, EventType};
use crate::printable::printable_lines;
use crate::reconcile::action::Action;
use crate::reconcile::automation::compare::CompareResult;
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::delivered::{BranchEvent, DeliveryOutcome};
use crate::reconcile::automation::findings::{Findings, FindingsChange};
use crate::reconcile::automation::observations::Observations;
use crate::reconcile::automation::pull_requests::PullRequestEvent;
use crate::reconcile::automation::report::{Report, interval, report};
use crate::reconcile::automation::reverts::RevertOutcome;
use crate::reconcile::automation::waiting::WaitOutcome;

impl Reconcile {
    /// Makes the report of the run on a status.
    fn report_on(
        &self,
        status: &ImageUpdateAutomationStatus,
        conclusion: &Conclusion,
        observed: Observations<'_>,
        now: Timestamp,
    ) -> Report {
        let Started { automation, run, .. } = self.started.as_ref();
        let report = report(run, interval(automation), status, conclusion, now);
        report.with_observations(observed, conclusion, run, now)
    }

    /// Announces the end of the run and writes its status.
    pub(super) async fn write_report(
        &self,
        conclusion: &Conclusion,
        observed: Observations<'_>,
        now: Timestamp,
    ) -> Result<Action, ClusterError> {
        let Started { automation, previous, .. } = self.started.as_ref();
        let report = self.report_on(previous, conclusion, observed, now);
        if let Conclusion::Stall(failure) = conclusion
            && printable_lines(&failure.message) != report.event.message
        {
            // As in Flux, the condition and the event keep the message of the failure before.
            tracing::error!(error = %failure.reason, "{}", failure.message);
        }
        for BranchEvent { event, commit } in &report.branch_events {
            log_event(event);
            let identity = EventIdentity::Action(commit.clone());
            record(&self.automations.kind, automation, event, identity).await;
        }
        for event in report.wait_event.iter().chain(&report.revert_event) {
            log_event(event);
            record(&self.automations.kind, automation, event, EventIdentity::Repeated).await;
        }
        for PullRequestEvent { event, key, .. } in &report.pull_request_events {
            log_event(event);
            record(&self.automations.kind, automation, event, EventIdentity::Action(key.clone())).await;
        }
        self.announce(&report.event, conclusion).await;
        if let (Some(findings_change), Some(findings)) = (report.findings_change, observed.findings) {
            self.announce_markers(findings_change, findings).await;
        }
        let status =
            |status: &ImageUpdateAutomationStatus| self.report_on(status, conclusion, observed, now).status;
        patch_final_status(self.automations.as_ref(), automation, previous, &status).await?;
        self.automations.memory.forget_announced(&self.in_flight.name);
        if let Some(reported) = &report.pull_requests {
            self.automations.pull_requests.announced(&self.in_flight.name, reported);
        }
        Ok(report.action)
    }

    /// Keeps the status of a run in compare mode, and logs its report.
    ///
    /// The status is kept for the next run.
    pub(super) fn keep_report(
        &self,
        conclusion: &Conclusion,
        findings: Option<&Findings>,
        result: Option<CompareResult>,
        now: Timestamp,
    ) -> Action {
        let Some(comparisons) = &self.automations.comparisons else { return Action::AwaitChange };
        let (delivery, wait, reverts) = (DeliveryOutcome::Push, WaitOutcome::Unknown, RevertOutcome::Unknown);
        let observed = Observations { findings, delivery: &delivery, wait: &wait, reverts: &reverts };
        let report = self.report_on(&self.started.previous, conclusion, observed, now);
        if let Some(result) = result {
            comparisons.take(&self.in_flight.name, result, &self.automations.kind.context.metrics);
        }
        if report.event.type_ == EventType::Warning {
            log_event(&report.event);
        }
        if let (Some(findings_change), Some(findings)) = (&report.findings_change, findings) {
            log_markers(findings_change, findings);
        }
        comparisons.set_status(&self.in_flight.name, report.status);
        report.action
    }

    /// Restores the status from before the run, unless the automation is gone.
    ///
    /// The run may have written that it is in progress.
    pub(super) async fn restore_status(&self) {
        let Started { automation, previous, .. } = self.started.as_ref();
        let is_live = self.automations.kind.is_live(&self.in_flight.name);
        if !is_live || status_of(automation) == *previous {
            return;
        }
        let restored =
            patch_final_status(self.automations.as_ref(), automation, previous, &Clone::clone).await;
        if let Err(error) = restored {
            tracing::error!(error = chain(&error), "cannot restore the status");
        }
    }

    /// Announces the end of the run.
    ///
    /// It is not announced again if a run whose status could not be written has announced the same.
    async fn announce(&self, event: &Event, conclusion: &Conclusion) {
        let (memory, name) = (&self.automations.memory, &self.in_flight.name);
        log_event(event);
        if memory.has_announced(name, event) {
            return;
        }
        let identity = match conclusion {
            Conclusion::Success { outcome: Outcome::Pushed(push), .. } => {
                EventIdentity::Action(push.commit.to_string())
            }
            _ => EventIdentity::Repeated,
        };
        record(&self.automations.kind, &self.started.automation, event, identity).await;
        memory.announced(name, event);
    }

    /// Announces a change of the problems with markers.
    ///
    /// The key of the event keeps it from being announced twice.
    async fn announce_markers(&self, findings_change: FindingsChange, findings: &Findings) {
        log_markers(&findings_change, findings);
        let is_warning = self.automations.options.warns_of_markers;
        let FindingsChange { event, key } =
            if is_warning { findings_change.as_warning() } else { findings_change };
        record(&self.automations.kind, &self.started.automation, &event, EventIdentity::Once(key)).await;
    }
}

/// Logs a change of the problems with markers.
///
/// All of them are logged at the debug level.
fn log_markers(findings_change: &FindingsChange, findings: &Findings) {
    tracing::info!("{}", findings_change.event.message);
    for line in findings.lines() {
        tracing::debug!("{line}");
    }
    if let Some(more) = findings.count().checked_sub(findings.lines().len()).filter(|more| *more > 0) {
        tracing::debug!("and {more} more");
    }
}
