//! The ties of all places of a policy.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tagboat_api::ObjectName;
use tagboat_api::deployment_status::{ComponentStatus, Tie};

use super::Repository;
use super::claim::{Claim, PlaceApplier, runners, with_image};
use super::dispute::Disputes;
use super::effort::{Effort, Stop};
use super::evidence::Evidence;
use super::group::{PlaceGroup, groups};
use super::reach::Reach;
use super::runner::images;
use crate::rollout::image::WantedImage;
use crate::rollout::index::{Cluster, ClusterObject, PlaceIndex};
use crate::rollout::place::{Place, ScannedPlaces};
use crate::rollout::watched::{
    GroupKind, Mark, WatchedId, WatchedObject, can_be_component, document, marks, release,
};

/// The values from which the ties of a policy follow.
#[derive(Clone, Copy, Debug)]
pub struct Matching<'i> {
    /// The policy.
    pub policy: &'i ObjectName,
    /// The repository of its image, if it has selected one.
    pub repository: Option<&'i Repository>,
    /// The places of all policies.
    pub places: &'i PlaceIndex,
    /// All clusters; only watched ones have ties.
    pub clusters: &'i [Cluster<'i>],
    /// The reach of each automation of the policy.
    pub reaches: &'i BTreeMap<ObjectName, Reach<'i>>,
    /// The components of the previous status, by name.
    pub previous: &'i HashMap<&'i str, &'i ComponentStatus>,
    /// The images of the deploy history.
    pub deployed: &'i [WantedImage],
    /// Only objects in the automation's namespace are matched.
    pub no_cross_namespace: bool,
    /// Ends the matching early.
    pub stop: Stop<'i>,
}

/// A place that is tied to an object, or several equal ones.
#[derive(Clone, Debug)]
pub struct TiedPlace<'i> {
    /// The automation that updates it.
    pub automation: &'i ObjectName,
    /// The scan of the place; none if its automation was not scanned in this process.
    pub scan: Option<&'i ScannedPlaces>,
    /// The places, at least one.
    pub places: Arc<[&'i Place]>,
    /// The key.
    pub tie: Tie,
}

impl<'i> TiedPlace<'i> {
    /// Returns the first place.
    pub fn place(&self) -> &'i Place {
        self.places[0]
    }
}

/// The ties of a policy.
#[derive(Clone, Debug, Default)]
pub struct Ties<'i> {
    /// The places of each component.
    pub objects: BTreeMap<ClusterObject, Vec<TiedPlace<'i>>>,
    /// The places without an object; of several equal ones the first.
    pub missing: Vec<(&'i ScannedPlaces, &'i Place)>,
    /// The places that were not matched, because there are too many.
    pub unmatched: Option<Unmatched<'i>>,
}

/// Places that were not matched.
#[derive(Clone, Copy, Debug)]
pub struct Unmatched<'i> {
    /// The scan of the first one.
    pub scan: &'i ScannedPlaces,
    /// The first one.
    pub place: &'i Place,
    /// Their number.
    pub count: usize,
}

/// The size in memory that counts as one text of an object, in bytes.
const BYTES_PER_TEXT: usize = 64;

/// Components, each with the key that found it.
type Found = Vec<(Tie, ClusterObject)>;

impl<'i> Matching<'i> {
    /// Returns the ties of places.
    ///
    /// An object is tied to its document or its release first. A document whose own object is absent gets none of
    /// those. Beyond [`MAX_TIES`](super::MAX_TIES) and [`MAX_COMPARISONS`](super::MAX_COMPARISONS), further places
    /// are not matched.
    #[must_use]
    pub fn ties(&self, places: &[(&'i ScannedPlaces, &'i Place)]) -> Ties<'i> {
        let search = Search {
            matching: self,
            disputes: Disputes::new(
                self.policy,
                self.repository,
                self.places,
                self.clusters,
                self.no_cross_namespace,
            ),
            effort: Effort::new(self.stop),
            users: OnceCell::new(),
        };
        search.ties(groups(places))
    }
}

/// The search for the objects of a policy's places.
struct Search<'m, 'i> {
    matching: &'m Matching<'i>,
    disputes: Disputes<'i>,
    effort: Effort<'i>,
    /// The components that use the image repository.
    users: OnceCell<Vec<ClusterObject>>,
}

