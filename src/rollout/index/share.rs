//! The shares that namespaces have of a bounded index.

use std::collections::HashMap;

use crate::rollout::watched::WatchedObject;

/// The maximum number of objects.
pub const MAX_OBJECTS: usize = 100_000;

/// The maximum size in bytes of the texts that may have an image.
pub const MAX_TEXTS: usize = 64 * 1024 * 1024;

/// The numbers and sizes of objects, by namespace.
#[derive(Debug, Default)]
pub(super) struct Shares {
    namespaces: HashMap<String, Share>,
    total: Share,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    objects: usize,
    texts: usize,
}

impl Share {
    fn add(&mut self, texts: usize) {
        self.objects += 1;
        self.texts += texts;
    }

    fn remove(&mut self, texts: usize) {
        self.objects -= 1;
        self.texts -= texts;
    }

    /// Returns its size in bytes of texts.
    ///
    /// If its objects take a larger part of their limit, it is the size for them.
    fn size(self) -> usize {
        self.texts.max(self.objects * (MAX_TEXTS / MAX_OBJECTS))
    }
}

impl Shares {
    pub(super) fn add(&mut self, namespace: &str, object: &WatchedObject) {
        let texts = object.text_bytes();
        self.total.add(texts);
        self.namespaces.entry(namespace.to_owned()).or_default().add(texts);
    }

    pub(super) fn remove(&mut self, namespace: &str, object: &WatchedObject) {
        let texts = object.text_bytes();
        let Some(share) = self.namespaces.get_mut(namespace) else { return };
        share.remove(texts);
        self.total.remove(texts);
        if share.objects == 0 {
            self.namespaces.remove(namespace);
        }
    }

    /// Returns `true` if the limits are exceeded.
    pub(super) fn is_over(&self) -> bool {
        self.total.objects > MAX_OBJECTS || self.total.texts > MAX_TEXTS
    }

    /// Returns the namespace with the largest share; `last` comes first among equals.
    pub(super) fn largest(&self, last: &str) -> Option<&str> {
        let shares = self.namespaces.iter();
        let largest = shares.max_by_key(|(namespace, share)| (share.size(), namespace.as_str() == last));
        largest.map(|(namespace, _)| namespace.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ClusterIndex;
    use super::*;
    use crate::rollout::watched::{GroupKind, WatchedId};

    /// A HelmRelease for another cluster, whose values are kept.
    fn release(namespace: &str, number: usize, bytes: usize) -> WatchedObject {
        let release = json!({
            "metadata": {"name": format!("r{number}"), "namespace": namespace},
            "spec": {"kubeConfig": {}, "values": {"text": "x".repeat(bytes)}},
        });
        WatchedObject::HelmRelease(serde_json::from_value(release).unwrap())
    }

    fn has(index: &ClusterIndex, namespace: &str, number: usize) -> bool {
        index.get(&WatchedId::new(GroupKind::HELM_RELEASE, namespace, &format!("r{number}"))).is_some()
    }

    #[test]
    fn large_objects_of_one_namespace_leave_room_for_those_of_others() {
        let (mut index, size) = (ClusterIndex::default(), 1024 * 1024);
        let number = MAX_TEXTS / size + 5;
        for number in 0..number {
            assert!(index.insert(release("attacker", number, size)).is_empty());
        }
        // Those that came first stay.
        assert!(has(&index, "attacker", 0) && !has(&index, "attacker", number - 1) && index.is_incomplete());
        let evicted = index.insert(release("victim", 0, size));
        assert!(!evicted.is_empty() && has(&index, "victim", 0));
        assert!(evicted.iter().all(|object| object.id().namespace == "attacker"));
        // With room again, an object of any size is taken.
        let same = index.insert(release("attacker", number - 1, 0));
        assert!(same.is_empty() && has(&index, "attacker", number - 1));
        for number in 0..number {
            index.remove(&WatchedId::new(GroupKind::HELM_RELEASE, "attacker", &format!("r{number}")));
        }
        assert_eq!(index.len(), 1);
    }
}
