//! The condition `RevertHeld` and its event.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;
use tagboat_api::settings::OnRevert;
use tagboat_api::{Condition, Reason};

use super::record::{Between, HeldPolicy, HeldRecord};
use crate::git::CommitId;
use crate::objects::{Event, EventType};
use crate::printable::printable;
use crate::reconcile::automation::report::Report;
use crate::reconcile::conditions::ConditionStatus::{False, True};
use crate::reconcile::conditions::{self, ConditionType, ConditionsBuilder};
use crate::reconcile::run::ReconcileRun;

/// The maximum length of a message in bytes.
const MAX_MESSAGE: usize = 32 * 1024;

/// The room in a message for the words in front of a list, in bytes.
const ROOM_FOR_WORDS: usize = 100;

/// The message of the condition while nothing is held.
const NOTHING_HELD: &str = "no image is held";

/// The result of a run for values that others took back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RevertOutcome {
    /// The run ended before it was known, or read nothing.
    Unknown,
    /// They are overwritten.
    Overwrite,
    /// They are held, if there are some.
    Known(Holds),
}

/// The values that a run holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holds {
    /// The setting.
    pub mode: OnRevert,
    /// The markers.
    pub markers: Vec<HeldMarker>,
    /// Held policies that have no image at present.
    pub without_image: BTreeMap<String, HeldPolicy>,
    /// Policies that an earlier run held, and that this one neither holds nor writes.
    pub kept: BTreeMap<String, HeldPolicy>,
    /// True if an earlier run held too many policies to be named.
    pub keeps_all: bool,
    /// The commit of the last run, if its files cannot be compared.
    pub unavailable: Option<UnavailableCommit>,
}

/// The commit of a run whose files cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnavailableCommit {
    /// The commit, if it is known.
    pub commit: Option<CommitId>,
    /// The reason.
    pub reason: String,
}

/// A marker whose value is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldMarker {
    /// The name of the policy.
    pub policy: String,
    /// The image that is not written.
    pub image: String,
    /// The value in the file.
    pub value: String,
    /// The file, relative to `update.path`.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The change, if it is known.
    pub between: Option<Between>,
}

impl RevertOutcome {
    /// Returns the number of held policies.
    ///
    /// There is none if reverts are overwritten, or if there are too many to be named.
    /// A run that read nothing leaves what the conditions before it say.
    pub fn held_policies(&self, before: &[Condition]) -> Option<usize> {
        match self {
            Self::Overwrite => None,
            Self::Known(holds) => Some(holds.all().len()),
            Self::Unknown => {
                conditions::find(before, ConditionType::RevertHeld)?;
                match HeldRecord::of_conditions(before) {
                    None => Some(0),
                    Some(record) => record.policies.map(|policies| policies.len()),
                }
            }
        }
    }
}

impl Holds {
    pub(super) fn new(mode: OnRevert, without_image: BTreeMap<String, HeldPolicy>) -> Self {
        let kept = BTreeMap::new();
        Self { mode, markers: Vec::new(), without_image, kept, keeps_all: false, unavailable: None }
    }

    /// Adds the policies that an earlier run held.
    pub(super) fn with_kept(&self, before: &HeldRecord) -> Self {
        let (mut kept, keeps_all) = (before.named().clone(), before.policies.is_none());
        let mut without_image = self.without_image.clone();
        if keeps_all {
            without_image.extend(std::mem::take(&mut kept));
        }
        Self { kept, keeps_all, without_image, ..self.clone() }
    }

    /// Returns the held policies; none if there are too many for a message.
    pub(super) fn policies(&self) -> Option<BTreeMap<String, HeldPolicy>> {
        let all = self.all();
        let record = HeldRecord::of(self.mode, all);
        let is_short = record.list(false).len() + self.end().len() <= MAX_MESSAGE;
        record.policies.filter(|_| is_short && !self.keeps_all)
    }

    /// Returns true if anything is held.
    pub fn is_held(&self) -> bool {
        self.keeps_all || !self.all().is_empty()
    }

    fn all(&self) -> BTreeMap<String, HeldPolicy> {
        let mut policies = self.without_image.clone();
        for HeldMarker { policy, image, between, .. } in &self.markers {
            let held = HeldPolicy { image: image.clone(), between: between.clone() };
            policies.entry(policy.clone()).or_insert(held);
        }
        for (policy, held) in &self.kept {
            policies.entry(policy.clone()).or_insert_with(|| held.clone());
        }
        policies
    }

