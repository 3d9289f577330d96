//! The objects whose pods are needed.
//!
//! Each object is charged to the namespace of one of the policies that need it. If there are too many objects, one of
//! the namespace with most makes room.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use tagboat_api::ObjectName;

use crate::objects::cluster::{ListLimiter, ListSchedule};
use crate::rollout::components::PodRequest;
use crate::rollout::image::{WantedImage, is_any};
use crate::rollout::pods::PodList;
use crate::rollout::watched::WatchedId;

/// The maximum number of objects whose pods are listed in turns.
pub(super) const MAX_OBJECTS: usize = 1_000;

/// The requests for pods, and the schedule of their lists.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) schedule: ListSchedule<WatchedId, Query>,
    objects: HashMap<WatchedId, Requested>,
    /// The objects whose pods a policy needs.
    of_policy: HashMap<ObjectName, BTreeSet<WatchedId>>,
    /// The objects that a namespace is charged with.
    shares: BTreeMap<String, BTreeSet<WatchedId>>,
}

/// An object whose pods are needed.
#[derive(Debug)]
struct Requested {
    /// The images that each policy wants.
    policies: BTreeMap<ObjectName, Vec<WantedImage>>,
    /// The namespace that is charged with the object.
    namespace: String,
}

/// The query of a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Query {
    pub(super) namespace: String,
    pub(super) selector: String,
    /// The generation of the object: the pods of a new one are listed soon.
    generation: Option<i64>,
    /// The images that each policy wants; other pods are not kept.
    pub(super) wanted: BTreeMap<ObjectName, Vec<WantedImage>>,
}

/// The effects of new requests of a policy.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    /// The objects whose pods are not needed any more, or not listed.
    pub(super) removed: BTreeSet<WatchedId>,
    /// The policies with a request that is not kept.
    pub(super) incomplete: BTreeSet<ObjectName>,
}

impl Requests {
    /// Creates a table without requests.
    pub(super) fn new(limiter: ListLimiter) -> Self {
        let schedule = ListSchedule::new(limiter);
        Self { schedule, objects: HashMap::new(), of_policy: HashMap::new(), shares: BTreeMap::new() }
    }

    /// Forgets all requests.
    pub(super) fn clear(&mut self) {
        self.schedule.clear();
        self.objects.clear();
        self.of_policy.clear();
        self.shares.clear();
    }

