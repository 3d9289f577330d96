//! The reconcile of one automation, from its manifests to its report.

use std::collections::BTreeSet;
use std::iter;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::ImageUpdateAutomation;
use tagboat_api::settings::{AutomationSettings, Delivery, OnRevert};

use super::images::Images;
use super::inputs::{Inputs, group_of, source_of};
use crate::cli::choice::{full_name, name_of};
use crate::cli::outcome::{Outcome, OutcomeKind};
use crate::cli::output::prefixed;
use crate::cli::report::{self, Report, ReportMode};
use crate::cli::terminal::{Palette, coloured, say};
use crate::cli::warnings::{warn_of_empty_selection, warn_of_nameless_author};
use crate::error::chain;
use crate::git::outcome as git;
use crate::git::{BranchAction, BranchOutcome, LeftReason};
use crate::objects::ObjectName;
use crate::objects::manifests::{Destination, StateError};
use crate::printable::{printable, printable_lines};
use crate::reconcile::automation::batch::Job;
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::delivered::{Delivered, DeliveryOutcome, ForgeProgress};
use crate::reconcile::automation::findings::SigningResult;
use crate::reconcile::automation::observations::Observations;
use crate::reconcile::automation::proposal::UpdateProposal;
use crate::reconcile::automation::pull_requests::PullRequestQueue;
use crate::reconcile::automation::report::{interval, report};
use crate::reconcile::automation::request::Request;
use crate::reconcile::automation::reverts::RevertOutcome;
use crate::reconcile::automation::transaction::{self, Prepared, TransactionOptions};
use crate::reconcile::automation::waiting::WaitOutcome;
use crate::reconcile::conditions::{self, ConditionStatus, ConditionType};
use crate::reconcile::run::ReconcileRun;
use crate::update::{Setters, UpdatePlan};

/// The reconcile of one automation.
pub(super) struct Work<'i> {
    automation: &'i ImageUpdateAutomation,
    inputs: &'i Inputs,
    images: &'i Images,
    pub(super) outcome: Outcome,
    /// The selected policies, once they are known.
    setters: Option<Setters>,
    plan: Option<UpdatePlan>,
    /// The error of saving the status, which is the last of the outcome's errors.
    save_error: Option<String>,
    /// True if an image may be out of date because its registry did not answer.
    pub(super) is_stale: bool,
    pub(super) is_done: bool,
    /// True if the forge is asked.
    awaits_forge: bool,
    /// True if only branches are dealt with whose pull requests have ended.
    ends_branches_only: bool,
}

