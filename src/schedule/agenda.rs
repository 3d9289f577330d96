//! Windows and freezes of several objects, which hold together.

use jiff::Timestamp;

use super::cause::{Cause, CauseKind, ClosedReason};
use super::changes::{Changes, Outlook};
use super::error::SettingsError;
use super::freeze::Freeze;
use super::period::Phase;
use super::windows::Windows;

/// A rule, with the name of the object that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Name for messages, such as `namespace shop`.
    pub name: String,
    /// The rule.
    pub rule: Rule,
}

/// A rule for the times at which images may be written.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Nothing is written during the freeze.
    Freeze(Freeze),
    /// Images are written while the list is open.
    Windows(Windows),
    /// Nothing is written until the setting is valid.
    Invalid(SettingsError),
}

/// The state of an agenda.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Images may be written.
    Open,
    /// No images may be written.
    ///
    /// Of several causes it is the first: freezes come before windows, and then sources in their order.
    Closed(Cause),
}

impl State {
    /// Returns `true` if images may be written.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }
}

/// The rules that apply to an automation.
///
/// It is open while each of them allows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agenda {
    sources: Vec<Source>,
}

impl Agenda {
    /// Creates an agenda from its sources, in the order in which they are named.
    #[must_use]
    pub fn new(sources: Vec<Source>) -> Self {
        Self { sources }
    }

    /// Returns the sources in their order.
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> State {
        match self.first_blocker(&self.phases(now)) {
            Some(blocker) => State::Closed(self.cause(blocker)),
            None => State::Open,
        }
    }

    /// Returns the state with its next change, and the time until which they hold.
    #[must_use]
    pub fn outlook(&self, now: Timestamp) -> Outlook {
        Outlook::new(self, now)
    }

    /// Returns the next changes between open and closed.
    #[must_use]
    pub fn changes(&self, now: Timestamp) -> Changes<'_> {
        Changes::new(self, now)
    }

    pub(super) fn phases(&self, now: Timestamp) -> Vec<Vec<Phase>> {
        self.sources.iter().map(|source| source.rule.phases(now)).collect()
    }

    /// Returns the source that closes the agenda, given the phases of all rules.
    pub(super) fn first_blocker(&self, phases: &[Vec<Phase>]) -> Option<Blocker> {
        let rules = self.sources.iter().zip(phases).enumerate();
        let blockers = rules.filter_map(|(source, (Source { rule, .. }, phases))| {
            rule.closed_by(phases).map(|kind| Blocker { source, kind })
        });
        blockers.min_by_key(|blocker| self.sources[blocker.source].rule.reason())
    }

    /// Returns whether the agenda is closed, and the time until which that is certain.
    pub(super) fn closing(&self, phases: &[Vec<Phase>]) -> Phase {
        Phase::any(self.sources.iter().zip(phases).map(|(source, phases)| source.rule.closing(phases)))
    }

    /// Returns the time until which the first blocker is certainly the same.
    ///
    /// No source after it matters.
    pub(super) fn cause_holds_until(&self, blocker: &Blocker, phases: &[Vec<Phase>]) -> Option<Timestamp> {
        let rank = |source: usize| (self.sources[source].rule.reason(), source);
        let before = (0..self.sources.len()).filter(|source| rank(*source) < rank(blocker.source));
        let begins = before.map(|source| self.sources[source].rule.closing(&phases[source]).until);
        let ends = self.sources[blocker.source].rule.cause_holds_until(&phases[blocker.source]);
        begins.chain([ends]).flatten().min()
    }

    pub(super) fn cause(&self, blocker: Blocker) -> Cause {
        Cause { source: self.sources[blocker.source].name.clone(), kind: blocker.kind }
    }
}

/// The source that closes an agenda, by its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blocker {
    pub(super) source: usize,
    pub(super) kind: CauseKind,
}

impl Source {
    /// Returns the cause if this source closes the agenda.
    #[must_use]
    pub fn closed_by(&self, now: Timestamp) -> Option<Cause> {
        let kind = self.rule.closed_by(&self.rule.phases(now))?;
        Some(Cause { source: self.name.clone(), kind })
    }
}

impl Rule {
    /// Returns the phases of its parts: the entries of a list, or the freeze.
    fn phases(&self, now: Timestamp) -> Vec<Phase> {
        match self {
            Self::Freeze(freeze) => vec![freeze.phase(now)],
            Self::Windows(windows) => windows.entries().iter().map(|entry| entry.phase(now)).collect(),
            Self::Invalid(_) => Vec::new(),
        }
    }

    /// Returns the phase of the part with an index.
    pub(super) fn phase(&self, part: usize, now: Timestamp) -> Option<Phase> {
        match self {
            Self::Freeze(freeze) => Some(freeze.phase(now)),
            Self::Windows(windows) => windows.entries().get(part).map(|entry| entry.phase(now)),
            Self::Invalid(_) => None,
        }
    }

