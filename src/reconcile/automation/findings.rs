//! The problems that a reconcile found in the files.
//!
//! They result in a condition beside Flux's, and in an event when it changes. The condition's message ends in
//! a short name of the set of problems, so that a later reconcile, perhaps in another process, can tell
//! whether the set has changed since. A line that only moved is the same problem.

use std::borrow::Cow;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tagboat_api::{Condition, Reason};

use super::report::Report;
use super::request::UnusableImage;
use crate::objects::{Event, EventType};
use crate::printable::printable;
use crate::reconcile::conditions::ConditionStatus::{False, True};
use crate::reconcile::conditions::ConditionType::{CommitsSigned, MarkersResolved};
use crate::reconcile::conditions::{self, ConditionsBuilder};
use crate::reconcile::run::ReconcileRun;
use crate::update::{MarkerOutcome, UpdatePlan};

/// The maximum number of problems that a message names.
const NAMED: usize = 3;

/// The longest words about one problem, in bytes: an event takes a kilobyte.
const LONGEST: usize = 280;

/// The maximum number of problems that are kept for the log.
///
/// They take a tenth of a megabyte, independently of the size of a plan.
const LOGGED: usize = 500;

/// The message where there is no problem.
const ALL_GOOD: &str = "every marker that concerns the automation is resolved";

/// The text before the name of a set.
const SET: &str = " (set ";

/// The problems of a look at the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The number of problems.
    count: usize,
    /// The first of them, a line each.
    lines: Vec<String>,
    /// The name of the set, where there is a problem.
    set: Option<String>,
    /// The signing of the commit by the forge.
    pub signing: SigningResult,
}

/// The signing of an automation's commits by the forge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SigningResult {
    /// The forge does not sign them.
    #[default]
    NotWanted,
    /// There was no commit, or it failed.
    Unknown,
    /// The forge signed the last one.
    Signed,
    /// Our own was pushed, or would be, with the reason.
    Unsigned(String),
}

/// An ineffective marker, an unreadable file with markers, or an unusable image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding<'p> {
    file: &'p str,
    line: usize,
    message: Cow<'p, str>,
}

/// A change of the findings: of the set of problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingsChange {
    /// The event to announce.
    pub event: Event,
    /// The key that tells this change from all others of the object.
    pub key: String,
}

impl Findings {
    /// Creates the findings from a plan and the images that it could not use.
    pub fn of(plan: &UpdatePlan, unusable: &[UnusableImage]) -> Self {
        let images =
            unusable.iter().map(|image| Finding { file: "", line: 0, message: image.to_string().into() });
        // Held markers have a condition of their own.
        let warnings = plan.warnings().filter(|marker| marker.outcome != MarkerOutcome::Held);
        let markers = warnings.filter_map(|marker| {
            let message = format!("{}: {}", marker.setter, marker.outcome.warning()?);
            Some(Finding { file: &marker.file, line: marker.line, message: message.into() })
        });
        let files = plan.unparsable.iter().map(|unparsable| Finding {
            file: &unparsable.file,
            line: unparsable.error.line,
            message: unparsable.error.message.as_str().into(),
        });
        let mut problems: Vec<Finding<'_>> = images.chain(markers).chain(files).collect();
        problems.sort();
        let lines = problems.iter().take(LOGGED).map(Finding::line).collect();
        let signing = SigningResult::default();
        Self { count: problems.len(), lines, set: name_of_set(&problems), signing }
    }

    /// The number of problems.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The first problems, a line each.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The number of problems, the first of them, and the name of the set.
    fn message(&self) -> String {
        let Some(set) = &self.set else { return ALL_GOOD.to_owned() };
        let named = &self.lines[..self.lines.len().min(NAMED)];
        let rest = match self.count().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let problems = if self.count() == 1 { "problem" } else { "problems" };
        format!("{} {problems}: {}{rest}{SET}{set})", self.count(), named.join("; "))
    }
}