impl Job for Work<'_> {
    async fn prepare(&mut self, is_first: bool) -> Result<Prepared, Conclusion> {
        let inputs = self.inputs;
        let given = &inputs.options.given;
        let selected = transaction::select(&inputs.store, self.automation, given).await?;
        let capacity = &inputs.choice.capacity;
        let selected = transaction::hold_groups(selected, self.automation, given, capacity).await;
        let request = &selected.request;
        if is_first && !self.ends_branches_only {
            self.warn(request);
            if inputs.store.state.is_none() {
                self.warn_of_settings_without_state(&selected.settings);
            }
            let selected = request.update.setters.selected();
            let choices = selected.filter_map(|(policy, _)| Some((policy, self.images.choice(policy)?)));
            self.outcome.choices = choices.map(|(policy, choice)| choice.to_outcome(policy)).collect();
            let errors: BTreeSet<&String> =
                self.outcome.choices.iter().filter_map(|choice| choice.error.as_ref()).collect();
            self.outcome.errors.extend(errors.into_iter().cloned());
            // An image that may be out of date was warned of before.
            self.is_stale = self.outcome.choices.iter().any(|choice| choice.stale.is_some());
        }
        self.outcome.set_request(request);
        self.setters = Some(request.update.setters.clone());
        // A branch that the last run left alone, or could not name, is reported again.
        let status = self.automation.status.as_ref();
        let has_problem = status.is_some_and(|status| {
            conditions::is(&status.conditions, ConditionType::Delivery, ConditionStatus::False)
        });
        // No run knows what an earlier one wanted of the forge.
        let is_forced = has_problem
            || selected.settings.delivery == Delivery::PullRequest
            || inputs.new.contains(&full_name(self.automation));
        let siblings = inputs.siblings.get(&group_of(self.automation)).cloned().unwrap_or_default();
        let ends_branches_only = self.ends_branches_only;
        let options =
            TransactionOptions { is_forced, siblings, ends_branches_only, ..inputs.options.clone() };
        transaction::prepare(&inputs.store, self.automation, selected, &options).await
    }

    async fn conclude(&mut self, conclusion: Conclusion, proposal: Option<Box<UpdateProposal>>) {
        if self.ends_branches_only {
            return self.take_ended_branches(&conclusion, proposal.as_deref());
        }
        let findings = proposal.as_ref().and_then(|proposal| proposal.findings.clone());
        let delivery = proposal.as_deref().map_or(DeliveryOutcome::Unknown, UpdateProposal::delivery);
        if let Some(SigningResult::Unsigned(reason)) = findings.as_ref().map(|findings| &findings.signing) {
            let sentence = format!("our own commits are pushed instead of commits of the forge: {reason}");
            say(&format!("warning: {}", prefixed(&self.outcome, &sentence)));
        }
        let wait = proposal.as_ref().map_or(WaitOutcome::Unknown, |found| found.wait_outcome(&conclusion));
        let unknown = || RevertOutcome::Unknown;
        let reverts = proposal.as_ref().map_or_else(unknown, |found| found.revert_outcome(&conclusion));
        if let Some(proposal) = proposal {
            for overwritten in proposal.overwritten(&conclusion) {
                say(&format!("warning: {}", prefixed(&self.outcome, &overwritten.to_string())));
            }
            if let RevertOutcome::Known(holds) = &reverts
                && holds.is_held()
            {
                say(&format!("warning: {}", prefixed(&self.outcome, &holds.message())));
            }
            self.awaits_forge = proposal.pull_requests.is_some();
            proposal.submit_pull_requests(Duration::ZERO);
            if let Some(plan) = proposal.plan {
                self.outcome.set_plan(&plan);
                self.plan = Some(plan);
            }
            self.outcome.diff = proposal.diff;
        }
        self.is_done = true;
        let conclusion = self.without_reported_push(conclusion);
        self.outcome.set_wait(&self.automation.namespace().unwrap_or_default(), &wait);
        self.outcome.set_held(&self.automation.namespace().unwrap_or_default(), &reverts);
        self.outcome.set_conclusion(&conclusion);
        if let DeliveryOutcome::Branches(delivered) = &delivery {
            self.outcome.set_branches(delivered, self.inputs.choice.is_dry_run);
        }
        if self.inputs.choice.is_dry_run {
            return;
        }
        let (findings, delivery, wait) = (findings.as_ref(), &delivery, &wait);
        let observed = Observations { findings, delivery, wait, reverts: &reverts };
        if let Err(error) = self.save(&conclusion, observed) {
            let sentence = chain(&error);
            self.outcome.errors.push(prefixed(&self.outcome, &sentence));
            self.save_error = Some(sentence);
        }
    }
}

impl<'i> Work<'i> {
    /// Creates the reconcile of an automation, not yet started.
    pub(super) fn new(automation: &'i ImageUpdateAutomation, inputs: &'i Inputs, images: &'i Images) -> Self {
        let mut outcome = Outcome::new(Some(name_of(automation)));
        let is_done = automation.spec.suspend;
        if is_done {
            outcome.outcome = OutcomeKind::Skipped;
            outcome.message = Some("the automation is suspended".to_owned());
        }
        Self {
            automation,
            inputs,
            images,
            outcome,
            setters: None,
            plan: None,
            save_error: None,
            is_stale: false,
            is_done,
            awaits_forge: false,
            ends_branches_only: false,
        }
    }

    /// Fails a reconcile whose run was stopped while registries were scanned.
    pub(super) fn cancelled(mut self) -> Self {
        if !self.is_done {
            let sentence =
                "tagboat was stopped while it scanned registries; nothing was chosen and nothing pushed";
            self.outcome.outcome = OutcomeKind::Failed;
            self.outcome.message = Some(sentence.to_owned());
            self.outcome.errors.push(prefixed(&self.outcome, sentence));
            self.is_done = true;
        }
        self
    }

    /// Prints warnings about the automation.
    fn warn(&self, request: &Request) {
        let inputs = self.inputs;
        for unusable in &request.unusable {
            say(&format!("warning: {}", prefixed(&self.outcome, &unusable.to_string())));
        }
        warn_of_empty_selection(Some(self.automation), &inputs.store.manifests, request, &self.outcome);
        warn_of_nameless_author(self.automation, &self.outcome);
    }

    /// Warns of settings that compare with an earlier run, which is unknown.
    fn warn_of_settings_without_state(&self, settings: &AutomationSettings) {
        let holds = settings.on_revert != OnRevert::Overwrite;
        let is_quiet = !settings.quiet_period.duration().is_zero();
        for sentence in [
            holds
                .then_some("without --state no earlier run is known, so tagboat.dev/on-revert holds nothing"),
            is_quiet.then_some(
                "without --state no earlier run is known, so tagboat.dev/quiet-period delays nothing",
            ),
        ] {
            let Some(sentence) = sentence else { continue };
            say(&format!("warning: {}", prefixed(&self.outcome, sentence)));
        }
    }

