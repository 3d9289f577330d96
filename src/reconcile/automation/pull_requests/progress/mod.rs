//! The pull requests of an automation as it reports them: condition `Delivery`, events.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use tagboat_api::Reason;

use super::super::delivery::{PastPullRequest, PullRequestReason};
use super::super::waiting::Closed;
use super::open_list::{NAMED, PART, REFUSED, RETRY, list, named, with_open};
use super::outcome::{
    OWNED_BY_OTHERS, OutcomeReason, PullRequestOutcome, PullRequestVerb, WithheldChange, end_of,
};
use super::snapshot::Snapshot;
use crate::forge::{ForgeError, PullRequestState};
use crate::git::BranchName;
use crate::objects::{Event, EventType};
use crate::reconcile::conditions::ConditionStatus::{self, False, True};
use crate::secrets::Redactor;

/// The maximum number of waiting changes that a message names.
const NAMED_WAITING: usize = 20;

/// The progress of an automation's pull requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequestProgress {
    /// The outcomes of the last round, by branch.
    pub outcomes: Vec<PullRequestOutcome>,
    /// The error that ended the round.
    pub failure: Option<ForgeError>,
    /// The time of the next try after a failure.
    pub retry: Option<Timestamp>,
    /// The pull requests that were reported as open, and are not any more.
    pub ended: Vec<EndedPullRequest>,
    /// Events of actions that were not reported yet.
    pub unreported: Vec<PullRequestEvent>,
    /// The numbers of ended pull requests that were reported.
    done: BTreeSet<u64>,
    /// Pull requests that were open before a failure, and of which nothing is known since.
    unseen: BTreeSet<u64>,
    /// True once the forge has listed the open pull requests.
    has_listing: bool,
}

/// A pull request that was reported as open, and is not any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedPullRequest {
    number: u64,
    url: String,
    is_merged: bool,
}

/// An event about a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestEvent {
    /// The event.
    pub event: Event,
    /// The key that keeps it from being announced twice.
    pub key: String,
    /// The number of the pull request.
    number: u64,
}

impl PullRequestProgress {
    /// Returns the progress after a round; `before` is that before the round.
    ///
    /// `known` are the pull requests that were reported as open. `failure` is the error that ended the round.
    pub(super) fn after(
        before: Option<&Self>,
        (outcomes, failure): (Vec<PullRequestOutcome>, Option<ForgeError>),
        known: &BTreeSet<u64>,
        snapshot: &Snapshot,
    ) -> Self {
        let Self { mut ended, mut unreported, mut done, has_listing, .. } =
            before.cloned().unwrap_or_default();
        let has_listing = has_listing || snapshot.was_listed();
        // A person has reopened it, and its next end is another one.
        done.retain(|number| !snapshot.is_open(*number));
        unreported.extend(outcomes.iter().flat_map(events_of));
        let mut unseen: BTreeSet<u64> = before.map(Self::listed).unwrap_or_default();
        unseen.extend(known);
        for one in EndedPullRequest::among(&unseen, snapshot) {
            let is_known = ended.iter().any(|known| known.is_same(&one));
            if !is_known && !done.contains(&one.number) {
                ended.push(one);
            }
        }
        let has_failed = failure.is_some() || outcomes.iter().any(PullRequestOutcome::has_failed);
        unseen.retain(|number| {
            let is_seen = outcomes.iter().any(|outcome| outcome.number == Some(*number));
            has_failed && !is_seen && !done.contains(number) && snapshot.ended(*number).is_none()
        });
        Self { outcomes, failure, retry: None, ended, unreported, done, unseen, has_listing }
    }

    /// Redacts the addresses of ended pull requests, which show what the forge says.
    pub(super) fn redact_ended(&mut self, redactor: &Redactor) {
        self.ended.iter_mut().for_each(|one| one.url = redactor.redact(&one.url));
    }

    /// Forgets what was reported with an earlier state of this progress.
    pub(super) fn announced(&mut self, reported: &Self) {
        self.unreported.retain(|event| !reported.unreported.contains(event));
        self.ended.retain(|one| !reported.ended.contains(one));
        self.done.extend(reported.ended.iter().map(|one| one.number));
        // Numbers grow, and the newest ones may still be in an order.
        while self.done.len() > NAMED {
            self.done.pop_first();
        }
    }
}

impl EndedPullRequest {
    /// Finds the pull requests of some numbers that have ended.
    fn among(numbers: &BTreeSet<u64>, snapshot: &Snapshot) -> Vec<Self> {
        let ended = |one: &PastPullRequest| Self {
            number: one.number,
            url: one.url.clone(),
            is_merged: one.state == PullRequestState::Merged,
        };
        // The closed ones of a branch are not looked up again when a person reopens one.
        let closed = numbers.iter().filter(|number| !snapshot.is_open(**number));
        closed.filter_map(|number| snapshot.ended(*number).map(ended)).collect()
    }