impl<'i> Search<'_, 'i> {
    fn ties(&self, groups: Vec<PlaceGroup<'i>>) -> Ties<'i> {
        let mut ties = Ties::default();
        let mut open: Vec<PlaceGroup<'i>> = Vec::new();
        for group in groups {
            if self.effort.is_spent() {
                leave_out(&mut ties, &group);
                continue;
            }
            let found = self.by_identity(&group);
            if found.is_empty() {
                open.push(group);
            } else {
                self.add(&mut ties, &group, found);
            }
        }
        let identified: BTreeSet<ClusterObject> = ties.objects.keys().cloned().collect();
        for group in open {
            if self.effort.is_spent() {
                leave_out(&mut ties, &group);
                continue;
            }
            let is_document = document(&group.place.document).is_some_and(|id| can_be_component(&id));
            let mut found = self.by_owner(&group);
            found.retain(|(_, object)| !is_document || !identified.contains(object));
            if found.is_empty() && !self.had_object(group.place) {
                found = self.by_image(&group);
                found.retain(|(_, object)| !is_document || !identified.contains(object));
            }
            if found.is_empty() {
                ties.missing.push((group.scan, group.place));
            }
            self.add(&mut ties, &group, found);
        }
        ties
    }

    fn add(&self, ties: &mut Ties<'i>, group: &PlaceGroup<'i>, found: Found) {
        self.effort.tie(found.len());
        let (scan, places): (_, Arc<[&'i Place]>) = (group.scan, group.places.as_slice().into());
        for (tie, object) in found {
            self.compare_texts(&object);
            let (automation, places) = (&scan.automation, Arc::clone(&places));
            let tied = TiedPlace { automation, scan: Some(scan), places, tie };
            ties.objects.entry(object).or_default().push(tied);
        }
    }

    /// Returns the object of the document, or else the objects of its release.
    fn by_identity(&self, group: &PlaceGroup<'i>) -> Found {
        let Some(claim) = self.claim(group) else { return Vec::new() };
        let evidence = self.evidence(group);
        let documents = claim.documents();
        self.effort.compare(documents.len() + 1);
        let documents = documents
            .into_iter()
            .filter(|(found, is_exact)| *is_exact || self.uses(&claim, found))
            .map(|(found, _)| found)
            .filter(|found| !self.has_marked_release(found));
        let of_document = self.undisputed(&claim, runners(claim.clusters, documents), &evidence);
        if !of_document.is_empty() {
            return with(Tie::Object, of_document);
        }
        let found = claim.of_release();
        self.effort.compare(found.len());
        let found = self.users_of(&claim, found);
        with(Tie::Release, self.undisputed(&claim, found, &evidence))
    }

    /// Returns `true` for an object of another cluster whose release has a marker.
    ///
    /// That marker is its place, rather than a document for the own cluster with the same name.
    fn has_marked_release(&self, found: &ClusterObject) -> bool {
        let Matching { policy, places, clusters, .. } = *self.matching;
        let release = found.get(clusters).filter(|_| !clusters[found.cluster].is_own()).and_then(release);
        release.is_some_and(|ObjectName { namespace, name }| {
            let has_place = |namespace| {
                places.has_document(policy, &WatchedId::new(GroupKind::HELM_RELEASE, namespace, &name))
            };
            has_place(&namespace) || has_place("")
        })
    }

    /// Returns the objects of the appliers, and the appliers themselves without any.
    ///
    /// An applier is a component only if it applies to a cluster without a kubeconfig.
    fn by_owner(&self, group: &PlaceGroup<'i>) -> Found {
        let Some(claim) = self.claim(group) else { return Vec::new() };
        let evidence = self.evidence(group);
        let appliers = claim.appliers();
        let namespaces: BTreeSet<&str> =
            appliers.iter().map(|applier| applier.applier.id.namespace.as_str()).collect();
        // Any tenant can have an applier with the address of the repository and a path.
        let is_ambiguous = namespaces.len() > 1;
        let mut found = Found::new();
        for PlaceApplier { tie, applier, marked } in appliers {
            self.effort.compare(marked.len() + 1);
            let is_component = marked.is_empty()
                && applier.get(claim.clusters).is_some_and(WatchedObject::is_remote_applier);
            let (tie, own) = if !is_component {
                (Tie::Applier, self.users_of(&claim, marked))
            } else if tie == Tie::Object || claim.reach.trusts_itself(&applier) {
                (tie, vec![applier])
            } else {
                continue;
            };
            let mut own = self.undisputed(&claim, own, &evidence);
            own.retain(|object| !is_ambiguous || self.has_evidence(object, &evidence));
            found.extend(with(tie, own));
        }
        found
    }

    /// Returns the objects that use the image, with evidence, unless another policy claims them.
    fn by_image(&self, group: &PlaceGroup<'i>) -> Found {
        let Some(claim) = self.claim(group) else { return Vec::new() };
        let Some(repository) = self.matching.repository else { return Vec::new() };
        let evidence = self.evidence(group);
        let users = self.users.get_or_init(|| self.users_of(&claim, with_image(claim.clusters, repository)));
        self.effort.compare(users.len());
        let found: Vec<ClusterObject> = users
            .iter()
            .filter(|object| self.is_permitted(&claim, object))
            .filter(|object| self.has_evidence(object, &evidence) && !self.disputes.has(object))
            .cloned()
            .collect();
        with(Tie::Image, self.without_watched_appliers(found))
    }

    fn claim<'g>(&'g self, group: &'g PlaceGroup<'i>) -> Option<Claim<'g, 'i>> {
        let Matching { clusters, repository, reaches, .. } = *self.matching;
        Some(Claim { clusters, group, reach: reaches.get(&group.scan.automation)?, repository })
    }

    fn evidence(&self, group: &PlaceGroup<'i>) -> Evidence {
        Evidence::new(group.place, self.matching.repository, self.matching.deployed)
    }

    /// Returns the components that run objects which use the image repository.
    fn users_of(&self, claim: &Claim<'_, 'i>, found: Vec<ClusterObject>) -> Vec<ClusterObject> {
        let used = found.into_iter().filter(|found| self.uses(claim, found));
        runners(claim.clusters, used)
    }

    /// Returns `true` if an object uses the image repository.
    fn uses(&self, claim: &Claim<'_, 'i>, object: &ClusterObject) -> bool {
        self.compare_texts(object);
        claim.uses(object, &|object| self.is_known(object))
    }

    /// Counts the comparisons of the texts of an object: images beyond the first, or others.
    fn compare_texts(&self, object: &ClusterObject) {
        let clusters = self.matching.clusters;
        let Some(found) = object.get(clusters) else { return };
        self.effort.compare(match found {
            WatchedObject::Other(..) | WatchedObject::HelmRelease(_) => found.text_bytes() / BYTES_PER_TEXT,
            _ => {
                let images = images(clusters[object.cluster].index, found);
                images.map_or(0, |images| images.len().saturating_sub(1))
            }
        });
    }

    /// Returns `true` for a component of the previous status.
    ///
    /// It counts even if its images are unreadable.
    fn is_known(&self, object: &ClusterObject) -> bool {
        self.previous(object).is_some()
    }

    fn previous(&self, object: &ClusterObject) -> Option<&'i ComponentStatus> {
        let name = self.matching.clusters[object.cluster].name_of(&object.id);
        self.matching.previous.get(name.as_str()).copied()
    }

    /// Returns `true` if the document was an object in the previous status.
    ///
    /// Then an object that only has the same image is another one.
    fn had_object(&self, place: &Place) -> bool {
        let Some(id) = document(&place.document) else { return false };
        self.matching.clusters.iter().any(|cluster| {
            let previous = self.matching.previous.get(cluster.name_of(&id).as_str());
            previous.is_some_and(|component| component.tie == Some(Tie::Object))
        })
    }

    /// Removes the components of other policies, and of other tenants.
    ///
    /// Another policy claims them, and there is no evidence for this one.
    fn undisputed(
        &self,
        claim: &Claim<'_, 'i>,
        found: Vec<ClusterObject>,
        evidence: &Evidence,
    ) -> Vec<ClusterObject> {
        let is_kept = |object: &ClusterObject| {
            self.is_permitted(claim, object)
                && (!self.disputes.has(object) || self.has_evidence(object, evidence))
        };
        found.into_iter().filter(is_kept).collect()
    }

    /// Returns `true` if the status may have an object as a component.
    fn is_permitted(&self, claim: &Claim<'_, 'i>, object: &ClusterObject) -> bool {
        let is_applier = object.get(claim.clusters).is_some_and(WatchedObject::is_remote_applier);
        claim.reach.admits(&object.id.namespace) && (!is_applier || claim.reach.trusts(object))
    }

    fn has_evidence(&self, component: &ClusterObject, evidence: &Evidence) -> bool {
        let clusters = self.matching.clusters;
        let Some(object) = component.get(clusters) else { return false };
        self.compare_texts(component);
        let previous = self.previous(component);
        match images(clusters[component.cluster].index, object) {
            Ok(images) => {
                evidence.holds(object, &images, previous.and_then(|component| component.image.as_deref()))
            }
            Err(_) => previous.is_some(),
        }
    }

    /// Removes the appliers of components in other clusters that are watched.
    fn without_watched_appliers(&self, found: Vec<ClusterObject>) -> Vec<ClusterObject> {
        let owners: BTreeSet<Mark> = found
            .iter()
            .filter_map(|object| object.get(self.matching.clusters))
            .filter(|object| !matches!(object, WatchedObject::Application(_)))
            .flat_map(marks)
            .collect();
        let is_owner =
            |object: &ClusterObject| Mark::of_applier(&object.id).iter().any(|mark| owners.contains(mark));
        found.into_iter().filter(|object| !is_owner(object)).collect()
    }
}

fn with(tie: Tie, found: Vec<ClusterObject>) -> Found {
    found.into_iter().map(|object| (tie, object)).collect()
}

/// Counts a group that is not matched.
fn leave_out<'i>(ties: &mut Ties<'i>, group: &PlaceGroup<'i>) {
    let PlaceGroup { scan, place, places } = group;
    let unmatched = ties.unmatched.get_or_insert(Unmatched { scan, place, count: 0 });
    unmatched.count += places.len();
}
