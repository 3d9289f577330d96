//! The duration of the longest reconcile in flight.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// The reconciles in flight. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    timers: Arc<Mutex<Timers>>,
}

#[derive(Debug, Default)]
struct Timers {
    count: u64,
    started: HashMap<u64, (&'static str, Instant)>,
}

/// A timer of a reconcile, which is in flight until the timer is dropped.
#[derive(Debug)]
pub struct InFlightTimer {
    in_flight: InFlight,
    number: u64,
}

impl Drop for InFlightTimer {
    fn drop(&mut self) {
        self.in_flight.timers.lock().started.remove(&self.number);
    }
}

impl InFlight {
    /// Starts a timer of a controller.
    pub(super) fn start(&self, controller: &'static str, now: Instant) -> InFlightTimer {
        let mut timers = self.timers.lock();
        timers.count += 1;
        let number = timers.count;
        timers.started.insert(number, (controller, now));
        InFlightTimer { in_flight: self.clone(), number }
    }

    /// Returns the duration of a controller's longest reconcile in flight, in seconds.
    fn longest(&self, controller: &str, now: Instant) -> f64 {
        let timers = self.timers.lock();
        let own = timers.started.values().filter(|(of, _)| *of == controller);
        own.map(|(_, since)| now.saturating_duration_since(*since).as_secs_f64()).fold(0.0, f64::max)
    }
}

impl Collector for InFlight {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "The seconds that the longest reconcile in flight has taken";
        let mut metric = encoder.encode_descriptor(
            "workqueue_longest_running_processor",
            help,
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        for controller in super::labels::CONTROLLERS {
            let labels = [("name", controller)];
            ConstGauge::new(self.longest(controller, Instant::now()))
                .encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_longest_reconcile_counts_until_it_ends() {
        let (in_flight, now) = (InFlight::default(), Instant::now());
        let later = now + Duration::from_secs(5);
        let first = in_flight.start("imagepolicy", now);
        let _second = in_flight.start("imagepolicy", now + Duration::from_secs(3));
        assert_eq!((in_flight.longest("imagepolicy", later), in_flight.longest("other", later)), (5.0, 0.0));
        drop(first);
        assert_eq!(in_flight.longest("imagepolicy", later), 2.0);
    }
}
