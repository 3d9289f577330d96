//! Judges the facts about an automation at a time.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::settings::{AutomationSettings, Delivery, OnRevert};
use tagboat_api::{Condition, ImagePolicy, ImageRef, Reason};

use super::facts::{Facts, Origin};
use super::held::ExplainedHold;
use super::refused::RefusedImages;
use super::report::{
    ClosingRule, ExplainedPolicy, ExplainedRule, ExplainedWait, Explanation, NextChange, PolicyState,
};
use crate::error::chain;
use crate::objects::ObjectName;
use crate::reconcile::automation::delivered::Undelivered;
use crate::reconcile::automation::pull_requests::PART;
use crate::reconcile::automation::request::{self, ImageOverrides};
use crate::reconcile::automation::reverts::HeldRecord;
use crate::reconcile::automation::transaction::observed;
use crate::reconcile::automation::waiting::{
    BY_CHANGED_CLOCK, BY_OTHERS, FREEZE, GroupHolds, ParsedRules, QuietPeriod, ReportedWait, WINDOWS,
    WaitReason, own_windows, source_of_all_namespaces, source_of_automation, source_of_namespace,
    unknown_annotation_of,
};
use crate::reconcile::conditions::{self, ConditionStatus, ConditionType};
use crate::schedule::{Agenda, CauseKind, Rule, State};

/// The number of changes that an explanation shows.
const CHANGES: usize = 5;

/// Returns true if a hold of the last run lasts for an image.
///
/// With `hold`, another image ends it.
fn holds(held: &HeldRecord, policy: &str, image: Option<&ImageRef>) -> bool {
    match held.mode {
        OnRevert::Hold => holds_image(held, policy, image),
        OnRevert::Overwrite | OnRevert::Pause => held.has(policy),
    }
}

/// The images that the last run did not write, by the status.
struct LastRun {
    wait: Option<ReportedWait>,
    held: Option<HeldRecord>,
}

impl LastRun {
    fn of(status: &ImageUpdateAutomationStatus) -> Self {
        let conditions = &status.conditions;
        Self { wait: ReportedWait::of(conditions), held: HeldRecord::of_conditions(conditions) }
    }

    /// Returns true if the last run wanted an image and did not write it.
    ///
    /// The status names it among those that it wanted.
    fn kept_out(&self, policy: &str, image: Option<&ImageRef>) -> bool {
        let waited = self.wait.as_ref().is_some_and(|wait| wait.is_of(policy));
        waited || self.held.as_ref().is_some_and(|held| holds_image(held, policy, image))
    }
}

/// Returns true if a run held an image of a policy, or an unknown one.
fn holds_image(held: &HeldRecord, policy: &str, image: Option<&ImageRef>) -> bool {
    let is_other = match (held.named().get(policy), image) {
        (Some(named), Some(image)) => named.image != image.to_string(),
        _ => false,
    };
    held.has(policy) && !is_other
}

/// The time that is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: Timestamp,
    /// The present time.
    pub(super) now: Timestamp,
    /// True if it is the present time.
    pub(super) is_now: bool,
}

/// Explains what an automation does not write.
pub(super) fn explain(facts: &Facts, moment: Moment) -> Explanation {
    let name = ObjectName::of(&facts.automation);
    let mut explanation = Explanation::of(name.clone(), moment);
    explanation.notes.clone_from(&facts.notes);
    let mut judge = Judge {
        facts,
        moment,
        status: facts.automation.status.clone().unwrap_or_default(),
        settings: None,
        errors: facts.refusals.iter().chain(&facts.unread).cloned().collect(),
        refusal: facts.refusals.first().cloned(),
        obstacle: facts.refusals.first().cloned(),
        closed: None,
    };
    let agenda = judge.agenda(&name);
    judge.judge_stall();
    judge.judge_rules(agenda.as_ref(), &mut explanation);
    judge.judge_run();
    judge.judge_policies(&mut explanation);
    let refused = judge.refusal.map(|by| ClosingRule { reason: WaitReason::Frozen, by, until: None });
    explanation.closed = refused.or(judge.closed);
    explanation.open = explanation.closed.is_none();
    explanation.error = (!judge.errors.is_empty()).then(|| judge.errors.join("; "));
    explanation
}

