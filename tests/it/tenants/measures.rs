//! Time limits, and measurements of a process from outside: answers of `/healthz`, memory, threads.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Timeout of any step of a test; no limit that the program promises.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// Allowance for a slow and busy machine, added to every limit except that of `/healthz`.
pub(super) const NOISE: Duration = Duration::from_secs(5);

/// The longest time until an automation of another namespace is reconciled.
pub(super) const RECONCILED_WITHIN: Duration = Duration::from_secs(5);

/// The longest time until a deleted object loses its finalizer.
pub(super) const DELETED_WITHIN: Duration = Duration::from_secs(3);

/// The longest time until `/healthz` answers: the promise is 250 ms, the rest is noise.
pub(super) const HEALTHY_WITHIN: Duration = Duration::from_secs(1);

/// The time between two probes of `/healthz`, and the one between two samples of memory.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);

/// A thread that measures until it is stopped.
struct Measuring<T> {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Measuring<T> {
    fn start(measure: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&is_over);
        Self { is_over, thread: Some(std::thread::spawn(move || measure(&shared))) }
    }

    fn stop(mut self) -> T {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().expect("it is stopped once").join().unwrap()
    }
}

impl<T> Drop for Measuring<T> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Probes `/healthz` repeatedly, one request at a time.
pub(super) struct HealthProbe(Measuring<HealthRecord>);

/// The answers of `/healthz`.
#[derive(Debug, Default)]
pub(super) struct HealthRecord {
    pub(super) answers: usize,
    /// The longest time until an answer; a missing answer counts as the timeout.
    pub(super) longest: Duration,
}

impl HealthProbe {
    pub(super) fn start(address: &str) -> Self {
        let address = address.to_owned();
        Self(Measuring::start(move |is_over| {
            let mut record = HealthRecord::default();
            while !is_over.load(Ordering::Relaxed) {
                let begin = Instant::now();
                let is_answered = is_healthy(&address);
                record.longest = record.longest.max(begin.elapsed());
                if !is_answered {
                    // A failure counts as too late, even if the connection failed quickly.
                    record.longest = record.longest.max(TIMEOUT);
                }
                record.answers += 1;
                std::thread::sleep(PROBE_INTERVAL);
            }
            record
        }))
    }

    /// Waits for the last answer, and returns the record.
    pub(super) fn stop(self) -> HealthRecord {
        self.0.stop()
    }
}

/// Returns whether `/healthz` answers with 200.
pub(super) fn is_healthy(address: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut connection = TcpStream::connect(address)?;
        connection.set_read_timeout(Some(TIMEOUT))?;
        connection.write_all(b"GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
}

/// Samples the anonymous memory of a process and all its descendants.
pub(super) struct MemorySampler {
    peak: Arc<AtomicU64>,
    _measuring: Measuring<()>,
}

impl MemorySampler {
    pub(super) fn start(process: u32) -> Self {
        let peak = Arc::new(AtomicU64::new(0));
        let highest = Arc::clone(&peak);
        let measuring = Measuring::start(move |is_over: &AtomicBool| {
            while !is_over.load(Ordering::Relaxed) {
                let now = family(process).into_iter().map(anonymous_memory).sum();
                highest.fetch_max(now, Ordering::Relaxed);
                std::thread::sleep(SAMPLE_INTERVAL);
            }
        });
        Self { peak, _measuring: measuring }
    }

    /// The peak so far, in bytes.
    pub(super) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Resets the peak.
    pub(super) fn reset(&self) {
        self.peak.store(0, Ordering::Relaxed);
    }
}

/// A process and its descendants, without those that end meanwhile.
fn family(process: u32) -> Vec<u32> {
    let (mut found, mut waiting) = (Vec::new(), VecDeque::from([process]));
    while let Some(process) = waiting.pop_front() {
        found.push(process);
        let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for thread in threads.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            waiting.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    found
}

/// `RssAnon` of a process, in bytes; 0 if it has ended.
fn anonymous_memory(process: u32) -> u64 {
    status_number(process, "RssAnon:").unwrap_or_default() * 1024
}

/// The number of threads of a process.
pub(super) fn threads(process: u32) -> u64 {
    status_number(process, "Threads:").expect("the process runs")
}

/// A number of `/proc/PROCESS/status`.
fn status_number(process: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}
