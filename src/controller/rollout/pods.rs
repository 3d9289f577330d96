//! The pods of components whose rollout is in progress.
//!
//! They are listed on request, and kept until nothing needs them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use tagboat_api::ObjectName;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::cluster::Connection;
use crate::objects::cluster::{ApiGuard, ClusterError, ListLimiter, ListSchedule};
use crate::rollout::components::PodRequest;
use crate::rollout::image::{WantedImage, is_any};
use crate::rollout::objects::Pod;
use crate::rollout::pods::most_informative;
use crate::rollout::watched::WatchedId;

/// The maximum number of objects whose pods are listed in turns.
const MAX_OBJECTS: usize = 1_000;

/// The maximum number of pods of a list; further pages are not requested.
const MAX_PODS: usize = 5_000;

/// The number of pods per page of a list.
const PAGE_SIZE: u32 = 250;

/// The excluded pods: those that have ended.
const FIELDS: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// The last lists of pods of one cluster.
#[derive(Debug)]
pub(super) struct PodLists {
    requests: Mutex<Requests>,
    /// Replaced as a whole while a computation reads it.
    lists: Mutex<Arc<HashMap<WatchedId, Vec<Pod>>>>,
    /// Woken when a list may be due earlier.
    added: Notify,
}

#[derive(Debug)]
struct Requests {
    schedule: ListSchedule<WatchedId, Query>,
    /// The policies that need the pods of an object.
    policies: HashMap<WatchedId, BTreeMap<ObjectName, Vec<WantedImage>>>,
    /// The objects whose pods a policy needs.
    objects: HashMap<ObjectName, BTreeSet<WatchedId>>,
    /// The namespace of the first policy that needed an object.
    namespaces: HashMap<WatchedId, String>,
    /// The same, by namespace.
    shares: BTreeMap<String, BTreeSet<WatchedId>>,
}

/// The query of a list.
#[derive(Clone, Debug, PartialEq)]
struct Query {
    namespace: String,
    selector: String,
    /// The generation of the object: the pods of a new one are listed soon.
    generation: Option<i64>,
    /// The images that each policy wants; other pods are not kept.
    wanted: BTreeMap<ObjectName, Vec<WantedImage>>,
}

impl PodLists {
    /// Creates lists without requests; all clusters share the limiter.
    pub(super) fn new(limiter: ListLimiter) -> Self {
        let schedule = ListSchedule::new(limiter);
        let requests = Requests {
            schedule,
            policies: HashMap::new(),
            objects: HashMap::new(),
            namespaces: HashMap::new(),
            shares: BTreeMap::new(),
        };
        Self { requests: Mutex::new(requests), lists: Mutex::default(), added: Notify::new() }
    }

    /// Returns the last lists.
    pub(super) fn lists(&self) -> Arc<HashMap<WatchedId, Vec<Pod>>> {
        self.lists.lock().clone()
    }

