//! A cache of the objects of one kind, kept up to date by a watch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use kube::runtime::watcher::Event;
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::objects::ObjectName;

/// The last seen objects of one kind. Clones share the cache.
#[derive(Debug)]
pub struct Cache<K> {
    contents: Arc<RwLock<Contents<K>>>,
    is_synced: watch::Sender<bool>,
}

#[derive(Debug)]
struct Contents<K> {
    objects: BTreeMap<ObjectName, Arc<K>>,
    /// The listing in progress.
    listing: Option<Listing>,
    /// Returns the object of another kind that an object references.
    reference: fn(&K) -> Option<ObjectName>,
    /// The index of references: the referring objects by referenced object.
    referring: BTreeMap<ObjectName, BTreeSet<ObjectName>>,
}

/// A listing of all objects in progress.
#[derive(Debug, Default)]
struct Listing {
    /// The objects that were listed so far.
    listed: BTreeSet<ObjectName>,
    /// The objects that we wrote since the listing began.
    ///
    /// The listing may have older versions of them.
    written: BTreeSet<ObjectName>,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub struct Change<K> {
    /// Its name.
    pub name: ObjectName,
    /// Its previous state; `None` if it is new.
    pub old: Option<Arc<K>>,
    /// Its current state; `None` if it was deleted.
    pub new: Option<Arc<K>>,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self::indexed_by(|_| None)
    }
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { contents: self.contents.clone(), is_synced: self.is_synced.clone() }
    }
}

impl<K> Cache<K> {
    /// Makes a cache with an index of references.
    ///
    /// `reference` returns the object of another kind that an object references.
    pub fn indexed_by(reference: fn(&K) -> Option<ObjectName>) -> Self {
        let contents =
            Contents { objects: BTreeMap::new(), listing: None, reference, referring: BTreeMap::new() };
        Self { contents: Arc::new(RwLock::new(contents)), is_synced: watch::Sender::new(false) }
    }
}

impl<K> Contents<K> {
    fn insert(&mut self, name: &ObjectName, object: Arc<K>) {
        self.remove(name);
        if let Some(reference) = (self.reference)(&object) {
            self.referring.entry(reference).or_default().insert(name.clone());
        }
        self.objects.insert(name.clone(), object);
    }

    fn remove(&mut self, name: &ObjectName) -> Option<Arc<K>> {
        let old = self.objects.remove(name)?;
        if let Some(reference) = (self.reference)(&old)
            && let Some(referring) = self.referring.get_mut(&reference)
        {
            referring.remove(name);
            if referring.is_empty() {
                self.referring.remove(&reference);
            }
        }
        Some(old)
    }
}

impl<K: ResourceExt + PartialEq> Cache<K> {
    /// Applies an event of the watch and returns the resulting changes.
    ///
    /// After a gap in the watch, a new listing shows what was deleted meanwhile, so no change is lost. A listing
    /// replaces the cached objects, also by those with a lower resource version: the API server may have been
    /// restored from a backup.
    pub fn observe(&self, event: Event<K>) -> Vec<Change<K>> {
        match event {
            Event::Init => {
                self.contents.write().listing = Some(Listing::default());
                Vec::new()
            }
            Event::InitApply(object) => {
                let name = ObjectName::of(&object);
                let mut contents = self.contents.write();
                let listing = contents.listing.get_or_insert_default();
                listing.listed.insert(name.clone());
                let is_replaced = !listing.written.contains(&name);
                drop(contents);
                let is_stale = |new: &K, old: &K| if is_replaced { new == old } else { !is_newer(new, old) };
                self.put_unless(object, is_stale).into_iter().collect()
            }
            Event::InitDone => {
                let mut contents = self.contents.write();
                let Listing { listed, .. } = contents.listing.take().unwrap_or_default();
                let gone: Vec<ObjectName> =
                    contents.objects.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                let gone =
                    gone.into_iter().map(|name| Change { old: contents.remove(&name), name, new: None });
                let gone = gone.collect();
                drop(contents);
                self.is_synced.send_replace(true);
                gone
            }
            Event::Apply(object) => self.put(object).into_iter().collect(),
            Event::Delete(object) => self.remove(&ObjectName::of(&object)).into_iter().collect(),
        }
    }

    /// Stores an object, unless a newer version is cached.
    fn put(&self, object: K) -> Option<Change<K>> {
        self.put_unless(object, |new, old| !is_newer(new, old))
    }

