//! The pods of components whose rollout is in progress.
//!
//! They are listed on request, and kept until nothing needs them.
//!
//! | file | contents |
//! |---|---|
//! | `requests` | the objects whose pods are needed, and when each is listed next |
//! | `list` | one list |
//! | `refused` | the log lines about lists that fail |

mod list;
mod refused;
mod requests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tagboat_api::ObjectName;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use self::list::list;
use self::refused::RefusedLists;
use self::requests::Requests;
use super::cluster::Connection;
use crate::objects::cluster::ListLimiter;
use crate::rollout::components::PodRequest;
use crate::rollout::pods::LastList;
use crate::rollout::watched::WatchedId;
use crate::tenancy::catch_panic;

/// The last lists of pods of one cluster.
#[derive(Debug)]
pub(super) struct PodLists {
    requests: Mutex<Requests>,
    /// Replaced as a whole while a computation reads it.
    lists: Mutex<Arc<HashMap<WatchedId, LastList>>>,
    /// Woken when a list may be due earlier.
    added: Notify,
}

impl PodLists {
    /// Creates lists without requests; all clusters share the limiter.
    pub(super) fn new(limiter: ListLimiter) -> Self {
        let requests = Mutex::new(Requests::new(limiter));
        Self { requests, lists: Mutex::default(), added: Notify::new() }
    }

    /// Returns the last lists.
    pub(super) fn lists(&self) -> Arc<HashMap<WatchedId, LastList>> {
        self.lists.lock().clone()
    }

    /// Replaces the requests of a policy.
    ///
    /// Returns the policies whose requests are not all kept, because there are too many, and which make them again. The
    /// policy itself does that later, and others at once: their share was the largest, and may not be any more.
    pub(super) fn request<'r>(
        &self,
        policy: &ObjectName,
        wanted: impl IntoIterator<Item = &'r PodRequest>,
        now: Instant,
    ) -> BTreeSet<ObjectName> {
        let mut requests = self.requests.lock();
        let replaced = requests.replace(policy, wanted, now);
        if !replaced.removed.is_empty() {
            let mut lists = self.lists.lock();
            let lists = Arc::make_mut(&mut lists);
            replaced.removed.iter().for_each(|id| drop(lists.remove(id)));
        }
        drop(requests);
        self.added.notify_one();
        replaced.incomplete
    }

    /// Forgets the requests of a policy.
    pub(super) fn forget(&self, policy: &ObjectName) {
        self.request(policy, [], Instant::now());
    }

    /// Forgets all requests and lists.
    pub(super) fn clear(&self) {
        self.requests.lock().clear();
        *self.lists.lock() = Arc::default();
    }

    /// Lists pods when they are due, until dropped.
    ///
    /// It calls `listed` with the policies that need a list.
    pub(super) async fn run(&self, connection: &Connection, listed: impl Fn(BTreeSet<ObjectName>)) {
        let (mut tasks, mut refused) = (JoinSet::new(), RefusedLists::default());
        loop {
            let (due, next) = {
                let schedule = &mut self.requests.lock().schedule;
                (schedule.take_due(Instant::now()), schedule.next())
            };
            if let Some((id, query)) = due {
                let (client, guard) = (connection.client.clone(), connection.guard.clone());
                tasks.spawn(async move {
                    let found = catch_panic(list(client, &guard, &query)).await;
                    let found = match found {
                        Ok(found) => found.map_err(|error| error.to_string()),
                        Err(panic) => Err(panic.to_string()),
                    };
                    (id, query.namespace, found)
                });
                continue;
            }
            let wait = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = wait => {}
                () = self.added.notified() => {}
                Some(done) = tasks.join_next() => {
                    // A task that panicked is an error of its list.
                    let Ok((id, namespace, found)) = done else { continue };
                    refused.add(connection, &namespace, found.as_ref().err());
                    listed(self.keep(&id, found));
                }
            }
        }
    }

    /// Keeps the result of an object's list, and returns the policies that need it.
    ///
    /// A list that fails replaces the one before, which says nothing about the present.
    fn keep(&self, id: &WatchedId, found: LastList) -> BTreeSet<ObjectName> {
        let mut requests = self.requests.lock();
        let due = found.as_ref().ok().and_then(|list| requests.unavailable_in(id, list));
        if requests.schedule.done(id, due, Instant::now()).is_none() {
            return BTreeSet::new();
        }
        Arc::make_mut(&mut self.lists.lock()).insert(id.clone(), found);
        requests.policies_of(id)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;
    use crate::rollout::objects::Pod;
    use crate::rollout::pods::PodList;
    use crate::rollout::watched::GroupKind;

    fn policy(name: &str) -> ObjectName {
        ObjectName { namespace: "n".to_owned(), name: name.to_owned() }
    }

    fn request(name: &str, selector: &str) -> PodRequest {
        PodRequest {
            cluster: None,
            object: WatchedId::new(GroupKind::DEPLOYMENT, "n", name),
            namespace: "n".to_owned(),
            selector: selector.to_owned(),
            generation: Some(1),
            wanted: Vec::new(),
        }
    }

    fn listed() -> LastList {
        Ok(PodList { pods: vec![Pod::default()], listed_at: Timestamp::UNIX_EPOCH })
    }

    #[test]
    fn a_list_is_kept_as_long_as_a_policy_needs_it() {
        let (lists, now) = (PodLists::new(ListLimiter::default()), Instant::now());
        let podinfo = request("podinfo", "app=podinfo");
        let id = podinfo.object.clone();
        for name in ["a", "b"] {
            assert!(lists.request(&policy(name), std::slice::from_ref(&podinfo), now).is_empty());
        }
        let (taken, query) = lists.requests.lock().schedule.take_due(now).unwrap();
        assert_eq!((&taken, query.selector.as_str()), (&id, "app=podinfo"));
        assert_eq!(lists.keep(&id, listed()), BTreeSet::from([policy("a"), policy("b")]));
        lists.forget(&policy("a"));
        assert_eq!(lists.lists().len(), 1);
        lists.forget(&policy("b"));
        assert!(lists.lists().is_empty() && lists.requests.lock().schedule.next().is_none());
        assert!(lists.keep(&id, listed()).is_empty() && lists.lists().is_empty());
    }

    #[test]
    fn a_list_that_fails_replaces_the_one_before() {
        let (lists, now) = (PodLists::new(ListLimiter::default()), Instant::now());
        let podinfo = request("podinfo", "app=podinfo");
        lists.request(&policy("a"), std::slice::from_ref(&podinfo), now);
        for found in [listed(), Err("forbidden".to_owned())] {
            let is_ok = found.is_ok();
            lists.requests.lock().schedule.take_due(now + Duration::from_secs(3600)).unwrap();
            assert_eq!(lists.keep(&podinfo.object, found), BTreeSet::from([policy("a")]));
            assert_eq!(lists.lists()[&podinfo.object].is_ok(), is_ok);
        }
    }
}
