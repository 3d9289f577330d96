//! Storage of the demo's registry.

use std::collections::BTreeMap;

/// Repositories by name.
#[derive(Debug, Default)]
pub(super) struct ImageStore(BTreeMap<String, Repository>);

#[derive(Debug, Default)]
struct Repository {
    /// The digest of each tag.
    tags: BTreeMap<String, String>,
    /// The manifests by their digests.
    manifests: BTreeMap<String, Manifest>,
}

/// A manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    /// Its media type.
    pub(super) kind: String,
    /// Its bytes, which make its digest.
    pub(super) bytes: Vec<u8>,
}

impl ImageStore {
    /// Stores a manifest, and sets a tag to it unless the reference is its digest.
    pub(super) fn put(&mut self, repository: &str, reference: &str, digest: &str, manifest: Manifest) {
        let repository = self.0.entry(repository.to_owned()).or_default();
        repository.manifests.insert(digest.to_owned(), manifest);
        if reference != digest {
            repository.tags.insert(reference.to_owned(), digest.to_owned());
        }
    }

    /// Returns the tags of a repository.
    pub(super) fn tags(&self, repository: &str) -> Option<Vec<&str>> {
        Some(self.0.get(repository)?.tags.keys().map(String::as_str).collect())
    }

    /// Returns digest and manifest of a tag or digest.
    pub(super) fn manifest(&self, repository: &str, reference: &str) -> Option<(&str, &Manifest)> {
        let repository = self.0.get(repository)?;
        let digest = repository.tags.get(reference).map_or(reference, String::as_str);
        let (digest, manifest) = repository.manifests.get_key_value(digest)?;
        Some((digest, manifest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_the_last_image_that_was_pushed_with_it() {
        let mut store = ImageStore::default();
        let manifest = |text: &str| Manifest { kind: "m".to_owned(), bytes: text.into() };
        assert_eq!(store.tags("a/b"), None);
        store.put("a/b", "stable", "sha256:1", manifest("one"));
        store.put("a/b", "stable", "sha256:2", manifest("two"));
        store.put("a/b", "sha256:3", "sha256:3", manifest("three"));
        assert_eq!(store.tags("a/b"), Some(vec!["stable"]));
        let found =
            |reference| store.manifest("a/b", reference).map(|(digest, found)| (digest, found.bytes.clone()));
        assert_eq!(found("stable"), Some(("sha256:2", b"two".to_vec())));
        assert_eq!(found("sha256:1"), Some(("sha256:1", b"one".to_vec())));
        assert_eq!(found("sha256:3"), Some(("sha256:3", b"three".to_vec())));
        assert_eq!((found("other"), store.manifest("a/c", "stable")), (None, None));
    }
}
