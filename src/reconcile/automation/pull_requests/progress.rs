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
mod tests {
    use std::time::Duration;

    use PullRequestVerb::{Closed, Kept, Left, Merged, Opened};

    use super::super::super::delivered::{BranchPolicies, Delivered, ForgeProgress};
    use super::super::super::waiting::{self, WaitReason};
    use super::super::open_list::{open_beside_problem, open_in};
    use super::*;
    use crate::git::{BranchAction, BranchOutcome, LeftReason};

    fn outcome(number: u64, action: PullRequestVerb) -> PullRequestOutcome {
        let branch = format!("b{number}").parse().unwrap();
        PullRequestOutcome {
            number: Some(number),
            url: format!("https://h/{number}"),
            is_open: !matches!(action, Closed | Merged | Left),
            ..PullRequestOutcome::without(&branch, &"main".parse().unwrap(), action)
        }
    }

    fn progress(outcomes: Vec<PullRequestOutcome>) -> PullRequestProgress {
        PullRequestProgress { outcomes, ..PullRequestProgress::default() }
    }

    #[test]
    fn the_condition_counts_pull_requests_or_names_the_problem() {
        let refused = PullRequestOutcome {
            reason: Some(OutcomeReason::Decided(PullRequestReason::ClosedByPerson)),
            ..outcome(9, Left)
        };
        let edited = PullRequestOutcome {
            reason: Some(OutcomeReason::Decided(PullRequestReason::EditedByOthers)),
            is_open: true,
            ..outcome(9, Left)
        };
        let unmerged = PullRequestOutcome { merge_refusal: Some("no rule".to_owned()), ..outcome(12, Kept) };
        let limited = ForgeError::RateLimited { host: "h".to_owned(), retry_after: Duration::from_secs(9) };
        let retry: Timestamp = "2026-01-01T00:00:05Z".parse().unwrap();
        let waiting = |until: Option<&str>, outcome: PullRequestOutcome| PullRequestOutcome {
            reason: Some(OutcomeReason::Waiting(WithheldChange {
                rule: waiting::Closed {
                    reason: WaitReason::WindowClosed,
                    by: "deny window `night` of automation shop/app".to_owned(),
                    until: until.map(|until| until.parse().unwrap()),
                    look_again: None,
                    changes: None,
                },
                delays_images: true,
            })),
            ..outcome
        };
        let branch = |number| PullRequestOutcome { number: None, ..outcome(number, Left) };
        let open = PullRequestOutcome { is_open: true, ..outcome(12, Left) };
        let until = Some("2026-12-02T06:00:00Z");
        for (progress, expected) in [
            (progress(vec![]), "True Current no pull request is open"),
            (
                progress(vec![waiting(until, open.clone()), outcome(14, Kept)]),
                "True Current 2 open: #12, #14; a change of #12 waits: deny window `night` of automation shop/app; until \
                 2026-12-02T06:00:00Z",
            ),
            (
                progress(vec![waiting(None, branch(1)), waiting(None, open)]),
                "True Current 1 open: #12; changes of branch 'b1', #12 wait: deny window `night` of automation shop/app; no end is \
                 known",
            ),
            (
                progress(vec![waiting(None, branch(1))]),
                "True Current no pull request is open; a change of branch 'b1' waits: deny window `night` of automation shop/app; \
                 no end is known",
            ),
            (
                progress(vec![outcome(12, Kept), outcome(14, Opened), refused.clone()]),
                "True Current 2 open: #12, #14; refused by a person: #9",
            ),
            (progress(vec![refused]), "True Current refused by a person: #9"),
            (
                progress(vec![outcome(12, Kept), edited]),
                "False EditedByOthers pull request #9 has changes of others and is left alone; 2 open: #9, #12",
            ),
            (
                progress(vec![unmerged]),
                "False AutoMergeRefused pull request #12 is not merged: no rule; 1 open: #12",
            ),
            (
                PullRequestProgress {
                    failure: Some(limited.clone()),
                    retry: Some(retry),
                    has_listing: true,
                    ..progress(vec![])
                },
                "False RateLimited h limits requests: the next one is sent in 9 s; 0 open; the next retry is at \
                 2026-01-01T00:00:05Z",
            ),
            // It was told as `0 open` before the forge had ever answered.
            (
                PullRequestProgress { failure: Some(limited), retry: Some(retry), ..progress(vec![]) },
                "False RateLimited h limits requests: the next one is sent in 9 s; the next retry is at 2026-01-01T00:00:05Z",
            ),
        ] {
            let (status, reason, message) = progress.condition();
            assert_eq!(format!("{status} {reason} {message}"), expected);
        }
    }

