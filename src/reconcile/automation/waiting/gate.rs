//! The rules of an automation at the present time.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tagboat_api::{ImageRef, ObjectName};

use super::clock::SteadyClock;
use super::phrases::BY_CHANGED_CLOCK;
use super::quiet::{ImageChanges, QuietPeriod};
use super::rules::{ParsedRules, RulesError, RulesReader};
use super::wait::WaitReason;
use crate::error::chain;
use crate::schedule::{Agenda, State, Windows};

/// The time after which rules that are not watched are read again.
const UNWATCHED_PAUSE: SignedDuration = SignedDuration::from_secs(20);

/// The time after which the clock is read again after it was changed.
const CLOCK_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// Decides, each time it is asked, whether an automation may write.
#[derive(Clone, Debug)]
pub struct WriteGate {
    /// The automation.
    pub automation: ObjectName,
    /// Its own windows.
    pub own: Option<Arc<Windows>>,
    /// Its quiet period.
    pub quiet: Option<QuietPeriod>,
    /// True if its own windows and quiet period are overridden.
    pub ignores_own: bool,
    /// Reads the rules of Namespaces.
    pub rules: RulesReader,
    /// The lists that were parsed.
    pub parsed: ParsedRules,
    /// The clock.
    pub clock: SteadyClock,
}

/// The state of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct GateState {
    /// True if there is a window or a freeze, be it active or not.
    pub has_windows: bool,
    /// True if there is any rule that may close it.
    pub has_rules: bool,
    /// The rule that closes it.
    pub closed: Option<Closed>,
    /// The windows and freezes, with those that are overridden; none if they cannot be read.
    pub agenda: Option<Agenda>,
}

/// A rule that closes a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The reason.
    pub reason: WaitReason,
    /// The rule as a phrase.
    pub by: String,
    /// The time at which the gate opens, if it is known.
    pub until: Option<Timestamp>,
    /// The time at which the gate must be looked at again, at the latest.
    pub look_again: Option<Timestamp>,
    /// The changes of the images that a quiet period counts.
    pub changes: Option<ImageChanges>,
}

impl WriteGate {
    /// Returns true if a look costs no request, or there are rules anyway.
    pub fn is_cheap(&self) -> bool {
        let has_windows = || self.own.as_ref().is_some_and(|windows| !windows.entries().is_empty());
        self.rules.is_cached() || self.quiet.is_some() || has_windows()
    }

    /// Records the images that are wanted now.
    pub fn observe(&mut self, images: &BTreeMap<String, ImageRef>) {
        let [now, _] = self.clock.read();
        self.quiet.iter_mut().for_each(|quiet| quiet.observe(images, now));
    }

    /// Returns the changes of the images that the quiet period counts.
    pub fn image_changes(&self) -> Option<&ImageChanges> {
        self.quiet.as_ref().and_then(QuietPeriod::changes)
    }

    /// Returns the state at the present time.
    ///
    /// It is closed if the rules cannot be read.
    pub fn state(&self) -> GateState {
        self.state_at(self.clock.read())
    }

    /// Returns the state at several times, of which each must be open.
    fn state_at(&self, times: [Timestamp; 2]) -> GateState {
        let own = self.own.as_deref();
        let rules = self.rules.read(&self.automation.namespace);
        let agendas = rules.and_then(|rules| {
            let agenda = |own| rules.agenda(&self.automation, own, &self.parsed);
            let all = agenda(own)?;
            let counted = if self.ignores_own { agenda(None)? } else { all.clone() };
            Ok((all, counted))
        });
        let (all, counted) = match agendas {
            Ok(agendas) => agendas,
            Err(error) => {
                // The correction of an annotation is noticed only if Namespaces are watched.
                let is_unwatched = !self.rules.is_cached() || matches!(error, RulesError::Unreadable { .. });
                let look_again = later(times[0], UNWATCHED_PAUSE).filter(|_| is_unwatched);
                let closed = self.closed(WaitReason::Frozen, chain(&error), (None, look_again));
                let (has_windows, has_rules) = (true, true);
                return GateState { has_windows, has_rules, closed: Some(closed), agenda: None };
            }
        };
        let [now, unchanged] = times;
        let by_changed_clock = || {
            let closed = self.closed_at(unchanged, &counted).filter(|_| unchanged != now)?;
            let by = format!("{}{BY_CHANGED_CLOCK}", closed.by);
            Some(Closed { by, until: None, look_again: later(now, CLOCK_PAUSE), ..closed })
        };
        let has_windows = !all.sources().is_empty();
        GateState {
            has_windows,
            has_rules: self.quiet.is_some() || has_windows,
            closed: self.closed_at(now, &counted).or_else(by_changed_clock),
            agenda: Some(all),
        }
    }