    /// Replaces the requests of a policy.
    ///
    /// Returns false if there are too many requests, so that some must be made again later.
    pub(super) fn request<'r>(
        &self,
        policy: &ObjectName,
        wanted: impl IntoIterator<Item = &'r PodRequest>,
        now: Instant,
    ) -> bool {
        let mut requests = self.requests.lock();
        let (mut objects, mut has_all) = (BTreeSet::new(), true);
        for request in wanted {
            let id = &request.object;
            if !requests.policies.contains_key(id) {
                if requests.policies.len() >= MAX_OBJECTS {
                    let Some(evicted) = requests.evict(&policy.namespace) else {
                        has_all = false;
                        continue;
                    };
                    Arc::make_mut(&mut self.lists.lock()).remove(&evicted);
                }
                requests.shares.entry(policy.namespace.clone()).or_default().insert(id.clone());
                requests.namespaces.insert(id.clone(), policy.namespace.clone());
            }
            let policies = requests.policies.entry(id.clone()).or_default();
            policies.insert(policy.clone(), request.wanted.clone());
            let wanted = policies.clone();
            let generation = request.generation;
            let query = Query {
                namespace: request.namespace.clone(),
                selector: request.selector.clone(),
                generation,
                wanted,
            };
            let namespace = requests.namespaces.get(id).cloned().unwrap_or_default();
            requests.schedule.insert(id, &namespace, query, now);
            objects.insert(id.clone());
        }
        let before = if objects.is_empty() {
            requests.objects.remove(policy)
        } else {
            requests.objects.insert(policy.clone(), objects.clone())
        };
        for id in before.iter().flatten().filter(|id| !objects.contains(*id)) {
            if requests.release(id, policy) {
                Arc::make_mut(&mut self.lists.lock()).remove(id);
            }
        }
        drop(requests);
        if !objects.is_empty() {
            self.added.notify_one();
        }
        has_all
    }

    /// Forgets the requests of a policy.
    pub(super) fn forget(&self, policy: &ObjectName) {
        self.request(policy, [], Instant::now());
    }

    /// Forgets all requests and lists.
    pub(super) fn clear(&self) {
        let mut requests = self.requests.lock();
        requests.schedule.clear();
        requests.policies.clear();
        requests.objects.clear();
        requests.namespaces.clear();
        requests.shares.clear();
        drop(requests);
        *self.lists.lock() = Arc::default();
    }

    /// Lists pods when they are due, until dropped.
    ///
    /// It calls `listed` with the policies that need a list.
    pub(super) async fn run(&self, connection: &Connection, listed: impl Fn(BTreeSet<ObjectName>)) {
        let mut tasks = JoinSet::new();
        loop {
            let (due, next) = {
                let schedule = &mut self.requests.lock().schedule;
                (schedule.take_due(Instant::now()), schedule.next())
            };
            if let Some((id, query)) = due {
                let (client, guard) = (connection.client.clone(), connection.guard.clone());
                tasks.spawn(async move {
                    let found = list(client, &guard, &query).await;
                    (id, found)
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
                    let Ok((id, found)) = done else { continue };
                    match found {
                        Ok(pods) => listed(self.keep(&id, pods)),
                        Err(error) => {
                            tracing::debug!(object = %id, error = %error, "cannot list the pods of an object");
                            self.requests.lock().schedule.done(&id, Instant::now());
                        }
                    }
                }
            }
        }
    }

    /// Keeps the pods of an object, and returns the policies that need them.
    fn keep(&self, id: &WatchedId, pods: Vec<Pod>) -> BTreeSet<ObjectName> {
        let mut requests = self.requests.lock();
        if requests.schedule.done(id, Instant::now()).is_none() {
            return BTreeSet::new();
        }
        Arc::make_mut(&mut self.lists.lock()).insert(id.clone(), pods);
        requests.policies.get(id).map(|policies| policies.keys().cloned().collect()).unwrap_or_default()
    }
}

impl Requests {
    /// Ends a policy's request for an object, and returns true after the last one.
    fn release(&mut self, id: &WatchedId, policy: &ObjectName) -> bool {
        let Some(policies) = self.policies.get_mut(id) else { return false };
        policies.remove(policy);
        if !policies.is_empty() {
            return false;
        }
        self.remove(id);
        true
    }

    fn remove(&mut self, id: &WatchedId) {
        self.policies.remove(id);
        self.schedule.remove(id);
        let Some(namespace) = self.namespaces.remove(id) else { return };
        if let Some(share) = self.shares.get_mut(&namespace) {
            share.remove(id);
            if share.is_empty() {
                self.shares.remove(&namespace);
            }
        }
    }

    /// Removes an object of the namespace with most, and returns it.
    ///
    /// It is none unless `namespace` has fewer than that, also with another object. The policies of the removed object
    /// request it again in their next reconcile.
    fn evict(&mut self, namespace: &str) -> Option<WatchedId> {
        let own = self.shares.get(namespace).map_or(0, BTreeSet::len);
        let largest = self.shares.values().max_by_key(|share| share.len())?;
        let id = largest.last().filter(|_| own + 1 < largest.len())?.clone();
        self.remove(&id);
        Some(id)
    }
}