    /// Returns the message of the condition.
    ///
    /// If it is too long, the places are left out first, then the commits, then the names.
    pub fn message(&self) -> String {
        if !self.is_held() {
            return NOTHING_HELD.to_owned();
        }
        let named = HeldRecord::of(self.mode, self.all());
        let (places, end) = (self.places(), self.end());
        let texts = [
            format!("{}{places}{end}", named.list(true)),
            format!("{}{end}", named.list(true)),
            format!("{}{end}", named.list(false)),
        ];
        let is_short = |text: &String| text.len() <= MAX_MESSAGE && !self.keeps_all;
        texts.into_iter().find(is_short).unwrap_or_else(|| self.message_of_any(&end))
    }

    /// Returns the message if there are too many names.
    ///
    /// It names policies without an image, as far as there is room: nothing else has the image that is not written.
    fn message_of_any(&self, end: &str) -> String {
        let begin = HeldRecord::any(self.mode, BTreeMap::new()).list(false);
        let mut room = MAX_MESSAGE.saturating_sub(begin.len() + end.len() + ROOM_FOR_WORDS);
        let mut without_image = self.without_image.clone();
        without_image.retain(|name, held| {
            let length = name.len() + held.image.len() + ", of ".len() + 1;
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        });
        format!("{}{end}", HeldRecord::any(self.mode, without_image).list(false))
    }

    fn places(&self) -> String {
        let mut text = String::new();
        for HeldMarker { policy, value, file, line, .. } in &self.markers {
            let _ = write!(text, "; {}:{line} has {:?} of {policy}", printable(file), printable(value));
            if text.len() > MAX_MESSAGE {
                return text;
            }
        }
        for policy in self.without_image.keys() {
            let _ = write!(text, "; {policy} has no image at present");
        }
        text
    }

    fn end(&self) -> String {
        let end = match self.mode {
            OnRevert::Pause => "a pause ends when the wanted value is in the file, or the annotation changes",
            OnRevert::Overwrite | OnRevert::Hold => {
                "a hold ends when the policy selects another image, or the wanted value is in the file"
            }
        };
        let Some(UnavailableCommit { commit, reason }) = &self.unavailable else { return format!("; {end}") };
        let commit = match commit {
            Some(commit) => format!("commit {commit}"),
            None => "the commit".to_owned(),
        };
        format!(
            "; {commit} of the last run cannot be compared, so that values that differ count as taken back: {}; {end}",
            printable(reason)
        )
    }
}

