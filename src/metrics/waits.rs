//! The images that automations do not write, and the times at which they may.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use tagboat_api::ObjectName;

use super::labels::ObjectLabels;
use crate::schedule::{Agenda, Outlook};

/// The images that an automation does not write, and the times at which it may.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteState {
    /// Its windows and freezes; none if it has none.
    pub windows: Option<WriteWindows>,
    /// Its wait; none if nothing waits.
    pub waiting: Option<WaitingImages>,
    /// The number of policies that are held; none if reverts are overwritten.
    pub held: Option<usize>,
}

/// The windows and freezes of an automation, together.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteWindows {
    /// They are not known, so that nothing may be written.
    Unknown,
    /// They are known, also for later times.
    Known {
        /// The windows and freezes.
        agenda: Agenda,
        /// Their state and its next change.
        outlook: Outlook,
    },
}

impl WriteWindows {
    /// Creates the windows and freezes of an agenda.
    pub fn new(agenda: Agenda, now: Timestamp) -> Self {
        let outlook = agenda.outlook(now);
        Self::Known { agenda, outlook }
    }

    /// Updates the outlook, once it does not hold any more.
    fn refresh(&mut self, now: Timestamp) {
        let Self::Known { agenda, outlook } = self else { return };
        if outlook.valid_until.is_some_and(|until| until <= now) {
            *outlook = agenda.outlook(now);
        }
    }

    fn is_open(&self) -> bool {
        matches!(self, Self::Known { outlook, .. } if outlook.state.is_open())
    }

    /// Returns the time at which they open, if they are closed and it is known.
    fn opens(&self) -> Option<Timestamp> {
        let Self::Known { outlook, .. } = self else { return None };
        outlook.next.as_ref().filter(|change| change.is_open).map(|change| change.at)
    }
}

/// The images that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingImages {
    /// The reason of the condition.
    pub reason: String,
    /// The number of policies.
    pub policies: usize,
    /// The end of the wait, if it is known.
    pub until: Option<Timestamp>,
}

impl WriteState {
    /// Returns true if windows and freezes allow a write; none without them.
    fn is_open(&self) -> Option<bool> {
        self.windows.as_ref().map(WriteWindows::is_open)
    }

    /// Returns the time of the next write; none if it is now or unknown.
    fn next_write(&self, now: Timestamp) -> Option<Timestamp> {
        let wait = self.waiting.as_ref().and_then(|waiting| waiting.until).filter(|until| *until > now);
        wait.or_else(|| self.windows.as_ref()?.opens())
    }

    /// Updates what has changed with the time.
    fn refresh(&mut self, now: Timestamp) {
        self.windows.iter_mut().for_each(|windows| windows.refresh(now));
    }
}

/// The states of all automations that have one. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    known: Arc<Mutex<BTreeMap<ObjectName, WriteState>>>,
}

impl Waits {
    /// Records the state of an automation.
    pub(super) fn set(&self, name: &ObjectName, state: WriteState) {
        if state == WriteState::default() {
            return self.forget(name);
        }
        self.known.lock().insert(name.clone(), state);
    }

    /// Forgets an automation that is gone.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.known.lock().remove(name);
    }
}

#[derive(EncodeLabelSet)]
struct WaitingLabels {
    kind: &'static str,
    name: String,
    namespace: String,
    reason: String,
}

impl Collector for Waits {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = Timestamp::now();
        let known = {
            let mut known = self.known.lock();
            known.values_mut().for_each(|state| state.refresh(now));
            known.clone()
        };
        if known.is_empty() {
            return Ok(());
        }
        let kind = "ImageUpdateAutomation";
        let labels = |ObjectName { namespace, name }: &ObjectName| ObjectLabels {
            kind,
            name: name.clone(),
            namespace: namespace.clone(),
        };
        let help = "Policies whose images may not be written yet, by the reason";
        let mut metric =
            encoder.encode_descriptor("tagboat_policies_waiting", help, None, MetricType::Gauge)?;
        for (automation, state) in &known {
            let Some(waiting) = &state.waiting else { continue };
            let ObjectName { namespace, name } = automation.clone();
            let labels = WaitingLabels { kind, name, namespace, reason: waiting.reason.clone() };
            let policies = i64::try_from(waiting.policies).unwrap_or(i64::MAX);
            ConstGauge::new(policies).encode(metric.encode_family(&labels)?)?;
        }
        let help = "Policies whose images were reverted in git and are held";
        let mut metric = encoder.encode_descriptor("tagboat_policies_held", help, None, MetricType::Gauge)?;
        for (automation, state) in &known {
            let Some(held) = state.held else { continue };
            let held = i64::try_from(held).unwrap_or(i64::MAX);
            ConstGauge::new(held).encode(metric.encode_family(&labels(automation))?)?;
        }
        let help = "1 if windows and freezes allow a write, else 0";
        let mut metric = encoder.encode_descriptor("tagboat_window_open", help, None, MetricType::Gauge)?;
        for (automation, state) in &known {
            let Some(is_open) = state.is_open() else { continue };
            ConstGauge::new(i64::from(is_open)).encode(metric.encode_family(&labels(automation))?)?;
        }
        let help = "The end of the wait or of the closed window, in seconds since 1970";
        let (name, unit) = ("tagboat_next_write_timestamp", Unit::Seconds);
        let mut metric = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
        for (automation, state) in &known {
            let Some(next) = state.next_write(now) else { continue };
            let seconds = next.as_millisecond() as f64 / 1000.0;
            ConstGauge::new(seconds).encode(metric.encode_family(&labels(automation))?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Rule, Source};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// After four changes, the state was that of the last one.
    #[test]
    fn windows_change_without_another_look() {
        // 10 to 20 seconds after each minute.
        let windows = "[{name: x, kind: deny, from: 1970-01-01T00:00:10, until: 1970-01-01T00:00:20},\
                        {name: y, kind: deny, cron: '* * * * *', window: 10s}]";
        let rule = Rule::Windows(windows.parse().unwrap());
        let agenda = Agenda::new(vec![Source { name: "app".to_owned(), rule }]);
        let waiting = WaitingImages { reason: "QuietPeriod".to_owned(), policies: 1, until: Some(at(25)) };
        let windows = Some(WriteWindows::new(agenda, at(5)));
        let mut state = WriteState { windows, ..WriteState::default() };
        for (now, is_open, next, next_of_both) in [
            (5, false, Some(20), Some(25)),
            (10, false, Some(20), Some(25)),
            (19, false, Some(20), Some(25)),
            (20, true, None, Some(25)),
            (30, true, None, None),
            (60, false, Some(70), Some(70)),
            (70, true, None, None),
            (600, false, Some(610), Some(610)),
            (615, true, None, None),
            (86_400, false, Some(86_410), Some(86_410)),
        ] {
            state.refresh(at(now));
            let both = WriteState { waiting: Some(waiting.clone()), ..state.clone() };
            let found = (state.is_open(), state.next_write(at(now)), both.next_write(at(now)));
            assert_eq!(found, (Some(is_open), next.map(at), next_of_both.map(at)), "{now}");
        }
        let unknown = WriteState { windows: Some(WriteWindows::Unknown), ..WriteState::default() };
        assert_eq!((unknown.is_open(), unknown.next_write(at(0))), (Some(false), None));
        assert_eq!(WriteState::default().is_open(), None);
    }
}