/// Returns the name of a set of problems, if there are any.
///
/// The lines in which they stand make no difference.
fn name_of_set(problems: &[Finding<'_>]) -> Option<String> {
    if problems.is_empty() {
        return None;
    }
    let mut parts: Vec<(&str, &str)> =
        problems.iter().map(|problem| (problem.file, &*problem.message)).collect();
    parts.sort_unstable();
    let mut hash = Sha256::new();
    for part in parts.iter().flat_map(|(file, message)| [file, message]) {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    Some(format!("{:.8x}", hash.finalize()))
}

impl Finding<'_> {
    fn line(&self) -> String {
        let text = match self.file {
            "" => self.message.to_string(),
            file => format!("{file}:{}: {}", self.line, self.message),
        };
        let mut text = printable(&text).into_owned();
        if text.len() > LONGEST {
            text.truncate(text.floor_char_boundary(LONGEST));
            text.push('…');
        }
        text
    }
}

impl FindingsChange {
    /// The same as a warning, if it is about problems.
    pub fn as_warning(mut self) -> Self {
        if self.event.reason == Reason::MarkersUnresolved.to_string() {
            self.event.type_ = EventType::Warning;
        }
        self
    }
}

impl Report {
    /// Adds the findings of a look at the files.
    ///
    /// Without findings, those of an earlier look stay as they are.
    pub fn with_findings(mut self, findings: Option<&Findings>, run: &ReconcileRun, now: Timestamp) -> Self {
        let Some(findings) = findings else { return self };
        let stored = &self.status.conditions;
        let before = conditions::find(stored, MarkersResolved);
        let (status, reason) = match findings.count() {
            0 => (True, Reason::MarkersResolved),
            _ => (False, Reason::MarkersUnresolved),
        };
        let message = findings.message();
        let (set, set_before) = (findings.set.as_deref(), before.and_then(set_of));
        if set != set_before {
            let since = before.map(|before| before.last_transition_time.0.to_string()).unwrap_or_default();
            let key = format!("markers {since} {}", set.unwrap_or_default());
            let (reason, message) = (reason.to_string(), message.clone());
            self.findings_change =
                Some(FindingsChange { event: Event { type_: EventType::Normal, reason, message }, key });
        }
        let mut builder = ConditionsBuilder::new(stored, run.generation);
        builder.set(MarkersResolved, status, reason, &message);
        match &findings.signing {
            SigningResult::NotWanted => builder.remove(CommitsSigned),
            SigningResult::Unknown => {}
            SigningResult::Signed => {
                builder.set(CommitsSigned, True, Reason::SignedByForge, "the forge signed the last commit");
            }
            SigningResult::Unsigned(reason) => {
                let message = format!("our own commits are pushed instead of commits of the forge: {reason}");
                builder.set(CommitsSigned, False, Reason::NotSignedByForge, &message);
            }
        }
        self.status.conditions = builder.build(stored, now);
        self
    }
}

/// The name of the set that a condition speaks of.
fn set_of(condition: &Condition) -> Option<&str> {
    let (_, set) = condition.message.strip_suffix(')')?.rsplit_once(SET)?;
    (condition.status == False.to_string()).then_some(set)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::git::outcome::Outcome;
    use crate::objects::ObjectName;
    use crate::reconcile::automation::conclusion::{Conclusion, RunFailure, Stage};
    use crate::reconcile::automation::event::UP_TO_DATE;
    use crate::reconcile::automation::report::report;
    use crate::reconcile::automation::report::tests::status;
    use crate::reconcile::conditions::ConditionType::Ready;
    use crate::reconcile::run::tests::{run, short};
    use crate::update::MarkerReport;

    fn now() -> Timestamp {
        "2026-01-01T00:00:05Z".parse().unwrap()
    }

    fn marker(text: &str) -> MarkerReport {
        let (place, outcome) = text.split_once(' ').unwrap();
        let (file, line) = place.split_once(':').unwrap();
        MarkerReport {
            file: file.to_owned(),
            line: line.parse().unwrap(),
            object: Default::default(),
            setter: "n:p:tag".to_owned(),
            policy: ObjectName { namespace: "n".to_owned(), name: "p".to_owned() },
            value: None,
            outcome: match outcome {
                "unknown" => MarkerOutcome::UnknownPolicy,
                "empty" => MarkerOutcome::PolicyWithoutImage,
                "stray" => MarkerOutcome::NotOnScalar,
                "elsewhere" => MarkerOutcome::OtherNamespace,
                _ => MarkerOutcome::Current,
            },
        }
    }

    fn findings(markers: &[&str]) -> Findings {
        let markers = markers.iter().map(|text| marker(text)).collect();
        Findings::of(&UpdatePlan { markers, ..UpdatePlan::default() }, &[])
    }

    #[test]
    fn warnings_are_counted_and_the_first_three_are_named() {
        assert_eq!(findings(&["a:1 current", "a:2 elsewhere"]).message(), ALL_GOOD);
        let one = findings(&["a:1 current", "a:2 unknown"]).message();
        assert!(one.starts_with("1 problem: a:2: n:p:tag: there is no such ImagePolicy (set "), "{one}");
        let four = findings(&["d:1 stray", "c:10 empty", "c:9 unknown", "b:1 unknown"]).message();
        let places: Vec<&str> = four.split("; ").map(|part| part.split(": n:p").next().unwrap()).collect();
        assert_eq!(places[..3], ["4 problems: b:1", "c:9", "c:10"]);
        assert!(places[3].starts_with("and 1 more (set ") && places.len() == 4, "{four}");
    }

    #[test]
    fn a_message_is_bounded_and_on_one_line() {
        let long = format!("{}\n{}:1 unknown", "é".repeat(500), "x".repeat(2000));
        let message = findings(&[&long, &long, &long, &long]).message();
        assert!(message.len() < 1024 && !message.contains('\n'), "{} {message}", message.len());
        let short = findings(&["a\nb:1 unknown"]).message();
        assert!(short.starts_with("1 problem: a\\nb:1: "), "{short}");
    }

    #[test]
    fn the_set_of_findings_ignores_line_numbers() {
        let base = findings(&["a:1 unknown", "b:1 unknown", "c:1 stray", "d:1 stray"]).set;
        for (markers, is_same) in [
            (&["d:4 stray", "a:9 unknown", "b:8 unknown", "c:7 stray"][..], true),
            (&["a:1 unknown", "b:1 unknown", "c:1 stray", "e:1 stray"], false),
            (&["a:1 unknown", "b:1 unknown", "c:1 stray", "d:1 empty"], false),
            (&["a:1 unknown", "b:1 unknown", "c:1 stray", "d:1 stray", "d:2 stray"], false),
            (&["a:1 unknown", "b:1 unknown", "c:1 stray"], false),
            (&[], false),
        ] {
            assert_eq!(findings(markers).set == base, is_same, "{markers:?}");
        }
    }

    #[test]
    fn the_condition_stays_until_the_files_are_searched_and_each_change_is_announced_once() {
        let done = Conclusion::Success { outcome: Outcome::NothingNew, policies: [].into() };
        let stopped = |stage| {
            Conclusion::Failure(RunFailure {
                stage,
                reason: Reason::GitOperationFailed,
                message: "x".to_owned(),
                hint: None,
                pushed: None,
            })
        };
        let mut before = status(&[(Ready, True, Reason::Succeeded, UP_TO_DATE)]);
        let mut keys = Vec::new();
        for (markers, conclusion, condition, findings_change) in [
            (None, &done, "", None),
            (Some(&[][..]), &done, "True MarkersResolved every", None),
            (Some(&["a:1 unknown"]), &done, "False MarkersUnresolved 1 problem: a:1", Some("1 problem: a:1")),
            (Some(&["a:1 unknown"]), &done, "False MarkersUnresolved 1 problem: a:1", None),
            (None, &stopped(Stage::Checkout), "False MarkersUnresolved 1 problem: a:1", None),
            (Some(&["a:2 unknown"]), &done, "False MarkersUnresolved 1 problem: a:2", None),
            (None, &done, "False MarkersUnresolved 1 problem: a:2", None),
            // A run that fails behind its look at the files has looked.
            (
                Some(&["b:2 unknown"]),
                &stopped(Stage::Push),
                "False MarkersUnresolved 1 problem: b:2",
                Some("1 problem: b:2"),
            ),
            (Some(&[]), &done, "True MarkersResolved every", Some("every")),
            (Some(&["b:2 unknown"]), &done, "False MarkersUnresolved 1 problem: b:2", Some("1 problem: b:2")),
        ] {
            let looked = markers.map(findings);
            let now = now() + jiff::SignedDuration::from_secs(keys.len() as i64);
            let report = report(&run(1), Duration::ZERO, &before, conclusion, now).with_findings(
                looked.as_ref(),
                &run(1),
                now,
            );
            let found = short(&report.status.conditions);
            let found = found.iter().find_map(|one| one.strip_prefix("MarkersResolved="));
            assert!(found.unwrap_or_default().starts_with(condition), "{markers:?} {found:?}");
            assert_eq!(found.is_none(), condition.is_empty());
            assert_eq!(report.findings_change.is_some(), findings_change.is_some(), "{markers:?}");
            if let Some(reported) = report.findings_change {
                assert!(reported.event.message.starts_with(findings_change.unwrap()), "{reported:?}");
                assert_eq!(reported.event.type_, EventType::Normal);
                let is_bad = !reported.event.message.starts_with("every");
                keys.push(reported.key.clone());
                assert_eq!(reported.as_warning().event.type_ == EventType::Warning, is_bad);
            }
            assert!(!report.event.message.contains("problem"));
            before = report.status;
        }
        assert_eq!(keys.len(), 4);
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 4, "{keys:?}");
    }

    #[test]
    fn the_condition_of_signatures_stays_until_the_next_commit_or_another_setting() {
        let done = Conclusion::Success { outcome: Outcome::NothingNew, policies: [].into() };
        let mut before = status(&[(Ready, True, Reason::Succeeded, UP_TO_DATE)]);
        let unsigned = || SigningResult::Unsigned("why".to_owned());
        for (signing, condition) in [
            (SigningResult::NotWanted, None),
            (SigningResult::Unknown, None),
            (SigningResult::Signed, Some("True SignedByForge the forge signed")),
            (SigningResult::Unknown, Some("True SignedByForge the forge signed")),
            (
                unsigned(),
                Some(
                    "False NotSignedByForge our own commits are pushed instead of commits of the forge: why",
                ),
            ),
            (SigningResult::Unknown, Some("False NotSignedByForge our own")),
            (SigningResult::NotWanted, None),
        ] {
            let findings = Findings { signing: signing.clone(), ..findings(&[]) };
            let report = report(&run(1), Duration::ZERO, &before, &done, now());
            before = report.with_findings(Some(&findings), &run(1), now()).status;
            let found = short(&before.conditions);
            let found = found.iter().find_map(|one| one.strip_prefix("CommitsSigned="));
            assert_eq!(found.is_some(), condition.is_some(), "{signing:?}");
            assert!(
                found.unwrap_or_default().starts_with(condition.unwrap_or_default()),
                "{signing:?} {found:?}"
            );
        }
    }

    #[test]
    fn conditions_of_other_controllers_are_kept() {
        let done = Conclusion::Success { outcome: Outcome::NothingNew, policies: [].into() };
        let mut before = status(&[(Ready, True, Reason::Succeeded, UP_TO_DATE)]);
        for (type_, generation) in [("Audited", 1), ("Newer", 9)] {
            let theirs = Condition {
                type_: type_.to_owned(),
                observed_generation: Some(generation),
                ..before.conditions[0].clone()
            };
            before.conditions.push(theirs);
        }
        let report = report(&run(1), Duration::ZERO, &before, &done, now()).with_findings(
            Some(&findings(&[])),
            &run(1),
            now(),
        );
        let types: Vec<&str> =
            report.status.conditions.iter().map(|condition| condition.type_.as_str()).collect();
        // As Flux would sort them.
        assert_eq!(types, ["Ready", "Newer", "Audited", "MarkersResolved"]);
    }
}
