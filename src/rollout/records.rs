//! The part of a history that workloads and nodes share: entries from records of deployments.
//!
//! A record is the last deployment of one object. An entry counts the records of one image, and keeps the largest number
//! and the newest time that it ever had. So a record that is counted again changes nothing.

use std::cmp::Reverse;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::deployment_status::{HistoryEntry, MAX_HISTORY};
use tagboat_api::node_pool::PoolHistoryEntry;

/// An entry of a history: an image that was deployed.
pub trait Entry: Clone {
    /// Returns the time of the newest record.
    fn last_deployed(&self) -> &Time;

    /// Returns the number of records and the time of the newest one, to change them.
    fn parts(&mut self) -> (&mut i64, &mut Time);
}

impl Entry for HistoryEntry {
    fn last_deployed(&self) -> &Time {
        &self.last_deployed
    }

    fn parts(&mut self) -> (&mut i64, &mut Time) {
        (&mut self.object_count, &mut self.last_deployed)
    }
}

impl Entry for PoolHistoryEntry {
    fn last_deployed(&self) -> &Time {
        &self.last_deployed
    }

    fn parts(&mut self) -> (&mut i64, &mut Time) {
        (&mut self.node_count, &mut self.last_deployed)
    }
}

/// A history to which records are added.
#[derive(Debug)]
pub struct Records<E> {
    entries: Vec<E>,
    /// The number of records of each entry.
    counts: Vec<i64>,
    previous: usize,
}

impl<E: Entry> Records<E> {
    /// Creates a history from the previous entries.
    #[must_use]
    pub fn new(previous: &[E]) -> Self {
        Self { entries: previous.to_vec(), counts: vec![0; previous.len()], previous: previous.len() }
    }

    /// Returns the index of the entry of the same image as `new`.
    ///
    /// If there is none, `new` is added.
    pub fn entry(&mut self, new: E, is_same: impl Fn(&E, &E) -> bool) -> usize {
        self.entries.iter().position(|entry| is_same(entry, &new)).unwrap_or_else(|| {
            self.entries.push(new);
            self.counts.push(0);
            self.entries.len() - 1
        })
    }

    /// Adds a record to an entry.
    ///
    /// Returns the entry if it is new or the record is the newest, so that its texts are those of the record.
    pub fn add(&mut self, index: usize, time: &Time) -> Option<&mut E> {
        self.counts[index] += 1;
        let entry = &mut self.entries[index];
        let (count, last_deployed) = entry.parts();
        *count = self.counts[index].max(*count);
        let is_newest = *last_deployed < *time;
        if is_newest {
            last_deployed.clone_from(time);
        }
        (is_newest || index >= self.previous).then_some(entry)
    }

    /// Returns the last entries, from the newest to the oldest.
    ///
    /// Of two entries with the same second, the target was deployed later. The order of others stays.
    #[must_use]
    pub fn finish(mut self, is_target: impl Fn(&E) -> bool) -> Vec<E> {
        self.entries.sort_by_key(|entry| (Reverse(entry.last_deployed().clone()), !is_target(entry)));
        self.entries.truncate(MAX_HISTORY);
        self.entries
    }
}
