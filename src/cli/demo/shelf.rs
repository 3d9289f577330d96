//! What the demo's registry holds.

use std::collections::BTreeMap;

/// Repositories by name.
#[derive(Debug, Default)]
pub(super) struct Shelf(BTreeMap<String, Repository>);

#[derive(Debug, Default)]
struct Repository {
    /// The digest that each tag stands for.
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

impl Shelf {
    /// Takes a manifest, and lets a tag stand for it unless the reference is its digest.
    pub(super) fn put(&mut self, repository: &str, reference: &str, digest: &str, manifest: Manifest) {
        let repository = self.0.entry(repository.to_owned()).or_default();
        repository.manifests.insert(digest.to_owned(), manifest);
        if reference != digest {
            repository.tags.insert(reference.to_owned(), digest.to_owned());
        }
    }

    /// The tags of a repository.
    pub(super) fn tags(&self, repository: &str) -> Option<Vec<&str>> {
        Some(self.0.get(repository)?.tags.keys().map(String::as_str).collect())
    }

    /// What a tag or a digest stands for.
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
    fn a_tag_stands_for_what_it_was_last_put_on() {
        let mut shelf = Shelf::default();
        let manifest = |text: &str| Manifest { kind: "m".to_owned(), bytes: text.into() };
        assert_eq!(shelf.tags("a/b"), None);
        shelf.put("a/b", "stable", "sha256:1", manifest("one"));
        shelf.put("a/b", "stable", "sha256:2", manifest("two"));
        shelf.put("a/b", "sha256:3", "sha256:3", manifest("three"));
        assert_eq!(shelf.tags("a/b"), Some(vec!["stable"]));
        let found =
            |reference| shelf.manifest("a/b", reference).map(|(digest, found)| (digest, found.bytes.clone()));
        assert_eq!(found("stable"), Some(("sha256:2", b"two".to_vec())));
        assert_eq!(found("sha256:1"), Some(("sha256:1", b"one".to_vec())));
        assert_eq!(found("sha256:3"), Some(("sha256:3", b"three".to_vec())));
        assert_eq!((found("other"), shelf.manifest("a/c", "stable")), (None, None));
    }
}
