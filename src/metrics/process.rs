//! Process metrics, read on each scrape.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// The CPU and memory of this process, under the conventional names.
#[derive(Debug)]
pub(super) struct ProcessCost;

impl Collector for ProcessCost {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Only Linux has this file; on other systems the metrics are absent.
        let Some(cost) = fs::read_to_string("/proc/self/stat").ok().and_then(|stat| Cost::parse(&stat))
        else {
            return Ok(());
        };
        let seconds = cost.ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        let help = "CPU time in seconds of this process and of the git processes that have ended";
        let metric =
            encoder.encode_descriptor("process_cpu", help, Some(&Unit::Seconds), MetricType::Counter)?;
        ConstCounter::new(seconds).encode(metric)?;
        let bytes = cost.pages.saturating_mul(rustix::param::page_size() as u64);
        let help = "Memory of this process in bytes";
        let metric = encoder.encode_descriptor(
            "process_resident_memory",
            help,
            Some(&Unit::Bytes),
            MetricType::Gauge,
        )?;
        ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX)).encode(metric)
    }
}

/// The values of a process from Linux.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    /// The CPU time of the process and of its waited-for children, in clock ticks.
    ticks: u64,
    /// The resident memory, in pages.
    pages: u64,
}

impl Cost {
    /// Parses a line of `/proc/PID/stat` (proc(5)).
    fn parse(stat: &str) -> Option<Self> {
        // The second field is a name in brackets, which may hold any characters.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let ticks = (11..15).map(number).sum::<Option<u64>>()?;
        Some(Self { ticks, pages: number(21)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stat_line_of_a_process_is_parsed_with_any_process_name() {
        let line = "7 (a) b ( c) S 1 7 7 0 -1 4194304 100 0 0 0 11 22 33 44 20 0 3 0 500 1000000 250 18446744073709551615";
        assert_eq!(Cost::parse(line), Some(Cost { ticks: 110, pages: 250 }));
        assert_eq!(Cost::parse("7 (a) S 1"), None);
        assert_eq!(Cost::parse(""), None);
    }
}