    /// Returns the rule that closes the gate at a time, if one does.
    fn closed_at(&self, now: Timestamp, agenda: &Agenda) -> Option<Closed> {
        let outlook = agenda.outlook(now);
        if let State::Closed(cause) = outlook.state {
            let until = outlook.next.map(|change| change.at);
            let unwatched = later(now, UNWATCHED_PAUSE).filter(|_| !self.rules.is_cached());
            // Another rule may follow this one.
            let look_again = [until, outlook.valid_until, unwatched].into_iter().flatten().min();
            return Some(self.closed(cause.reason().into(), cause.to_string(), (until, look_again)));
        }
        let quiet = self.quiet.as_ref().filter(|_| !self.ignores_own)?;
        let (by, until) = quiet.delay(now, &self.automation)?;
        Some(self.closed(WaitReason::QuietPeriod, by, (Some(until), Some(until))))
    }

    fn closed(
        &self,
        reason: WaitReason,
        by: String,
        (until, look_again): (Option<Timestamp>, Option<Timestamp>),
    ) -> Closed {
        Closed { reason, by, until, look_again, changes: self.image_changes().cloned() }
    }
}

fn later(now: Timestamp, pause: SignedDuration) -> Option<Timestamp> {
    now.checked_add(pause).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::reconcile::automation::waiting::NamespaceRules;

    const NIGHT: &str = "[{name: night, kind: deny, cron: '0 18 * * *', window: 12h}]";

    fn gate(own: &str, namespace: &[(&str, &str)], all: &[(&str, &str)]) -> WriteGate {
        let annotations = |given: &[(&str, &str)]| -> BTreeMap<String, String> {
            given.iter().map(|(name, value)| (format!("tagboat.dev/{name}"), (*value).to_owned())).collect()
        };
        let rules = NamespaceRules::of(&annotations(namespace)).with_freeze_all("tagboat", &annotations(all));
        WriteGate {
            automation: ObjectName { namespace: "shop".to_owned(), name: "app".to_owned() },
            own: Some(Arc::new(own.parse().unwrap())),
            quiet: None,
            ignores_own: false,
            rules: RulesReader::new(move |_| Ok(rules.clone())),
            parsed: ParsedRules::default(),
            clock: SteadyClock::default(),
        }
    }

    fn shown(gate: &WriteGate, now: &str) -> String {
        let now: Timestamp = now.parse().unwrap();
        let GateState { has_rules, closed, .. } = gate.state_at([now, now]);
        match closed {
            None => format!("open {has_rules}"),
            Some(Closed { reason, by, until, .. }) => {
                let until = until.map_or_else(|| "?".to_owned(), |until| until.to_string());
                format!("{} {by} until {until}", reason.reason())
            }
        }
    }

    #[test]
    fn all_rules_must_allow_a_write() {
        let noon = "2026-12-01T12:00:00Z";
        let evening = "2026-12-01T20:00:00Z";
        for (own, namespace, all, now, expected) in [
            ("[]", &[][..], &[][..], noon, "open false"),
            (NIGHT, &[], &[], noon, "open true"),
            (
                NIGHT,
                &[],
                &[],
                evening,
                "WindowClosed deny window `night` of automation shop/app until 2026-12-02T06:00:00Z",
            ),
            (
                "[]",
                &[("windows", NIGHT)],
                &[],
                evening,
                "WindowClosed deny window `night` of namespace shop (tagboat.dev/windows) until 2026-12-02T06:00:00Z",
            ),
            (
                NIGHT,
                &[("freeze", "incident 4711")],
                &[],
                evening,
                "Frozen freeze of namespace shop (tagboat.dev/freeze): incident 4711 until ?",
            ),
            ("[]", &[("freeze", "false")], &[("freeze-all", "false")], noon, "open false"),
            (
                "[]",
                &[],
                &[("freeze-all", "")],
                noon,
                "Frozen freeze of all namespaces by tagboat.dev/freeze-all of namespace tagboat until ?",
            ),
            // An annotation of another Namespace than the controller's.
            ("[]", &[("freeze-all", "")], &[], noon, "open false"),
        ] {
            assert_eq!(shown(&gate(own, namespace, all), now), expected, "{own} {namespace:?} {all:?}");
        }
        let invalid = shown(&gate("[]", &[("windows", "{}")], &[]), noon);
        let expected = "Frozen invalid setting of namespace shop (tagboat.dev/windows): ";
        assert!(invalid.starts_with(expected), "{invalid}");
        let misspelt = shown(&gate("[]", &[("freez", "")], &[]), noon);
        assert!(misspelt.starts_with("Frozen namespace shop has the unknown annotation tagboat.dev/freez: "));
        // It may be the freeze of all Namespaces.
        let misspelt = shown(&gate("[]", &[], &[("freezeall", "")]), noon);
        let expected = "Frozen namespace tagboat has the unknown annotation tagboat.dev/freezeall: ";
        assert!(misspelt.starts_with(expected), "{misspelt}");
        // Another name delays the automations of its own Namespace only.
        assert_eq!(shown(&gate("[]", &[], &[("on-revert", "")]), noon), shown(&gate("[]", &[], &[]), noon));
    }

    #[test]
    fn a_gate_is_closed_if_its_rules_cannot_be_read_or_by_the_time_before_a_change_of_the_clock() {
        let unreadable = || RulesError::Unreadable {
            namespace: "shop".to_owned(),
            source: Arc::new(std::io::Error::other("timed out")),
        };
        let mut gate = gate(NIGHT, &[], &[]);
        let [day, evening] =
            ["2026-12-01T12:00:00Z", "2026-12-01T20:00:00Z"].map(|text| text.parse().unwrap());
        let closed = gate.state_at([day, evening]).closed.unwrap();
        assert_eq!(closed.until, None);
        assert_eq!(closed.look_again, Some(day + CLOCK_PAUSE));
        assert!(closed.by.ends_with(BY_CHANGED_CLOCK), "{}", closed.by);
        gate.rules = RulesReader::new(move |_| Err(unreadable()));
        let expected = "Frozen the annotations of namespace shop cannot be read: timed out until ?";
        assert_eq!(shown(&gate, "2026-12-01T12:00:00Z"), expected);
        assert_eq!(gate.state_at([day, day]).closed.unwrap().look_again, Some(day + UNWATCHED_PAUSE));
    }

    #[test]
    fn a_gate_is_looked_at_when_its_rule_ends_or_is_not_watched() {
        let freeze = "{reason: audit, until: 2026-12-01T19:00:00Z}";
        let mut gate = gate(NIGHT, &[("freeze", freeze)], &[]);
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let evening = time("2026-12-01T18:30:00Z");
        let found = |gate: &WriteGate| {
            let closed = gate.state_at([evening, evening]).closed.unwrap();
            (closed.reason, closed.until, closed.look_again)
        };
        // A window follows the freeze.
        let (opens, thaws) = (Some(time("2026-12-02T06:00:00Z")), Some(time("2026-12-01T19:00:00Z")));
        assert_eq!(found(&gate), (WaitReason::Frozen, opens, thaws));
        gate.rules = gate.rules.cached_while(|| false);
        assert_eq!(found(&gate), (WaitReason::Frozen, opens, Some(evening + UNWATCHED_PAUSE)));
    }

    /// Without a watch, the removal of the annotation went unnoticed.
    #[test]
    fn a_misspelt_freeze_is_looked_at_again_where_namespaces_are_not_watched() {
        let evening: Timestamp = "2026-12-01T18:30:00Z".parse().unwrap();
        let mut gate = gate("[]", &[], &[("freezeall", "")]);
        let look_again = |gate: &WriteGate| gate.state_at([evening, evening]).closed.unwrap().look_again;
        assert_eq!(look_again(&gate), None);
        gate.rules = gate.rules.cached_while(|| false);
        assert_eq!(look_again(&gate), Some(evening + UNWATCHED_PAUSE));
    }

    #[test]
    fn an_override_lifts_the_own_rules_alone_and_keeps_them_in_view() {
        let evening: Timestamp = "2026-12-01T20:00:00Z".parse().unwrap();
        for (of_namespace, is_closed) in [(&[][..], false), (&[("windows", NIGHT)], true)] {
            let gate = WriteGate { ignores_own: true, ..gate(NIGHT, of_namespace, &[]) };
            let state = gate.state_at([evening, evening]);
            assert_eq!((state.has_windows, state.has_rules, state.closed.is_some()), (true, true, is_closed));
            assert!(!state.agenda.unwrap().state(evening).is_open(), "{of_namespace:?}");
        }
    }
}