    /// Returns true if the automation selects a policy, or may select it.
    ///
    /// The selection is unknown if the reconcile failed before it.
    pub(super) fn may_select(&self, policy: &ObjectName) -> bool {
        match &self.setters {
            Some(setters) => setters.selected().any(|(selected, _)| selected == policy),
            None => self.automation.namespace().as_ref() == Some(&policy.namespace),
        }
    }

    /// Replaces a push that the state has already by an outcome without a push.
    ///
    /// The run that made it may have been killed after it saved its status.
    fn without_reported_push(&self, conclusion: Conclusion) -> Conclusion {
        let Conclusion::Success { outcome: git::Outcome::Pushed(push), policies } = &conclusion else {
            return conclusion;
        };
        let Some(found) = &push.found else { return conclusion };
        let known = self.automation.status.as_ref().and_then(|status| status.last_push_commit.as_ref());
        if known != Some(&push.commit.to_string()) {
            return conclusion;
        }
        let outcome = git::Outcome::NothingToCommit { source: found.clone() };
        Conclusion::Success { outcome, policies: policies.clone() }
    }

    /// Reports the pull requests, once the forge was asked.
    pub(super) fn report_pull_requests(&mut self, queue: &PullRequestQueue) {
        if !self.awaits_forge {
            return;
        }
        let known = queue.progress(&ObjectName::of(self.automation));
        let Some((progress, order)) = known else {
            // Git failed, so nothing was asked; or the run was stopped.
            return;
        };
        let is_dry_run = self.inputs.choice.is_dry_run;
        self.outcome.set_pull_requests(&progress, is_dry_run);
        let withheld = order.withheld(&progress).filter(|_| self.outcome.waiting.is_empty());
        let withheld = withheld.map_or(WaitOutcome::Unknown, WaitOutcome::Waiting);
        self.outcome.set_withheld(&self.automation.namespace().unwrap_or_default(), &withheld);
        for error in progress.errors() {
            let sentence = prefixed(&self.outcome, &error);
            self.outcome.errors.push(sentence);
        }
        for sentence in progress.warnings() {
            say(&format!("warning: {}", prefixed(&self.outcome, &sentence)));
        }
        if is_dry_run {
            return;
        }
        let forge = ForgeProgress::Known(Box::new(progress));
        let delivered = Delivered { forge, ..order.delivered.clone() };
        if let Err(error) = self.save_conditions(&delivered, &withheld) {
            self.outcome.errors.push(prefixed(&self.outcome, &chain(&error)));
        }
    }

    /// Returns true if the forge was asked.
    pub(super) fn asked_forge(&self) -> bool {
        self.awaits_forge
    }

    /// Returns the name of the automation.
    pub(super) fn name(&self) -> ObjectName {
        ObjectName::of(self.automation)
    }

    /// Returns the namespace and the GitRepository.
    pub(super) fn group(&self) -> (String, ObjectName) {
        group_of(self.automation)
    }

    /// Goes on with the branches whose pull requests have ended.
    ///
    /// No policy renders them, or people have handed them back.
    pub(super) fn ending_branches(&mut self) -> &mut Self {
        self.ends_branches_only = true;
        self
    }

    /// Reports the branches that were to be deleted after the forge was asked.
    fn take_ended_branches(&mut self, conclusion: &Conclusion, proposal: Option<&UpdateProposal>) {
        if let Some((proposal, delivered)) =
            proposal.and_then(|found| Some((found, found.delivered.as_ref()?)))
        {
            let ended = proposal.ended_branches();
            self.outcome.set_ended_branches(&ended, &delivered.base);
            if self.outcome.waiting.is_empty() && ended.iter().any(|one| one.waits_for().is_some()) {
                let wait = proposal.wait_outcome(conclusion);
                self.outcome.set_wait(&self.automation.namespace().unwrap_or_default(), &wait);
            }
            let awaits = |one: &&BranchOutcome| one.action == BranchAction::Left(LeftReason::AwaitingForge);
            let failure = self.inputs.options.pull_requests.list_failure(&self.name());
            if let Some(error) = failure.filter(|_| ended.iter().any(awaits)) {
                let sentence = format!("a branch whose pull request was closed stays: {}", chain(&error));
                self.outcome.errors.push(prefixed(&self.outcome, &sentence));
            }
        }
        if let Conclusion::Stall(stop) | Conclusion::Failure(stop) = conclusion {
            let sentence = format!("a branch whose pull request was closed stays: {}", stop.full_message());
            self.outcome.errors.push(prefixed(&self.outcome, &sentence));
        }
    }

