//! One reconcile of one automation, from the object to its new status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::settings::Delivery;
use tagboat_api::{ImageRef, ImageUpdateAutomation};
use tracing::{Instrument, Span};

use super::memory::ObservedInputs;
use super::state::Automations;
use super::write_state::write_state;
use crate::controller::engine::in_flight::InFlight;
use crate::controller::engine::kind::forget_if_gone;
use crate::controller::engine::reconcile_steps::{
    Fetched, fetch, finalize, log_event, patch_final_status, patch_status, record, status_of,
};
use crate::error::chain;
use crate::git::CommitTime;
use crate::git::outcome::Outcome;
use crate::metrics::RunOutcome;
use crate::objects::cluster::{ClusterError, ClusterObjects, EventIdentity};
use crate::objects::{Event, EventType, ObjectName};
use crate::printable::printable_lines;
use crate::reconcile::action::Action;
use crate::reconcile::automation::batch_logins::BatchLogins;
use crate::reconcile::automation::compare::{CompareResult, CompareRun};
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::delivered::{BranchEvent, DeliveryOutcome};
use crate::reconcile::automation::findings::{Findings, FindingsChange};
use crate::reconcile::automation::observations::Observations;
use crate::reconcile::automation::places::{PlaceScan, ScanOrigin};
use crate::reconcile::automation::proposal::{Detail, UpdateProposal};
use crate::reconcile::automation::pull_requests::PullRequestEvent;
use crate::reconcile::automation::report::{Report, interval, report, while_suspended};
use crate::reconcile::automation::request::ImageOverrides;
use crate::reconcile::automation::reselection::Reselection;
use crate::reconcile::automation::reverts::RevertOutcome;
use crate::reconcile::automation::siblings::Siblings;
use crate::reconcile::automation::transaction::{self, Prepared, TransactionOptions};
use crate::reconcile::automation::waiting::{WaitOutcome, WriteRules};
use crate::reconcile::run::{ReconcileRun, status_before};
use crate::reference::ImageReference;

/// The maximum number of overwritten values that a run logs.
const MAX_LOGGED_REVERTS: usize = 100;

/// A reconcile of an automation that has begun.
pub(super) struct Reconcile {
    automations: Arc<Automations>,
    /// The objects, on behalf of the automation's namespace; the members of a batch share secrets.
    objects: ClusterObjects,
    /// The logins that the members of a batch share.
    logins: BatchLogins,
    started: Box<Started>,
    in_flight: InFlight,
    span: Span,
}

/// An automation at the beginning of its run.
struct Started {
    /// The automation, with the status that is stored as far as we know.
    automation: ImageUpdateAutomation,
    /// The status before the run.
    previous: ImageUpdateAutomationStatus,
    run: ReconcileRun,
    inputs: ObservedInputs,
    /// True if a person has forced this one run.
    ///
    /// The automation's own windows and quiet period do not count then.
    is_forced_now: bool,
}

impl Reconcile {
    /// Fetches an automation and writes that its run is in progress.
    ///
    /// Returns `None` if there is no run.
    pub(super) async fn begin(
        automations: &Arc<Automations>,
        objects: &ClusterObjects,
        logins: &BatchLogins,
        name: ObjectName,
    ) -> Option<Self> {
        let kind = &automations.kind;
        let span = kind.span(&name);
        let mut in_flight = kind.begin(name).await;
        let result = match start(automations, &in_flight.name).instrument(span.clone()).await {
            Ok(Some(started)) => {
                let (automations, logins) = (automations.clone(), logins.clone());
                let objects = objects.on_behalf_of(&in_flight.name.namespace);
                return Some(Self { automations, objects, logins, started, in_flight, span });
            }
            Ok(None) => Ok(Action::AwaitChange),
            Err(error) => Err(error),
        };
        span.in_scope(|| kind.end(&mut in_flight, result));
        forget_if_gone(automations.as_ref(), &in_flight.name);
        None
    }

    /// Prepares the request for the writer, unless the reconcile is cancelled before.
    ///
    /// `batch_size` is the number of automations that are reconciled together, and `siblings` are all of the repository.
    pub(super) async fn prepare(
        &self,
        batch_size: usize,
        siblings: &Siblings,
    ) -> Result<Prepared, Conclusion> {
        tokio::select! {
            prepared = self.prepare_transaction(batch_size, siblings).instrument(self.span.clone()) => prepared,
            () = self.in_flight.cancellation.cancelled() => Err(Conclusion::cancelled()),
        }
    }