    /// Images behind a failure at one branch, and refusals beside an open pull request, were called written.
    #[test]
    fn images_that_the_forge_or_people_keep_out_are_named() {
        let failed = PullRequestOutcome {
            number: None,
            reason: Some(OutcomeReason::ForgeFailed(ForgeError::Unavailable {
                host: "h".to_owned(),
                detail: "no".to_owned(),
            })),
            ..outcome(1, Left)
        };
        let refusal = Some(OutcomeReason::Decided(PullRequestReason::ClosedByPerson));
        let refused = PullRequestOutcome { reason: refusal.clone(), ..outcome(2, Left) };
        let older =
            PullRequestOutcome { reason: refusal, refused_by: Some(9), is_open: true, ..outcome(1, Left) };
        let awaiting = |number: u64| BranchOutcome {
            branch: format!("b{number}").parse().unwrap(),
            action: BranchAction::Left(LeftReason::AwaitingForge),
            tip: None,
            commit: None,
            message: String::new(),
            dropped: Vec::new(),
        };
        for (branches, outcomes, expected) in [
            (&[1, 2][..], vec![failed, outcome(2, Kept)], "; not delivered: p1; 1 open: #2"),
            (&[1, 2], vec![older.clone(), refused], "#2, #9; not delivered: p1 (#9), p2 (#2)"),
            // It is clear of which branch the refusal is.
            (&[1], vec![older], "1 open: #1; refused by a person: #9"),
            (&[1], vec![outcome(1, Kept)], "1 open: #1"),
        ] {
            let policies = |number: &u64| {
                let names: BTreeSet<String> = [format!("p{number}")].into();
                let policies = BranchPolicies { all: names.clone(), changed: names };
                (format!("b{number}").parse().unwrap(), policies)
            };
            let delivered = Delivered {
                base: "main".to_owned(),
                branches: branches.iter().copied().map(awaiting).collect(),
                invalid: Vec::new(),
                without_branch: BTreeSet::new(),
                policies: branches.iter().map(policies).collect(),
                forge: ForgeProgress::Known(Box::new(progress(outcomes))),
                shown: BTreeMap::new(),
            };
            let (_, _, message) = delivered.condition(&BTreeSet::new()).unwrap();
            assert!(message.ends_with(expected), "{message}");
        }
    }

    #[test]
    fn each_action_is_announced_once() {
        let keys = |progress: &PullRequestProgress, before: &str| -> Vec<String> {
            let events = progress.events(&open_in(before)).into_iter();
            events.map(|event| event.key.trim_end().to_owned()).collect()
        };
        let open = progress(vec![outcome(12, Kept), outcome(14, Kept)]);
        assert_eq!(keys(&open, ""), ["PullRequestOpened 12", "PullRequestOpened 14"]);
        assert_eq!(keys(&open, "1 open: #12; refused by a person: #14"), ["PullRequestOpened 14"]);
        assert!(keys(&open, &open.condition().2).is_empty());
        // The action of this process, and the list, are the same event.
        let opened = outcome(15, Opened);
        let opened = PullRequestOutcome { is_opened: true, ..opened };
        let new = PullRequestProgress { unreported: events_of(&opened), ..progress(vec![opened]) };
        assert_eq!(keys(&new, "no pull request is open"), ["PullRequestOpened 15"]);
        let ended = |number, is_merged| EndedPullRequest { number, url: String::new(), is_merged };
        let ended =
            PullRequestProgress { ended: vec![ended(12, true), ended(14, false)], ..progress(vec![]) };
        let expected = ["PullRequestMerged 12", "PullRequestClosed 14"];
        assert_eq!(keys(&ended, "2 open: #12, #14"), expected);
        assert!(keys(&ended, "no pull request is open").is_empty());
    }

    /// A restart announced nothing of what was done while the condition named a problem.
    #[test]
    fn what_was_open_stays_listed_while_the_forge_fails_and_each_end_is_announced_once() {
        let unavailable = || ForgeError::Unavailable { host: "h".to_owned(), detail: "no answer".to_owned() };
        let after = |before: Option<&PullRequestProgress>, outcomes, failure, known: &[u64]| {
            let known = known.iter().copied().collect();
            PullRequestProgress::after(before, (outcomes, failure), &known, &Snapshot::default())
        };
        // The first round of a process fails, and the message of the condition is all that it knows.
        let failed = after(None, vec![], Some(unavailable()), &[12, 14]);
        let message = failed.condition().2;
        assert!(message.ends_with("; 2 open: #12, #14"), "{message}");
        let again = after(Some(&failed), vec![outcome(12, Kept)], Some(unavailable()), &[]);
        assert!(again.condition().2.ends_with("; 2 open: #12, #14"));
        // A round without a failure has seen them all.
        let done = after(Some(&again), vec![outcome(12, Kept), outcome(15, Kept)], None, &[12, 14]);
        assert_eq!(done.condition().2, "2 open: #12, #15");
        let keys: Vec<String> =
            done.events(&open_beside_problem(&message)).into_iter().map(|event| event.key).collect();
        assert_eq!(keys, ["PullRequestOpened 15 "]);
        // The failure of one branch leaves the number of its pull request unknown.
        let one = PullRequestOutcome {
            number: None,
            reason: Some(OutcomeReason::ForgeFailed(unavailable())),
            ..outcome(12, Left)
        };
        let failed = after(Some(&done), vec![one, outcome(15, Kept)], None, &[]);
        assert!(failed.condition().2.ends_with("; 2 open: #12, #15"), "{}", failed.condition().2);
    }
}
