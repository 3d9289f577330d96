//! One look at one automation, from the object as it stands to its new status.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, ResourceExt};
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::{FINALIZER, ImageUpdateAutomation};
use tokio::sync::mpsc::UnboundedSender;
use tracing::{Instrument, Span};

use super::memory::Look;
use super::queue::{Signal, Verdict};
use super::shadow::Shadows;
use super::shared::{KIND, Shared, labels};
use super::under_way;
use crate::error::chain;
use crate::git::CommitTime;
use crate::git::outcome::Outcome;
use crate::metrics::{self, RunOutcome};
use crate::objects::cluster::{Announcement, ClusterObjects, Occurrence};
use crate::objects::{Event, EventType, ObjectName, Objects, ObjectsError};
use crate::printable::printable_lines;
use crate::reconcile::automation::batch::Job;
use crate::reconcile::automation::batch_logins::BatchLogins;
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::findings::{Findings, News};
use crate::reconcile::automation::proposal::{Detail, UpdateProposal};
use crate::reconcile::automation::report::{Next, while_suspended};
use crate::reconcile::automation::request::GivenImages;
use crate::reconcile::automation::reselection::Reselection;
use crate::reconcile::automation::run::{Run, reported_on};
use crate::reconcile::automation::shadow::Shadowing;
use crate::reconcile::automation::transaction::{self, Prepared, TransactionOptions};

/// A run of an automation that has begun.
pub(super) struct Pass {
    shared: Arc<Shared>,
    /// The objects, as those who go together see them.
    objects: ClusterObjects,
    /// The logins that they share.
    logins: BatchLogins,
    automation: ImageUpdateAutomation,
    run: Run,
    /// The status before the run.
    previous: ImageUpdateAutomationStatus,
    /// The status as we know it to be stored.
    begun: ImageUpdateAutomationStatus,
    look: Look,
    done: Done,
    span: Span,
}

/// Tells the queue once how a pass ended, also where it is dropped before its end.
struct Done {
    name: ObjectName,
    verdict: Verdict,
    signals: UnboundedSender<Signal>,
    run: under_way::Entry,
    /// What is measured of it; nothing once it was told.
    under_way: Option<metrics::InFlightTimer>,
}

