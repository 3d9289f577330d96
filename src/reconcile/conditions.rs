//! The conditions of Flux's kinds, and their changes (`docs/flux-behaviour.md`, Conditions).

use std::cmp::Reverse;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::{Condition, Reason};

use crate::printable::printable_lines;

/// The maximum length of a message that the API server accepts, in bytes.
const LONGEST_MESSAGE: usize = 32_768;

/// The end of a message that was cut.
const CUT: &str = "...";

/// The conditions that we own; all others are kept as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionType {
    /// Only a change of an object helps.
    Stalled,
    /// A run is in progress, or failed and is retried.
    Reconciling,
    /// The object is in its desired state.
    Ready,
    /// No marker in the files is without effect. Flux does not know this condition.
    MarkersResolved,
    /// The branches of an automation are as they should be.
    ///
    /// Flux does not know this condition.
    Delivery,
    /// Wanted images may not be written yet. Flux does not know this condition.
    UpdatesWaiting,
    /// Images are not written, because others took them back. Flux does not know this condition.
    RevertHeld,
    /// The forge signs the commits. Flux does not know this condition.
    CommitsSigned,
    /// A policy holds a downgrade. Flux does not know this condition.
    RegressionHeld,
    /// The image of a policy may be outdated, because its registry does not respond.
    ///
    /// Flux does not know this condition.
    Stale,
}

impl ConditionType {
    const ALL: [Self; 10] = [
        Self::Stalled,
        Self::Reconciling,
        Self::Ready,
        Self::MarkersResolved,
        Self::Delivery,
        Self::UpdatesWaiting,
        Self::RevertHeld,
        Self::CommitsSigned,
        Self::RegressionHeld,
        Self::Stale,
    ];

    /// The first conditions of a status, in this order.
    ///
    /// Flux puts conditions that it does not know behind them.
    const FIRST: [Self; 3] = [Self::Stalled, Self::Reconciling, Self::Ready];

    /// Returns the position of a condition in the list.
    fn rank(name: &str) -> usize {
        Self::FIRST.iter().position(|own| own.to_string() == name).unwrap_or(Self::FIRST.len())
    }
}

/// Prints the name of the variant, which is the type's name as well.
impl fmt::Display for ConditionType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The condition may or may not hold.
    Unknown,
}

/// Prints the name of the variant, as it stands in a condition.
impl fmt::Display for ConditionStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// Returns the condition of a type, if it is in the list.
pub fn find(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    let name = type_.to_string();
    conditions.iter().find(|condition| condition.type_ == name)
}

/// Returns whether a condition is in the list with this status.
pub fn is(conditions: &[Condition], type_: ConditionType, status: ConditionStatus) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == status.to_string())
}

/// Returns whether an object is in its desired state and no run is in progress.
///
/// Ready is true, and neither Reconciling nor Stalled is.
pub fn is_ready(conditions: &[Condition]) -> bool {
    use ConditionStatus::True;
    is(conditions, ConditionType::Ready, True)
        && !is(conditions, ConditionType::Reconciling, True)
        && !is(conditions, ConditionType::Stalled, True)
}

/// Returns whether only a change of an object helps.
pub fn is_stalled(conditions: &[Condition]) -> bool {
    is(conditions, ConditionType::Stalled, ConditionStatus::True)
}

/// Returns whether the last run reached a lasting end: the object is Ready or Stalled.
pub fn is_settled(conditions: &[Condition]) -> bool {
    is_ready(conditions) || is_stalled(conditions)
}

/// Returns whether a condition is ours to set.
pub fn is_own(condition: &Condition) -> bool {
    ConditionType::ALL.iter().any(|own| own.to_string() == condition.type_)
}

/// Builds the conditions of a status.
///
/// The transition times are set at the end, by comparison with the stored conditions: a condition that is removed and
/// set again has not changed.
#[derive(Clone, Debug)]
pub struct ConditionsBuilder {
    conditions: Vec<Condition>,
    generation: i64,
}

impl ConditionsBuilder {
    /// Starts from a list, for an object of this generation.
    pub fn new(conditions: &[Condition], generation: i64) -> Self {
        Self { conditions: conditions.to_vec(), generation }
    }

    /// Returns the conditions, in no order.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Returns whether a condition is in the list with this status.
    pub fn is(&self, type_: ConditionType, status: ConditionStatus) -> bool {
        is(&self.conditions, type_, status)
    }

    /// Sets a condition. Its message quotes files and servers, so control characters are escaped.
    pub fn set(&mut self, type_: ConditionType, status: ConditionStatus, reason: Reason, message: &str) {
        self.remove(type_);
        self.conditions.push(Condition {
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            message: cut(&printable_lines(message)),
            observed_generation: Some(self.generation),
            reason: reason.to_string(),
            status: status.to_string(),
            type_: type_.to_string(),
        });
    }

    /// Removes a condition.
    pub fn remove(&mut self, type_: ConditionType) {
        let name = type_.to_string();
        self.conditions.retain(|condition| condition.type_ != name);
    }

