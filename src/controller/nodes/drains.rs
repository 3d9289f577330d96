//! The drains in progress, one for each draining node.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::nodes::{DrainRules, Node, Settings, Stage};

/// The drains in progress, by node.
#[derive(Default)]
pub(super) struct Drains(Mutex<Contents>);

#[derive(Default)]
struct Contents {
    /// The number of the last drain.
    last: u64,
    drains: BTreeMap<String, Drain>,
}

/// A drain, which is not that of the same node before or after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DrainId {
    /// The name of the node.
    pub(super) node: String,
    number: u64,
}

/// The drain of a node.
struct Drain {
    id: DrainId,
    /// The options with which it began.
    options: DrainOptions,
    /// No pod is left.
    is_done: bool,
    /// The reason why it does not go on.
    blocked: Option<String>,
    /// It was announced that it does not go on.
    is_announced: bool,
    /// Ends it with its drop.
    _task: JoinSet<()>,
}

/// The options of the drains of a pool.
#[derive(Clone, Debug)]
pub(super) struct DrainOptions {
    /// The name of the pool.
    pub(super) pool: String,
    /// `true` if no pod is evicted.
    pub(super) is_disabled: bool,
    /// The pods that stay.
    pub(super) rules: DrainRules,
    /// The time that pods get to end, in seconds.
    pub(super) grace_period: Option<u32>,
}

impl DrainOptions {
    /// Returns the options of a pool.
    pub(super) fn new(pool: &str, settings: &Settings, own_pod: &(String, String)) -> Self {
        Self {
            pool: pool.to_owned(),
            is_disabled: settings.is_drain_disabled,
            rules: DrainRules {
                skip: settings.skip.clone(),
                own_pod: Some(own_pod.clone()),
                own_controller: None,
            },
            grace_period: settings.grace_period.map(whole_seconds),
        }
    }

    /// Returns `true` if drains with these options evict alike.
    fn is_same(&self, other: &Self) -> bool {
        let skip = |options: &Self| options.rules.skip.as_ref().map(ToString::to_string);
        self.pool == other.pool
            && self.is_disabled == other.is_disabled
            && self.grace_period == other.grace_period
            && skip(self) == skip(other)
    }
}