    /// Returns true for the same end; its address may be redacted.
    fn is_same(&self, other: &Self) -> bool {
        (self.number, self.is_merged) == (other.number, other.is_merged)
    }

    fn event(&self) -> PullRequestEvent {
        let (reason, verb) = if self.is_merged {
            (Reason::PullRequestMerged, "merged")
        } else {
            (Reason::PullRequestClosed, "closed")
        };
        event(reason, self.number, "", format!("pull request #{} was {verb}: {}", self.number, self.url))
    }
}

impl PullRequestProgress {
    /// Returns the numbers of the pull requests with actions that were not reported yet.
    pub(super) fn awaiting_report(&self) -> impl Iterator<Item = u64> {
        self.unreported.iter().map(|event| event.number)
    }

    /// Returns the numbers of the open pull requests.
    pub fn open(&self) -> BTreeSet<u64> {
        self.outcomes.iter().filter(|outcome| outcome.is_open).filter_map(|outcome| outcome.number).collect()
    }

    /// Returns the numbers of the pull requests that a report lists as open.
    ///
    /// After a failure they include those that were open before it.
    pub fn listed(&self) -> BTreeSet<u64> {
        self.open().union(&self.unseen).copied().collect()
    }

    /// Adds the list of open pull requests to the message of a problem.
    ///
    /// There is no list of none before the forge has answered once.
    pub fn with_listed(&self, message: &str) -> String {
        let listed = self.listed();
        if listed.is_empty() && !self.has_listing { message.to_owned() } else { with_open(message, &listed) }
    }

    /// Returns the numbers of the pull requests that people have refused.
    pub fn refused(&self) -> BTreeSet<u64> {
        self.outcomes.iter().filter_map(PullRequestOutcome::refusal).collect()
    }

    /// Returns true if the forge failed at a branch.
    pub fn has_failed_at(&self, branch: &BranchName) -> bool {
        self.outcomes.iter().any(|outcome| outcome.branch == *branch && outcome.has_failed())
    }

    /// Returns the pull request by which a person has refused the images of a branch.
    pub fn refusal(&self, branch: &BranchName) -> Option<u64> {
        self.outcomes.iter().filter(|outcome| outcome.branch == *branch).find_map(PullRequestOutcome::refusal)
    }

    /// Returns the errors, a sentence each.
    pub fn errors(&self) -> Vec<String> {
        let mut errors: Vec<String> = self.failure.iter().map(ToString::to_string).collect();
        for outcome in &self.outcomes {
            let sentence = match &outcome.reason {
                Some(OutcomeReason::ForgeFailed(error)) => error.to_string(),
                Some(OutcomeReason::NoText(error)) => error.clone(),
                _ => continue,
            };
            if !errors.contains(&sentence) {
                errors.push(sentence);
            }
        }
        errors
    }

    /// Returns the status, reason and message that the condition has by the forge.
    pub fn condition(&self) -> (ConditionStatus, Reason, String) {
        self.condition_with("")
    }

    /// Returns the condition with a further part of its message.
    pub fn condition_with(&self, part: &str) -> (ConditionStatus, Reason, String) {
        if let Some((reason, sentence)) = self.problem() {
            let retry = self.retry.map(|time| format!("{PART}{RETRY}{time}")).unwrap_or_default();
            return (False, reason, self.with_listed(&(sentence + part)) + &retry);
        }
        let (open, refused) = (self.open(), self.refused());
        let mut parts = Vec::new();
        if !open.is_empty() {
            parts.push(list(&open));
        }
        if !refused.is_empty() {
            parts.push(format!("{REFUSED}{}", named(&refused)));
        }
        if parts.is_empty() {
            parts.push("no pull request is open".to_owned());
        }
        parts.extend(self.waiting());
        let mut seen = BTreeSet::new();
        let refused = self.outcomes.iter().flat_map(|outcome| &outcome.refused);
        parts.extend(refused.filter(|sentence| seen.insert(*sentence)).cloned());
        (True, Reason::Current, parts.join(PART) + part)
    }

    /// Returns a phrase about the changes that wait for each rule.
    fn waiting(&self) -> Vec<String> {
        let mut rules = BTreeMap::<(&str, Option<Timestamp>), Vec<String>>::new();
        for outcome in &self.outcomes {
            if let Some(WithheldChange { rule: Closed { by, until, .. }, .. }) = outcome.withheld() {
                let name = outcome.number.map(|number| format!("#{number}"));
                let name = name.unwrap_or_else(|| format!("branch '{}'", outcome.shown_branch()));
                rules.entry((by.as_str(), *until)).or_default().push(name);
            }
        }
        let phrase = |((by, until), names): ((&str, Option<Timestamp>), Vec<String>)| {
            let more = match names.len().saturating_sub(NAMED_WAITING) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let (changes, wait) = if names.len() == 1 { ("a change", "waits") } else { ("changes", "wait") };
            let named = names[..names.len().min(NAMED_WAITING)].join(", ");
            format!("{changes} of {named}{more} {wait}: {by}{PART}{}", end_of(until))
        };
        rules.into_iter().map(phrase).collect()
    }

