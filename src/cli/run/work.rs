//! One automation's run, from its manifests to its report.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::ImageUpdateAutomation;

use super::images::Images;
use super::inputs::{Inputs, source_of};
use crate::cli::choice::{full_name, name_of};
use crate::cli::outcome::{Outcome, OutcomeKind};
use crate::cli::output::prefixed;
use crate::cli::report::{self, Deed, Report};
use crate::cli::terminal::{Palette, coloured, say};
use crate::cli::warnings::{warn_of_empty_selection, warn_of_nameless_author, warn_of_service_account};
use crate::error::chain;
use crate::git::outcome as git;
use crate::objects::manifests::Destination;
use crate::objects::{Objects, ObjectsError};
use crate::printable::printable;
use crate::reconcile::automation::batch::Job;
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::findings::Findings;
use crate::reconcile::automation::proposal::UpdateProposal;
use crate::reconcile::automation::report::{interval, report};
use crate::reconcile::automation::request::Request;
use crate::reconcile::automation::transaction::{self, Prepared, TransactionOptions};
use crate::reconcile::run::ReconcileRun;
use crate::update::{PolicyName, Setters, UpdatePlan};

/// One automation's run, as far as it has come.
pub(super) struct Work<'i> {
    automation: &'i ImageUpdateAutomation,
    inputs: &'i Inputs,
    images: &'i Images,
    pub(super) outcome: Outcome,
    /// What was selected, once that is known.
    setters: Option<Setters>,
    plan: Option<UpdatePlan>,
    /// Why the status could not be kept, which is the last of the outcome's errors then.
    unkept: Option<String>,
    /// Whether an image may be out of date, because its registry did not say what it is now.
    pub(super) is_stale: bool,
    pub(super) is_done: bool,
}

impl Job for Work<'_> {
    async fn prepare(&mut self, is_first: bool) -> Result<Prepared, Conclusion> {
        let inputs = self.inputs;
        let selected = transaction::select(&inputs.store, self.automation, &inputs.options.given).await?;
        let request = &selected.request;
        if is_first {
            self.warn(request);
            let selected = request.update.setters.selected();
            let choices = selected.filter_map(|(policy, _)| Some((policy, self.images.choice(policy)?)));
            self.outcome.choices = choices.map(|(policy, choice)| choice.to_outcome(policy)).collect();
            let errors: BTreeSet<&String> =
                self.outcome.choices.iter().filter_map(|choice| choice.error.as_ref()).collect();
            self.outcome.errors.extend(errors.into_iter().cloned());
            // What may be out of date was told before, as a warning.
            self.is_stale = self.outcome.choices.iter().any(|choice| choice.stale.is_some());
        }
        self.outcome.set_request(request);
        self.setters = Some(request.update.setters.clone());
        let is_forced = inputs.new.contains(&full_name(self.automation));
        let options = TransactionOptions { is_forced, ..inputs.options.clone() };
        transaction::prepare(&inputs.store, self.automation, selected, &options).await
    }

    async fn conclude(&mut self, conclusion: Conclusion, proposal: Option<UpdateProposal>) {
        let findings = proposal.as_ref().and_then(|proposal| proposal.findings.clone());
        if let Some(proposal) = proposal {
            if let Some(plan) = proposal.plan {
                self.outcome.set_plan(&plan);
                self.plan = Some(plan);
            }
            self.outcome.diff = proposal.diff;
        }
        self.is_done = true;
        let conclusion = self.without_what_was_reported(conclusion);
        self.outcome.set_conclusion(&conclusion);
        if self.inputs.choice.is_rehearsal {
            return;
        }
        if let Err(error) = self.keep(&conclusion, findings.as_ref()).await {
            let sentence = chain(&error);
            self.outcome.errors.push(prefixed(&self.outcome, &sentence));
            self.unkept = Some(sentence);
        }
    }
}

