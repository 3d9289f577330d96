//! The rules of an automation at the present time.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tagboat_api::{ImageRef, ObjectName};

use super::clock::SteadyClock;
use super::quiet::{ImageChanges, QuietPeriod};
use super::rules::{ParsedRules, RulesError, RulesReader};
use super::wait::WaitReason;
use crate::error::chain;
use crate::schedule::{State, Windows};

/// The time after which rules that cannot be read are read again.
const UNREADABLE_PAUSE: SignedDuration = SignedDuration::from_secs(20);

/// The number of changes that a state has.
const CHANGES: usize = 4;

/// Decides, each time it is asked, whether an automation may write.
#[derive(Clone, Debug)]
pub struct WriteGate {
    /// The automation.
    pub automation: ObjectName,
    /// Its own windows; none if it has none, or if they are overridden.
    pub own: Option<Arc<Windows>>,
    /// Its quiet period; none if it has none, or if it is overridden.
    pub quiet: Option<QuietPeriod>,
    /// Reads the rules of Namespaces.
    pub rules: RulesReader,
    /// The lists that were parsed.
    pub parsed: ParsedRules,
    /// The clock.
    pub clock: SteadyClock,
}

/// Two gates are equal: what they allow depends on the time.
impl PartialEq for WriteGate {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The state of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateState {
    /// True if there is a window or a freeze, be it active or not.
    pub has_windows: bool,
    /// True if there is any rule that may close it.
    pub has_rules: bool,
    /// The rule that closes it.
    pub closed: Option<Closed>,
    /// The next changes of windows and freezes, each with true if it opens them.
    pub changes: Vec<(Timestamp, bool)>,
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

    /// Returns the state at the present time.
    ///
    /// It is closed if the rules cannot be read.
    pub fn state(&self) -> GateState {
        self.state_at(self.clock.read())
    }

    /// Returns the state at several times, of which each must be open.
    fn state_at(&self, times: [Timestamp; 2]) -> GateState {
        let rules = self.rules.read(&self.automation.namespace);
        let agenda =
            rules.and_then(|rules| rules.agenda(&self.automation, self.own.as_deref(), &self.parsed));
        let agenda = match agenda {
            Ok(agenda) => agenda,
            Err(error) => {
                let is_unreadable = matches!(error, RulesError::Unreadable { .. });
                let until = times[0].checked_add(UNREADABLE_PAUSE).ok().filter(|_| is_unreadable);
                let closed = self.closed(WaitReason::Frozen, chain(&error), until);
                let (has_windows, has_rules) = (true, true);
                return GateState { has_windows, has_rules, closed: Some(closed), changes: Vec::new() };
            }
        };
        let closed_by_rule = |now: Timestamp| {
            let outlook = agenda.outlook(now);
            let State::Closed(cause) = outlook.state else { return None };
            let until = outlook.next.map(|change| change.at);
            Some(self.closed(cause.reason().into(), cause.to_string(), until))
        };
        let closed_by_quiet = |now: Timestamp| {
            let Closed { reason, by, until, .. } = self.quiet.as_ref()?.closed_at(now, &self.automation)?;
            Some(self.closed(reason, by, until))
        };
        let closed = |now: Timestamp| closed_by_rule(now).or_else(|| closed_by_quiet(now));
        let [now, unchanged] = times;
        let by_changed_clock = || {
            let closed = closed(unchanged).filter(|_| unchanged != now)?;
            let by = format!("{}, by the time before the system clock was changed", closed.by);
            Some(Closed { by, until: None, ..closed })
        };
        let changes = agenda.changes(now).take(CHANGES);
        GateState {
            has_windows: !agenda.sources().is_empty(),
            has_rules: self.quiet.is_some() || !agenda.sources().is_empty(),
            closed: closed(now).or_else(by_changed_clock),
            changes: changes.map(|change| (change.at, change.is_open)).collect(),
        }
    }

    fn closed(&self, reason: WaitReason, by: String, until: Option<Timestamp>) -> Closed {
        let changes = self.quiet.as_ref().and_then(QuietPeriod::changes).cloned();
        Closed { reason, by, until, changes }
    }
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
    }

    #[test]
    fn a_gate_is_closed_if_its_rules_cannot_be_read_or_by_the_time_before_a_change_of_the_clock() {
        let unreadable =
            || RulesError::Unreadable { namespace: "shop".to_owned(), cause: "timed out".to_owned() };
        let mut gate = gate(NIGHT, &[], &[]);
        let [day, evening] =
            ["2026-12-01T12:00:00Z", "2026-12-01T20:00:00Z"].map(|text| text.parse().unwrap());
        let closed = gate.state_at([day, evening]).closed.unwrap();
        assert_eq!(closed.until, None);
        assert!(closed.by.ends_with(", by the time before the system clock was changed"), "{}", closed.by);
        gate.rules = RulesReader::new(move |_| Err(unreadable()));
        let expected =
            "Frozen the annotations of namespace shop cannot be read: timed out until 2026-12-01T12:00:20Z";
        assert_eq!(shown(&gate, "2026-12-01T12:00:00Z"), expected);
    }
}