    /// Stores an object, unless it is stale compared to the cached one.
    fn put_unless(&self, object: K, is_stale: impl Fn(&K, &K) -> bool) -> Option<Change<K>> {
        let name = ObjectName::of(&object);
        let mut contents = self.contents.write();
        let old = contents.objects.get(&name).cloned();
        if old.as_ref().is_some_and(|old| is_stale(&object, old)) {
            return None;
        }
        let new = Arc::new(object);
        contents.insert(&name, new.clone());
        Some(Change { name, old, new: Some(new) })
    }

    /// Stores an object that we wrote.
    ///
    /// If it is not cached, it was deleted meanwhile, and stays so.
    pub fn apply_written(&self, object: K) -> Option<Change<K>> {
        let name = ObjectName::of(&object);
        self.get(&name)?;
        if let Some(listing) = &mut self.contents.write().listing {
            listing.written.insert(name);
        }
        self.put(object)
    }

    /// Removes an object that was deleted or can no longer be parsed.
    pub fn remove(&self, name: &ObjectName) -> Option<Change<K>> {
        let old = self.contents.write().remove(name)?;
        Some(Change { name: name.clone(), old: Some(old), new: None })
    }

    /// Returns an object, if it is cached.
    pub fn get(&self, name: &ObjectName) -> Option<Arc<K>> {
        self.contents.read().objects.get(name).cloned()
    }

    /// Returns the objects of a namespace, sorted by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let first = ObjectName { namespace: namespace.to_owned(), name: String::new() };
        let contents = self.contents.read();
        let rest = contents.objects.range(first..);
        rest.take_while(|(name, _)| name.namespace == namespace).map(|(_, object)| object.clone()).collect()
    }

    /// Returns the objects that reference another one, sorted by name.
    pub fn referrers(&self, other: &ObjectName) -> Vec<Arc<K>> {
        let contents = self.contents.read();
        let names = contents.referring.get(other).into_iter().flatten();
        names.filter_map(|name| contents.objects.get(name).cloned()).collect()
    }

    /// Returns all objects.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.contents.read().objects.values().cloned().collect()
    }

    /// Waits until the first listing of all objects is complete.
    pub async fn wait_for_sync(&self) {
        // This cache holds the sender itself, so the wait ends only with its condition.
        let _ = self.is_synced.subscribe().wait_for(|is_synced| *is_synced).await;
    }
}

