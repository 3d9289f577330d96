//! The watched objects of one cluster.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tagboat_api::ObjectName;

use super::applier_source::{Directory, Source, above, directories};
use super::counted::Counted;
use super::share::Shares;
use super::{GitAddress, ImageKey};
use crate::rollout::image::ObjectImage;
use crate::rollout::watched::{GroupKind, Mark, WatchedId, WatchedObject, marks, release};

/// The number of objects that are removed at once for others.
///
/// To find them, all are read.
const EVICTED: usize = 100;

/// The watched objects of one cluster, by the keys that match them to places.
#[derive(Debug, Default)]
pub struct ClusterIndex {
    objects: BTreeMap<WatchedId, WatchedObject>,
    shares: Shares,
    /// Objects were left out, because there are too many.
    is_incomplete: bool,
    /// The kinds that were listed, or that an object has or had.
    kinds: BTreeSet<GroupKind>,
    images: Counted<ImageKey, WatchedId>,
    /// By the name of the release; its namespace is in the value.
    releases: Counted<String, (String, WatchedId)>,
    marks: Counted<Mark, WatchedId>,
    /// Canaries and Rollouts, by the workload to which they refer.
    referrers: Counted<WatchedId, WatchedId>,
    /// Appliers, by the path of their directory.
    appliers: Counted<String, DirectoryApplier>,
    /// The addresses of GitRepositories.
    repositories: HashMap<ObjectName, GitAddress>,
    /// The kinds whose objects are not known.
    unlisted: BTreeMap<GroupKind, Unlisted>,
}

/// The reason why the objects of a kind are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlisted {
    /// Their list has not arrived yet; components stay as they are meanwhile.
    Expected,
    /// They are not watched; their components are pending.
    Skipped,
    /// Their watch never began, because no scan has a marker of the kind.
    ///
    /// Without a scan, components stay as they are.
    Unwatched,
}

/// The applier of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileApplier {
    /// The Kustomization or Application.
    pub id: WatchedId,
    /// The number of its source that has the file.
    pub source: usize,
}

/// An applier of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DirectoryApplier {
    source: Source,
    id: WatchedId,
    /// The number of the source.
    number: usize,
}

impl ClusterIndex {
    /// Adds or replaces an object, and returns those that it replaces.
    ///
    /// These are the one that had its identity and, beyond [`MAX_OBJECTS`](super::MAX_OBJECTS) and
    /// [`MAX_TEXTS`](super::MAX_TEXTS), objects of the namespace with most. The new one may be left out itself.
    pub fn insert(&mut self, object: WatchedObject) -> Vec<WatchedObject> {
        let id = object.id();
        let mut gone: Vec<WatchedObject> = self.remove(&id).into_iter().collect();
        self.change_keys(&id, &object, true);
        self.shares.add(&id.namespace, &object);
        if !self.kinds.contains(&id.kind) {
            self.kinds.insert(id.kind.clone());
        }
        self.objects.insert(id.clone(), object);
        while self.shares.is_over() {
            self.is_incomplete = true;
            let Some(namespace) = self.shares.largest(&id.namespace).map(str::to_owned) else { break };
            if namespace == id.namespace {
                // The others of its namespace stay, so that they do not come and go.
                self.remove(&id);
                break;
            }
            let of_namespace = self.objects.keys().rev().filter(|id| id.namespace == namespace);
            let evicted: Vec<WatchedId> = of_namespace.take(EVICTED).cloned().collect();
            gone.extend(evicted.iter().filter_map(|id| self.remove(id)));
        }
        gone
    }

    /// Returns `true` if objects were left out, because there are too many.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// Removes an object and returns it.
    pub fn remove(&mut self, id: &WatchedId) -> Option<WatchedObject> {
        let old = self.objects.remove(id)?;
        self.change_keys(id, &old, false);
        self.shares.remove(&id.namespace, &old);
        Some(old)
    }

