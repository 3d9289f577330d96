//! Images that wait: the condition `UpdatesWaiting` and its events.

use std::fmt;

use jiff::Timestamp;
use tagboat_api::Reason;
use tagboat_api::automation::ImageUpdateAutomationStatus;

use super::gate::Closed;
use super::quiet::ImageChanges;
use crate::reconcile::conditions::ConditionStatus::{False, True};
use crate::reconcile::conditions::{ConditionType, ConditionsBuilder};
use crate::schedule::ClosedReason;

/// The maximum number of policies that a message names.
const MAX_NAMED: usize = 500;

/// The maximum length of their names in bytes.
///
/// A condition has 32 KiB, and its message ends with times that must not be cut.
const MAX_NAMES: usize = 16 << 10;

/// The message of the condition while nothing waits.
const NOTHING_WAITS: &str = "no image waits";

/// Wanted images that may not be written yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The reason.
    pub reason: WaitReason,
    /// The rule or the groups that delay them, as a phrase.
    pub by: String,
    /// The end of the wait, if it is known.
    pub until: Option<Timestamp>,
    /// The time of the next look at the rules, at the latest; not in messages.
    pub look_again: Option<Timestamp>,
    /// The names of the policies that wait.
    pub policies: Vec<String>,
    /// The number of values that would change.
    pub values: usize,
    /// The changes of the images that a quiet period counts.
    pub changes: Option<ImageChanges>,
}

/// The reason of a wait, in the order in which reasons are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// A freeze, or an invalid setting of a Namespace.
    Frozen,
    /// A list of windows.
    WindowClosed,
    /// A quiet period.
    QuietPeriod,
    /// A release group whose members have different values.
    ReleaseGroupIncomplete,
}

impl From<ClosedReason> for WaitReason {
    fn from(reason: ClosedReason) -> Self {
        match reason {
            ClosedReason::Frozen => Self::Frozen,
            ClosedReason::WindowClosed => Self::WindowClosed,
        }
    }
}

impl WaitReason {
    /// All reasons, in their order.
    pub(super) const ALL: [Self; 4] =
        [Self::Frozen, Self::WindowClosed, Self::QuietPeriod, Self::ReleaseGroupIncomplete];

    /// Returns the reason of the condition.
    pub fn reason(self) -> Reason {
        match self {
            Self::Frozen => Reason::Frozen,
            Self::WindowClosed => Reason::WindowClosed,
            Self::QuietPeriod => Reason::QuietPeriod,
            Self::ReleaseGroupIncomplete => Reason::ReleaseGroupIncomplete,
        }
    }
}

impl Wait {
    /// Creates the wait of an automation whose gate is closed.
    pub fn at(closed: Closed, policies: Vec<String>, values: usize) -> Self {
        let Closed { reason, by, until, look_again, changes } = closed;
        Self { reason, by, until, look_again, policies, values, changes }
    }

    /// Returns true if the whole automation waits, and not a release group alone.
    pub fn is_of_all(&self) -> bool {
        self.reason != WaitReason::ReleaseGroupIncomplete
    }

    /// Returns the time of the next look at the rules, if one is needed.
    pub fn next_look(&self) -> Option<Timestamp> {
        self.until.into_iter().chain(self.look_again).min()
    }
}

/// Prints the message of the condition.
impl fmt::Display for Wait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut length = 0;
        let is_short = |name: &&String| {
            length += name.len() + ", ".len();
            length <= MAX_NAMES
        };
        let named = self.policies.iter().take(MAX_NAMED).take_while(is_short).count();
        let more = match self.policies.len() - named {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (values, wait) = if self.values == 1 { ("value", "waits") } else { ("values", "wait") };
        if self.policies.is_empty() {
            formatter.write_str("a push waits")?;
        } else {
            let names = self.policies[..named].join(", ");
            write!(formatter, "{} {values} of {names}{more} {wait}", self.values)?;
        }
        write!(formatter, ": {}; ", self.by)?;
        match self.until {
            Some(until) => write!(formatter, "until {until}")?,
            None => formatter.write_str("no end is known")?,
        }
        self.changes.as_ref().map_or(Ok(()), |changes| changes.fmt(formatter))
    }
}

/// The waiting of an automation after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The run ended before it was known.
    Unknown,
    /// No window, no freeze, no quiet period and no release group applies.
    NoRules,
    /// Nothing waits.
    Nothing,
    /// Something waits.
    Waiting(Wait),
}

impl WaitOutcome {
    /// Returns a status with the condition `UpdatesWaiting`.
    ///
    /// While something waits, Ready has its message, so that commands of Flux show it.
    #[must_use]
    pub fn on(
        &self,
        status: &ImageUpdateAutomationStatus,
        generation: i64,
        now: Timestamp,
    ) -> ImageUpdateAutomationStatus {
        let mut builder = ConditionsBuilder::new(&status.conditions, generation);
        match self {
            Self::Unknown => return status.clone(),
            Self::NoRules => builder.remove(ConditionType::UpdatesWaiting),
            Self::Nothing => {
                builder.set(ConditionType::UpdatesWaiting, False, Reason::NothingWaiting, NOTHING_WAITS);
            }
            Self::Waiting(wait) => {
                let message = wait.to_string();
                builder.set(ConditionType::UpdatesWaiting, True, wait.reason.reason(), &message);
                if builder.is(ConditionType::Ready, True) {
                    builder.set(ConditionType::Ready, True, Reason::Succeeded, &message);
                }
            }
        }
        let conditions = builder.build(&status.conditions, now);
        ImageUpdateAutomationStatus { conditions, ..status.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_policies_the_rule_and_the_end() {
        let closed = |until: Option<&str>| Closed {
            reason: WaitReason::WindowClosed,
            by: "deny window `night` of automation shop/app".to_owned(),
            until: until.map(|text| text.parse().unwrap()),
            look_again: None,
            changes: None,
        };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (wait, expected) in [
            (
                Wait::at(closed(Some("2026-12-02T06:00:00Z")), names(&["web"]), 1),
                "1 value of web waits: deny window `night` of automation shop/app; until 2026-12-02T06:00:00Z",
            ),
            (
                Wait::at(closed(None), names(&["api", "web"]), 3),
                "3 values of api, web wait: deny window `night` of automation shop/app; no end is known",
            ),
            (
                Wait::at(closed(None), Vec::new(), 0),
                "a push waits: deny window `night` of automation shop/app; no end is known",
            ),
        ] {
            assert_eq!(wait.to_string(), expected);
        }
        let many = Wait::at(closed(None), vec!["p".to_owned(); 501], 501).to_string();
        assert!(many.contains(", p and 1 more wait: "), "{}", many.len());
        let long = Wait::at(closed(None), vec!["p".repeat(250); 100], 100).to_string();
        assert!(long.contains("p and 35 more wait: ") && long.len() < 20_000, "{}", long.len());
    }
}
