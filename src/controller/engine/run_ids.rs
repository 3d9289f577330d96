//! The ids of runs.

use std::sync::atomic::{AtomicU64, Ordering};

/// Makes a unique id for each run.
#[derive(Debug)]
pub(super) struct RunIds {
    /// The random id of this process: 32 hexadecimal digits with dashes, as in a UUID.
    process: String,
    count: AtomicU64,
}

impl RunIds {
    /// Ids that no other process makes if `process` is random.
    pub(super) fn new(process: String) -> Self {
        Self { process, count: AtomicU64::new(0) }
    }

    /// Returns the next id.
    ///
    /// It is that of the process, with a number in place of its end.
    pub(super) fn next(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let end = self.process.len().saturating_sub(12);
        format!("{}{count:012x}", self.process.get(..end).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_name_of_its_own() {
        let ids = RunIds::new("0b5f60e2-93d5-4d7c-8a52-3f1de25a70cc".to_owned());
        assert_eq!(ids.next(), "0b5f60e2-93d5-4d7c-8a52-000000000000");
        assert_eq!(ids.next(), "0b5f60e2-93d5-4d7c-8a52-000000000001");
    }
}
