//! Selects the tag of a policy.
//!
//! It is the winner, or the tag before it while a downgrade is held (`docs/flux-behaviour.md`, Policies).

use std::time::Duration;

use jiff::Timestamp;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::{Condition, ImageRef, Reason};

use crate::error::ReconcileError;
use crate::policy::downgrade::{Decision, DowngradeInputs, Trigger};
use crate::policy::{Ages, Check, DowngradeProtection, HeldDowngrade, Policy, PolicyError, SelectionError};
use crate::reconcile::conditions::{self, ConditionType};
use crate::reference::TagList;

/// The inputs of a selection.
#[derive(Clone, Copy, Debug)]
pub struct SelectionInputs<'a> {
    /// The image, by the name that its repository has for it.
    pub image: &'a str,
    /// The tags that are stored.
    pub tags: &'a TagList,
    /// The known ages of the tags.
    pub ages: Ages<'a>,
    /// The time of the last complete scan.
    pub scanned: Option<Timestamp>,
    /// The trigger of the run.
    pub trigger: Trigger,
    /// The time for which a downgrade must hold.
    pub downgrade_protection: DowngradeProtection,
    /// True if relevant ages are missing.
    ///
    /// No lower tag than the current one can win then.
    pub is_provisional: bool,
}

/// The tag that is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The tag.
    pub tag: String,
    /// The downgrade that is held, if there is one.
    pub held: Option<Held>,
    /// The time until another tag is old enough to be eligible.
    pub matures_in: Option<Duration>,
    /// The message about a release group that does not move.
    pub incomplete: Option<String>,
}

impl Choice {
    /// Creates the choice of a tag that nothing holds.
    pub(super) fn of(tag: &str, matures_in: Option<Duration>) -> Self {
        Self { tag: tag.to_owned(), held: None, matures_in, incomplete: None }
    }
}

/// The reason for which the current tag stays although it is not the winner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The lower winner that is held, if there is one.
    pub pending: Option<HeldDowngrade>,
    /// The message of the condition.
    pub message: String,
    /// The time at which it applies, if it waits for time alone.
    pub until: Option<Timestamp>,
    /// The reason of the condition.
    pub reason: Reason,
}

/// The error of a policy without a tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// The policy is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// No tag matches the policy.
    #[error("{error}")]
    Selection {
        /// The trigger.
        error: SelectionError,
        /// The time until a tag is old enough.
        matures_in: Option<Duration>,
    },
    /// The release group of the policy does not move, and the policy has no image.
    #[error("{message}")]
    Group {
        /// The message of the condition.
        message: String,
        /// The time until a tag is old enough.
        matures_in: Option<Duration>,
    },
}

impl ChoiceError {
    /// Returns the time until a tag is old enough that is too new now.
    pub fn matures_in(&self) -> Option<Duration> {
        match self {
            Self::Policy(_) => None,
            Self::Selection { matures_in, .. } | Self::Group { matures_in, .. } => *matures_in,
        }
    }

    /// Returns true if the policy waits for its release group.
    pub(super) fn is_of_group(&self) -> bool {
        matches!(self, Self::Group { .. })
    }
}

impl ReconcileError for ChoiceError {
    fn reason(&self) -> Reason {
        match self {
            Self::Policy(error) => error.reason(),
            Self::Selection { error, .. } => error.reason(),
            Self::Group { .. } => Reason::DependencyNotReady,
        }
    }

    fn is_retryable(&self) -> bool {
        match self {
            Self::Policy(error) => error.is_retryable(),
            Self::Selection { error, .. } => error.is_retryable(),
            Self::Group { .. } => true,
        }
    }
}

/// Selects among the tags that are offered, given the `previous` status.
///
/// # Errors
///
/// If no tag matches, or `check` fails, which is called between two tags.
pub fn choose(
    policy: &Policy,
    inputs: &SelectionInputs<'_>,
    previous: &ImagePolicyStatus,
    check: Check<'_>,
) -> Result<Choice, ChoiceError> {
    let current = current(previous, inputs.image);
    let (winner, matures_in) = match policy.select_fast(inputs.tags, check).map_err(PolicyError::from)? {
        Some(winner) => (Some(winner), None),
        None => {
            let selection = policy.select_within(inputs.tags, inputs.ages, check)?;
            let matures_in = selection.matures_in();
            if let Some(error) = selection.error()
                && (current.is_none() || !inputs.is_provisional)
            {
                return Err(ChoiceError::Selection { error: error.clone(), matures_in });
            }
            (selection.latest(), matures_in)
        }
    };
    let pending = pending(&previous.conditions);
    let (trigger, complete_scan) =
        if inputs.is_provisional { (Trigger::TagList, None) } else { (inputs.trigger, inputs.scanned) };
    let downgrade_inputs =
        DowngradeInputs { policy, current, winner, trigger, complete_scan, now: inputs.ages.now };
    match (inputs.downgrade_protection.decide(pending.as_ref(), &downgrade_inputs), current) {
        (Decision::Hold(pending), Some(current)) => {
            let held = pending.map(|pending| Held::of(pending, current, &inputs.downgrade_protection));
            Ok(Choice { held, ..Choice::of(current, matures_in) })
        }
        _ => {
            // Without a winner there is an error, and nothing is accepted.
            let error = ChoiceError::Selection { error: SelectionError::NoTags, matures_in };
            let winner = winner.ok_or(error)?;
            Ok(Choice::of(winner, matures_in))
        }
    }
}