    /// Returns the conditions as they are written over the stored ones.
    pub fn build(mut self, stored: &[Condition], now: Timestamp) -> Vec<Condition> {
        for condition in &mut self.conditions {
            let before = stored.iter().find(|stored| stored.type_ == condition.type_);
            condition.last_transition_time = match before {
                Some(before) if says_the_same(before, condition) => before.last_transition_time.clone(),
                _ => whole_seconds(now),
            };
        }
        self.conditions.sort_by(|one, other| key(one).cmp(&key(other)));
        self.conditions
    }
}

/// Truncates a time to seconds, as Flux writes it.
pub fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).expect("the second of a timestamp is one"))
}

fn says_the_same(one: &Condition, other: &Condition) -> bool {
    (&one.status, &one.reason, &one.message) == (&other.status, &other.reason, &other.message)
}

/// Returns the sort key of a condition.
///
/// Conditions that Flux does not know are sorted by generation, the newest first, and then by name.
fn key(condition: &Condition) -> (usize, Reverse<Option<i64>>, &str) {
    let rank = ConditionType::rank(&condition.type_);
    (rank, Reverse(condition.observed_generation), &condition.type_)
}

fn cut(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(LONGEST_MESSAGE - CUT.len());
    format!("{}{CUT}", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::ConditionStatus::{False, True, Unknown};
    use super::ConditionType::{Ready, Reconciling, Stalled};
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn foreign(type_: &str, generation: i64) -> Condition {
        Condition {
            last_transition_time: Time(time("2020-01-01T00:00:00Z")),
            message: String::new(),
            observed_generation: Some(generation),
            reason: "Theirs".to_owned(),
            status: "True".to_owned(),
            type_: type_.to_owned(),
        }
    }

    #[test]
    fn a_time_changes_with_status_reason_or_message_only() {
        let mut builder = ConditionsBuilder::new(&[], 1);
        builder.set(Ready, True, Reason::Succeeded, "good");
        let stored = builder.build(&[], time("2026-01-01T00:00:00.75Z"));
        assert_eq!(stored[0].last_transition_time, Time(time("2026-01-01T00:00:00Z")));
        let later = time("2026-01-01T01:00:00Z");
        for (status, reason, message, changes) in [
            (True, Reason::Succeeded, "good", false),
            (False, Reason::Succeeded, "good", true),
            (True, Reason::Failed, "good", true),
            (True, Reason::Succeeded, "better", true),
        ] {
            let mut builder = ConditionsBuilder::new(&stored, 2);
            // What comes and goes in between does not count.
            builder.set(Ready, Unknown, Reason::Progressing, "");
            builder.set(Ready, status, reason, message);
            let settled = builder.build(&stored, later);
            assert_eq!(
                settled[0].last_transition_time == Time(later),
                changes,
                "{status} {reason} {message}"
            );
            assert_eq!(settled[0].observed_generation, Some(2));
        }
    }

    #[test]
    fn own_conditions_come_first_and_others_stay_unchanged() {
        let stored = [foreign("B", 1), foreign("A", 1), foreign("C", 2)];
        let mut builder = ConditionsBuilder::new(&stored, 7);
        builder.set(Ready, True, Reason::Succeeded, "");
        builder.set(Stalled, False, Reason::Succeeded, "");
        builder.set(Reconciling, False, Reason::Succeeded, "");
        let settled = builder.build(&stored, time("2026-01-01T00:00:00Z"));
        let types: Vec<&str> = settled.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["Stalled", "Reconciling", "Ready", "C", "A", "B"]);
        assert_eq!(settled[3..], [stored[2].clone(), stored[1].clone(), stored[0].clone()]);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        for (message, length) in [
            ("x".repeat(32_768), 32_768),
            ("x".repeat(32_769), 32_768),
            // The limit falls into the second of two bytes.
            (format!("x{}", "é".repeat(20_000)), 32_768),
            (format!("xx{}", "é".repeat(20_000)), 32_767),
        ] {
            let mut builder = ConditionsBuilder::new(&[], 1);
            builder.set(Ready, False, Reason::Failed, &message);
            let kept = &builder.conditions()[0].message;
            assert_eq!(kept.len(), length);
            assert_eq!(kept.ends_with("..."), message.len() > 32_768);
        }
    }

    /// `kubectl get` shows messages as they are, and they quote servers and repositories.
    #[test]
    fn messages_of_conditions_have_bidirectional_characters_escaped() {
        let mut builder = ConditionsBuilder::new(&[], 1);
        builder.set(Ready, False, Reason::Failed, "one\ntwo \u{202e}three\u{1b}[2J");
        assert_eq!(
            builder.conditions()[0].message,
            r"one
two \u{202e}three\u{1b}[2J"
        );
    }

    #[test]
    fn an_object_is_ready_only_if_nothing_is_in_progress_or_stalled() {
        for (set, expected) in [
            (vec![(Ready, True)], true),
            (vec![(Ready, True), (Reconciling, False), (Stalled, False)], true),
            (vec![(Ready, True), (Reconciling, True)], false),
            (vec![(Ready, True), (Stalled, True)], false),
            (vec![(Ready, Unknown)], false),
            (vec![(Ready, False)], false),
            (vec![], false),
        ] {
            let mut builder = ConditionsBuilder::new(&[], 1);
            for (type_, status) in &set {
                builder.set(*type_, *status, Reason::Succeeded, "");
            }
            assert_eq!(is_ready(builder.conditions()), expected, "{set:?}");
        }
    }
}