/// Returns whether `new` is later than `old`, or another object of the same name.
///
/// The resource versions of one kind increase with time, in every API server that stores in etcd.
fn is_newer<K: ResourceExt>(new: &K, old: &K) -> bool {
    let version = |object: &K| object.resource_version().and_then(|text| text.parse::<u64>().ok());
    match (version(new), version(old)) {
        (Some(new_version), Some(old_version)) if new.uid() == old.uid() => new_version > old_version,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn object(namespace: &str, name: &str, uid: &str, version: u64) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.namespace = Some(namespace.to_owned());
        object.metadata.name = Some(name.to_owned());
        object.metadata.uid = Some(uid.to_owned());
        object.metadata.resource_version = Some(version.to_string());
        object
    }

    fn short(changes: &[Change<ConfigMap>]) -> Vec<String> {
        let version = |object: &Option<Arc<ConfigMap>>| {
            object.as_ref().map_or("-".to_owned(), |object| object.resource_version().unwrap())
        };
        changes
            .iter()
            .map(|change| format!("{} {}>{}", change.name, version(&change.old), version(&change.new)))
            .collect()
    }

    #[test]
    fn every_change_is_reported_once() {
        let cache = Cache::default();
        assert!(cache.observe(Event::Init).is_empty());
        assert_eq!(short(&cache.observe(Event::InitApply(object("n", "a", "1", 1)))), ["n/a ->1"]);
        assert_eq!(short(&cache.observe(Event::InitApply(object("m", "b", "2", 2)))), ["m/b ->2"]);
        assert!(cache.observe(Event::InitDone).is_empty());
        assert_eq!(short(&cache.observe(Event::Apply(object("n", "a", "1", 5)))), ["n/a 1>5"]);
        // Our own write comes back through the watch, behind an older event.
        assert_eq!(short(cache.apply_written(object("n", "a", "1", 10)).as_slice()), ["n/a 5>10"]);
        for version in [8, 10] {
            assert!(cache.observe(Event::Apply(object("n", "a", "1", version))).is_empty());
        }
        // Another object of the same name.
        assert_eq!(short(&cache.observe(Event::Apply(object("n", "a", "3", 9)))), ["n/a 10>9"]);
        // A gap: one object was deleted, one is new, one is unchanged.
        cache.observe(Event::Apply(object("n", "c", "4", 11)));
        cache.observe(Event::Init);
        assert_eq!(short(&cache.observe(Event::InitApply(object("n", "d", "5", 12)))), ["n/d ->12"]);
        assert!(cache.observe(Event::InitApply(object("n", "c", "4", 11))).is_empty());
        assert_eq!(short(&cache.observe(Event::InitDone)), ["m/b 2>-", "n/a 9>-"]);
        assert_eq!(short(&cache.observe(Event::Delete(object("n", "c", "4", 13)))), ["n/c 11>-"]);
        assert!(cache.observe(Event::Delete(object("n", "c", "4", 13))).is_empty());
        assert!(cache.apply_written(object("n", "c", "4", 14)).is_none(), "one that has gone stays so");
        let names: Vec<String> = cache.in_namespace("n").iter().map(|object| object.name_any()).collect();
        assert_eq!(names, ["d"]);
        assert!(cache.in_namespace("m").is_empty());
    }

    /// Returns the result of a listing for an object that is cached in version 10.
    ///
    /// `wrote` is a version that we wrote meanwhile.
    fn relisted(wrote: Option<u64>, listed: ConfigMap) -> Vec<String> {
        let cache = Cache::default();
        cache.observe(Event::Apply(object("n", "a", "1", 10)));
        cache.observe(Event::Init);
        if let Some(version) = wrote {
            cache.apply_written(object("n", "a", "1", version));
        }
        let mut changes = cache.observe(Event::InitApply(listed));
        changes.extend(cache.observe(Event::InitDone));
        assert!(cache.contents.read().listing.is_none());
        // Later events of the watch apply.
        assert_eq!(cache.observe(Event::Apply(object("n", "a", "1", 30))).len(), 1);
        short(&changes)
    }

    #[test]
    fn after_a_restore_of_the_api_server_the_listing_counts() {
        let unchanged: [&str; 0] = [];
        assert_eq!(relisted(None, object("n", "a", "1", 10)), unchanged);
        assert_eq!(relisted(None, object("n", "a", "1", 12)), ["n/a 10>12"]);
        // Restored from a backup, with the same UID.
        assert_eq!(relisted(None, object("n", "a", "1", 7)), ["n/a 10>7"]);
        // After the restore, versions are assigned again, to other states.
        let mut other = object("n", "a", "1", 10);
        other.data = Some([("other".to_owned(), "state".to_owned())].into());
        assert_eq!(relisted(None, other), ["n/a 10>10"]);
        // A page of the listing may be older than our writes since it began.
        assert_eq!(relisted(Some(15), object("n", "a", "1", 10)), unchanged);
        assert_eq!(relisted(Some(15), object("n", "a", "1", 15)), unchanged);
        assert_eq!(relisted(Some(15), object("n", "a", "1", 16)), ["n/a 15>16"]);
    }

    #[test]
    fn the_index_of_references_follows_changes() {
        let reference = |object: &ConfigMap| {
            let name = object.data.as_ref()?.get("names")?.clone();
            Some(ObjectName { namespace: "n".to_owned(), name })
        };
        let cache = Cache::indexed_by(reference);
        let naming = |name: &str, version: u64, other: &str| {
            let mut object = object("m", name, "1", version);
            object.data = Some([("names".to_owned(), other.to_owned())].into());
            object
        };
        let referring = |other: &str| -> Vec<String> {
            let other = ObjectName { namespace: "n".to_owned(), name: other.to_owned() };
            cache.referrers(&other).iter().map(|object| object.name_any()).collect()
        };
        for object in
            [naming("a", 1, "x"), naming("b", 2, "x"), naming("c", 3, "y"), object("m", "d", "1", 4)]
        {
            cache.observe(Event::Apply(object));
        }
        assert_eq!(
            (referring("x"), referring("y")),
            (vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()])
        );
        // One object references another now, one was deleted, one is unchanged.
        cache.observe(Event::Apply(naming("a", 5, "y")));
        cache.observe(Event::Delete(naming("b", 6, "x")));
        cache.observe(Event::Apply(naming("c", 7, "y")));
        assert_eq!((referring("x"), referring("y")), (vec![], vec!["a".to_owned(), "c".to_owned()]));
        // The same holds after a gap.
        cache.observe(Event::Init);
        cache.observe(Event::InitApply(naming("a", 8, "x")));
        cache.observe(Event::InitDone);
        assert_eq!((referring("x"), referring("y")), (vec!["a".to_owned()], vec![]));
        assert_eq!(cache.contents.read().referring.len(), 1);
    }
}