    /// Removes the objects of a kind that are not in a new list.
    ///
    /// Returns the removed objects.
    pub fn retain(&mut self, kind: &GroupKind, is_kept: impl Fn(&WatchedId) -> bool) -> Vec<WatchedObject> {
        let gone: Vec<WatchedId> =
            self.of_kind(kind).map(|(id, _)| id).filter(|id| !is_kept(id)).cloned().collect();
        gone.iter().filter_map(|id| self.remove(id)).collect()
    }

    fn change_keys(&mut self, id: &WatchedId, object: &WatchedObject, is_added: bool) {
        fn change<K: std::hash::Hash + Eq, V: Ord>(
            map: &mut Counted<K, V>,
            key: K,
            value: V,
            is_added: bool,
        ) {
            if is_added { map.add(key, value) } else { map.remove(&key, &value) }
        }
        for key in image_keys(object) {
            change(&mut self.images, key, id.clone(), is_added);
        }
        if let Some(release) = release(object) {
            change(&mut self.releases, release.name, (release.namespace, id.clone()), is_added);
        }
        for mark in marks(object) {
            change(&mut self.marks, mark, id.clone(), is_added);
        }
        if let Some(target) = object.target() {
            change(&mut self.referrers, target, id.clone(), is_added);
        }
        for (number, Directory { source, path }) in directories(object).into_iter().enumerate() {
            let applier = DirectoryApplier { source, id: id.clone(), number };
            change(&mut self.appliers, path, applier, is_added);
        }
        match address(object) {
            Some(address) if is_added => drop(self.repositories.insert(id.object_name(), address)),
            Some(_) => drop(self.repositories.remove(&id.object_name())),
            None => {}
        }
    }

    /// Sets whether the objects of a kind are known; `None`: they are.
    pub fn set_unlisted(&mut self, kind: &GroupKind, unlisted: Option<Unlisted>) {
        match unlisted {
            Some(unlisted) => drop(self.unlisted.insert(kind.clone(), unlisted)),
            None => {
                self.unlisted.remove(kind);
                self.kinds.insert(kind.clone());
            }
        }
    }

    /// Forgets that a kind was watched.
    pub fn forget_kind(&mut self, kind: &GroupKind) {
        self.unlisted.remove(kind);
        self.kinds.remove(kind);
    }

    /// Returns the reason why the objects of a kind are not known.
    ///
    /// `kind` has no group, as in the name of a component.
    #[must_use]
    pub fn unlisted(&self, kind: &str) -> Option<Unlisted> {
        let unlisted = self.unlisted.iter().find(|(unlisted, _)| unlisted.kind() == kind);
        let is_watched = || {
            let is_kind = |known: &GroupKind| known.kind() == kind;
            self.kinds.iter().any(is_kind) || GroupKind::of_any_place().any(|known| is_kind(&known))
        };
        match unlisted {
            Some((_, reason)) => Some(*reason),
            None => (!is_watched()).then_some(Unlisted::Unwatched),
        }
    }

    /// Returns an object.
    #[must_use]
    pub fn get(&self, id: &WatchedId) -> Option<&WatchedObject> {
        self.objects.get(id)
    }

    /// Returns the identity of an object as the index has it.
    #[must_use]
    pub fn get_key(&self, id: &WatchedId) -> Option<&WatchedId> {
        self.objects.get_key_value(id).map(|(id, _)| id)
    }

    /// Returns the identity of an object by the parts of a component's name.
    ///
    /// The name has no group: of two kinds with the same name, the one with the first group is found.
    #[must_use]
    pub fn find(&self, kind: &str, namespace: &str, name: &str) -> Option<&WatchedId> {
        let kinds = self.kinds.iter().filter(|known| known.kind() == kind);
        kinds.into_iter().find_map(|kind| self.get_key(&WatchedId::new(kind.clone(), namespace, name)))
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns `true` without objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns the objects of a kind.
    pub fn of_kind<'s>(
        &'s self,
        kind: &GroupKind,
    ) -> impl Iterator<Item = (&'s WatchedId, &'s WatchedObject)> {
        let (kind, first) = (kind.clone(), WatchedId::new(kind.clone(), "", ""));
        self.objects.range(first..).take_while(move |(id, _)| id.kind == kind)
    }