impl Report {
    /// Adds the values that a run holds.
    #[must_use]
    pub fn with_reverts(mut self, outcome: &RevertOutcome, run: &ReconcileRun, now: Timestamp) -> Self {
        let mut builder = ConditionsBuilder::new(&self.status.conditions, run.generation);
        let before = conditions::find(&self.status.conditions, ConditionType::RevertHeld);
        match outcome {
            RevertOutcome::Unknown => return self,
            RevertOutcome::Overwrite => builder.remove(ConditionType::RevertHeld),
            RevertOutcome::Known(holds) => {
                let (is_held, message) = (holds.is_held(), holds.message());
                let images = |record: &HeldRecord| {
                    let policies = record.policies.iter().flatten();
                    let images: BTreeMap<_, _> =
                        policies.map(|(policy, held)| (policy.clone(), held.image.clone())).collect();
                    (record.policies.is_some(), images)
                };
                let of = |message: &str| HeldRecord::from_message(message).as_ref().map(images);
                let (status, reason) =
                    if is_held { (True, Reason::TakenBack) } else { (False, Reason::NothingHeld) };
                if before.and_then(|before| of(&before.message)) != of(&message) {
                    let (reason, message) = (reason.to_string(), message.clone());
                    self.revert_event = Some(Event { type_: EventType::Normal, reason, message });
                }
                builder.set(ConditionType::RevertHeld, status, reason, &message);
            }
        }
        self.status.conditions = builder.build(&self.status.conditions, now);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(count: usize, between: bool) -> Holds {
        let commit = |digit: &str| digit.repeat(40).parse().unwrap();
        let between =
            between.then(|| Between { from: commit("1"), to: commit("2"), author: Some("Ann".to_owned()) });
        let marker = |number: usize| HeldMarker {
            policy: format!("p{number:04}"),
            image: format!("ghcr.io/x/p{number}:2"),
            value: "1".to_owned(),
            file: "apps/web.yaml".to_owned(),
            line: 3,
            between: between.clone(),
        };
        Holds { markers: (0..count).map(marker).collect(), ..Holds::new(OnRevert::Hold, BTreeMap::new()) }
    }

    #[test]
    fn a_message_names_all_that_is_held_and_how_it_ends() {
        let one = holds(1, true).message();
        let (first, second) = ("1".repeat(40), "2".repeat(40));
        let expected = format!(
            "tagboat.dev/on-revert is hold and keeps out ghcr.io/x/p0:2 of p0000, changed between {first} and {second} by \"Ann\"; \
             apps/web.yaml:3 has \"1\" of p0000; a hold ends when the policy selects another image, or the wanted value is in the \
             file"
        );
        assert_eq!(one, expected);
        assert_eq!(holds(0, false).message(), NOTHING_HELD);
        let mut pause = holds(1, false);
        pause.mode = OnRevert::Pause;
        let third = "3".repeat(40);
        for (commit, named) in [
            (Some(third.parse().unwrap()), format!("; commit {third} of")),
            (None, "; the commit of".to_owned()),
        ] {
            pause.unavailable = Some(UnavailableCommit { commit, reason: "not our ref".to_owned() });
            let message = pause.message();
            let expected = format!(
                "{named} the last run cannot be compared, so that values that differ count as taken back: not our ref; "
            );
            assert!(message.contains(&expected), "{message}");
            assert!(message.ends_with("or the annotation changes"), "{message}");
        }
    }

    #[test]
    fn a_run_that_waits_keeps_the_names_of_the_last_one() {
        let record = |holds: &Holds| HeldRecord::from_message(&holds.message());
        let before = record(&holds(2, true)).unwrap();
        let kept = holds(0, false).with_kept(&before);
        assert_eq!(record(&kept), Some(before));
        let any = HeldRecord::any(OnRevert::Hold, BTreeMap::new());
        for count in [0, 2] {
            let kept = holds(count, true).with_kept(&any);
            assert_eq!((record(&kept), kept.policies()), (Some(any.clone()), None));
        }
    }

    #[test]
    fn a_long_message_loses_places_then_commits_then_names() {
        for (count, has_places, has_commits, has_names) in [
            (100, true, true, true),
            (200, false, true, true),
            (600, false, false, true),
            (2_000, false, false, false),
        ] {
            let holds = holds(count, true);
            let message = holds.message();
            assert!(message.len() <= MAX_MESSAGE);
            assert_eq!(message.contains("apps/web.yaml"), has_places, "{count}");
            assert_eq!(message.contains("changed between"), has_commits, "{count}");
            let record = HeldRecord::from_message(&message).unwrap();
            assert_eq!(record.policies.as_ref().map(BTreeMap::len), has_names.then_some(count), "{count}");
            assert_eq!(holds.policies().is_some(), has_names, "{count}");
        }
    }

    /// Their holds were lost, because only the message has their images.
    #[test]
    fn of_too_many_policies_those_without_an_image_are_named() {
        let held = |number: usize| HeldPolicy { image: format!("ghcr.io/x/q{number}:2"), between: None };
        let without_image =
            |count| (0..count).map(|number| (format!("q{number:04}"), held(number))).collect();
        for (count, has_all) in [(1, true), (500, true), (2_000, false)] {
            let holds = Holds { without_image: without_image(count), ..holds(2_000, true) };
            let message = holds.message();
            let record = HeldRecord::from_message(&message).unwrap();
            assert!(message.len() <= MAX_MESSAGE && record.policies.is_none());
            assert_eq!(record.without_image.len() == count, has_all, "{}", record.without_image.len());
            assert!(record.without_image.len() >= count.min(800), "{}", record.without_image.len());
            // They are kept while something waits, and named by all later runs.
            let waiting = self::holds(2_000, true).with_kept(&record).message();
            assert_eq!(HeldRecord::from_message(&waiting), Some(record));
        }
    }
}