    /// Saves the conditions `Delivery` and `UpdatesWaiting` after the forge was asked.
    fn save_conditions(&self, delivered: &Delivered, wait: &WaitOutcome) -> Result<(), StateError> {
        let Some(state) = &self.inputs.store.state else { return Ok(()) };
        let mut automation = self.automation.clone();
        state.load_automation(&mut automation)?;
        let Some(status) = &automation.status else { return Ok(()) };
        let run = ReconcileRun::of(&automation, self.inputs.started);
        let now = Timestamp::now();
        let status = delivered.on(status, run.generation, now);
        let status = wait.on(&status, run.generation, now);
        state.save_automation(&automation, &status)
    }

    /// Saves the status of the reconcile.
    fn save(&self, conclusion: &Conclusion, observed: Observations<'_>) -> Result<(), StateError> {
        let inputs = self.inputs;
        let Some(state) = &inputs.store.state else { return Ok(()) };
        let now = Timestamp::now();
        let mut automation = self.automation.clone();
        state.load_automation(&mut automation)?;
        let previous = automation.status.clone().unwrap_or_default();
        let run = ReconcileRun::of(&automation, inputs.started);
        let report = report(&run, interval(&automation), &previous, conclusion, now);
        let report = report.with_observations(observed, conclusion, &run, now);
        state.save_automation(&automation, &report.status)?;
        match (conclusion, source_of(self.automation, &inputs.store.manifests)) {
            (Conclusion::Success { .. }, Some(source)) => {
                state.save_success(self.automation, source)?;
                state.save_destination(self.automation, &Destination::of(self.automation, source))
            }
            _ => Ok(()),
        }
    }

    /// Returns the report, or `None` if the reconcile failed before it had a plan.
    ///
    /// With `several` automations, the name comes before the diff; else it has its place of the report of an update.
    pub(super) fn to_text(&self, palette: Palette, several: bool) -> Option<String> {
        let is_failed = self.outcome.outcome == OutcomeKind::Failed;
        if is_failed && self.plan.is_none() {
            return None;
        }
        let automation = full_name(self.automation);
        let mut text = String::new();
        let diff = self.outcome.diff.as_ref().filter(|diff| !diff.is_empty());
        let is_headed = several && diff.is_some();
        if is_headed {
            text.push_str(&report::heading(&automation, palette));
            text.push('\n');
        }
        if let Some(diff) = diff {
            text.push_str(&coloured(diff, palette));
            text.push('\n');
        }
        // If no file was read, the message is the only thing to report.
        text.push_str(&match self.plan.as_ref().zip(self.setters.as_ref()) {
            None => report::heading(&automation, palette),
            Some((plan, setters)) => {
                let mode = match self.outcome.outcome {
                    OutcomeKind::Pushed => ReportMode::Changed,
                    // The commit was pushed, and the refspec was refused.
                    OutcomeKind::Failed if self.outcome.commit.is_some() => ReportMode::Changed,
                    _ if self.inputs.choice.is_dry_run => ReportMode::WouldChange,
                    _ => ReportMode::NotChanged,
                };
                let report = Report {
                    automation: Some(automation),
                    is_headed,
                    setters,
                    plan,
                    result: &plan.result,
                    mode,
                    not_written: 0,
                };
                report::render(&report, palette)
            }
        });
        // The summary has the changes of a dry run, standard error the errors, and a line below that of a single branch.
        let is_of_branch =
            |message: &String| self.outcome.branches.iter().any(|branch| branch.message == *message);
        let is_printed = is_failed
            || (self.outcome.outcome == OutcomeKind::DryRun && !self.outcome.changes.is_empty())
            || self.outcome.message.as_ref().is_some_and(is_of_branch);
        if let Some(message) = self.outcome.message.as_ref().filter(|_| !is_printed) {
            text.push_str(&printable(message));
            text.push('\n');
        }
        for branch in &self.outcome.branches {
            let dropped = branch.dropped.iter().map(|dropped| &dropped.message);
            for line in iter::once(&branch.message).chain(dropped) {
                text.push_str(&printable(line));
                text.push('\n');
            }
        }
        for pull_request in &self.outcome.pull_requests {
            text.push_str(&printable(&pull_request.message));
            text.push('\n');
            if let Some(body) = &pull_request.body {
                text.push_str(&printable_lines(&format!("{}\n\n{body}", pull_request.title)));
                text.push('\n');
            }
        }
        Some(text)
    }
}

/// Returns the errors of all reconciles, without duplicates of scans and of saving the state.
pub(super) fn errors(works: Vec<Work<'_>>) -> Vec<String> {
    let (mut save_errors, mut printed) = (BTreeSet::new(), BTreeSet::new());
    let mut errors = Vec::new();
    for work in works {
        let mut own = work.outcome.errors;
        if work.save_error.is_some_and(|sentence| !save_errors.insert(sentence)) {
            own.pop();
        }
        errors.extend(own.into_iter().filter(|error| printed.insert(error.clone())));
    }
    errors
}