/// Returns a time in whole seconds, rounded up.
///
/// Without a second, a pod is killed at once.
fn whole_seconds(time: Duration) -> u32 {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

impl Contents {
    /// Returns a drain, unless it has ended or another one has replaced it.
    fn drain(&mut self, id: &DrainId) -> Option<&mut Drain> {
        self.drains.get_mut(&id.node).filter(|drain| drain.id == *id)
    }
}

impl Drains {
    /// Begins the drain of a node, unless it is in progress with these options.
    pub(super) fn ensure<F>(&self, node: &str, options: &DrainOptions, drain: impl FnOnce(DrainId) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut contents = self.0.lock();
        if options.is_disabled {
            contents.drains.remove(node);
            return;
        }
        if contents.drains.get(node).is_some_and(|drain| drain.options.is_same(options)) {
            return;
        }
        contents.last += 1;
        let id = DrainId { node: node.to_owned(), number: contents.last };
        let mut task = JoinSet::new();
        task.spawn(drain(id.clone()));
        let drain = Drain {
            id,
            options: options.clone(),
            is_done: false,
            blocked: None,
            is_announced: false,
            _task: task,
        };
        contents.drains.insert(node.to_owned(), drain);
    }

    /// Ends the drain of a node.
    pub(super) fn stop(&self, node: &str) {
        self.0.lock().drains.remove(node);
    }

    /// Ends the drains of a pool, also if its nodes are not known any more.
    pub(super) fn stop_pool(&self, pool: &str) {
        self.0.lock().drains.retain(|_, drain| drain.options.pool != pool);
    }

    /// Ends the drain of a node unless it is one of its pool.
    pub(super) fn stop_stray(&self, node: &str, pool: Option<&str>) {
        self.stop_strays(|name, of| name != node || pool == Some(of));
    }

    /// Ends the drains of nodes that have another pool by now, or none.
    ///
    /// `is_of` tells if a node, by its name, is one of a pool.
    pub(super) fn stop_strays(&self, is_of: impl Fn(&str, &str) -> bool) {
        self.0.lock().drains.retain(|node, drain| is_of(node, &drain.options.pool));
    }

    /// Ends the drain of a node that is not in its stage any more.
    ///
    /// It also ends that of a node which can be promoted again: pods may have come to it meanwhile.
    pub(super) fn node_changed(&self, name: &str, old: Option<&Node>, new: Option<&Node>) {
        let is_draining = new.is_some_and(|node| node.stage() == Ok(Stage::Draining));
        let was_held = old.is_some_and(Node::is_held);
        if !is_draining || (was_held && !new.is_some_and(Node::is_held)) {
            self.stop(name);
        }
    }

    /// Ends all drains.
    pub(super) fn clear(&self) {
        self.0.lock().drains.clear();
    }

    /// Returns `true` if no pod is left that must leave a node.
    pub(super) fn is_done(&self, node: &str) -> bool {
        self.0.lock().drains.get(node).is_some_and(|drain| drain.is_done)
    }

    /// Records that no pod is left.
    pub(super) fn set_done(&self, id: &DrainId) {
        if let Some(drain) = self.0.lock().drain(id) {
            drain.is_done = true;
            drain.blocked = None;
        }
    }

    /// Records the reason why a drain is blocked, and returns `true` if it changed.
    pub(super) fn set_blocked(&self, id: &DrainId, blocked: Option<String>) -> bool {
        let mut contents = self.0.lock();
        let Some(drain) = contents.drain(id) else { return false };
        let is_changed = drain.blocked != blocked;
        drain.blocked = blocked;
        is_changed
    }

    /// Returns `true` the first time for each drain.
    pub(super) fn announces(&self, id: &DrainId) -> bool {
        self.0.lock().drain(id).is_some_and(|drain| !std::mem::replace(&mut drain.is_announced, true))
    }

    /// Returns the reasons of all drains that do not go on, by node.
    pub(super) fn blocked(&self) -> BTreeMap<String, String> {
        let contents = self.0.lock();
        let drains = contents.drains.iter();
        drains.filter_map(|(node, drain)| Some((node.clone(), drain.blocked.clone()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    fn options(grace_period: u32) -> DrainOptions {
        DrainOptions {
            pool: "p".to_owned(),
            is_disabled: false,
            rules: DrainRules::default(),
            grace_period: Some(grace_period),
        }
    }

    /// Ensures a drain with a grace period, and returns its ID if it begins.
    fn ensure(drains: &Drains, grace_period: u32) -> Option<DrainId> {
        let mut begun = None;
        drains.ensure("a", &options(grace_period), |id| {
            begun = Some(id);
            pending()
        });
        begun
    }

    #[test]
    fn a_grace_period_of_less_than_a_second_is_no_immediate_kill() {
        for (milliseconds, expected) in
            [(0, 0), (1, 1), (500, 1), (1_000, 1), (1_001, 2), (u64::MAX, u32::MAX)]
        {
            assert_eq!(whole_seconds(Duration::from_millis(milliseconds)), expected, "{milliseconds} ms");
        }
    }

    #[tokio::test]
    async fn the_drain_of_a_node_that_has_left_its_pool_ends() {
        let drains = Drains::default();
        for (node, pool) in [("a", "p"), ("b", "p"), ("c", "q")] {
            let options = DrainOptions { pool: pool.to_owned(), ..options(1) };
            drains.ensure(node, &options, |_| pending());
        }
        let left = || drains.0.lock().drains.keys().cloned().collect::<Vec<String>>().join(" ");
        drains.stop_stray("a", Some("p"));
        assert_eq!(left(), "a b c");
        drains.stop_stray("b", Some("q"));
        assert_eq!(left(), "a c");
        drains.stop_stray("c", None);
        assert_eq!(left(), "a");
        drains.stop_strays(|node, pool| (node, pool) != ("a", "p"));
        assert_eq!(left(), "");
    }

    #[tokio::test]
    async fn a_drain_that_another_one_has_replaced_changes_nothing() {
        let drains = Drains::default();
        let first = ensure(&drains, 1).unwrap();
        assert_eq!(ensure(&drains, 1), None, "it is in progress");
        let second = ensure(&drains, 2).unwrap();
        drains.set_done(&first);
        assert!(!drains.is_done("a") && !drains.announces(&first));
        assert!(!drains.set_blocked(&first, Some("budget".to_owned())) && drains.blocked().is_empty());
        assert!(drains.set_blocked(&second, Some("budget".to_owned())));
        assert_eq!(drains.blocked().values().collect::<Vec<_>>(), ["budget"]);
        assert!(drains.announces(&second) && !drains.announces(&second));
        drains.set_done(&second);
        assert!(drains.is_done("a") && drains.blocked().is_empty());
        drains.stop("a");
        let third = ensure(&drains, 2).unwrap();
        drains.set_done(&second);
        assert!(!drains.is_done("a") && third != second);
    }
}