    /// Returns the objects of a kind and a name, in all namespaces.
    pub fn named<'s>(
        &'s self,
        kind: &GroupKind,
        name: &str,
    ) -> impl Iterator<Item = (&'s WatchedId, &'s WatchedObject)> {
        let first = WatchedId::new(kind.clone(), "", name);
        let (kind, name) = (kind.clone(), name.to_owned());
        self.objects.range(first..).take_while(move |(id, _)| id.kind == kind && id.name == name)
    }

    /// Returns the workloads with an image of this key.
    pub fn with_image(&self, key: &ImageKey) -> impl Iterator<Item = &WatchedId> {
        self.images.get(key)
    }

    /// Returns the objects of the releases of a name.
    ///
    /// An empty namespace is any namespace.
    pub fn of_release<'s>(&'s self, namespace: &str, name: &str) -> impl Iterator<Item = &'s WatchedId> {
        let namespace = namespace.to_owned();
        let of_name = self.releases.get(name);
        of_name.filter(move |(found, _)| namespace.is_empty() || *found == namespace).map(|(_, id)| id)
    }

    /// Returns the objects with an ownership mark.
    pub fn with_mark(&self, mark: &Mark) -> impl Iterator<Item = &WatchedId> {
        self.marks.get(mark)
    }

    /// Returns the Canaries and Rollouts that refer to a workload.
    pub fn referrers(&self, target: &WatchedId) -> impl Iterator<Item = &WatchedId> {
        self.referrers.get(target)
    }

    /// Returns the appliers of a file, the nearest of each namespace.
    ///
    /// They have the longest path that contains it. Those with a longer path come first. `source` is a GitRepository of the cluster that is known to have the
    /// address. An applier counts only if `is_admitted` is true for its namespace.
    #[must_use]
    pub fn appliers_of_file(
        &self,
        repository: &GitAddress,
        source: Option<&ObjectName>,
        file: &str,
        is_admitted: impl Fn(&str) -> bool,
    ) -> Vec<FileApplier> {
        let mut found: Vec<FileApplier> = Vec::new();
        for path in above(file) {
            let nearer: BTreeSet<String> = found.iter().map(|applier| applier.id.namespace.clone()).collect();
            let of_path = self.appliers.get(path).filter(|applier| {
                let DirectoryApplier { source: read, id, .. } = applier;
                let is_of_repository = match read {
                    Source::Address(address) => address == repository,
                    Source::GitRepository(name) => Some(name) == source || self.has_address(name, repository),
                };
                is_of_repository && is_admitted(&id.namespace) && !nearer.contains(&id.namespace)
            });
            let mut of_path: Vec<FileApplier> = of_path
                .map(|applier| FileApplier { id: applier.id.clone(), source: applier.number })
                .collect();
            of_path.sort();
            found.append(&mut of_path);
        }
        found
    }

    /// Returns `true` if a GitRepository has an address.
    fn has_address(&self, name: &ObjectName, expected: &GitAddress) -> bool {
        self.repositories.get(name) == Some(expected)
    }

    /// Returns the directories of git repositories that an applier applies.
    pub(super) fn directories<'s>(
        &'s self,
        object: &WatchedObject,
    ) -> impl Iterator<Item = (GitAddress, String)> + use<'s> {
        directories(object).into_iter().filter_map(|directory| {
            let address = match directory.source {
                Source::Address(address) => address,
                Source::GitRepository(name) => self.repositories.get(&name)?.clone(),
            };
            Some((address, directory.path))
        })
    }
}

/// Returns the keys of an object's images; an invalid image has none.
pub(super) fn image_keys(object: &WatchedObject) -> Vec<ImageKey> {
    let images = object.images().unwrap_or_default();
    let parsed = images.into_iter().filter_map(|image| ObjectImage::parse(image).ok());
    parsed.map(|image| ImageKey::from(&image.name)).collect()
}

fn address(object: &WatchedObject) -> Option<GitAddress> {
    match object {
        WatchedObject::GitRepository(repository) => Some(GitAddress::new(&repository.spec.get().ok()?.url)),
        _ => None,
    }
}
