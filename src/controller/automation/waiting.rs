//! The automations that wait, and the timer that makes them due when their wait ends.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::objects::ObjectName;
use crate::reconcile::automation::waiting::{KnownWait, Wait};

/// The maximum time between two looks at the system clock, which may be changed.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The time between two looks at the least.
const SHORTEST_SLEEP: Duration = Duration::from_millis(100);

/// The automations that wait.
///
/// If it is lost with the process, each of them reads its files once more.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    entries: Mutex<HashMap<ObjectName, Entry>>,
    /// Woken when the next end may have changed.
    changed: Notify,
}

#[derive(Debug)]
struct Entry {
    known: KnownWait,
    /// The time of the next look, unless the automation was made due for it.
    look_again: Option<Timestamp>,
}

impl Waiting {
    /// Returns the wait of an automation.
    pub(super) fn known(&self, name: &ObjectName) -> Option<KnownWait> {
        self.entries.lock().get(name).map(|entry| entry.known.clone())
    }

    /// Returns true if values of an automation wait.
    pub(super) fn is_waiting(&self, name: &ObjectName) -> bool {
        self.entries.lock().get(name).is_some_and(|entry| entry.known.wait.is_some())
    }

    /// Records the wait of an automation.
    pub(super) fn set(&self, name: &ObjectName, known: KnownWait) {
        let look_again = known.wait.as_ref().and_then(Wait::next_look);
        self.entries.lock().insert(name.clone(), Entry { known, look_again });
        self.changed.notify_one();
    }

    /// Schedules the next look at a wait that lasts.
    pub(super) fn postpone(&self, name: &ObjectName, look_again: Option<Timestamp>) {
        if let Some(entry) = self.entries.lock().get_mut(name) {
            entry.look_again = look_again;
        }
        self.changed.notify_one();
    }

    /// Forgets an automation that does not wait.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.entries.lock().remove(name);
    }

    /// Makes each automation due when its wait ends.
    pub(super) async fn run(&self, enqueue: impl Fn(ObjectName)) {
        loop {
            let now = Timestamp::now();
            self.take_ended(now).into_iter().for_each(&enqueue);
            let next = self.entries.lock().values().filter_map(|entry| entry.look_again).min();
            let left = next.map(|next| Duration::try_from(next.duration_since(now)).unwrap_or_default());
            // A notification may come at any time, and must not turn this into a busy loop.
            sleep(SHORTEST_SLEEP).await;
            let _ = timeout(left.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP), self.changed.notified()).await;
        }
    }

    /// Returns the automations whose wait has ended, each once.
    fn take_ended(&self, now: Timestamp) -> Vec<ObjectName> {
        let mut entries = self.entries.lock();
        let ended = entries.iter_mut().filter(|(_, entry)| entry.look_again.is_some_and(|at| at <= now));
        ended
            .map(|(name, entry)| {
                entry.look_again = None;
                name.clone()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::automation::waiting::WaitReason;

    #[test]
    fn an_automation_is_due_once_when_its_wait_ends() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let wait = |until: Option<i64>| KnownWait {
            wait: Some(Wait {
                reason: WaitReason::WindowClosed,
                by: String::new(),
                until: until.map(at),
                policies: Vec::new(),
                values: 0,
                look_again: None,
                changes: None,
            }),
            policies: [].into(),
            revision: String::new(),
        };
        let name = |name: &str| ObjectName { namespace: "n".to_owned(), name: name.to_owned() };
        let waiting = Waiting::default();
        waiting.set(&name("a"), wait(Some(10)));
        waiting.set(&name("b"), wait(None));
        assert_eq!(waiting.take_ended(at(9)), []);
        assert_eq!(waiting.take_ended(at(10)), [name("a")]);
        assert_eq!(waiting.take_ended(at(11)), []);
        waiting.postpone(&name("a"), Some(at(12)));
        assert_eq!(waiting.take_ended(at(20)), [name("a")]);
        assert!(waiting.known(&name("b")).is_some() && waiting.is_waiting(&name("b")));
        waiting.forget(&name("b"));
        assert!(waiting.known(&name("b")).is_none() && !waiting.is_waiting(&name("b")));
    }
}