/// Returns the tag that a status has of an image.
///
/// Tags of another image tell nothing about this one's.
pub(super) fn current<'s>(status: &'s ImagePolicyStatus, image: &str) -> Option<&'s str> {
    let latest = status.latest_ref.as_ref().filter(|latest| latest.name == image);
    latest.map(|latest| latest.tag.as_str())
}

impl Held {
    pub(super) fn of(
        pending: HeldDowngrade,
        current: &str,
        downgrade_protection: &DowngradeProtection,
    ) -> Self {
        let message = downgrade_protection.message(current, &pending);
        let end = pending.since.checked_add(downgrade_protection.time).unwrap_or(Timestamp::MAX);
        let until = (pending.scans >= downgrade_protection.scans).then_some(end);
        Self { pending: Some(pending), message, until, reason: Reason::LowerWinner }
    }

    /// Holds the current tag because the list of an image's tags is empty.
    ///
    /// A lower winner that is held stays held, and the end of its wait comes neither nearer nor further away.
    pub fn by_empty_list(
        image: &str,
        current: &str,
        previous: &ImagePolicyStatus,
        downgrade_protection: &DowngradeProtection,
    ) -> Self {
        let pending = pending(&previous.conditions);
        let message = match &pending {
            Some(pending) => {
                let waits = downgrade_protection.message(current, pending);
                format!("{waits}; at the moment the tag list of {image} is empty")
            }
            None => format!(
                "the tag list of {image} is empty, so {current} stays until the registry lists tags that spec.exclusionList \
                 of the ImageRepository does not exclude"
            ),
        };
        Self { pending, message, until: None, reason: Reason::EmptyTagList }
    }
}

/// Returns the held downgrade that the conditions of a status contain.
pub(super) fn pending(conditions: &[Condition]) -> Option<HeldDowngrade> {
    HeldDowngrade::from_message(&conditions::find(conditions, ConditionType::RegressionHeld)?.message)
}

/// Returns whether a policy holds a downgrade, so that each scan makes it due.
pub fn is_waiting(status: &ImagePolicyStatus) -> bool {
    pending(&status.conditions).is_some()
}