impl Done {
    fn tell(&mut self) {
        if self.under_way.take().is_some() {
            self.run.end();
            // Nobody listens at the end of the process.
            let _ = self.signals.send(Signal::Done(self.name.clone(), self.verdict));
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        self.tell();
    }
}

/// Looks at an automation as it stands, and gives its run if there is to be one.
pub(super) async fn begin(
    shared: &Arc<Shared>,
    objects: &ClusterObjects,
    logins: &BatchLogins,
    name: ObjectName,
) -> Option<Pass> {
    let span = tracing::info_span!(
        "reconcile",
        kind = KIND,
        namespace = name.namespace,
        name = name.name,
        reconcile_id = shared.run_ids.next(),
    );
    let run = shared.under_way.begin(&name);
    let (begun, under_way) = (Instant::now(), Some(shared.metrics.start_timer(KIND)));
    let mut done = Done { name, verdict: Verdict::Wait, signals: shared.signals.clone(), run, under_way };
    let opened = open(shared, &done.name).instrument(span.clone()).await;
    let _entered = span.enter();
    match opened {
        Ok(Opened::Run(opened)) => {
            // Should the run be broken off, it is tried again.
            done.verdict = Verdict::Retry;
            let Opening { automation, run, previous, begun, look } = *opened;
            let (shared, objects, span) =
                (shared.clone(), objects.on_behalf_of(&done.name.namespace), span.clone());
            let logins = logins.clone();
            return Some(Pass {
                shared,
                objects,
                logins,
                automation,
                run,
                previous,
                begun,
                look,
                done,
                span,
            });
        }
        Ok(Opened::Rest) => {
            shared.metrics.reconciled(&labels(&done.name), begun.elapsed(), true);
            shared.forget_if_gone(&done.name);
        }
        Ok(Opened::Gone) => shared.forget(&done.name),
        Err(error) => {
            tracing::error!(error = chain(&error), "cannot write to the object, trying again");
            shared.metrics.reconciled(&labels(&done.name), begun.elapsed(), false);
            done.verdict = Verdict::Retry;
        }
    }
    None
}

/// What is to be done with an automation.
enum Opened {
    /// It is to be carried out.
    Run(Box<Opening>),
    /// It rests.
    Rest,
    /// It has gone.
    Gone,
}

/// What a pass starts with.
struct Opening {
    automation: ImageUpdateAutomation,
    run: Run,
    previous: ImageUpdateAutomationStatus,
    begun: ImageUpdateAutomationStatus,
    look: Look,
}

/// The steps before a run (`docs/flux-behaviour.md`, A reconcile).
async fn open(shared: &Shared, name: &ObjectName) -> Result<Opened, ObjectsError> {
    let objects = &shared.objects;
    let Some(known) = objects.automations.get(name) else { return Ok(Opened::Gone) };
    if let Some(shadows) = &shared.shadows {
        return Ok(open_in_shadow(objects, shadows, &known));
    }
    if known.metadata.deletion_timestamp.is_some() {
        objects.writer().remove_finalizer(known.as_ref(), FINALIZER).await?;
        shared.writer.forget(&name.namespace, transaction::proposal_name(&known));
        return Ok(Opened::Gone);
    }
    let added = objects.writer().add_finalizer(known.as_ref(), FINALIZER).await?;
    let Some(automation) = added else { return Ok(Opened::Gone) };
    shared.observe(&automation);
    let previous = automation.status.clone().unwrap_or_default();
    if automation.spec.suspend {
        tracing::info!("reconciliation is suspended for this object");
        let status = |current: &ImageUpdateAutomation| {
            let generation = current.metadata.generation.unwrap_or(1);
            while_suspended(&current.status.clone().unwrap_or_default(), generation)
        };
        let written = objects.update_status(&automation, &status).await?;
        written.iter().for_each(|written| shared.observe(written));
        return Ok(Opened::Rest);
    }
    let run = Run::of(&automation, Timestamp::now());
    let look = Look::of(&automation, objects);
    let mut opening = Opening { begun: previous.clone(), previous, run, look, automation };
    if opening.run.begin(&opening.previous).is_to_be_written {
        let status = |current: &ImageUpdateAutomation| {
            opening.run.begin(&current.status.clone().unwrap_or_default()).status
        };
        let Some(written) = objects.update_status(&opening.automation, &status).await? else {
            return Ok(Opened::Gone);
        };
        shared.observe(&written);
        opening.begun = written.status.clone().unwrap_or_default();
        opening.automation.metadata = written.metadata;
    }
    Ok(Opened::Run(Box::new(opening)))
}

/// The same where nothing is written.
fn open_in_shadow(objects: &ClusterObjects, shadows: &Shadows, known: &ImageUpdateAutomation) -> Opened {
    if known.metadata.deletion_timestamp.is_some() {
        return Opened::Gone;
    }
    if known.spec.suspend {
        return Opened::Rest;
    }
    let previous = shadows.status(&ObjectName::of(known));
    let (run, look) = (Run::of(known, Timestamp::now()), Look::of(known, objects));
    let begun = previous.clone();
    Opened::Run(Box::new(Opening { automation: known.clone(), run, previous, begun, look }))
}

impl Job for Pass {
    async fn prepare(&mut self, _is_first: bool) -> Result<Prepared, Conclusion> {
        let span = self.span.clone();
        tokio::select! {
            found = self.find_out().instrument(span) => found,
            () = self.done.run.cancellation.cancelled() => Err(Conclusion::cancelled()),
        }
    }

    async fn conclude(&mut self, conclusion: Conclusion, proposal: Option<UpdateProposal>) {
        let span = self.span.clone();
        self.finish(&conclusion, proposal).instrument(span).await;
        self.shared.forget_if_gone(&self.done.name);
        let known = self.shared.objects.automations.get(&self.done.name);
        self.shared.forget_unused_key(&self.automation, known.as_deref());
        // Those who go together need not end together.
        self.done.tell();
    }
}

impl Pass {
    async fn find_out(&self) -> Result<Prepared, Conclusion> {
        let objects = &self.objects;
        // The status from before the run says what is known.
        let automation =
            ImageUpdateAutomation { status: Some(self.previous.clone()), ..self.automation.clone() };
        let selected = transaction::select(objects, &automation, &GivenImages::new()).await?;
        for unusable in &selected.request.unusable {
            tracing::warn!("{unusable}");
        }
        let options = TransactionOptions {
            given: GivenImages::new(),
            cross_namespace: self.shared.options.cross_namespace,
            login: self.shared.options.login.clone(),
            logins: self.logins.clone(),
            keyring: self.shared.options.keyring.clone(),
            time: CommitTime::now(),
            detail: Detail::WorthSaying,
            is_forced: self.shared.memory.has_changed(&self.done.name, &self.look),
            times: self.shared.options.times,
        };
        let (known, namespace) = (objects.policies.clone(), self.done.name.namespace.clone());
        let reader = Arc::new(move || known.in_namespace(&namespace));
        let reselection = Reselection::new(automation.clone(), reader, selected.policies.clone());
        let mut prepared = transaction::prepare(objects, &automation, selected, &options).await?;
        prepared.request.proposal.proposer.reselection = Some(reselection);
        prepared.request.proposal.cancellation = self.done.run.cancellation.clone();
        if let Some(shadows) = &self.shared.shadows {
            let before = shadows.before(&self.done.name);
            prepared.request.proposal.proposer.shadowing = Some(Shadowing { before, sight: None });
        }
        Ok(prepared)
    }

