//! Disputes: objects that other policies claim, too.
//!
//! Only the policies of the own namespace and of the object's namespace count. Otherwise, any tenant could take an
//! object away by a document in its own repository.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use tagboat_api::ObjectName;

use super::Repository;
use super::claim::watched;
use super::reach::{Reach, targets};
use super::runner::{images, runner};
use crate::rollout::index::{Cluster, ClusterIndex, ClusterObject, PlaceIndex};
use crate::rollout::place::Place;
use crate::rollout::watched::{
    GroupKind, Mark, WatchedId, WatchedObject, can_be_component, document, has_text, marks, release,
};

/// The marks that a policy claims, with the positions of the clusters of their objects.
type ClaimedMarks = HashSet<(usize, Mark)>;

/// The claims of other policies, as far as they are known.
///
/// A claim is by document, release or applier: the keys that need no evidence without a dispute.
pub(super) struct Disputes<'i> {
    pub(super) policy: &'i ObjectName,
    pub(super) repository: Option<&'i Repository>,
    pub(super) places: &'i PlaceIndex,
    pub(super) clusters: &'i [Cluster<'i>],
    pub(super) no_cross_namespace: bool,
    verdicts: RefCell<HashMap<ClusterObject, bool>>,
    /// The marks that each policy claims.
    marks: RefCell<HashMap<&'i ObjectName, Rc<ClaimedMarks>>>,
}

impl<'i> Disputes<'i> {
    pub(super) fn new(
        policy: &'i ObjectName,
        repository: Option<&'i Repository>,
        places: &'i PlaceIndex,
        clusters: &'i [Cluster<'i>],
        no_cross_namespace: bool,
    ) -> Self {
        let (verdicts, marks) = (RefCell::default(), RefCell::default());
        Self { policy, repository, places, clusters, no_cross_namespace, verdicts, marks }
    }

    /// Returns `true` if another policy claims a component.
    ///
    /// Policies with different repositories, both of which the object uses, do not compete.
    pub(super) fn has(&self, component: &ClusterObject) -> bool {
        if let Some(verdict) = self.verdicts.borrow().get(component) {
            return *verdict;
        }
        let verdict = self.is_claimed(component);
        self.verdicts.borrow_mut().insert(component.clone(), verdict);
        verdict
    }

    fn is_claimed(&self, component: &ClusterObject) -> bool {
        let ClusterObject { cluster, id } = component;
        let index = self.clusters[*cluster].index;
        let Some(object) = index.get(id) else { return false };
        let images = images(index, object).unwrap_or_default();
        let uses_own =
            self.repository.is_some_and(|repository| images.iter().any(|image| repository.has_text(image)));
        let rivals = self.places.candidates(index, object).into_iter().filter(|rival| {
            let is_near = rival.namespace == self.policy.namespace || rival.namespace == id.namespace;
            is_near && *rival != self.policy
        });
        rivals.into_iter().any(|policy| {
            let repository = self.places.policy(policy).and_then(|policy| policy.repository.clone());
            let repository = repository.map(|name| Repository { name, digest: None });
            let is_same = repository.as_ref().map(|repository| repository.name.canonical())
                == self.repository.map(|repository| repository.name.canonical());
            let rival = Rival { policy, repository: repository.as_ref() };
            (is_same || !uses_own)
                && templates(index, id, object).any(|object| self.claims(&rival, *cluster, object))
        })
    }

    /// Returns `true` if a policy claims an object by its document, release or applier.
    ///
    /// Except for the exact document in Tagboat's own cluster, the object has to use its image, as for an own claim.
    fn claims(&self, rival: &Rival<'_, 'i>, cluster: usize, object: &WatchedObject) -> bool {
        let index = self.clusters[cluster].index;
        let id = object.id();
        let unplaced = WatchedId::without_namespace;
        let has_document = |id: &WatchedId| self.places.has_document(rival.policy, id);
        if can_be_component(&id) {
            if has_document(&id) && self.clusters[cluster].is_own() {
                return true;
            }
            let documents = [id.clone(), unplaced(&id)];
            if documents.iter().any(has_document) {
                let is_value = |text: &str| {
                    let named =
                        |place: &Place| document(&place.document).is_some_and(|id| documents.contains(&id));
                    let mut places = self.places.places(rival.policy).map(|(_, place)| place);
                    places.any(|place| place.value == text && named(place))
                };
                if rival.uses(index, object, &is_value) {
                    return true;
                }
            }
        }
        let release =
            release(object).map(|name| WatchedId::new(GroupKind::HELM_RELEASE, &name.namespace, &name.name));
        let of_release = release.is_some_and(|id| has_document(&id) || has_document(&unplaced(&id)));
        let of_applier = || {
            let claimed = self.claimed_marks(rival.policy);
            marks(object).into_iter().any(|mark| claimed.contains(&(cluster, mark)))
        };
        (of_release || of_applier()) && rival.uses(index, object, &|_| false)
    }

    /// Returns the marks of the appliers of a policy's places.
    fn claimed_marks(&self, policy: &'i ObjectName) -> Rc<ClaimedMarks> {
        if let Some(known) = self.marks.borrow().get(policy) {
            return known.clone();
        }
        let mut appliers: BTreeSet<ClusterObject> = BTreeSet::new();
        let mut seen = HashSet::new();
        let mut reach: Option<Reach<'i>> = None;
        for (scan, place) in self.places.places(policy) {
            if !seen.insert((&scan.automation, &place.file, &place.document)) {
                continue;
            }
            let is_current = |reach: &Reach<'i>| reach.scan().is_some_and(|own| std::ptr::eq(own, scan));
            if !reach.as_ref().is_some_and(is_current) {
                reach = Some(Reach::of_scan(self.clusters, scan, self.no_cross_namespace));
            }
            let Some(reach) = &reach else { continue };
            for cluster in watched(self.clusters) {
                let found = reach.appliers(cluster, place).ids;
                appliers.extend(found.into_iter().map(|id| ClusterObject { cluster, id }));
            }
        }
        let claimed = appliers.iter().flat_map(|applier| {
            let marks = Mark::of_applier(&applier.id);
            let targets = targets(self.clusters, applier.cluster, &applier.id);
            targets.flat_map(move |target| marks.clone().into_iter().map(move |mark| (target, mark)))
        });
        let claimed: Rc<ClaimedMarks> = Rc::new(claimed.collect());
        self.marks.borrow_mut().insert(policy, claimed.clone());
        claimed
    }
}

/// Another policy, with the repository of its image.
struct Rival<'r, 'i> {
    policy: &'i ObjectName,
    repository: Option<&'r Repository>,
}

impl Rival<'_, '_> {
    fn uses(&self, index: &ClusterIndex, object: &WatchedObject, is_value: &dyn Fn(&str) -> bool) -> bool {
        let of_repository = |text: &str| self.repository.is_some_and(|repository| repository.has_text(text));
        match object {
            WatchedObject::Other(_, object) => {
                has_text(&object.spec, &|text| is_value(text) || of_repository(text))
            }
            _ => images(index, object).unwrap_or_default().into_iter().any(of_repository),
        }
    }
}

/// Returns the objects whose templates a component runs.
///
/// These are itself, or the workload to which it refers.
fn templates<'i>(
    index: &'i ClusterIndex,
    id: &WatchedId,
    object: &'i WatchedObject,
) -> impl Iterator<Item = &'i WatchedObject> {
    let target = object.target().and_then(|target| index.get(&target));
    let id = id.clone();
    [Some(object), target]
        .into_iter()
        .flatten()
        .filter(move |object| runner(index, &object.id()).as_ref() == Some(&id))
}