impl<'i> Work<'i> {
    /// The run of an automation, before it has begun.
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
            unkept: None,
            is_stale: false,
            is_done,
        }
    }

    /// The run that came to no choice because it was told to stop while registries were scanned.
    pub(super) fn broken_off(mut self) -> Self {
        if !self.is_done {
            let sentence =
                "tagboat was told to stop while it scanned registries; nothing was chosen and nothing pushed";
            self.outcome.outcome = OutcomeKind::Failed;
            self.outcome.message = Some(sentence.to_owned());
            self.outcome.errors.push(prefixed(&self.outcome, sentence));
            self.is_done = true;
        }
        self
    }

    /// Says what is odd about the automation and no error.
    fn warn(&self, request: &Request) {
        let inputs = self.inputs;
        for unusable in &request.unusable {
            say(&format!("warning: {}", prefixed(&self.outcome, &unusable.to_string())));
        }
        warn_of_empty_selection(Some(self.automation), &inputs.store.manifests, request, &self.outcome);
        warn_of_nameless_author(self.automation, &self.outcome);
        warn_of_service_account(source_of(self.automation, &inputs.store.manifests), &self.outcome);
    }

    /// Whether the automation selects a policy, or might: of one that was not carried so far nobody knows.
    pub(super) fn may_select(&self, policy: &PolicyName) -> bool {
        match &self.setters {
            Some(setters) => setters.selected().any(|(selected, _)| selected == policy),
            None => self.automation.namespace().as_ref() == Some(&policy.namespace),
        }
    }

    /// A push that was found on the remote is news only if the state does not have it yet: the run that made it may have
    /// been killed after it kept its status.
    fn without_what_was_reported(&self, conclusion: Conclusion) -> Conclusion {
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

    /// Keeps the status that the run leads to.
    async fn keep(&self, conclusion: &Conclusion, findings: Option<&Findings>) -> Result<(), ObjectsError> {
        let inputs = self.inputs;
        let Some(state) = &inputs.store.state else { return Ok(()) };
        let now = Timestamp::now();
        let status = |automation: &ImageUpdateAutomation| {
            let previous = automation.status.clone().unwrap_or_default();
            let run = ReconcileRun::of(automation, inputs.started);
            let report = report(&run, interval(automation), &previous, conclusion, now);
            report.noting(findings, &run, now).status
        };
        inputs.store.update_status(self.automation, &status).await?;
        match (conclusion, source_of(self.automation, &inputs.store.manifests)) {
            (Conclusion::Success { .. }, Some(source)) => {
                state.keep_success(self.automation, source)?;
                Ok(state.keep_destination(self.automation, &Destination::of(self.automation, source))?)
            }
            _ => Ok(()),
        }
    }

    /// The report; none of a run that failed before it found anything, for why it failed is said elsewhere.
    ///
    /// Of `several`, the name stands before all that is said of one; the name of the only one stands where it does in
    /// the report of an update.
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
        // Where no file was looked into there is nothing to report but why.
        text.push_str(&match self.plan.as_ref().zip(self.setters.as_ref()) {
            None => report::heading(&automation, palette),
            Some((plan, setters)) => {
                let is_pushed = self.outcome.outcome == OutcomeKind::Pushed;
                let report = Report {
                    automation: Some(automation),
                    is_headed,
                    setters,
                    plan,
                    result: &plan.result,
                    deed: if is_pushed { Deed::Changed } else { Deed::WouldChange },
                    not_written: 0,
                };
                report::render(&report, palette)
            }
        });
        // The summary says what a dry run would do, and standard error what failed.
        let is_said = is_failed || self.outcome.outcome == OutcomeKind::DryRun;
        if let Some(message) = self.outcome.message.as_ref().filter(|_| !is_said) {
            text.push_str(&printable(message));
            text.push('\n');
        }
        Some(text)
    }
}

/// What is said of the failures of all runs; of a state that cannot be kept for one cause, once, and so of a scan.
pub(super) fn errors(works: Vec<Work<'_>>) -> Vec<String> {
    let (mut said, mut told) = (BTreeSet::new(), BTreeSet::new());
    let mut errors = Vec::new();
    for work in works {
        let mut own = work.outcome.errors;
        if work.unkept.is_some_and(|sentence| !said.insert(sentence)) {
            own.pop();
        }
        errors.extend(own.into_iter().filter(|words| told.insert(words.clone())));
    }
    errors
}
