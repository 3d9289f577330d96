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
pub(super) struct UnderWay {
    begun: Arc<Mutex<Begun>>,
}

#[derive(Debug, Default)]
struct Begun {
    count: u64,
    looks: HashMap<u64, (&'static str, Instant)>,
}

/// A timer of a reconcile, which is in flight until the timer is dropped.
#[derive(Debug)]
pub struct Look {
    under_way: UnderWay,
    number: u64,
}

impl Drop for Look {
    fn drop(&mut self) {
        self.under_way.begun.lock().looks.remove(&self.number);
    }
}

impl UnderWay {
    /// Starts a timer of a controller.
    pub(super) fn begin(&self, controller: &'static str, now: Instant) -> Look {
        let mut begun = self.begun.lock();
        begun.count += 1;
        let number = begun.count;
        begun.looks.insert(number, (controller, now));
        Look { under_way: self.clone(), number }
    }

    /// Returns the duration of a controller's longest reconcile in flight, in seconds.
    fn longest(&self, controller: &str, now: Instant) -> f64 {
        let begun = self.begun.lock();
        let own = begun.looks.values().filter(|(of, _)| *of == controller);
        own.map(|(_, since)| now.saturating_duration_since(*since).as_secs_f64()).fold(0.0, f64::max)
    }
}

impl Collector for UnderWay {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "How many seconds the longest look at an object has taken that is under way";
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
    fn the_longest_look_counts_until_it_ends() {
        let (under_way, now) = (UnderWay::default(), Instant::now());
        let later = now + Duration::from_secs(5);
        let first = under_way.begin("imagepolicy", now);
        let _second = under_way.begin("imagepolicy", now + Duration::from_secs(3));
        assert_eq!((under_way.longest("imagepolicy", later), under_way.longest("other", later)), (5.0, 0.0));
        drop(first);
        assert_eq!(under_way.longest("imagepolicy", later), 2.0);
    }
}
