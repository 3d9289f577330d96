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

/// The images that an automation does not write, and the times at which it may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteState {
    /// Its windows and freezes; none if it has none.
    pub windows: Option<WriteWindows>,
    /// Its wait; none if nothing waits.
    pub waiting: Option<WaitingImages>,
    /// The number of policies that are held; none if reverts are overwritten.
    pub held: Option<usize>,
}

/// The windows and freezes of an automation, together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteWindows {
    /// True if they allowed a write when they were looked at.
    pub is_open: bool,
    /// The next changes in their order, each with true if it opens them.
    pub changes: Vec<(Timestamp, bool)>,
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
    fn is_open(&self, now: Timestamp) -> Option<bool> {
        let windows = self.windows.as_ref()?;
        let last = windows.changes.iter().take_while(|(at, _)| *at <= now).last();
        Some(last.map_or(windows.is_open, |(_, is_open)| *is_open))
    }

    /// Returns the time of the next write; none if it is now or unknown.
    fn next_write(&self, now: Timestamp) -> Option<Timestamp> {
        let wait = self.waiting.as_ref().and_then(|waiting| waiting.until).filter(|until| *until > now);
        wait.or_else(|| {
            let windows = self.windows.as_ref().filter(|_| self.is_open(now) == Some(false))?;
            windows.changes.iter().find(|(at, is_open)| *is_open && *at > now).map(|(at, _)| *at)
        })
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
        let (known, now) = (self.known.lock().clone(), Timestamp::now());
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
            let Some(is_open) = state.is_open(now) else { continue };
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

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn windows_change_without_another_look() {
        let windows =
            WriteWindows { is_open: true, changes: vec![(at(10), false), (at(20), true), (at(30), false)] };
        let waiting = WaitingImages { reason: "QuietPeriod".to_owned(), policies: 1, until: Some(at(12)) };
        let state = WriteState { windows: Some(windows), ..WriteState::default() };
        let both = WriteState { waiting: Some(waiting), ..state.clone() };
        for (now, is_open, next, next_of_both) in [
            (9, true, None, Some(12)),
            (10, false, Some(20), Some(12)),
            (19, false, Some(20), Some(20)),
            (20, true, None, None),
            (30, false, None, None),
        ] {
            let found = (state.is_open(at(now)), state.next_write(at(now)), both.next_write(at(now)));
            assert_eq!(found, (Some(is_open), next.map(at), next_of_both.map(at)), "{now}");
        }
        assert_eq!(WriteState::default().is_open(at(0)), None);
    }
}
