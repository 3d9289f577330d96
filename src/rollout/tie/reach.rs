//! The appliers and objects that the places of one automation may lead to.
//!
//! Namespaces are tenants. A tenant controls its own objects with all their labels, and its own git repositories with
//! any address. So neither a label nor an address alone proves that an applier of another namespace has to do with an
//! automation:
//!
//! - With `--no-cross-namespace-refs`, appliers and objects count only in the automation's namespace.
//! - Otherwise, the nearest directory of one namespace does not hide that of another one.
//! - The text of an applier is visible only if it is trusted: in the namespace of the automation or of its
//!   GitRepository, or owned by a trusted one. An Application is also trusted if it reads the automation's repository,
//!   because Argo CD keeps Applications in a namespace of its own.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::rollout::index::{Cluster, ClusterObject, FileApplier, GitAddress};
use crate::rollout::place::{Place, ScannedPlaces};
use crate::rollout::watched::{GroupKind, Mark, WatchedId, WatchedObject, document, marks, release};

/// The maximum number of appliers in a row that are read.
pub const MAX_LINKS: usize = 8;

/// The appliers of the files in a directory, by cluster and directory.
type DirectoryAppliers = HashMap<(usize, String), Rc<[FileApplier]>>;

/// The reach of an automation.
#[derive(Debug)]
pub struct Reach<'i> {
    clusters: &'i [Cluster<'i>],
    /// The namespace of the automation and its policies.
    namespace: &'i str,
    /// The namespace of its GitRepository.
    source_namespace: &'i str,
    scan: Option<&'i ScannedPlaces>,
    repository: Option<GitAddress>,
    no_cross_namespace: bool,
    of_directories: RefCell<DirectoryAppliers>,
}

impl<'i> Reach<'i> {
    /// Creates the reach of an automation, with its scan if there is one.
    pub fn new(
        clusters: &'i [Cluster<'i>],
        namespace: &'i str,
        source_namespace: &'i str,
        scan: Option<&'i ScannedPlaces>,
        no_cross_namespace: bool,
    ) -> Self {
        Self {
            clusters,
            namespace,
            source_namespace,
            scan,
            repository: scan.map(|scan| GitAddress::new(&scan.repository)),
            no_cross_namespace,
            of_directories: RefCell::default(),
        }
    }

    /// Creates the reach of a scanned automation.
    #[must_use]
    pub fn of_scan(clusters: &'i [Cluster<'i>], scan: &'i ScannedPlaces, no_cross_namespace: bool) -> Self {
        let (namespace, source) = (&scan.automation.namespace, &scan.source.namespace);
        Self::new(clusters, namespace, source, Some(scan), no_cross_namespace)
    }

    /// Returns the scan of the automation.
    #[must_use]
    pub fn scan(&self) -> Option<&'i ScannedPlaces> {
        self.scan
    }

    /// Returns `true` if objects of a namespace can be components.
    #[must_use]
    pub fn admits(&self, namespace: &str) -> bool {
        !self.no_cross_namespace || namespace == self.namespace
    }

    /// Returns `true` if the texts of an applier may be in a status.
    #[must_use]
    pub fn trusts(&self, applier: &ClusterObject) -> bool {
        let mut next = Some(applier.clone());
        for _ in 0..MAX_LINKS {
            let Some(object) = next else { return false };
            if self.trusts_itself(&object) {
                return true;
            }
            next = object.get(self.clusters).and_then(|found| owner(self.clusters, object.cluster, found));
        }
        false
    }

    /// Returns `true` if an applier is trusted without its owners.
    #[must_use]
    pub fn trusts_itself(&self, applier: &ClusterObject) -> bool {
        self.is_own(&applier.id.namespace) || self.reads_repository(applier)
    }

    /// Returns `true` for the namespace of the automation, and that of its GitRepository.
    #[must_use]
    pub fn is_own(&self, namespace: &str) -> bool {
        namespace == self.namespace || !self.no_cross_namespace && namespace == self.source_namespace
    }

    /// Returns `true` for an Application that reads the repository of the automation.
    fn reads_repository(&self, object: &ClusterObject) -> bool {
        let is_same = |url: &str| self.repository.as_ref() == Some(&GitAddress::new(url));
        match object.get(self.clusters) {
            Some(WatchedObject::Application(application)) if !self.no_cross_namespace => application
                .spec
                .get()
                .is_ok_and(|spec| spec.sources().iter().any(|source| is_same(&source.repo_url))),
            _ => false,
        }
    }

    /// Returns the appliers in a cluster that are the document of a place.
    #[must_use]
    pub fn document_appliers(&self, cluster: usize, place: &Place) -> Vec<WatchedId> {
        match document(&place.document) {
            Some(id) if GroupKind::APPLIERS.contains(&id.kind) => {
                let found = self.clusters[cluster].index.named(&id.kind, &id.name).map(|(id, _)| id);
                found
                    .filter(|found| id.namespace.is_empty() || found.namespace == id.namespace)
                    .filter(|found| self.admits(&found.namespace))
                    .cloned()
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the appliers of a file in a cluster, the nearest of each namespace.
    ///
    /// They have the longest path that contains it.
    #[must_use]
    pub fn file_appliers(&self, cluster: usize, file: &str) -> Rc<[FileApplier]> {
        let Some((scan, repository)) = self.scan.zip(self.repository.as_ref()) else { return Rc::default() };
        let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
        let mut of_directories = self.of_directories.borrow_mut();
        let found = of_directories.entry((cluster, directory)).or_insert_with(|| {
            let Cluster { name, index, .. } = &self.clusters[cluster];
            // The automation's GitRepository is in Tagboat's own cluster.
            let source = name.is_none().then_some(&scan.source);
            index.appliers_of_file(repository, source, file, |namespace| self.admits(namespace)).into()
        });
        found.clone()
    }

    /// Returns the appliers of a place in a cluster.
    ///
    /// They are those of its document, or else those of its file.
    #[must_use]
    pub fn appliers(&self, cluster: usize, place: &Place) -> Appliers {
        let of_document = self.document_appliers(cluster, place);
        let is_of_document = !of_document.is_empty();
        let ids = if is_of_document {
            of_document
        } else {
            self.file_appliers(cluster, &place.file).iter().map(|applier| applier.id.clone()).collect()
        };
        Appliers { is_of_document, ids }
    }
}

/// The appliers of a place in one cluster.
#[derive(Clone, Debug)]
pub struct Appliers {
    /// They are the document of the place.
    pub is_of_document: bool,
    /// Their identities.
    pub ids: Vec<WatchedId>,
}

/// Returns the positions of the clusters to which an applier applies.
///
/// One that applies to another cluster can have objects in each, unless that has an applier of the same name itself.
pub(super) fn targets<'c>(
    clusters: &'c [Cluster<'_>],
    cluster: usize,
    id: &'c WatchedId,
) -> impl Iterator<Item = usize> + use<'c> {
    let is_remote = clusters[cluster].index.get(id).is_some_and(WatchedObject::is_remote_applier);
    let is_target = move |target: &usize| {
        if !is_remote {
            return *target == cluster;
        }
        let Cluster { index, .. } = clusters[*target];
        *target != cluster && clusters[*target].is_watched() && index.get(id).is_none()
    };
    (0..clusters.len()).filter(is_target)
}