    async fn finish(&mut self, conclusion: &Conclusion, proposal: Option<UpdateProposal>) {
        if matches!(conclusion, Conclusion::Failure(_)) && self.shared.stop.is_cancelled() {
            tracing::info!("the run is given up because the controller is to end; the next one begins anew");
            self.done.verdict = Verdict::Wait;
            return;
        }
        if !matches!(conclusion, Conclusion::Success { .. }) && self.done.run.cancellation.is_cancelled() {
            tracing::info!("the run is cancelled");
            // Who rests or has gone is let go of by the next look; who is wanted again meanwhile must not be forgotten.
            self.done.verdict = Verdict::After(Duration::ZERO);
            self.take_back().await;
            return;
        }
        if let Some(words) = conclusion.hinted() {
            tracing::info!("{words}");
        }
        let labels = labels(&self.done.name);
        let findings = proposal.as_ref().and_then(|proposal| proposal.findings.clone());
        let (plan, shadowing) = proposal.map_or((None, None), |found| (found.plan, found.shadowing));
        if let (Some(plan), Some(findings)) = (plan, &findings) {
            self.shared.metrics.files_examined(&labels, plan.files as u64, findings.count() as u64);
        }
        self.shared.metrics.run_ended(outcome(conclusion));
        let now = Timestamp::now();
        let report_on = |status: &ImageUpdateAutomationStatus| {
            self.run.report(status, conclusion, now).noting(findings.as_ref(), &self.run, now)
        };
        let report = report_on(&self.previous);
        if let Some(shadows) = &self.shared.shadows {
            if let Some(sight) = shadowing.and_then(|shadowing| shadowing.sight) {
                shadows.take(&self.done.name, sight, &self.shared.metrics);
            }
            if report.event.type_ == EventType::Warning {
                tracing::error!(error = report.event.reason, "{}", report.event.message);
            }
            if let (Some(news), Some(findings)) = (&report.news, &findings) {
                log_markers(news, findings);
            }
            shadows.set_status(&self.done.name, report.status);
            self.done.verdict = self.verdict(conclusion, report.next);
            let is_success = !matches!(conclusion, Conclusion::Failure(_));
            self.shared.metrics.reconciled(&labels, self.elapsed(), is_success);
            return;
        }
        if let Conclusion::Stall(stop) = conclusion
            && printable_lines(&stop.message) != report.event.message
        {
            // As in Flux, the condition and the event keep the words of the failure before.
            tracing::error!(error = %stop.reason, "{}", stop.message);
        }
        self.announce(&report.event, conclusion, now).await;
        if let (Some(news), Some(findings)) = (report.news, &findings) {
            self.announce_markers(news, findings, now).await;
        }
        let status = |current: &ImageUpdateAutomation| {
            let stored = current.status.clone().unwrap_or_default();
            report_on(&reported_on(&self.previous, &self.begun, &stored)).status
        };
        let begun = ImageUpdateAutomation { status: Some(self.begun.clone()), ..self.automation.clone() };
        let written = self.shared.objects.update_status(&begun, &status).await;
        let is_success = written.is_ok() && !matches!(conclusion, Conclusion::Failure(_));
        self.done.verdict = match written {
            Ok(written) => {
                written.iter().for_each(|written| self.shared.observe(written));
                self.shared.memory.forget_told(&self.done.name);
                self.verdict(conclusion, report.next)
            }
            Err(error) => {
                tracing::error!(error = chain(&error), "cannot write the status, trying again");
                Verdict::Retry
            }
        };
        self.shared.metrics.reconciled(&labels, self.elapsed(), is_success);
    }

