//! A window of a list, which recurs or takes place once.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use tagboat_api::settings::LongDuration;

use super::cron;
use super::error::EntryDefect;
use super::local_time::{is_later_on_clocks, parse_time, time_zone};
use super::period::{Period, Phase};
use super::recurrence::Recurrence;
use crate::printable::is_unprintable;

/// The maximum number of characters of a name.
const MAX_NAME: usize = 100;

/// The maximum length of a window: 366 days.
const MAX_LENGTH: SignedDuration = SignedDuration::from_hours(366 * 24);

/// The effect of a window while it is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// The list is open, and without such a window it is closed.
    Allow,
    /// The list is closed.
    Deny,
}

/// A window of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    name: String,
    kind: EntryKind,
    times: Times,
}

#[derive(Clone, Debug, PartialEq)]
enum Times {
    Recurring(Box<Recurrence>),
    Once(Period),
}

/// An entry as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenEntry {
    pub(super) name: Option<String>,
    kind: Option<String>,
    cron: Option<String>,
    window: Option<String>,
    from: Option<String>,
    until: Option<String>,
    time_zone: Option<String>,
}

impl Entry {
    pub(super) fn new(written: WrittenEntry) -> Result<Self, EntryDefect> {
        let name =
            written.name.filter(|name| is_name(name)).ok_or(EntryDefect::Name { maximum: MAX_NAME })?;
        let kind = match written.kind.as_deref() {
            Some("allow") => EntryKind::Allow,
            Some("deny") => EntryKind::Deny,
            Some(other) => return Err(EntryDefect::Kind(other.to_owned())),
            None => return Err(EntryDefect::NoKind),
        };
        let zone = time_zone(written.time_zone.as_deref())?;
        let missing = |missing, present| EntryDefect::Incomplete { missing, present };
        let times = match (written.cron, written.window, written.from, written.until) {
            (Some(cron), Some(window), None, None) => {
                Times::Recurring(Box::new(recurrence(&cron, &window, zone)?))
            }
            (None, None, Some(from), Some(until)) => Times::Once(period(Some(&from), Some(&until), &zone)?),
            (Some(_), None, None, None) => return Err(missing("window", "cron")),
            (None, Some(_), None, None) => return Err(missing("cron", "window")),
            (None, None, Some(_), None) => return Err(missing("until", "from")),
            (None, None, None, Some(_)) => return Err(missing("from", "until")),
            (None, None, None, None) => return Err(EntryDefect::NoForm),
            _ => return Err(EntryDefect::BothForms),
        };
        Ok(Self { name, kind, times })
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the effect.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Returns `true` if the window is active.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.phase(now).is_active
    }

    pub(super) fn phase(&self, now: Timestamp) -> Phase {
        match &self.times {
            Times::Recurring(recurrence) => recurrence.phase(now),
            Times::Once(period) => period.phase(now),
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.chars().count()) && name.trim() == name && !name.chars().any(is_unprintable)
}

fn recurrence(cron: &str, window: &str, zone: TimeZone) -> Result<Recurrence, EntryDefect> {
    let length: LongDuration = window.parse().map_err(|()| EntryDefect::Length(window.to_owned()))?;
    let length = SignedDuration::try_from(length.duration()).ok();
    let length = length.filter(|length| *length > SignedDuration::ZERO && *length <= MAX_LENGTH);
    let length = length.ok_or_else(|| EntryDefect::LengthRange(window.to_owned()))?;
    Ok(Recurrence::new(cron::parse(cron)?, length, zone))
}

/// Parses a period, whose beginning and end may be missing.
pub(super) fn period(
    from: Option<&str>,
    until: Option<&str>,
    zone: &TimeZone,
) -> Result<Period, EntryDefect> {
    let time = |field, value: Option<&str>| value.map(|value| parse_time(field, value, zone)).transpose();
    let period = Period { from: time("from", from)?, until: time("until", until)? };
    if let (Some(begins), Some(ends)) = (period.from, period.until)
        && ends <= begins
    {
        let [from, until] = [from, until].map(|value| value.unwrap_or_default().to_owned());
        return Err(if begins == ends && is_later_on_clocks(&from, &until) {
            let zone = zone.iana_name().unwrap_or_default().to_owned();
            EntryDefect::Skipped { from, until, zone }
        } else {
            EntryDefect::Order { from, until }
        });
    }
    Ok(period)
}
