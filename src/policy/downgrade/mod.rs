//! Downgrade protection: holds a lower winner unless the user caused it.
//!
//! Flags and the condition `RegressionHeld` call a downgrade a *regression*.
//!
//! A deleted tag, a page missing from a registry's answer, a lagging mirror: each makes a list of tags whose winner is
//! lower than the one before, and following it at once would roll a fleet back. So a lower winner that only the list
//! caused must persist through some complete scans and for some time. If the user changed something, it is accepted at
//! once.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Policy;

/// Downgrade protection: the scans and the time that a lower winner must persist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DowngradeProtection {
    /// The number of consecutive complete scans that must show a lower winner.
    pub scans: u32,
    /// The time since the first of them.
    pub time: Duration,
}

impl Default for DowngradeProtection {
    fn default() -> Self {
        Self { scans: 3, time: Duration::from_secs(15 * 60) }
    }
}

/// A held downgrade: a lower winner that is not accepted yet, as stored between reconciles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldDowngrade {
    /// The held tag.
    pub tag: String,
    /// The time of the first complete scan that showed a lower winner.
    #[serde(with = "moment")]
    pub since: Timestamp,
    /// The number of consecutive complete scans that showed one.
    pub scans: u32,
    /// The time of the last of them.
    #[serde(with = "moment")]
    pub last_scan: Timestamp,
}

/// The inputs of a decision about a policy's new winner.
#[derive(Debug, Clone, Copy)]
pub struct DowngradeInputs<'a> {
    /// The policy, which defines the order of tags.
    pub policy: &'a Policy,
    /// The accepted winner, if any.
    pub current: Option<&'a str>,
    /// The winner of the stored tags, if any.
    pub winner: Option<&'a str>,
    /// The trigger of the new winner.
    pub trigger: Trigger,
    /// The time of the last scan, if it saw all tags.
    pub complete_scan: Option<Timestamp>,
    /// The current time; later times of scans count as this time.
    pub now: Timestamp,
}

/// The trigger of a new winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// The user changed an input, or requested a reconcile of the policy.
    ///
    /// Inputs are the spec and Tagboat's annotations of the policy and its repository.
    User,
    /// Only the list of tags changed.
    TagList,
}

/// The decision about a new winner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is accepted, and nothing is held any more.
    Accept,
    /// The current winner stays, with the held downgrade to store, if any.
    Hold(Option<HeldDowngrade>),
}

// The texts between the parts of the message, from which a new process parses the held downgrade.
const LOWER: &str = " is lower than ";
const WAITS: &str = " and waits: ";
const OF: &str = " of ";
const ROW: &str = " complete scans in a row have shown a lower winner, from ";
const TO: &str = " to ";
const UNTIL: &str = ", and it counts at ";

impl HeldDowngrade {
    /// Limits all times to `now`.
    fn not_after(&self, now: Timestamp) -> Self {
        Self { since: self.since.min(now), last_scan: self.last_scan.min(now), ..self.clone() }
    }

    /// Parses the held downgrade from the message of the condition `RegressionHeld`, to the second.
    ///
    /// So it survives a restart without any storage but the status.
    pub fn from_message(message: &str) -> Option<Self> {
        let (tag, rest) = message.split_once(LOWER)?;
        let (_, rest) = rest.split_once(WAITS)?;
        let (scans, rest) = rest.split_once(OF)?;
        let (_, rest) = rest.split_once(ROW)?;
        let (since, rest) = rest.split_once(TO)?;
        let (last_scan, _) = rest.split_once(UNTIL)?;
        Some(Self {
            tag: tag.to_owned(),
            since: since.parse().ok()?,
            scans: scans.parse().ok()?,
            last_scan: last_scan.parse().ok()?,
        })
    }
}

impl DowngradeProtection {
    /// Decides whether a new winner is accepted.
    ///
    /// No winner at all changes nothing, and neither does a scan that did not see all tags: a held downgrade stays
    /// held, neither nearer to its end nor further from it.
    pub fn decide(&self, pending: Option<&HeldDowngrade>, inputs: &DowngradeInputs<'_>) -> Decision {
        let Some(winner) = inputs.winner else { return Decision::Hold(pending.cloned()) };
        let is_lower = |than: &str| inputs.policy.compare(winner, than).is_some_and(Ordering::is_lt);
        if inputs.trigger == Trigger::User || !inputs.current.is_some_and(is_lower) {
            return Decision::Accept;
        }
        let Some(scan) = inputs.complete_scan else { return Decision::Hold(pending.cloned()) };
        // A clock that was ahead for a while must not hold a winner until that time.
        let scan = scan.min(inputs.now);
        let pending = pending.map(|pending| pending.not_after(inputs.now));
        let pending = pending.as_ref();
        // A winner that falls further restarts the wait. A rising one does not, or a stream of builds under a new
        // scheme would be held for ever.
        let pending = after_scan(pending.filter(|pending| !is_lower(&pending.tag)), winner, scan);
        let waited = Duration::try_from(inputs.now.duration_since(pending.since)).unwrap_or_default();
        if pending.scans >= self.scans && waited >= self.time {
            Decision::Accept
        } else {
            Decision::Hold(Some(pending))
        }
    }

    /// Returns the message of the condition `RegressionHeld`.
    ///
    /// It names the held tag, the current one, and the end of the wait.
    pub fn message(&self, current: &str, pending: &HeldDowngrade) -> String {
        let until = pending.since.checked_add(self.time).unwrap_or(Timestamp::MAX);
        format!(
            "{}{LOWER}{current}{WAITS}{}{OF}{}{ROW}{}{TO}{}{UNTIL}{} at the earliest; set the annotation {} of the policy to \
             a new value to accept it at once",
            pending.tag,
            // With enough scans, only time is missing.
            pending.scans.min(self.scans.max(1)),
            self.scans.max(1),
            Second(pending.since),
            Second(pending.last_scan),
            Second(until),
            tagboat_api::RECONCILE_REQUEST_ANNOTATION,
        )
    }
}

/// The message for a lower winner without stored state.
///
/// Scans and time are not counted then.
pub fn message_without_state(current: &str, pending: &HeldDowngrade) -> String {
    format!(
        "{}{LOWER}{current}{WAITS}counting scans and time requires --state; without it, --latest or a status.latestRef \
         that is not higher accepts it",
        pending.tag
    )
}

/// Updates the held downgrade after a complete scan.
///
/// A scan counts once, however often it is seen.
fn after_scan(pending: Option<&HeldDowngrade>, winner: &str, scan: Timestamp) -> HeldDowngrade {
    let tag = winner.to_owned();
    match pending {
        None => HeldDowngrade { tag, since: scan, scans: 1, last_scan: scan },
        Some(known) if scan > known.last_scan => {
            HeldDowngrade { tag, since: known.since, scans: known.scans.saturating_add(1), last_scan: scan }
        }
        Some(known) => HeldDowngrade { tag, ..known.clone() },
    }
}

/// A timestamp printed to the second.
struct Second(Timestamp);

impl fmt::Display for Second {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.0}", self.0)
    }
}

/// Serializes timestamps as text, to the nanosecond, so that a scan is recognized.
mod moment {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(moment: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(moment)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