    /// Replaces the requests of a policy.
    pub(super) fn replace<'r>(
        &mut self,
        policy: &ObjectName,
        wanted: impl IntoIterator<Item = &'r PodRequest>,
        now: Instant,
    ) -> Replaced {
        let mut replaced = Replaced::default();
        let before = self.of_policy.remove(policy).unwrap_or_default();
        let mut ids = BTreeSet::new();
        for request in wanted {
            if self.make_room(request, policy, &mut replaced) {
                self.insert(request, policy, now);
                ids.insert(request.object.clone());
            } else {
                replaced.incomplete.insert(policy.clone());
            }
        }
        // An own object of this call may have made room for a later one.
        ids.retain(|id| self.objects.contains_key(id));
        for id in before.difference(&ids) {
            if self.release(id, policy) {
                replaced.removed.insert(id.clone());
            }
        }
        if !ids.is_empty() {
            self.of_policy.insert(policy.clone(), ids);
        }
        replaced
    }

    /// Makes room for an object, and returns true if there is some.
    fn make_room(&mut self, request: &PodRequest, policy: &ObjectName, replaced: &mut Replaced) -> bool {
        if self.objects.contains_key(&request.object) || self.objects.len() < MAX_OBJECTS {
            return true;
        }
        let Some(id) = self.largest_share(&policy.namespace) else { return false };
        for policy in self.remove(&id) {
            if let Some(ids) = self.of_policy.get_mut(&policy) {
                ids.remove(&id);
            }
            replaced.incomplete.insert(policy);
        }
        replaced.removed.insert(id);
        true
    }

    /// Returns an object of the namespace with most.
    ///
    /// It is none unless `namespace` has fewer than that, also with another object.
    fn largest_share(&self, namespace: &str) -> Option<WatchedId> {
        let own = self.shares.get(namespace).map_or(0, BTreeSet::len);
        let largest = self.shares.values().max_by_key(|share| share.len())?;
        largest.last().filter(|_| own + 1 < largest.len()).cloned()
    }

    fn insert(&mut self, request: &PodRequest, policy: &ObjectName, now: Instant) {
        let id = &request.object;
        let requested = self.objects.entry(id.clone()).or_insert_with(|| {
            self.shares.entry(policy.namespace.clone()).or_default().insert(id.clone());
            Requested { policies: BTreeMap::new(), namespace: policy.namespace.clone() }
        });
        requested.policies.insert(policy.clone(), request.wanted.clone());
        let query = Query {
            namespace: request.namespace.clone(),
            selector: request.selector.clone(),
            generation: request.generation,
            wanted: requested.policies.clone(),
        };
        self.schedule.insert(id, &requested.namespace, query, now);
    }

    /// Ends a policy's request for an object, and returns true after the last one.
    fn release(&mut self, id: &WatchedId, policy: &ObjectName) -> bool {
        let Some(requested) = self.objects.get_mut(id) else { return false };
        requested.policies.remove(policy);
        let mut namespaces = requested.policies.keys().map(|policy| &policy.namespace);
        let Some(first) = namespaces.next() else {
            self.remove(id);
            return true;
        };
        let is_charged = *first == requested.namespace || namespaces.any(|name| *name == requested.namespace);
        if !is_charged {
            let first = first.clone();
            let before = std::mem::replace(&mut requested.namespace, first.clone());
            self.schedule.set_namespace(id, &first);
            self.end_charge(&before, id);
            self.shares.entry(first).or_default().insert(id.clone());
        }
        false
    }

    /// Removes an object, and returns the policies that need it.
    fn remove(&mut self, id: &WatchedId) -> BTreeSet<ObjectName> {
        self.schedule.remove(id);
        let Some(requested) = self.objects.remove(id) else { return BTreeSet::new() };
        self.end_charge(&requested.namespace, id);
        requested.policies.into_keys().collect()
    }

    fn end_charge(&mut self, namespace: &str, id: &WatchedId) {
        let Some(share) = self.shares.get_mut(namespace) else { return };
        share.remove(id);
        if share.is_empty() {
            self.shares.remove(namespace);
        }
    }

    /// Returns the policies that need the pods of an object.
    pub(super) fn policies_of(&self, id: &WatchedId) -> BTreeSet<ObjectName> {
        self.objects.get(id).map(|requested| requested.policies.keys().cloned().collect()).unwrap_or_default()
    }

    /// Returns the time from the list until its pods have been unavailable for a minute.
    pub(super) fn unavailable_in(&self, id: &WatchedId, list: &PodList) -> Option<Duration> {
        let wanted = self.objects.get(id)?.policies.values();
        wanted.filter_map(|wanted| list.unavailable_in(|image| is_any(wanted, image))).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::watched::GroupKind;

    fn policy(namespace: &str, name: &str) -> ObjectName {
        ObjectName { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    fn request(name: &str) -> PodRequest {
        PodRequest {
            cluster: None,
            object: WatchedId::new(GroupKind::DEPLOYMENT, "n", name),
            namespace: "n".to_owned(),
            selector: "app=x".to_owned(),
            generation: Some(1),
            wanted: Vec::new(),
        }
    }

    fn numbered(count: usize) -> Vec<PodRequest> {
        (0..count).map(|number| request(&number.to_string())).collect()
    }

    /// Replaces the requests of a policy, and returns the policies that must make theirs again.
    fn replace(requests: &mut Requests, policy: &ObjectName, wanted: &[PodRequest]) -> Vec<ObjectName> {
        requests.replace(policy, wanted, Instant::now()).incomplete.into_iter().collect()
    }

    #[test]
    fn the_number_of_objects_is_bounded() {
        let mut requests = Requests::new(ListLimiter::default());
        let (a, b, wanted) = (policy("n", "a"), policy("n", "b"), numbered(MAX_OBJECTS + 1));
        assert_eq!(replace(&mut requests, &a, &wanted), std::slice::from_ref(&a));
        assert_eq!(requests.objects.len(), MAX_OBJECTS);
        assert_eq!(replace(&mut requests, &b, &wanted[MAX_OBJECTS..]), std::slice::from_ref(&b));
        assert_eq!(replace(&mut requests, &a, &wanted[..1]), []);
        assert_eq!(replace(&mut requests, &b, &wanted[MAX_OBJECTS..]), []);
    }

    /// All objects of one tenant crash-loop.
    #[test]
    fn a_namespace_with_many_objects_leaves_lists_to_the_others() {
        let mut requests = Requests::new(ListLimiter::default());
        let (attacker, victim) = (policy("n", "attacker"), policy("victim", "app"));
        let (wanted, own) = (numbered(MAX_OBJECTS), [request("victim-a"), request("victim-b")]);
        assert_eq!(replace(&mut requests, &attacker, &wanted), []);
        assert_eq!(replace(&mut requests, &victim, &own), std::slice::from_ref(&attacker));
        assert_eq!(replace(&mut requests, &attacker, &wanted), std::slice::from_ref(&attacker));
        assert_eq!(requests.objects.len(), MAX_OBJECTS);
        assert!(own.iter().all(|request| requests.objects.contains_key(&request.object)));
        replace(&mut requests, &victim, &[]);
        replace(&mut requests, &attacker, &[]);
        assert!(requests.shares.is_empty() && requests.objects.is_empty() && requests.of_policy.is_empty());
    }

    /// The object of a policy that did nothing stayed without a list.
    #[test]
    fn the_policies_of_an_evicted_object_make_their_requests_again() {
        let mut requests = Requests::new(ListLimiter::default());
        let (a, b, c) = (policy("n", "a"), policy("n", "b"), policy("other", "c"));
        let wanted = numbered(MAX_OBJECTS);
        let last = wanted.iter().max_by_key(|request| &request.object).unwrap();
        assert_eq!(replace(&mut requests, &a, &wanted), []);
        assert_eq!(replace(&mut requests, &b, std::slice::from_ref(last)), []);
        let replaced = requests.replace(&c, &[request("new")], Instant::now());
        assert_eq!(replaced.removed, BTreeSet::from([last.object.clone()]));
        assert_eq!(replaced.incomplete, BTreeSet::from([a.clone(), b.clone()]));
        assert!(!requests.of_policy.values().any(|ids| ids.contains(&last.object)));
        assert_eq!(replace(&mut requests, &b, std::slice::from_ref(last)), std::slice::from_ref(&b));
        replace(&mut requests, &c, &[]);
        assert_eq!(replace(&mut requests, &b, std::slice::from_ref(last)), []);
    }

    /// A namespace stayed charged with the objects of another one.
    #[test]
    fn an_object_is_charged_to_a_policy_that_needs_it() {
        let mut requests = Requests::new(ListLimiter::default());
        let (a, b, wanted) = (policy("a", "app"), policy("b", "app"), [request("shared")]);
        replace(&mut requests, &a, &wanted);
        replace(&mut requests, &b, &wanted);
        let charged = |requests: &Requests| requests.shares.keys().cloned().collect::<Vec<_>>();
        assert_eq!(charged(&requests), ["a"]);
        replace(&mut requests, &a, &[]);
        assert_eq!(charged(&requests), ["b"]);
        assert_eq!(requests.policies_of(&wanted[0].object), BTreeSet::from([b.clone()]));
        replace(&mut requests, &b, &[]);
        assert!(requests.shares.is_empty() && requests.schedule.next().is_none());
    }
}
