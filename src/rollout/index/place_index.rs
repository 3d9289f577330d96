//! The places of all policies, and the policies that a changed object concerns.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tagboat_api::ObjectName;

use super::cluster_index::image_keys;
use super::counted::Counted;
use super::{ClusterIndex, GitAddress, ImageKey};
use crate::reference::ImageName;
use crate::rollout::place::{Place, ScannedPlaces};
use crate::rollout::watched::{
    GroupKind, Mark, WatchedId, WatchedObject, can_be_component, document, marks, release,
};

/// The places of all policies.
#[derive(Debug, Default)]
pub struct PlaceIndex {
    policies: BTreeMap<ObjectName, PolicyPlaces>,
    /// The scans with places.
    scans: BTreeMap<ObjectName, Arc<ScannedPlaces>>,
    documents: Counted<WatchedId, ObjectName>,
    images: Counted<ImageKey, ObjectName>,
    /// The numbers of the policies' places in a file, by repository and file.
    files: HashMap<GitAddress, BTreeMap<String, BTreeMap<ObjectName, usize>>>,
}

/// The places of one policy.
#[derive(Clone, Debug, Default)]
pub struct PolicyPlaces {
    /// The repository of the policy's image; absent until an image is selected.
    pub repository: Option<ImageName>,
    /// The automations whose scans have places of the policy.
    automations: BTreeSet<ObjectName>,
}

impl PlaceIndex {
    /// Adds or replaces the scan of its automation.
    ///
    /// Returns the policies with a place in the new scan or the one before.
    pub fn insert_scan(&mut self, scan: Arc<ScannedPlaces>) -> BTreeSet<ObjectName> {
        let automation = scan.automation.clone();
        let mut concerned = self.remove_scan(&automation);
        if scan.places.is_empty() {
            return concerned;
        }
        let repository = GitAddress::new(&scan.repository);
        for policy in scan.policies() {
            self.policies.entry(policy.clone()).or_default().automations.insert(automation.clone());
            concerned.insert(policy.clone());
        }
        for place in &scan.places {
            if let Some(document) = document(&place.document) {
                self.documents.add(document, place.policy.clone());
            }
            let files = self.files.entry(repository.clone()).or_default();
            let in_file = files.entry(place.file.clone()).or_default();
            *in_file.entry(place.policy.clone()).or_default() += 1;
        }
        self.scans.insert(automation, scan);
        concerned
    }

    /// Removes the scan of an automation.
    ///
    /// Returns the policies that had a place in it.
    pub fn remove_scan(&mut self, automation: &ObjectName) -> BTreeSet<ObjectName> {
        let Some(scan) = self.scans.remove(automation) else { return BTreeSet::new() };
        let repository = GitAddress::new(&scan.repository);
        for place in &scan.places {
            if let Some(document) = document(&place.document) {
                self.documents.remove(&document, &place.policy);
            }
            self.remove_from_file(&repository, &place.file, &place.policy);
        }
        let concerned: BTreeSet<ObjectName> = scan.policies().cloned().collect();
        for name in &concerned {
            if let Some(policy) = self.policies.get_mut(name) {
                policy.automations.remove(automation);
            }
            self.forget_if_unused(name);
        }
        concerned
    }

    fn remove_from_file(&mut self, repository: &GitAddress, file: &str, policy: &ObjectName) {
        let Some(files) = self.files.get_mut(repository) else { return };
        let Some(in_file) = files.get_mut(file) else { return };
        if let Some(count) = in_file.get_mut(policy) {
            *count -= 1;
            if *count == 0 {
                in_file.remove(policy);
            }
        }
        if in_file.is_empty() {
            files.remove(file);
        }
        if files.is_empty() {
            self.files.remove(repository);
        }
    }