struct Judge<'f> {
    facts: &'f Facts,
    moment: Moment,
    status: ImageUpdateAutomationStatus,
    /// The present settings; none if they are invalid.
    settings: Option<AutomationSettings>,
    /// The errors, one sentence each.
    errors: Vec<String>,
    /// The error for which no run writes anything, whatever windows and freezes allow.
    refusal: Option<String>,
    /// The cause for which the next run writes nothing, besides windows and freezes.
    obstacle: Option<String>,
    /// The rule that closes the automation.
    closed: Option<ClosingRule>,
}

impl Judge<'_> {
    /// Returns the agenda, or closes the automation because of an invalid setting.
    fn agenda(&mut self, name: &ObjectName) -> Option<Agenda> {
        let parsed = ParsedRules::default();
        let own = match AutomationSettings::from_annotations(self.facts.automation.annotations()) {
            Ok(settings) => {
                let own = own_windows(&settings, &parsed).map_err(|error| chain(&error));
                self.settings = Some(settings);
                own
            }
            Err(errors) => Err(chain(&errors)),
        };
        let own = own.unwrap_or_else(|error| {
            self.refusal.get_or_insert(error.clone());
            self.obstacle.get_or_insert(error.clone());
            self.fail(error);
            None
        });
        match self.facts.rules.agenda(name, own.as_deref(), &parsed) {
            Ok(agenda) => Some(agenda),
            Err(error) => {
                let by = chain(&error);
                self.errors.push(by.clone());
                self.closed = Some(ClosingRule { reason: WaitReason::Frozen, by, until: None });
                None
            }
        }
    }

    /// Adds an error unless another one says the same.
    fn fail(&mut self, error: String) {
        if !self.errors.iter().any(|known| known.contains(&error) || error.contains(known)) {
            self.errors.push(error);
        }
    }

    /// Judges the windows and freezes.
    fn judge_rules(&mut self, agenda: Option<&Agenda>, explanation: &mut Explanation) {
        let Some(agenda) = agenda else { return };
        let at = self.moment.at;
        for source in agenda.sources() {
            let closed = source.closed_by(at);
            if let Some(cause) =
                closed.as_ref().filter(|cause| matches!(cause.kind, CauseKind::Invalid { .. }))
            {
                self.errors.push(cause.to_string());
            }
            let kind = match &source.rule {
                Rule::Freeze(_) => "freeze",
                Rule::Windows(_) => "windows",
                Rule::Invalid(_) => "invalid setting",
            };
            explanation.rules.push(ExplainedRule {
                name: format!("{kind} of {}", source.name),
                closed_by: closed.map(|cause| cause.to_string()),
            });
        }
        let changes: Vec<NextChange> = agenda
            .changes(at)
            .take(CHANGES)
            .map(|change| NextChange { at: change.at, open: change.is_open, by: change.by.to_string() })
            .collect();
        let until = changes.first().map(|change| change.at);
        if self.refusal.is_none() {
            explanation.next = changes;
        }
        if let State::Closed(cause) = agenda.state(at) {
            self.closed = Some(ClosingRule { reason: cause.reason().into(), by: cause.to_string(), until });
        }
    }

    /// Closes the automation if no run begins, besides invalid settings.
    ///
    /// A controller reconciles a stalled object again once something has changed, so its condition is current. `tagboat run`
    /// tries again each time.
    fn judge_stall(&mut self) {
        let policies = self.facts.policies.iter().map(AsRef::as_ref);
        let request = request::of_automation(&self.facts.automation, policies, &ImageOverrides::new());
        let is_of_cluster = self.facts.origin != Origin::Manifests;
        let is_stalled = is_of_cluster && conditions::is_stalled(&self.status.conditions);
        let stall = match request {
            Err(error) => Some(chain(&error)),
            Ok(_) => self.failure().filter(|_| is_stalled),
        };
        if let Some(sentence) = stall {
            self.refusal.get_or_insert(sentence.clone());
            self.obstacle.get_or_insert(sentence.clone());
            self.fail(sentence);
        }
    }

    /// Returns the failure of the last run, if it failed.
    fn failure(&self) -> Option<String> {
        let stalled = self.message(ConditionType::Stalled, ConditionStatus::True);
        let failed = stalled.or_else(|| self.message(ConditionType::Ready, ConditionStatus::False))?;
        Some(format!("the last run failed: {failed}"))
    }

    /// Returns the message and reason of a condition with a status.
    fn message(&self, type_: ConditionType, status: ConditionStatus) -> Option<String> {
        let conditions = &self.status.conditions;
        let found = conditions::find(conditions, type_).filter(|one| one.status == status.to_string())?;
        Some(format!("{} ({})", found.message, found.reason))
    }

    /// Judges the last run.
    fn judge_run(&mut self) {
        if let Some(sentence) = self.failure() {
            self.obstacle.get_or_insert(sentence.clone());
            self.fail(sentence);
        }
        if let Some(message) = self.message(ConditionType::Delivery, ConditionStatus::False)
            && !self.is_told_by_ready(&message)
        {
            self.errors.push(format!("not every branch is delivered: {message}"));
        }
        if self.facts.automation.spec.suspend {
            self.obstacle = Some("the automation is suspended".to_owned());
        }
    }

    /// Returns true if `Ready` has the sentence with which the message of `Delivery` begins.
    fn is_told_by_ready(&self, delivery: &str) -> bool {
        let ready = conditions::find(&self.status.conditions, ConditionType::Ready);
        let ready = ready.filter(|ready| ready.status == "False" && !ready.message.is_empty());
        let rest = ready.and_then(|ready| delivery.strip_prefix(ready.message.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(PART))
    }

    fn judge_policies(&mut self, explanation: &mut Explanation) {
        let policies = self.facts.policies.iter().map(AsRef::as_ref);
        let given = ImageOverrides::new();
        let request = request::of_automation(&self.facts.automation, policies.clone(), &given);
        let mut request = match request {
            Ok(request) => request,
            Err(error) => return self.fail(chain(&error)),
        };
        let wanted = observed(&request.update);
        request.hold_groups(&self.facts.automation, policies, &given);
        let quiet = self.quiet(&observed(&request.update));
        let last_run = LastRun::of(&self.status);
        let gate = self.closed.clone().or(quiet);
        let reported = last_run.wait.clone();
        let reported = reported.filter(|wait| self.lasts(wait, gate.as_ref(), &request.groups));
        let held = self.held(last_run.held.as_ref());
        let is_same = |policy: &ObjectName| {
            let image = wanted.get(&policy.name);
            let was_wanted = image.is_some() && self.status.observed_policies.get(&policy.name) == image;
            was_wanted && !last_run.kept_out(&policy.name, image)
        };
        let refused = self.settings.as_ref().and_then(|settings| {
            let Facts { automation, repository, policies, .. } = self.facts;
            RefusedImages::of((automation, repository.as_ref()), settings, (&request, policies), is_same)
        });
        let (undelivered, kept_out) = (Undelivered::of(&self.status.conditions), self.kept_out());
        explanation.notes.extend(refused.as_ref().and_then(RefusedImages::note));
        let (mut of_reported, mut of_gate, mut of_groups, mut unwritten) =
            (Vec::new(), Vec::new(), Vec::new(), 0);
        for (policy, _) in request.update.setters.selected() {
            let image = wanted.get(&policy.name);
            let was_kept_out = last_run.kept_out(&policy.name, image);
            let was_wanted = self.status.observed_policies.get(&policy.name) == image;
            let is_written = image.is_none() || (was_wanted && !was_kept_out);
            let is_reported = reported
                .as_ref()
                .is_some_and(|wait| wait.is_of(&policy.name) || (wait.has_more && !is_written));
            let hold = held.as_ref().filter(|held| holds(held, &policy.name, image));
            let (state, reason) = if let Some(held) = hold {
                let hold = ExplainedHold::of(policy, image, held);
                let reason = hold.reason();
                explanation.held.push(hold);
                (PolicyState::Held, reason)
            } else if let Some(wait) = reported.as_ref().filter(|_| is_reported) {
                of_reported.push(policy.to_string());
                (PolicyState::Waiting, sentence(&wait.by, wait.until))
            } else if let Some(closed) = gate.as_ref().filter(|_| !is_written) {
                of_gate.push(policy.to_string());
                (PolicyState::Waiting, sentence(&closed.by, closed.until))
            } else if !is_written && request.groups.holds(policy) {
                of_groups.push(policy.to_string());
                (PolicyState::Waiting, sentence(&request.groups.by().unwrap_or_default(), None))
            } else if image.is_none() {
                let unusable = request.unusable.iter().find(|unusable| unusable.policy == *policy);
                let reason = unusable.map_or_else(|| self.no_image(policy), ToString::to_string);
                (PolicyState::NoImage, reason)
            } else if let Some(reason) =
                kept_out.as_ref().filter(|_| is_written && undelivered.is_kept_out(&policy.name))
            {
                (PolicyState::Held, reason.clone())
            } else if let Some(reason) = refused.as_ref().and_then(|refused| refused.reason(policy)) {
                (PolicyState::Held, reason)
            } else if is_written {
                (PolicyState::Written, self.written().to_owned())
            } else {
                unwritten += 1;
                (PolicyState::Written, self.not_written(was_kept_out))
            };
            let image = image.map(ImageRef::to_string);
            explanation.policies.push(ExplainedPolicy { policy: policy.to_string(), image, state, reason });
        }
        if self.facts.automation.spec.suspend && unwritten > 0 {
            self.fail("the automation is suspended".to_owned());
        }
        if let Some(wait) = reported {
            let ReportedWait { reason, by, until, message, .. } = wait;
            explanation.waiting.push(ExplainedWait { policies: of_reported, reason, by, until, message });
        }
        if let Some(ClosingRule { reason, by, until }) = gate.filter(|_| !of_gate.is_empty()) {
            let verb = if of_gate.len() == 1 { "waits" } else { "wait" };
            let message = format!("{} {verb}: {}", of_gate.join(", "), sentence(&by, until));
            let reason = reason.reason().to_string();
            explanation.waiting.push(ExplainedWait { policies: of_gate, reason, by, until, message });
        }
        if let Some(by) = request.groups.by().filter(|_| !of_groups.is_empty()) {
            let verb = if of_groups.len() == 1 { "waits" } else { "wait" };
            let message = format!("{} {verb}: {}", of_groups.join(", "), sentence(&by, None));
            let reason = Reason::ReleaseGroupIncomplete.to_string();
            explanation.waiting.push(ExplainedWait { policies: of_groups, reason, by, until: None, message });
        }
    }

    /// Returns the sentence for an image that did not get on a branch.
    ///
    /// There is none if `Delivery` names no problem.
    fn kept_out(&self) -> Option<String> {
        let has_branches = self.settings.as_ref().is_none_or(|settings| settings.delivery != Delivery::Push);
        let problem =
            self.message(ConditionType::Delivery, ConditionStatus::False).filter(|_| has_branches)?;
        Some(format!("the last run did not put it on a branch; `Delivery` says: {problem}"))
    }

    /// Returns what the last run held, unless the setting holds nothing any more.
    fn held(&self, record: Option<&HeldRecord>) -> Option<HeldRecord> {
        let record = record?.clone();
        match self.settings.as_ref().map(|settings| settings.on_revert) {
            Some(OnRevert::Overwrite) => None,
            Some(mode) => Some(HeldRecord { mode, ..record }),
            None => Some(record),
        }
    }

    /// Returns the quiet period, if it delays the images.
    ///
    /// A change counts when a run sees it. A controller does so at once, and `tagboat run` when it is called.
    fn quiet(&self, images: &BTreeMap<String, ImageRef>) -> Option<ClosingRule> {
        let known = QuietPeriod::new(self.settings.as_ref()?, Some(&self.status))?;
        let delay_of_run = |time| {
            let mut quiet = known.clone();
            quiet.observe(images, time);
            quiet.delay(self.moment.at, &ObjectName::of(&self.facts.automation))
        };
        let now = self.moment.now;
        let (by, until) = delay_of_run(now)?;
        let later = now.checked_add(SignedDuration::from_secs(1)).unwrap_or(now);
        let is_known = self.facts.origin != Origin::Manifests
            || delay_of_run(later).is_some_and(|(_, of_later)| of_later == until);
        let reason = WaitReason::QuietPeriod;
        Some(if is_known {
            ClosingRule { reason, by, until: Some(until) }
        } else {
            ClosingRule { reason, by: format!("{by}, which the next run begins anew"), until: None }
        })
    }

    /// Returns true if a wait that the last run reported lasts.
    ///
    /// The present annotations decide, as far as they can be read.
    /// At another time, windows and freezes are those of that time.
    fn lasts(&self, wait: &ReportedWait, gate: Option<&ClosingRule>, groups: &GroupHolds) -> bool {
        let is_now = self.moment.is_now;
        let is_of_gate = || gate.is_some_and(|gate| (&gate.by, gate.until) == (&wait.by, wait.until));
        let is_current = match wait.reason() {
            Some(WaitReason::Frozen | WaitReason::WindowClosed | WaitReason::QuietPeriod)
                if wait.by.starts_with(BY_OTHERS) =>
            {
                is_now && gate.is_none()
            }
            Some(WaitReason::Frozen | WaitReason::WindowClosed) => {
                is_now && (is_of_gate() || !self.is_read(&wait.by))
            }
            Some(WaitReason::QuietPeriod) => {
                is_of_gate() || (self.settings.is_none() && self.closed.is_none())
            }
            Some(WaitReason::ReleaseGroupIncomplete) => groups.are_incomplete(),
            None => true,
        };
        wait.until.is_none_or(|until| until > self.moment.at) && is_current
    }

    /// Returns true if the annotation with a rule is read here.
    ///
    /// The manifests have all of them, while a controller may know of more.
    fn is_read(&self, by: &str) -> bool {
        let name = ObjectName::of(&self.facts.automation);
        let is_of = |source: &str| by.contains(&format!(" of {source}"));
        let is_own = self.settings.is_some() && is_of(&source_of_automation(&name));
        let is_of_namespace = by.contains(&unknown_annotation_of(&name.namespace))
            || [FREEZE, WINDOWS].iter().any(|one| is_of(&source_of_namespace(&name.namespace, one)));
        // After a change of its clock, the controller counts a time that is not known here.
        let is_of_clock = by.ends_with(BY_CHANGED_CLOCK);
        let is_of_others = by.starts_with(BY_OTHERS);
        match &self.facts.origin {
            _ if is_of_others => false,
            Origin::Manifests => true,
            Origin::Cluster { controller } => {
                let of_all = format!(" of {}", source_of_all_namespaces(controller));
                let mut ends = by.match_indices(&of_all).map(|(at, _)| &by[at + of_all.len()..]);
                let is_of_all = ends.any(|end| end.is_empty() || end.starts_with(':'));
                let is_of_namespaces = is_of_namespace || is_of_all;
                !is_of_clock && (is_own || (is_of_namespaces && self.facts.unread.is_empty()))
            }
        }
    }

    fn no_image(&self, policy: &ObjectName) -> String {
        let is = |one: &&ImagePolicy| ObjectName::of(*one) == *policy;
        let found = self.facts.policies.iter().map(AsRef::as_ref).find(is);
        let ready = found.and_then(|policy| {
            let status = policy.status.as_ref()?;
            conditions::find(&status.conditions, ConditionType::Ready)
                .filter(|ready: &&Condition| ready.status == "False")
        });
        match ready {
            Some(ready) => format!("the policy has selected no image: {} ({})", ready.message, ready.reason),
            None => "the policy has selected no image yet".to_owned(),
        }
    }

    /// Returns the sentence for an image that the last run wanted.
    fn written(&self) -> &'static str {
        match self.settings.as_ref().map(|settings| settings.delivery).unwrap_or_default() {
            Delivery::Push => "the last run that read the files wrote it, or found it there",
            _ if self.facts.automation.spec.suspend => {
                "the last run that read the files put it on its branch, left the branch as it is, or found it in the base; the \
                 automation is suspended, so another one that shares the branch may have made it anew without this image"
            }
            Delivery::Branch | Delivery::PullRequest => {
                "the last run that read the files put it on its branch, left the branch as it is, or found it in the base"
            }
        }
    }

    /// Returns the sentence for an image that is not written, although nothing holds it back.
    fn not_written(&self, was_kept_out: bool) -> String {
        let has_run = self.status.last_automation_run_time.is_some();
        let why = match (&self.obstacle, &self.facts.origin) {
            (Some(obstacle), _) => obstacle.as_str(),
            (None, _) if !self.moment.is_now => "a run at that time may write it",
            (None, _) if was_kept_out => "the next run is due",
            (None, Origin::Cluster { .. }) if has_run => "the next run is due",
            (None, Origin::Cluster { .. }) => "the automation has not run yet",
            (None, Origin::Manifests) if has_run => "tagboat run has not run since it was selected",
            (None, Origin::Manifests) => "no state of an earlier run is known",
        };
        format!("not written yet: {why}")
    }
}

/// Returns a rule with its end.
fn sentence(by: &str, until: Option<Timestamp>) -> String {
    match until {
        Some(until) => format!("{by}; until {until}"),
        None => format!("{by}; no end is known"),
    }
}