/// Returns whether two references are of the same tag of the same image.
pub fn is_same_tag(latest: Option<&ImageRef>, image: &str, tag: &str) -> bool {
    latest.is_some_and(|latest| latest.name == image && latest.tag == tag)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::super::request::Request;
    use super::super::request::tests::policy;
    use super::*;
    use crate::error::chain;
    use crate::policy::TagAge;
    use crate::reconcile::conditions::{ConditionStatus, ConditionsBuilder};

    /// A minute of the tests' time.
    pub(in crate::reconcile::policy) fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_795_000_000 + minute * 60).unwrap()
    }

    /// The status of a policy; an empty tag is none.
    pub(in crate::reconcile::policy) fn status(tag: &str, held: Option<&Held>) -> ImagePolicyStatus {
        let mut builder = ConditionsBuilder::new(&[], 1);
        if let Some(held) = held {
            let type_ = ConditionType::RegressionHeld;
            builder.set(type_, ConditionStatus::True, Reason::LowerWinner, &held.message);
        }
        let latest = ImageRef { name: "img".to_owned(), tag: tag.to_owned(), digest: None };
        ImagePolicyStatus {
            latest_ref: Some(latest).filter(|latest| !latest.tag.is_empty()),
            conditions: builder.build(&[], at(0)),
            ..Default::default()
        }
    }

    /// Chooses among tags that a scan of this minute found.
    fn choose_at(
        minute: i64,
        tags: &str,
        trigger: Trigger,
        previous: &ImagePolicyStatus,
    ) -> Result<Choice, ChoiceError> {
        let request = Request::of(&policy(&json!({}), &json!({}))).unwrap();
        let tags: TagList = tags.split_whitespace().collect();
        let inputs = SelectionInputs {
            image: "img",
            tags: &tags,
            ages: Ages { now: at(minute), age_of: &|_| TagAge::default() },
            scanned: Some(at(minute)),
            trigger,
            downgrade_protection: DowngradeProtection::default(),
            is_provisional: false,
        };
        choose(&request.policy.compile().unwrap(), &inputs, previous, &|| Ok(()))
    }

    #[test]
    fn a_lower_winner_is_held_by_the_status_alone() {
        let mut previous = status("1.4.0", None);
        for (minute, scans, until) in [(0, 1, None), (5, 2, None), (10, 3, Some(at(15)))] {
            let choice = choose_at(minute, "1.3.0 1.2.0", Trigger::TagList, &previous).unwrap();
            assert_eq!(choice.tag, "1.4.0");
            let held = choice.held.unwrap();
            let pending = held.pending.as_ref().unwrap();
            assert_eq!((pending.scans, pending.since), (scans, at(0)));
            assert_eq!((pending.last_scan, held.until), (at(minute), until));
            previous = status("1.4.0", Some(&held));
            assert!(is_waiting(&previous));
            // The same scan counts once, however often it is looked at.
            assert_eq!(choose_at(minute, "1.3.0", Trigger::TagList, &previous).unwrap().held, Some(held));
        }
        assert_eq!(choose_at(15, "1.3.0", Trigger::TagList, &previous).unwrap(), Choice::of("1.3.0", None));
        // What comes back ends the wait.
        assert_eq!(choose_at(15, "1.4.0", Trigger::TagList, &previous).unwrap(), Choice::of("1.4.0", None));
        assert!(!is_waiting(&status("1.4.0", None)));
    }

    #[test]
    fn a_user_change_selects_a_lower_tag_at_once() {
        let chosen =
            |trigger, previous: &ImagePolicyStatus| choose_at(0, "1.3.0", trigger, previous).unwrap().tag;
        assert_eq!(chosen(Trigger::User, &status("1.4.0", None)), "1.3.0");
        assert_eq!(chosen(Trigger::TagList, &status("", None)), "1.3.0");
        let mut of_another = status("1.4.0", None);
        of_another.latest_ref.as_mut().unwrap().name = "other".to_owned();
        assert_eq!(chosen(Trigger::TagList, &of_another), "1.3.0");
    }

    /// It once was Not Ready, and the wait began anew when the tags came back.
    #[test]
    fn an_empty_list_keeps_the_image_and_the_held_downgrade() {
        let downgrade_protection = DowngradeProtection::default();
        let held = Held::by_empty_list("img", "1.4.0", &status("1.4.0", None), &downgrade_protection);
        assert_eq!(
            (held.reason, held.message.as_str()),
            (
                Reason::EmptyTagList,
                "the tag list of img is empty, so 1.4.0 stays until the registry lists tags that spec.exclusionList of the \
                 ImageRepository does not exclude"
            )
        );
        let waiting = choose_at(0, "1.3.0", Trigger::TagList, &status("1.4.0", None)).unwrap().held.unwrap();
        let held =
            Held::by_empty_list("img", "1.4.0", &status("1.4.0", Some(&waiting)), &downgrade_protection);
        assert_eq!((held.until, held.reason), (None, Reason::EmptyTagList));
        assert!(held.message.ends_with("; at the moment the tag list of img is empty"), "{}", held.message);
        let previous = status("1.4.0", Some(&held));
        let again = choose_at(5, "1.3.0", Trigger::TagList, &previous).unwrap().held.unwrap();
        assert_eq!(again.pending.map(|pending| (pending.scans, pending.since)), Some((2, at(0))));
    }

    #[test]
    fn a_selection_without_a_winner_has_the_message_of_flux() {
        for (tags, reason, message) in [
            ("", Reason::DependencyNotReady, "no tags in database"),
            ("latest", Reason::Failure, "unable to determine latest version from provided list"),
        ] {
            let error = choose_at(0, tags, Trigger::User, &status("1.4.0", None)).unwrap_err();
            assert_eq!((error.reason(), chain(&error).as_str()), (reason, message));
            assert!(error.is_retryable());
        }
        let request =
            Request::of(&policy(&json!({"filterTags": {"pattern": "^test-(.*"}}), &json!({}))).unwrap();
        let tags: TagList = ["1.0.0"].into_iter().collect();
        let inputs = SelectionInputs {
            image: "img",
            tags: &tags,
            ages: Ages { now: at(0), age_of: &|_| TagAge::default() },
            scanned: None,
            trigger: Trigger::TagList,
            downgrade_protection: DowngradeProtection::default(),
            is_provisional: false,
        };
        let error =
            choose(&request.policy.compile().unwrap(), &inputs, &status("", None), &|| Ok(())).unwrap_err();
        assert_eq!(error.reason(), Reason::InvalidPolicy);
        let message = chain(&error);
        assert!(
            message.starts_with("failed to filter tags: invalid regular expression pattern '^test-(.*'"),
            "{message}"
        );
        assert!(!error.is_retryable());
    }
}