    /// Returns sentences about wishes that the forge refused, such as a merge or a reviewer.
    pub fn warnings(&self) -> Vec<String> {
        self.outcomes.iter().flat_map(PullRequestOutcome::warnings).collect()
    }

    /// Returns the first problem, with its reason.
    fn problem(&self) -> Option<(Reason, String)> {
        let failed = |error: &ForgeError| {
            let reason = match error {
                ForgeError::Unauthenticated { .. } | ForgeError::Forbidden { .. } => Reason::Forbidden,
                ForgeError::RateLimited { .. } => Reason::RateLimited,
                ForgeError::Unavailable { .. }
                | ForgeError::Failed { .. }
                | ForgeError::Refused { .. }
                | ForgeError::TooLarge { .. }
                | ForgeError::TooMuchKept { .. }
                | ForgeError::Malformed { .. } => Reason::ForgeUnavailable,
            };
            (reason, error.to_string())
        };
        if let Some(error) = &self.failure {
            return Some(failed(error));
        }
        let of = |outcome: &PullRequestOutcome| match &outcome.reason {
            Some(OutcomeReason::ForgeFailed(error)) => Some(failed(error)),
            Some(OutcomeReason::NoText(error)) => Some((Reason::InvalidSettings, error.clone())),
            Some(OutcomeReason::Decided(PullRequestReason::EditedByOthers)) => {
                let named = outcome.number.map_or_else(
                    || format!("branch '{}'", outcome.shown_branch()),
                    |number| format!("pull request #{number}"),
                );
                let sentence = format!("{named} has changes of others and is left alone");
                Some((Reason::EditedByOthers, sentence))
            }
            Some(OutcomeReason::Decided(PullRequestReason::OwnedByOthers)) => {
                let number = outcome.number.unwrap_or_default();
                let sentence = format!("pull request #{number} is left alone: {OWNED_BY_OTHERS}");
                Some((Reason::EditedByOthers, sentence))
            }
            _ => outcome.unmerged().map(|sentence| (Reason::AutoMergeRefused, sentence)),
        };
        self.outcomes.iter().find_map(of)
    }

    /// Returns true if another progress would be reported in other words.
    ///
    /// The time of the next try does not count: otherwise each failed one would have all automations reconciled. Their runs
    /// report it.
    pub(super) fn differs(&self, other: &Self) -> bool {
        let words = |progress: &Self| {
            let (status, reason, message) = Self { retry: None, ..progress.clone() }.condition();
            (status, reason, message, progress.ended.clone())
        };
        !other.unreported.is_empty() || words(self) != words(other)
    }

    /// Returns the events of a report.
    ///
    /// `listed` are the open pull requests that the last report listed. So an action is announced even if the process was
    /// killed after it.
    pub fn events(&self, listed: &BTreeSet<u64>) -> Vec<PullRequestEvent> {
        let mut events = self.unreported.clone();
        for outcome in self.outcomes.iter().filter(|outcome| outcome.is_open) {
            let is_new = |number: u64| !listed.contains(&number);
            if outcome.number.is_some_and(is_new) {
                events.extend(opened(outcome));
            }
        }
        let was_listed = |one: &&EndedPullRequest| listed.contains(&one.number);
        events.extend(self.ended.iter().filter(was_listed).map(EndedPullRequest::event));
        let mut seen = BTreeSet::new();
        events.retain(|event| seen.insert(event.key.clone()));
        events
    }
}

/// Returns the events of the actions of a round.
fn events_of(outcome: &PullRequestOutcome) -> Vec<PullRequestEvent> {
    let mut events: Vec<PullRequestEvent> =
        outcome.is_opened.then(|| opened(outcome)).flatten().into_iter().collect();
    let Some(number) = outcome.number else { return events };
    let commit = outcome.commit.map(|commit| commit.to_string()).unwrap_or_default();
    match outcome.action {
        PullRequestVerb::Refreshed => {
            events.push(event(Reason::PullRequestRefreshed, number, &commit, outcome.sentence(false)));
        }
        PullRequestVerb::Closed => {
            events.push(event(Reason::PullRequestClosed, number, "", outcome.sentence(false)));
        }
        PullRequestVerb::Merged => {
            events.push(event(Reason::PullRequestMerged, number, "", outcome.sentence(false)));
        }
        _ => {}
    }
    events
}

fn opened(outcome: &PullRequestOutcome) -> Option<PullRequestEvent> {
    let sentence = PullRequestOutcome { action: PullRequestVerb::Opened, reason: None, ..outcome.clone() }
        .sentence(false);
    Some(event(Reason::PullRequestOpened, outcome.number?, "", sentence))
}

fn event(reason: Reason, number: u64, of: &str, message: String) -> PullRequestEvent {
    let key = format!("{reason} {number} {of}");
    let event = Event { type_: EventType::Normal, reason: reason.to_string(), message };
    PullRequestEvent { event, key, number }
}

#[cfg(test)]
mod tests;
