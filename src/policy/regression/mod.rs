//! Never backwards by accident, always on purpose.
//!
//! A tag that a person deleted, a page that a registry left out, a mirror that lags: each makes a list of tags whose
//! winner is lower than the one before it, and to follow it at once would roll a fleet back. So a lower winner that
//! only the list brought must hold: through some complete scans, and for some time. Where a person changed something,
//! it counts at once.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Policy;

/// How long a lower winner must hold before it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regression {
    /// In how many complete scans in a row.
    pub scans: u32,
    /// For how long, since the first of them.
    pub time: Duration,
}

impl Default for Regression {
    fn default() -> Self {
        Self { scans: 3, time: Duration::from_secs(15 * 60) }
    }
}

/// A lower winner that waits, as it is kept between reconciles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// The tag that waits.
    pub tag: String,
    /// When the first complete scan showed a lower winner.
    #[serde(with = "moment")]
    pub since: Timestamp,
    /// How many complete scans in a row showed one.
    pub scans: u32,
    /// When the last of them was.
    #[serde(with = "moment")]
    pub last_scan: Timestamp,
}

/// What is known when a policy has a new winner.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The policy, which says what is lower.
    pub policy: &'a Policy,
    /// The winner that counts now, if there is one.
    pub current: Option<&'a str>,
    /// The winner of the tags as they are stored, if there is one.
    pub winner: Option<&'a str>,
    /// What brought the new winner.
    pub cause: Cause,
    /// When the last scan was, if it saw all tags.
    pub complete_scan: Option<Timestamp>,
    /// The present moment; times of scans after it count as it.
    pub now: Timestamp,
}

/// What brought a new winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A person changed the spec or our annotations of the policy or its repository, or asked for the policy.
    Person,
    /// Nothing but the list of tags changed.
    Tags,
}

/// What becomes of a new winner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// It counts, and nothing waits any more.
    Accept,
    /// The current one stays, and this is to be kept, if anything waits.
    Hold(Option<Pending>),
}

// What stands between the parts of the message, from which a process that begins reads what waits.
const LOWER: &str = " is lower than ";
const WAITS: &str = " and waits: ";
const OF: &str = " of ";
const ROW: &str = " complete scans in a row have shown a lower winner, from ";
const TO: &str = " to ";
const UNTIL: &str = ", and it counts at ";

impl Pending {
    /// The same with times after a moment replaced by it.
    fn not_after(&self, now: Timestamp) -> Self {
        Self { since: self.since.min(now), last_scan: self.last_scan.min(now), ..self.clone() }
    }

    /// Reads what waits from the message of the condition `RegressionHeld`, to the second.
    ///
    /// So it survives a restart wherever the process begins anew, with nothing kept but the status.
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

impl Regression {
    /// Says whether a new winner counts.
    ///
    /// No winner at all changes nothing, and neither does a scan that did not see all tags: what waits goes on to
    /// wait, neither nearer to its end nor further from it.
    pub fn rule(&self, pending: Option<&Pending>, evidence: &Evidence<'_>) -> Ruling {
        let Some(winner) = evidence.winner else { return Ruling::Hold(pending.cloned()) };
        let is_lower = |than: &str| evidence.policy.compare(winner, than).is_some_and(Ordering::is_lt);
        if evidence.cause == Cause::Person || !evidence.current.is_some_and(is_lower) {
            return Ruling::Accept;
        }
        let Some(scan) = evidence.complete_scan else { return Ruling::Hold(pending.cloned()) };
        // A clock that once ran ahead must not make a winner wait until it is that late.
        let scan = scan.min(evidence.now);
        let pending = pending.map(|pending| pending.not_after(evidence.now));
        let pending = pending.as_ref();
        // A winner that falls further begins the wait anew. One that rises does not, or a stream of builds under a new
        // scheme would wait for ever.
        let pending = after_scan(pending.filter(|pending| !is_lower(&pending.tag)), winner, scan);
        let waited = Duration::try_from(evidence.now.duration_since(pending.since)).unwrap_or_default();
        if pending.scans >= self.scans && waited >= self.time {
            Ruling::Accept
        } else {
            Ruling::Hold(Some(pending))
        }
    }

    /// The message of the condition `RegressionHeld`: what waits, behind what, and until when.
    pub fn message(&self, current: &str, pending: &Pending) -> String {
        let until = pending.since.checked_add(self.time).unwrap_or(Timestamp::MAX);
        format!(
            "{}{LOWER}{current}{WAITS}{}{OF}{}{ROW}{}{TO}{}{UNTIL}{} at the earliest; set the annotation {} of the policy anew \
             to let it count at once",
            pending.tag,
            // Time alone is missing once there are enough of them.
            pending.scans.min(self.scans.max(1)),
            self.scans.max(1),
            Second(pending.since),
            Second(pending.last_scan),
            Second(until),
            tagboat_api::RECONCILE_REQUEST_ANNOTATION,
        )
    }
}

/// What is said of a lower winner where nothing counts how long it has been one.
pub fn message_without_memory(current: &str, pending: &Pending) -> String {
    format!(
        "{}{LOWER}{current}{WAITS}how often in a row and for how long a lower winner is shown takes --state to count; \
         without it, --latest or a status.latestRef that is no higher lets it count",
        pending.tag
    )
}

/// What waits after a complete scan; the same scan counts once, however often it is looked at.
fn after_scan(pending: Option<&Pending>, winner: &str, scan: Timestamp) -> Pending {
    let tag = winner.to_owned();
    match pending {
        None => Pending { tag, since: scan, scans: 1, last_scan: scan },
        Some(known) if scan > known.last_scan => {
            Pending { tag, since: known.since, scans: known.scans.saturating_add(1), last_scan: scan }
        }
        Some(known) => Pending { tag, ..known.clone() },
    }
}

/// A moment to the second.
struct Second(Timestamp);

impl fmt::Display for Second {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.0}", self.0)
    }
}

/// Moments as text, to the nanosecond, so that the same scan is known again.
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