    /// Puts the status of an automation that stays back to what it was before the run, which may have said that it goes
    /// on.
    async fn take_back(&self) {
        let objects = &self.shared.objects;
        let known = objects.automations.get(&self.done.name);
        let stays = known.is_some_and(|known| known.metadata.deletion_timestamp.is_none());
        if !stays || self.begun == self.previous {
            return;
        }
        let status = |current: &ImageUpdateAutomation| {
            reported_on(&self.previous, &self.begun, &current.status.clone().unwrap_or_default())
        };
        let begun = ImageUpdateAutomation { status: Some(self.begun.clone()), ..self.automation.clone() };
        match objects.update_status(&begun, &status).await {
            Ok(written) => written.iter().for_each(|written| self.shared.observe(written)),
            Err(error) => tracing::error!(error = chain(&error), "cannot take the status back"),
        }
    }

    /// When to look again. How the run ended is known to have been kept.
    fn verdict(&self, conclusion: &Conclusion, next: Next) -> Verdict {
        if matches!(conclusion, Conclusion::Success { .. }) {
            self.shared.memory.looked(&self.done.name, self.look.clone());
        }
        match next {
            Next::After(interval) => Verdict::After(interval),
            Next::Retry => Verdict::Retry,
            Next::Wait => Verdict::Wait,
        }
    }

    fn elapsed(&self) -> Duration {
        Timestamp::now().duration_since(self.run.started).unsigned_abs()
    }

    /// Announces how the run ended; not again what was said of a run before whose status could not be written.
    async fn announce(&self, event: &Event, conclusion: &Conclusion, now: Timestamp) {
        match event.type_ {
            EventType::Warning => tracing::error!(error = event.reason, "{}", event.message),
            EventType::Normal | EventType::Trace => tracing::info!("{}", event.message),
        }
        if self.shared.memory.has_told(&self.done.name, event) {
            return;
        }
        let occurrence = match conclusion {
            Conclusion::Success { outcome: Outcome::Pushed(push), .. } => {
                Occurrence::Pushed(push.commit.to_string())
            }
            _ => Occurrence::Repeated,
        };
        self.record(event, occurrence, now).await;
        self.shared.memory.told(&self.done.name, event);
    }

    /// Announces that what is wrong with markers has changed. Its key keeps it from being announced twice.
    async fn announce_markers(&self, news: News, findings: &Findings, now: Timestamp) {
        log_markers(&news, findings);
        let News { event, key } = if self.shared.options.warns_of_markers { news.as_warning() } else { news };
        self.record(&event, Occurrence::Once(key), now).await;
    }

    async fn record(&self, event: &Event, occurrence: Occurrence, time: Timestamp) {
        let object = reference(&self.automation);
        let (annotations, event) = (self.automation.annotations().clone(), event.clone());
        let announcement = Announcement { object, annotations, event, occurrence, time };
        if let Err(error) = self.shared.announcer.announce(announcement).await {
            tracing::error!(error = %error, "cannot record the event");
        }
    }
}

/// Logs that what is wrong with markers has changed, and all of it for those who want to know.
fn log_markers(news: &News, findings: &Findings) {
    tracing::info!("{}", news.event.message);
    for line in findings.lines() {
        tracing::debug!("{line}");
    }
    if let Some(more) = findings.count().checked_sub(findings.lines().len()).filter(|more| *more > 0) {
        tracing::debug!("and {more} more");
    }
}

/// An automation as events refer to it.
fn reference(automation: &ImageUpdateAutomation) -> ObjectReference {
    // An answer of the API server may come without kind and version.
    ObjectReference {
        api_version: Some(ImageUpdateAutomation::api_version(&()).into_owned()),
        kind: Some(ImageUpdateAutomation::kind(&()).into_owned()),
        ..automation.object_ref(&())
    }
}

fn outcome(conclusion: &Conclusion) -> RunOutcome {
    match conclusion {
        Conclusion::Success { outcome: Outcome::Pushed(_), .. } => RunOutcome::pushed,
        Conclusion::Success { outcome: Outcome::NothingNew, .. } => RunOutcome::skipped,
        Conclusion::Success { .. } => RunOutcome::unchanged,
        Conclusion::Stall(_) => RunOutcome::stalled,
        Conclusion::Failure(_) => RunOutcome::failed,
    }
}