    /// Sets the repository of a policy's image.
    ///
    /// It is none if the policy is gone or has selected no image.
    pub fn set_repository(&mut self, policy: &ObjectName, repository: Option<ImageName>) {
        let known = self.policies.entry(policy.clone()).or_default();
        let old = std::mem::replace(&mut known.repository, repository.clone());
        if let Some(old) = old {
            self.images.remove(&ImageKey::from(&old), policy);
        }
        if let Some(new) = repository {
            self.images.add(ImageKey::from(&new), policy.clone());
        }
        self.forget_if_unused(policy);
    }

    fn forget_if_unused(&mut self, policy: &ObjectName) {
        let is_unused = |known: &PolicyPlaces| known.automations.is_empty() && known.repository.is_none();
        if self.policies.get(policy).is_some_and(is_unused) {
            self.policies.remove(policy);
        }
    }

    /// Returns a policy, if it has a place or a repository.
    #[must_use]
    pub fn policy(&self, policy: &ObjectName) -> Option<&PolicyPlaces> {
        self.policies.get(policy)
    }

    /// Returns the places of a policy with their scans.
    ///
    /// The order is that of automations, files and lines.
    pub fn places<'s>(
        &'s self,
        policy: &ObjectName,
    ) -> impl Iterator<Item = (&'s ScannedPlaces, &'s Place)> + use<'s> {
        let automations = self.policies.get(policy).into_iter().flat_map(|policy| &policy.automations);
        let scans = automations.filter_map(|automation| self.scans.get(automation));
        let policy = policy.clone();
        scans.flat_map(move |scan| scan.of_policy(&policy).iter().map(move |place| (&**scan, place)))
    }

    /// Returns the last scan of an automation.
    #[must_use]
    pub fn scan(&self, automation: &ObjectName) -> Option<&Arc<ScannedPlaces>> {
        self.scans.get(automation)
    }

    /// Returns the kinds of documents without a rule of their own, by namespace.
    ///
    /// It is that of the automation. They are watched in addition to the kinds that have one.
    #[must_use]
    pub fn other_kinds(&self) -> BTreeMap<&str, BTreeSet<GroupKind>> {
        let mut kinds: BTreeMap<&str, BTreeSet<GroupKind>> = BTreeMap::new();
        for scan in self.scans.values() {
            let objects = scan.places.iter().filter_map(|place| document(&place.document));
            let others = objects.filter(can_be_component).map(|id| id.kind.clone());
            let others = others.filter(|kind| !GroupKind::WORKLOADS.contains(kind));
            kinds.entry(&scan.automation.namespace).or_default().extend(others);
        }
        kinds
    }

    /// Returns `true` if a policy has a place in a document of this identity.
    pub(in crate::rollout) fn has_document(&self, policy: &ObjectName, id: &WatchedId) -> bool {
        self.documents.has(id, policy)
    }

    /// Returns the policies that may claim an object.
    ///
    /// The keys are its document, its release and its image.
    ///
    /// A Rollout runs the template of the workload of its `workloadRef`.
    pub(in crate::rollout) fn candidates(
        &self,
        index: &ClusterIndex,
        object: &WatchedObject,
    ) -> BTreeSet<&ObjectName> {
        let target = object.target().and_then(|id| index.get(&id));
        let mut found = self.claimants(object);
        found.extend(target.into_iter().flat_map(|target| self.claimants(target)));
        found
    }

    fn claimants(&self, object: &WatchedObject) -> BTreeSet<&ObjectName> {
        let id = object.id();
        let mut found: BTreeSet<&ObjectName> = BTreeSet::new();
        found.extend(self.of_document(&id));
        if let Some(name) = release(object) {
            let release = WatchedId::new(GroupKind::HELM_RELEASE, &name.namespace, &name.name);
            found.extend(self.of_document(&release));
        }
        for key in image_keys(object) {
            found.extend(self.images.get(&key));
        }
        found
    }

    /// Returns the policies with a document of this identity, with or without its namespace.
    fn of_document<'s>(&'s self, id: &WatchedId) -> impl Iterator<Item = &'s ObjectName> + use<'s> {
        let without_namespace = id.without_namespace();
        let exact: Vec<&ObjectName> = self.documents.get(id).collect();
        let unplaced: Vec<&ObjectName> = self.documents.get(&without_namespace).collect();
        exact.into_iter().chain(unplaced)
    }

    /// Returns the policies that a changed object may concern.
    ///
    /// Call it with the object before and after the change, and with the index after it.
    #[must_use]
    pub fn concerned(&self, index: &ClusterIndex, object: &WatchedObject) -> BTreeSet<ObjectName> {
        let mut found = self.candidates(index, object);
        for mark in marks(object) {
            if let Mark::Kustomization(name) = mark {
                let id = WatchedId::new(GroupKind::KUSTOMIZATION, &name.namespace, &name.name);
                found.extend(self.of_document(&id));
            }
        }
        // A primary decides about the target of the Canary that controls it.
        if let Some(canary) = object.controller().and_then(|id| index.get(&id)) {
            found.extend(self.candidates(index, canary));
        }
        // An applier concerns the places in its files, and its workloads.
        for (repository, path) in index.directories(object) {
            found.extend(self.in_directory(&repository, &path));
        }
        if let WatchedObject::GitRepository(repository) = object
            && let Ok(spec) = repository.spec.get()
        {
            found.extend(self.in_directory(&GitAddress::new(&spec.url), ""));
        }
        let mut found: BTreeSet<ObjectName> = found.into_iter().cloned().collect();
        found.extend(self.owning(index, object));
        found
    }

    /// Returns the policies that may claim an object of an applier.
    ///
    /// The objects may be in another cluster than the applier.
    #[must_use]
    pub fn owning(&self, index: &ClusterIndex, applier: &WatchedObject) -> BTreeSet<ObjectName> {
        let id = applier.id();
        let marked = Mark::of_applier(&id);
        let owned = marked.iter().flat_map(|mark| index.with_mark(mark));
        let is_release = id.kind == GroupKind::HELM_RELEASE;
        let released = is_release.then(|| index.of_release(&id.namespace, &id.name)).into_iter().flatten();
        let owned = owned.chain(released).filter_map(|id| index.get(id));
        let found: BTreeSet<&ObjectName> = owned.flat_map(|owned| self.candidates(index, owned)).collect();
        found.into_iter().cloned().collect()
    }

    /// Returns the policies with a place in a directory.
    fn in_directory<'s>(&'s self, repository: &GitAddress, path: &str) -> BTreeSet<&'s ObjectName> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let files = self.files.get(repository).into_iter().flat_map(|files| files.range(prefix.clone()..));
        let inside = files.take_while(|(file, _)| file.starts_with(&prefix));
        inside.flat_map(|(_, policies)| policies.keys()).collect()
    }

    /// Returns some policies, and those that may compete with them for an object.
    ///
    /// They have the same image, or a place in the same document.
    #[must_use]
    pub fn rivals(&self, policies: &BTreeSet<ObjectName>) -> BTreeSet<ObjectName> {
        let mut found = policies.clone();
        let mut documents: HashSet<WatchedId> = HashSet::new();
        let mut images: HashSet<ImageKey> = HashSet::new();
        for policy in policies {
            documents.extend(self.places(policy).filter_map(|(_, place)| document(&place.document)));
            let repository = self.policies.get(policy).and_then(|known| known.repository.as_ref());
            images.extend(repository.map(ImageKey::from));
        }
        found.extend(documents.iter().flat_map(|id| self.of_document(id)).cloned());
        found.extend(images.iter().flat_map(|key| self.images.get(key)).cloned());
        found
    }

    /// Returns `true` without places.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scans.is_empty()
    }

    /// Returns the automations of a namespace that have places.
    #[must_use]
    pub fn automations_in(&self, namespace: &str) -> Vec<ObjectName> {
        let first = ObjectName { namespace: namespace.to_owned(), name: String::new() };
        let names = self.scans.range(first..).map(|(automation, _)| automation);
        names.take_while(|automation| automation.namespace == namespace).cloned().collect()
    }
}