/// Lists the pods of an object, and returns those that tell most to each policy.
async fn list(client: Client, guard: &ApiGuard, query: &Query) -> Result<Vec<Pod>, ClusterError> {
    let api: Api<Pod> = Api::namespaced(client, &query.namespace);
    let mut parameters = ListParams::default().labels(&query.selector).fields(FIELDS).limit(PAGE_SIZE);
    let (mut kept, mut count, now) = (vec![Vec::new(); query.wanted.len()], 0, Timestamp::now());
    loop {
        let page = guard.send(&query.namespace, api.list(&parameters)).await?;
        count += page.items.len();
        for (kept, wanted) in kept.iter_mut().zip(query.wanted.values()) {
            let pods = std::mem::take(kept).into_iter().chain(page.items.iter().cloned());
            *kept = most_informative(pods, |image| is_any(wanted, image), now);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) if count < MAX_PODS => parameters.continue_token = Some(token),
            _ => break,
        }
    }
    let mut names = HashSet::new();
    Ok(kept.into_iter().flatten().filter(|pod| names.insert(pod.metadata.name.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn a_list_is_kept_as_long_as_a_policy_needs_it() {
        let (lists, now) = (PodLists::new(ListLimiter::default()), Instant::now());
        let podinfo = request("podinfo", "app=podinfo");
        let id = podinfo.object.clone();
        for name in ["a", "b"] {
            assert!(lists.request(&policy(name), std::slice::from_ref(&podinfo), now));
        }
        let (taken, query) = lists.requests.lock().schedule.take_due(now).unwrap();
        assert_eq!((&taken, query.selector.as_str()), (&id, "app=podinfo"));
        assert_eq!(lists.keep(&id, vec![Pod::default()]), BTreeSet::from([policy("a"), policy("b")]));
        lists.forget(&policy("a"));
        assert_eq!(lists.lists().len(), 1);
        lists.forget(&policy("b"));
        assert!(lists.lists().is_empty() && lists.requests.lock().schedule.next().is_none());
        assert!(lists.keep(&id, vec![Pod::default()]).is_empty() && lists.lists().is_empty());
    }

    #[test]
    fn the_number_of_objects_is_bounded() {
        let (lists, selector) = (PodLists::new(ListLimiter::default()), "app=x");
        let wanted: Vec<PodRequest> =
            (0..=MAX_OBJECTS).map(|number| request(&number.to_string(), selector)).collect();
        assert!(!lists.request(&policy("a"), &wanted, Instant::now()));
        assert_eq!(lists.requests.lock().policies.len(), MAX_OBJECTS);
        assert!(!lists.request(&policy("b"), &wanted[MAX_OBJECTS..], Instant::now()));
        assert!(lists.request(&policy("a"), &wanted[..1], Instant::now()));
        assert!(lists.request(&policy("b"), &wanted[MAX_OBJECTS..], Instant::now()));
    }

    /// All objects of one tenant crash-loop.
    #[test]
    fn a_namespace_with_many_objects_leaves_lists_to_the_others() {
        let (lists, selector) = (PodLists::new(ListLimiter::default()), "app=x");
        let wanted: Vec<PodRequest> =
            (0..MAX_OBJECTS).map(|number| request(&number.to_string(), selector)).collect();
        assert!(lists.request(&policy("attacker"), &wanted, Instant::now()));
        let victim = ObjectName { namespace: "victim".to_owned(), name: "app".to_owned() };
        let own = [request("victim-a", selector), request("victim-b", selector)];
        assert!(lists.request(&victim, &own, Instant::now()));
        assert!(!lists.request(&policy("attacker"), &wanted, Instant::now()));
        let requests = lists.requests.lock();
        assert_eq!(requests.policies.len(), MAX_OBJECTS);
        assert!(own.iter().all(|request| requests.policies.contains_key(&request.object)));
        drop(requests);
        lists.forget(&victim);
        lists.forget(&policy("attacker"));
        let requests = lists.requests.lock();
        assert!(requests.shares.is_empty() && requests.namespaces.is_empty());
    }
}
