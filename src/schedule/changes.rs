//! The next changes of an agenda.

use jiff::{SignedDuration, Timestamp};

use super::agenda::{Agenda, Blocker, Rule, State};
use super::cause::{Cause, CauseKind};
use super::period::Phase;

/// The maximum number of phases that the search for one change computes.
///
/// With many windows that overlap, the search can end without a change. A window of a minute at every minute, for
/// instance, is searched for about 33 hours.
const MAX_PHASES: usize = 2_000;

/// A change between open and closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its time.
    pub at: Timestamp,
    /// True if the agenda is open from then on.
    pub is_open: bool,
    /// The rule that closes the agenda, or the one that closed it before.
    ///
    /// If the latter was the lack of an `allow` window, it is the window that opens it.
    pub by: Cause,
}

/// The state of an agenda, and its future.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The state.
    pub state: State,
    /// The next change between open and closed, if one is known.
    pub next: Option<Change>,
    /// The time until which the state and its cause stay the same.
    ///
    /// Then the outlook must be computed anew. Without a time it holds forever.
    pub valid_until: Option<Timestamp>,
}

impl Outlook {
    pub(super) fn new(agenda: &Agenda, now: Timestamp) -> Self {
        let mut search = Search::new(agenda, now);
        let blocker = search.blocker();
        let cause_holds_until = blocker.as_ref().and_then(|blocker| search.clone().end_of_cause(blocker));
        let found = search.next_change();
        let (state, valid_until) = match blocker {
            Some(blocker) => (State::Closed(agenda.cause(blocker)), cause_holds_until),
            None => (State::Open, found.holds_until()),
        };
        Self { state, next: found.change(), valid_until }
    }
}

/// The next changes of an agenda, in their order.
///
/// It ends after the last change, or if the search finds no further one within its bound.
#[derive(Clone, Debug)]
pub struct Changes<'a>(Search<'a>);

impl<'a> Changes<'a> {
    pub(super) fn new(agenda: &'a Agenda, now: Timestamp) -> Self {
        Self(Search::new(agenda, now))
    }
}

impl Iterator for Changes<'_> {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        self.0.next_change().change()
    }
}

/// The result of a search for a change.
enum Found {
    /// The change.
    Change(Change),
    /// There is none.
    Never,
    /// There is none before this time; the search ended there.
    NotBefore(Timestamp),
}

impl Found {
    fn holds_until(&self) -> Option<Timestamp> {
        match self {
            Self::Change(change) => Some(change.at),
            Self::Never => None,
            Self::NotBefore(time) => Some(*time),
        }
    }

    fn change(self) -> Option<Change> {
        match self {
            Self::Change(change) => Some(change),
            Self::Never | Self::NotBefore(_) => None,
        }
    }
}

/// A search that moves from one time to the next at which something may change.
#[derive(Clone, Debug)]
struct Search<'a> {
    agenda: &'a Agenda,
    now: Timestamp,
    /// The phases of all rules now.
    phases: Vec<Vec<Phase>>,
}

impl<'a> Search<'a> {
    fn new(agenda: &'a Agenda, now: Timestamp) -> Self {
        Self { agenda, now, phases: agenda.phases(now) }
    }

    /// Returns the rule that closes the agenda now.
    fn blocker(&self) -> Option<Blocker> {
        self.agenda.first_blocker(&self.phases)
    }

    /// Moves to the next change between open and closed.
    ///
    /// Each step leaves out what cannot matter: the windows during a freeze, for instance.
    fn next_change(&mut self) -> Found {
        let mut budget = MAX_PHASES;
        let mut blocker = self.blocker();
        loop {
            let Some(until) = self.agenda.closing(&self.phases).until else { return Found::Never };
            if !self.move_to(until, &mut budget) {
                return Found::NotBefore(until);
            }
            let before = std::mem::replace(&mut blocker, self.blocker());
            let (is_open, by) = match (before, &blocker) {
                (Some(before), None) => (true, self.opened_by(before)),
                (None, Some(blocker)) => (false, blocker.clone()),
                _ => continue,
            };
            return Found::Change(Change { at: self.now, is_open, by: self.agenda.cause(by) });
        }
    }

    /// Returns the time until which a rule is certainly the first blocker.
    fn end_of_cause(mut self, blocker: &Blocker) -> Option<Timestamp> {
        let mut budget = MAX_PHASES;
        loop {
            let until = self.agenda.cause_holds_until(blocker, &self.phases)?;
            if !self.move_to(until, &mut budget) || self.blocker().as_ref() != Some(blocker) {
                return Some(until);
            }
        }
    }