    fn closed_by(&self, phases: &[Phase]) -> Option<CauseKind> {
        match self {
            Self::Freeze(freeze) => {
                let is_active = phases.iter().any(|phase| phase.is_active);
                is_active.then(|| CauseKind::Freeze { reason: freeze.reason().map(str::to_owned) })
            }
            Self::Windows(windows) => windows.closed_by(phases),
            Self::Invalid(error) => Some(CauseKind::Invalid { error: error.to_string() }),
        }
    }

    /// Returns the reason of an agenda that the rule closes.
    fn reason(&self) -> ClosedReason {
        match self {
            Self::Freeze(_) | Self::Invalid(_) => ClosedReason::Frozen,
            Self::Windows(_) => ClosedReason::WindowClosed,
        }
    }

    /// Returns whether the rule closes an agenda, and the time until which that is certain.
    fn closing(&self, phases: &[Phase]) -> Phase {
        match self {
            Self::Freeze(_) => Phase::any(phases.iter().copied()),
            Self::Windows(windows) => windows.closing(phases),
            Self::Invalid(_) => Phase { is_active: true, until: None },
        }
    }

    /// Returns the time until which the rule closes an agenda for the same cause.
    fn cause_holds_until(&self, phases: &[Phase]) -> Option<Timestamp> {
        match self {
            Self::Freeze(_) | Self::Invalid(_) => self.closing(phases).until,
            Self::Windows(windows) => windows.cause_holds_until(phases),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A weekday from 9 to 16, except the holidays.
    const OFFICE: &str = "
- {name: office, kind: allow, cron: '0 9 * * 1-5', window: 7h}
- {name: holidays, kind: deny, from: 2026-12-18T12:00, until: 2027-01-04T08:00}
";

    fn windows(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), rule: Rule::Windows(text.parse().unwrap()) }
    }

    fn freeze(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), rule: Rule::Freeze(Freeze::parse(text).unwrap().unwrap()) }
    }

    fn described(agenda: &Agenda, now: &str) -> String {
        match agenda.state(now.parse().unwrap()) {
            State::Open => "open".to_owned(),
            State::Closed(cause) => format!("{}: {cause}", cause.reason().as_str()),
        }
    }

    #[test]
    fn an_agenda_without_rules_is_open() {
        let agenda = Agenda::new(vec![windows("automation", "[]")]);
        for agenda in [Agenda::default(), agenda] {
            assert_eq!(described(&agenda, "2026-12-01T00:00:00Z"), "open");
        }
    }

    #[test]
    fn a_list_is_open_in_an_allow_window_without_a_deny_window() {
        let agenda = Agenda::new(vec![windows("automation app", OFFICE)]);
        let outside = "WindowClosed: no allow window of automation app is active";
        let holidays = "WindowClosed: deny window `holidays` of automation app";
        for (now, expected) in [
            ("2026-12-17T08:59:59Z", outside),
            ("2026-12-17T09:00:00Z", "open"),
            ("2026-12-17T15:59:59.999Z", "open"),
            ("2026-12-17T16:00:00Z", outside),
            ("2026-12-18T11:59:59Z", "open"),
            ("2026-12-18T12:00:00Z", holidays),
            ("2026-12-20T12:00:00Z", holidays),
            ("2027-01-04T08:00:00Z", outside),
            ("2027-01-04T09:00:00Z", "open"),
        ] {
            assert_eq!(described(&agenda, now), expected, "{now}");
        }
    }

    #[test]
    fn all_sources_must_be_open_and_freezes_are_named_first() {
        let invalid = "[1]".parse::<Windows>().unwrap_err();
        let sources = vec![
            windows("namespace shop", "[{name: night, kind: deny, cron: '0 0 * * *', window: 6h}]"),
            windows("automation app", OFFICE),
            freeze("namespace shop", "{reason: incident 4711, until: 2026-12-17T10:00}"),
            freeze("namespace flux-system", "{from: 2026-12-17T09:30, until: 2026-12-17T11:00}"),
        ];
        let mut agenda = Agenda::new(sources);
        for (now, expected) in [
            ("2026-12-17T01:00:00Z", "Frozen: freeze of namespace shop: incident 4711"),
            ("2026-12-17T10:00:00Z", "Frozen: freeze of namespace flux-system"),
            ("2026-12-17T11:00:00Z", "open"),
            ("2026-12-18T01:00:00Z", "WindowClosed: deny window `night` of namespace shop"),
            ("2026-12-18T08:00:00Z", "WindowClosed: no allow window of automation app is active"),
        ] {
            assert_eq!(described(&agenda, now), expected, "{now}");
        }
        let now = "2026-12-18T01:00:00Z".parse().unwrap();
        let closed = agenda.sources().iter().filter_map(|source| source.closed_by(now)).count();
        assert_eq!(closed, 2);
        agenda.sources.push(Source { name: "namespace shop".to_owned(), rule: Rule::Invalid(invalid) });
        let expected = "Frozen: invalid setting of namespace shop: it is not a list of windows: ";
        assert!(described(&agenda, "2026-12-17T12:00:00Z").starts_with(expected));
    }
}