    async fn prepare_transaction(
        &self,
        batch_size: usize,
        siblings: &Siblings,
    ) -> Result<Prepared, Conclusion> {
        let Started { automation, previous, inputs, .. } = self.started.as_ref();
        let (automations, objects, name) = (&self.automations, &self.objects, &self.in_flight.name);
        // The status from before the run tells what is known.
        let automation = ImageUpdateAutomation { status: Some(previous.clone()), ..automation.clone() };
        let mut selected = transaction::select(objects, &automation, &ImageOverrides::new()).await?;
        if automations.comparisons.is_some() {
            // The other controller knows the push branch only.
            selected.settings.delivery = Delivery::Push;
        } else {
            let capacity = &automations.options.login.capacity;
            selected =
                transaction::hold_groups(selected, &automation, &ImageOverrides::new(), capacity).await;
        }
        for unusable in &selected.request.unusable {
            tracing::warn!("{unusable}");
        }
        let awaits_git =
            selected.settings.delivery == Delivery::PullRequest && automations.pull_requests.needs_git(name);
        let options = TransactionOptions {
            ends_branches_only: false,
            given: ImageOverrides::new(),
            named: BTreeSet::new(),
            cross_namespace: automations.options.cross_namespace,
            login: automations.options.login.clone(),
            logins: self.logins.clone(),
            keyring: automations.options.keyring.clone(),
            time: CommitTime::now(),
            detail: Detail::Warnings,
            is_forced: automations.memory.has_changed(name, inputs)
                || automations.needs_scan(name)
                || awaits_git,
            times: automations.options.times,
            references: automations.options.references,
            pull_requests: automations.pull_requests.clone(),
            rules: automations
                .comparisons
                .is_none()
                .then(|| WriteRules { ignores_own: self.started.is_forced_now, ..automations.rules.clone() }),
            known_wait: automations.waiting.known(name),
            siblings: siblings.clone(),
        };
        let (known, namespace) = (objects.policies.clone(), name.namespace.clone());
        let reader = Arc::new(move || known.in_namespace(&namespace));
        let mut reselection = Reselection::new(automation.clone(), reader, selected.policies.clone());
        if automations.comparisons.is_some() {
            reselection = reselection.ignoring_groups();
        }
        let mut prepared = transaction::prepare(objects, &automation, selected, &options).await?;
        prepared.proposal.proposer.reselection = Some(reselection);
        prepared.proposal.cancellation = self.in_flight.cancellation.clone();
        prepared.proposal.proposer.places = self.place_scan(&prepared, batch_size);
        if let Some(comparisons) = &automations.comparisons {
            let before = comparisons.before(name);
            prepared.proposal.proposer.compare = Some(CompareRun { before, result: None });
        }
        Ok(prepared)
    }

    /// Creates the scan for places, if they are kept.
    fn place_scan(&self, prepared: &Prepared, batch_size: usize) -> Option<PlaceScan> {
        let name = &self.in_flight.name;
        let places = self.automations.places.as_ref().filter(|places| places.is_on())?;
        Some(PlaceScan::new(ScanOrigin {
            automation: name.clone(),
            source: self.started.automation.git_repository(),
            repository: prepared.mirror.url.clone(),
            target: prepared.proposal.target.clone(),
            previous: places.of_automation(name),
            observed: self.observed_images(),
            known_files: places.known_files(name),
            batch_size,
        }))
    }

    /// Returns the images of the policies in the last run that was reported.
    fn observed_images(&self) -> BTreeMap<ObjectName, ImageReference> {
        let observed = self.started.previous.observed_policies.iter();
        let image = |(name, image): (&String, &ImageRef)| {
            let policy = ObjectName { namespace: self.in_flight.name.namespace.clone(), name: name.clone() };
            let image = ImageReference::from_parts(&image.name, &image.tag, image.digest()).ok()?;
            Some((policy, image))
        };
        observed.filter_map(image).collect()
    }

    /// Reports the conclusion of the run, and requeues the automation.
    pub(super) async fn conclude(mut self, conclusion: Conclusion, proposal: Option<Box<UpdateProposal>>) {
        let span = self.span.clone();
        self.finish(&conclusion, proposal).instrument(span).await;
        forget_if_gone(self.automations.as_ref(), &self.in_flight.name);
        let known = self.automations.kind.cache.get(&self.in_flight.name);
        self.automations.forget_unused_key(&self.started.automation, known.as_deref());
    }

    async fn finish(&mut self, conclusion: &Conclusion, proposal: Option<Box<UpdateProposal>>) {
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
    async fn write_report(
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
    fn keep_report(
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
    async fn restore_status(&self) {
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

/// The steps before a run (`docs/flux-behaviour.md`, A reconcile). Returns `None` if there is no run.
async fn start(automations: &Automations, name: &ObjectName) -> Result<Option<Box<Started>>, ClusterError> {
    let kind = &automations.kind;
    let is_dry_run = kind.context.is_dry_run;
    let mut automation = match fetch(automations, name).await? {
        Fetched::Gone => return Ok(None),
        Fetched::Deleted(known) => {
            finalize(kind, &known).await?;
            if !is_dry_run {
                automations.writer.forget(&name.namespace, transaction::proposal_name(&known));
            }
            return Ok(None);
        }
        Fetched::Suspended(automation) => {
            automations.pull_requests.forget(name);
            kind.context.metrics.forget_write_state(name);
            let status = |current: &ImageUpdateAutomation| {
                while_suspended(&status_of(current), current.metadata.generation.unwrap_or(1))
            };
            if !is_dry_run {
                patch_status(automations, &automation, &status).await?;
            }
            return Ok(None);
        }
        Fetched::Active(automation) => automation,
    };
    let inputs = ObservedInputs::of(&automation, automations.objects());
    let run = ReconcileRun::of(&automation, Timestamp::now());
    let comparisons = automations.comparisons.as_ref();
    let mut previous = comparisons.map_or_else(|| status_of(&automation), |known| known.status(name));
    let begin = run.begin(&previous);
    if is_dry_run {
        automation.status = Some(previous.clone());
    } else if begin.must_be_written {
        let stored = Mutex::new(previous.clone());
        let status = |current: &ImageUpdateAutomation| {
            let current = status_of(current);
            let begun = run.begin(&current).status;
            *stored.lock() = current;
            begun
        };
        let Some(written) = patch_status(automations, &automation, &status).await? else { return Ok(None) };
        previous = status_before(&previous, &begin.status, &stored.into_inner());
        (automation.metadata, automation.status) = (written.metadata, written.status);
    }
    let is_forced_now = run.is_forced(&automation, &previous);
    Ok(Some(Box::new(Started { automation, previous, run, inputs, is_forced_now })))
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