    /// Moves to a time, unless that takes more phases than are left.
    fn move_to(&mut self, now: Timestamp, budget: &mut usize) -> bool {
        let is_over = |phase: &Phase| phase.until.is_some_and(|until| until <= now);
        let count = self.phases.iter().flatten().filter(|phase| is_over(phase)).count();
        let Some(rest) = budget.checked_sub(count) else { return false };
        *budget = rest;
        for (source, phases) in self.agenda.sources().iter().zip(&mut self.phases) {
            for (part, phase) in phases.iter_mut().enumerate().filter(|(_, phase)| is_over(phase)) {
                *phase = source.rule.phase(part, now).unwrap_or(*phase);
            }
        }
        self.now = now;
        true
    }

    /// Returns the rule that opened the agenda, given one that closed it before.
    ///
    /// Another one may have closed it last.
    fn opened_by(&self, earlier: Blocker) -> Blocker {
        let just_before = self.now.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(self.now);
        let last = self.agenda.first_blocker(&self.agenda.phases(just_before)).unwrap_or(earlier);
        match (&last.kind, &self.agenda.sources()[last.source].rule) {
            (CauseKind::OutsideAllow, Rule::Windows(windows)) => {
                let allow = windows.active_allow(&self.phases[last.source]);
                let kind = allow.map(|entry| CauseKind::Allow { entry: entry.name().to_owned() });
                Blocker { source: last.source, kind: kind.unwrap_or(last.kind) }
            }
            _ => last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Freeze, Source};
    use super::*;

    fn windows(text: &str) -> Source {
        Source { name: "app".to_owned(), rule: Rule::Windows(text.parse().unwrap()) }
    }

    fn freeze(text: &str) -> Source {
        Source { name: "shop".to_owned(), rule: Rule::Freeze(Freeze::parse(text).unwrap().unwrap()) }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn described(change: &Change) -> String {
        format!("{} {} {}", change.at, if change.is_open { "open" } else { "closed" }, change.by)
    }

    fn changes(sources: Vec<Source>, now: &str) -> Vec<String> {
        let agenda = Agenda::new(sources);
        agenda.changes(at(now)).take(5).map(|change| described(&change)).collect()
    }

    #[test]
    fn each_change_has_the_rule_that_makes_it() {
        let list = "
- {name: office, kind: allow, cron: '0 9 * * 1-5', window: 7h}
- {name: late, kind: allow, cron: '0 16 * * 4', window: 1h}
- {name: holidays, kind: deny, from: 2026-12-18T12:00, until: 2026-12-21T10:00}
";
        assert_eq!(
            changes(
                vec![windows(list), freeze("{reason: audit, until: 2026-12-17T10:00}")],
                "2026-12-17T00:00:00Z"
            ),
            [
                "2026-12-17T10:00:00Z open freeze of shop: audit",
                // The late window follows without a gap.
                "2026-12-17T17:00:00Z closed no allow window of app is active",
                "2026-12-18T09:00:00Z open allow window `office` of app",
                "2026-12-18T12:00:00Z closed deny window `holidays` of app",
                "2026-12-21T10:00:00Z open deny window `holidays` of app",
            ]
        );
    }

    #[test]
    fn windows_that_overlap_are_one() {
        let list = "[{name: x, kind: deny, cron: '0 0,6 * * 1', window: 12h}]";
        assert_eq!(
            // 2026-11-30 is a Monday.
            changes(vec![windows(list)], "2026-11-29T00:00:00Z")[..2],
            [
                "2026-11-30T00:00:00Z closed deny window `x` of app",
                "2026-11-30T18:00:00Z open deny window `x` of app",
            ]
        );
    }

    #[test]
    fn changes_end_after_the_last_one() {
        let once = "[{name: x, kind: allow, from: 2026-12-01T00:00, until: 2026-12-02T00:00}]";
        for (sources, count) in [
            (vec![], 0),
            (vec![windows("[]")], 0),
            (vec![windows(once)], 2),
            (vec![freeze("")], 0),
            (vec![freeze("{from: 2026-12-01T12:00}"), windows(once)], 2),
            (vec![freeze("{from: 2026-12-01T12:00}")], 1),
        ] {
            assert_eq!(changes(sources.clone(), "2026-11-01T00:00:00Z").len(), count, "{sources:?}");
        }
    }

    #[test]
    fn an_outlook_holds_until_its_cause_changes() {
        let sources = vec![
            freeze("{until: 2026-12-01T10:00}"),
            windows("[{name: x, kind: deny, cron: '0 0 * * *', window: 12h}]"),
        ];
        let agenda = Agenda::new(sources);
        let frozen = agenda.outlook(at("2026-12-01T01:00:00Z"));
        assert_eq!(frozen.valid_until, Some(at("2026-12-01T10:00:00Z")));
        assert_eq!(described(&frozen.next.unwrap()), "2026-12-01T12:00:00Z open deny window `x` of app");
        let closed = agenda.outlook(at("2026-12-01T10:00:00Z"));
        assert_eq!(closed.valid_until, Some(at("2026-12-01T12:00:00Z")));
        assert_eq!(closed.valid_until, closed.next.map(|change| change.at));
        assert!(!closed.state.is_open());
    }

    /// The search ended in the phases of frequent windows without a result.
    #[test]
    fn the_end_of_a_freeze_is_known_beside_frequent_windows() {
        let frequent = "{name: often, kind: allow, cron: '*/10 * * * *', window: 5m}";
        let night = "{name: night, kind: deny, cron: '0 0 * * *', window: 6h}";
        let holidays = "{name: holidays, kind: deny, from: 2026-11-20T00:00, until: 2027-01-04T08:00}";
        let audit = || freeze("{reason: audit, until: 2027-01-04T08:00}");
        let opens = |by: &str| format!("2027-01-04T08:00:00Z open {by}");
        for (sources, opens, valid_until) in [
            (
                vec![windows(&format!("[{frequent}]")), audit()],
                opens("freeze of shop: audit"),
                "2027-01-04T08:00:00Z",
            ),
            (
                vec![windows(&format!("[{frequent}, {holidays}]"))],
                opens("deny window `holidays` of app"),
                "2027-01-04T08:00:00Z",
            ),
            (
                vec![windows(&format!("[{frequent}]")), windows(&format!("[{holidays}]"))],
                // The first list closes first as well.
                opens("allow window `often` of app"),
                "2026-12-01T00:05:00Z",
            ),
            (
                vec![windows(&format!("[{night}, {frequent}]")), audit()],
                opens("freeze of shop: audit"),
                "2027-01-04T08:00:00Z",
            ),
        ] {
            let outlook = Agenda::new(sources).outlook(at("2026-12-01T00:00:00Z"));
            let found = (described(&outlook.next.unwrap()), outlook.valid_until);
            assert_eq!(found, (opens, Some(at(valid_until))));
        }
        // The window that closes last is named, not the one that closed first.
        let sources = vec![windows(&format!("[{night}]")), freeze("{until: 2026-12-03T02:00}")];
        assert_eq!(
            changes(sources, "2026-12-01T12:00:00Z")[0],
            "2026-12-03T06:00:00Z open deny window `night` of app"
        );
    }

    #[test]
    fn an_outlook_without_a_change_holds_forever() {
        let now = at("2026-12-01T00:00:00Z");
        let over = "[{name: x, kind: allow, from: 2026-10-01T00:00, until: 2026-10-02T00:00}]";
        let daily = "[{name: y, kind: deny, cron: '0 0 * * *', window: 1h}]";
        for (sources, is_open) in [
            (vec![], true),
            (vec![freeze("incident")], false),
            (vec![windows(daily), freeze("incident")], false),
            (vec![windows(over), windows(daily)], false),
        ] {
            let outlook = Agenda::new(sources).outlook(now);
            assert_eq!((outlook.state.is_open(), outlook.next, outlook.valid_until), (is_open, None, None));
        }
    }

    #[test]
    fn a_cause_can_change_although_nothing_opens_again() {
        let over = "{name: x, kind: allow, from: 2026-10-01T00:00, until: 2026-10-02T00:00}";
        let night = "{name: y, kind: deny, cron: '0 0 * * *', window: 1h}";
        let once = "{from: 2026-12-05T00:00, until: 2026-12-06T00:00}";
        for (sources, valid_until) in [
            (vec![windows(&format!("[{over}, {night}]"))], "2026-12-02T00:00:00Z"),
            (vec![windows(&format!("[{over}]")), freeze(once)], "2026-12-05T00:00:00Z"),
            (vec![windows(&format!("[{night}]")), windows(&format!("[{over}]"))], "2026-12-02T00:00:00Z"),
            (vec![freeze(once), freeze("incident")], "2026-12-05T00:00:00Z"),
        ] {
            let outlook = Agenda::new(sources).outlook(at("2026-12-01T12:00:00Z"));
            assert!(!outlook.state.is_open() && outlook.next.is_none());
            assert_eq!(outlook.valid_until, Some(at(valid_until)));
        }
    }

    #[test]
    fn a_search_without_end_is_bounded() {
        let minutes = "[{name: x, kind: deny, cron: '* * * * *', window: 1m}]";
        let year = "[{name: x, kind: deny, cron: '* * * * *', window: 366d}]";
        for (list, days) in [(minutes, 1), (year, 366 * 2_000)] {
            let agenda = Agenda::new(vec![windows(list)]);
            let now = at("2026-12-01T00:00:30Z");
            let outlook = agenda.outlook(now);
            assert!(!outlook.state.is_open() && outlook.next.is_none(), "{list}");
            let days_ahead = outlook.valid_until.unwrap().duration_since(now).as_hours() / 24;
            assert!((days..days + 367).contains(&days_ahead), "{list}: {days_ahead}");
            assert_eq!(agenda.changes(now).next(), None);
        }
    }
}