/// Returns the objects with the ownership mark of an applier, in all watched clusters.
pub(super) fn marked(clusters: &[Cluster<'_>], cluster: usize, id: &WatchedId) -> BTreeSet<ClusterObject> {
    let marks = Mark::of_applier(id);
    let of_cluster = |target: usize| {
        let found = marks.iter().flat_map(move |mark| clusters[target].index.with_mark(mark));
        found.map(move |id| ClusterObject { cluster: target, id: id.clone() })
    };
    targets(clusters, cluster, id).flat_map(of_cluster).collect()
}

/// Returns the applier that owns an object: in its cluster, or else in another one.
///
/// The workloads of a remote cluster can have an applier in Tagboat's own.
#[must_use]
pub fn owner(clusters: &[Cluster<'_>], cluster: usize, object: &WatchedObject) -> Option<ClusterObject> {
    let others = (0..clusters.len()).filter(|other| *other != cluster);
    let release = release(object);
    let release = release.map(|name| WatchedId::new(GroupKind::HELM_RELEASE, &name.namespace, &name.name));
    let marks = if release.is_some() { Vec::new() } else { marks(object) };
    [cluster].into_iter().chain(others).find_map(|cluster| {
        let index = clusters[cluster].index;
        let of_release = release.iter().filter_map(|id| index.get_key(id));
        let of_marks = marks.iter().filter_map(|mark| match mark {
            Mark::Kustomization(name) => {
                index.get_key(&WatchedId::new(GroupKind::KUSTOMIZATION, &name.namespace, &name.name))
            }
            Mark::Application(name) => {
                let (namespace, qualified) = name.split_once('_').unwrap_or(("", name));
                let id = WatchedId::new(GroupKind::APPLICATION, namespace, qualified);
                index
                    .get_key(&id)
                    .or_else(|| index.named(&GroupKind::APPLICATION, name).map(|(id, _)| id).next())
            }
        });
        of_release.chain(of_marks).next().map(|id| ClusterObject { cluster, id: id.clone() })
    })
}
