//! The last changes of deployments and node pools, for clients that follow them.
//!
//! A client that connects again names the last change that it has, and gets those after it. One that is too far behind
//! has missed changes and must read everything again. So a slow client costs nothing: no queue grows for it.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use parking_lot::Mutex;
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::State;
use tokio::sync::watch;

/// The number of changes that are kept.
const KEPT: usize = 1024;

/// The number of changes that one read returns.
const READ: usize = 64;

/// The last changes of all deployments and node pools. Clones share them.
#[derive(Clone)]
pub struct Changes {
    shared: Arc<Shared>,
}

struct Shared {
    /// The start of this log, which tells it from those of other processes.
    start: i64,
    log: Mutex<VecDeque<Arc<RecordedChange>>>,
    /// The number of the last change.
    last: watch::Sender<u64>,
}

/// A change with its place in the log.
#[derive(Debug, PartialEq, Eq)]
pub struct RecordedChange {
    /// The place in the log.
    pub id: ChangeId,
    /// The change.
    pub change: StatusChange,
}

/// The place of a change in the log of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeId {
    /// The time at which the log began, in microseconds since 1970.
    start: i64,
    /// The number of the change; the first is 1.
    number: u64,
}

/// A change of what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusChange {
    /// A deployment is new, or has another status or other labels.
    Changed {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// The identity of the deployment.
        deployment_id: String,
        /// The state.
        state: State,
    },
    /// A deployment was deleted.
    Deleted {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// The identity of the deployment.
        deployment_id: String,
    },
    /// A node pool, or a node of it, is new, has changed, or is gone.
    NodePool {
        /// The name of the pool.
        name: String,
    },
    /// Everything may have changed.
    Reset,
}

/// A client is too far behind to follow the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("changes were missed")]
pub struct Missed;

/// A place in the log from which a client reads on.
pub struct Subscription {
    changes: Changes,
    /// The number of the last change that was read.
    read: u64,
    last: watch::Receiver<u64>,
}

impl StatusChange {
    /// Returns the change of an object that has a status.
    #[must_use]
    pub fn changed(object: &DeploymentStatus) -> Option<Self> {
        let status = object.status.as_ref()?;
        Some(Self::Changed {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            deployment_id: status.deployment_id.clone(),
            state: status.report.state,
        })
    }

    /// Returns the deletion of an object that had a status.
    #[must_use]
    pub fn deleted(object: &DeploymentStatus) -> Option<Self> {
        Some(Self::Deleted {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            deployment_id: object.status.as_ref()?.deployment_id.clone(),
        })
    }
}

impl Default for Changes {
    fn default() -> Self {
        let start = Timestamp::now().as_microsecond();
        let shared = Shared { start, log: Mutex::default(), last: watch::Sender::new(0) };
        Self { shared: Arc::new(shared) }
    }
}

impl Changes {
    /// Adds a change, and wakes the clients that wait for one.
    pub fn add(&self, change: StatusChange) {
        let mut log = self.shared.log.lock();
        let number = *self.shared.last.borrow() + 1;
        let id = ChangeId { start: self.shared.start, number };
        log.push_back(Arc::new(RecordedChange { id, change }));
        if log.len() > KEPT {
            log.pop_front();
        }
        self.shared.last.send_replace(number);
    }

    /// Records that everything may have changed.
    pub fn reset(&self) {
        self.add(StatusChange::Reset);
    }

    /// Returns the place of the last change.
    #[must_use]
    pub fn last(&self) -> ChangeId {
        ChangeId { start: self.shared.start, number: *self.shared.last.borrow() }
    }

    /// Follows the changes after a place.
    ///
    /// # Errors
    ///
    /// If the place is not in this log, or too long ago.
    pub fn follow(&self, from: ChangeId) -> Result<Subscription, Missed> {
        if from.start != self.shared.start || from.number > *self.shared.last.borrow() {
            return Err(Missed);
        }
        self.after(from.number)?;
        let last = self.shared.last.subscribe();
        Ok(Subscription { changes: self.clone(), read: from.number, last })
    }

    /// Returns the first changes after a number.
    fn after(&self, number: u64) -> Result<Vec<Arc<RecordedChange>>, Missed> {
        let log = self.shared.log.lock();
        let last = *self.shared.last.borrow();
        let behind = usize::try_from(last.saturating_sub(number)).unwrap_or(usize::MAX);
        let skipped = log.len().checked_sub(behind).ok_or(Missed)?;
        Ok(log.iter().skip(skipped).take(READ).cloned().collect())
    }
}

impl Subscription {
    /// Waits for the next changes, and returns them in their order.
    ///
    /// # Errors
    ///
    /// If the client was too slow.
    pub async fn next(&mut self) -> Result<Vec<Arc<RecordedChange>>, Missed> {
        let read = self.read;
        // The log outlives its subscriptions, so the wait ends only with its condition.
        let _ = self.last.wait_for(|last| *last > read).await;
        let changes = self.changes.after(read)?;
        if let Some(last) = changes.last() {
            self.read = last.id.number;
        }
        Ok(changes)
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.start, self.number)
    }
}

/// A text that is not the id of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a change")]
pub struct InvalidId;

impl FromStr for ChangeId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (start, number) = text.split_once('-').ok_or(InvalidId)?;
        let (Ok(start), Ok(number)) = (start.parse(), number.parse()) else { return Err(InvalidId) };
        Ok(Self { start, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(changes: &[Arc<RecordedChange>]) -> Vec<u64> {
        changes.iter().map(|change| change.id.number).collect()
    }

    #[tokio::test]
    async fn a_client_gets_every_change_after_its_place_in_order() {
        let changes = Changes::default();
        changes.reset();
        let mut client = changes.follow(changes.last()).unwrap();
        for _ in 0..100 {
            changes.reset();
        }
        assert_eq!(numbers(&client.next().await.unwrap()), (2..66).collect::<Vec<_>>());
        assert_eq!(numbers(&client.next().await.unwrap()), (66..102).collect::<Vec<_>>());
        let place: ChangeId = changes.last().to_string().parse().unwrap();
        let mut again = changes.follow(place).unwrap();
        let (next, ()) = tokio::join!(again.next(), async { changes.reset() });
        assert_eq!(numbers(&next.unwrap()), [102]);
    }

    #[tokio::test]
    async fn a_client_that_is_too_far_behind_has_missed_changes() {
        let changes = Changes::default();
        let start = changes.last();
        let mut client = changes.follow(start).unwrap();
        for _ in 0..KEPT {
            changes.reset();
        }
        assert_eq!(numbers(&client.next().await.unwrap())[0], 1);
        let mut client = changes.follow(start).unwrap();
        changes.reset();
        assert_eq!(client.next().await, Err(Missed));
        assert!(changes.follow(start).is_err());
        assert_eq!(changes.shared.log.lock().len(), KEPT);
    }

    #[test]
    fn a_place_of_another_process_is_unknown() {
        let changes = Changes::default();
        let ChangeId { start, number } = changes.last();
        assert!(changes.follow(ChangeId { start: start - 1, number }).is_err());
        assert!(changes.follow(ChangeId { start, number: number + 1 }).is_err());
        for text in ["", "1", "1-", "-1", "a-b", "1-2-3", "1--2"] {
            assert_eq!(text.parse::<ChangeId>(), Err(InvalidId), "{text}");
        }
    }
}
