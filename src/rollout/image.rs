//! Comparison of the image of an object with the image that a policy wants.
//!
//! Images compare as parsed references, not as texts: `nginx` is `docker.io/library/nginx:latest`.
//!
//! - The repository is the same, or the mirrored form of the wanted one: another host, optionally a path, and then the
//!   wanted repository, such as `mirror.example/ghcr.io/org/app` for `ghcr.io/org/app`. The name of a repository of
//!   Docker Hub has no host, so `mirror.example/org/app` is a mirrored form of `org/app`.
//! - The tags are equal, if the wanted image has one. An image without tag and digest has the tag `latest`, as in a
//!   container runtime.
//! - The digests are equal, if both have one. An equal digest is the same content, so it replaces a missing tag, and
//!   it makes the same path on another host a mirrored form: `mirror.example/org/app` for `ghcr.io/org/app`.

use crate::reference::{Digest, ImageName, ImageReference, ReferenceError, ReferenceParts, Tag};
use crate::update::Field;

/// The tag of an image without a tag and a digest.
const DEFAULT_TAG: &str = "latest";

/// The host of Docker Hub in [`ImageName::registry`], and the one that images use.
const DOCKER_HUB: [&str; 2] = ["index.docker.io", "docker.io"];

/// The path of Docker Hub's official images, which their names may omit.
const OFFICIAL: &str = "library/";

/// The image of a container, as in the spec of its object: `name[:tag][@digest]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectImage {
    /// The repository as written.
    pub name: ImageName,
    /// The tag; `latest` if there is neither a tag nor a digest.
    pub tag: Option<Tag>,
    /// The digest.
    pub digest: Option<Digest>,
}

impl ObjectImage {
    /// Parses the image of a container.
    ///
    /// # Errors
    ///
    /// Returns an error if a part is malformed. Container runtimes accept other digests than SHA-256; they are errors
    /// here, because no policy has one.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let ReferenceParts { name, tag, digest } = ReferenceParts::parse(text)?;
        let default = || digest.is_none().then(|| Tag::parse(DEFAULT_TAG).expect("the default tag is valid"));
        let tag = tag.or_else(default);
        Ok(Self { name, tag, digest })
    }
}

/// The image that a marker wants.
///
/// It is the policy's image, limited to the parts that the marker writes. The repository is always present, because it
/// identifies the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedImage {
    /// The repository of the policy.
    pub repository: ImageName,
    /// The tag, if the marker writes it.
    pub tag: Option<Tag>,
    /// The digest, if the marker writes it and the policy has one.
    pub digest: Option<Digest>,
}

impl WantedImage {
    /// Returns the parts of a policy's image that a marker of a field writes.
    #[must_use]
    pub fn of_field(field: Field, image: &ImageReference) -> Self {
        let (has_tag, has_digest) = match field {
            Field::Reference | Field::TagAndDigest => (true, true),
            Field::Tag => (true, false),
            Field::Digest => (false, true),
            Field::Name | Field::Unknown => (false, false),
        };
        Self {
            repository: image.name.clone(),
            tag: has_tag.then(|| image.tag.clone()),
            digest: image.digest.clone().filter(|_| has_digest),
        }
    }

    /// Returns true if an object with this image has the wanted one.
    ///
    /// An image without a digest has the wanted digest, as it cannot be known.
    #[must_use]
    pub fn is_met_by(&self, image: &ObjectImage) -> bool {
        let has_equal_digest = self.digest.is_some() && self.digest == image.digest;
        let digests_agree = has_equal_digest || self.digest.is_none() || image.digest.is_none();
        let tags_agree = match (&self.tag, &image.tag) {
            (Some(wanted), Some(tag)) => wanted == tag,
            (Some(_), None) => has_equal_digest,
            (None, _) => true,
        };
        let repositories_agree = is_same_or_mirrored(&self.repository, &image.name)
            || has_equal_digest && has_same_path(&self.repository, &image.name);
        digests_agree && tags_agree && repositories_agree
    }
}

/// Creates the wanted image of a marker that writes the whole reference.
impl From<ImageReference> for WantedImage {
    fn from(image: ImageReference) -> Self {
        Self { repository: image.name, tag: Some(image.tag), digest: image.digest }
    }
}

/// Returns true if a repository is the wanted one or its mirrored form.
#[must_use]
pub fn is_same_or_mirrored(wanted: &ImageName, name: &ImageName) -> bool {
    if wanted.canonical() == name.canonical() {
        return true;
    }
    let (Some(_), path) = name.parts() else { return false };
    let (host, repository) = (wanted.registry(), wanted.repository());
    let is_below =
        |full: &str| path.strip_suffix(full).is_some_and(|above| above.is_empty() || above.ends_with('/'));
    if !DOCKER_HUB.contains(&host) {
        return is_below(&format!("{host}/{repository}"));
    }
    let short = repository.strip_prefix(OFFICIAL).unwrap_or(&repository);
    // A name without a host has to follow the mirror's host at once: `ghcr.io/org/nginx` is not Docker Hub's `nginx`.
    path == repository
        || path == short
        || DOCKER_HUB
            .iter()
            .any(|hub| is_below(&format!("{hub}/{repository}")) || is_below(&format!("{hub}/{short}")))
}

/// Returns true if two repositories have the same path, on any host.
fn has_same_path(wanted: &ImageName, name: &ImageName) -> bool {
    wanted.repository() == name.repository()
}

/// Returns `true` if an image is a valid reference to one of the wanted ones.
#[must_use]
pub fn is_any(wanted: &[WantedImage], image: &str) -> bool {
    ObjectImage::parse(image).is_ok_and(|image| wanted.iter().any(|wanted| wanted.is_met_by(&image)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(letter: char) -> String {
        format!("sha256:{}", letter.to_string().repeat(64))
    }

    /// Replaces `@A` and `@B` by digests.
    fn expand(text: &str) -> String {
        text.replace("@A", &format!("@{}", digest('a'))).replace("@B", &format!("@{}", digest('b')))
    }

    fn wanted(text: &str) -> WantedImage {
        let image = ObjectImage::parse(&expand(text)).unwrap();
        // A wanted image has a tag only if it is written.
        let has_tag = text.split('@').next().unwrap().rsplit('/').next().unwrap().contains(':');
        WantedImage { repository: image.name, tag: image.tag.filter(|_| has_tag), digest: image.digest }
    }

    fn is_met(want: &str, image: &str) -> bool {
        wanted(want).is_met_by(&ObjectImage::parse(&expand(image)).unwrap())
    }

    #[test]
    fn tags_are_compared_if_wanted() {
        for (want, image, expected) in [
            ("ghcr.io/org/app:1", "ghcr.io/org/app:1", true),
            ("ghcr.io/org/app:1", "ghcr.io/org/app:2", false),
            ("ghcr.io/org/app:1", "ghcr.io/org/app:1.0", false),
            ("ghcr.io/org/app:1", "ghcr.io/org/app", false),
            ("ghcr.io/org/app:latest", "ghcr.io/org/app", true),
            ("ghcr.io/org/app", "ghcr.io/org/app:2", true),
            ("localhost:5000/app", "localhost:5000/app:2", true),
            ("localhost:5000/app:2", "localhost:5000/app", false),
            ("ghcr.io/org/app:V1", "ghcr.io/org/app:v1", false),
        ] {
            assert_eq!(is_met(want, image), expected, "{want} {image}");
        }
    }

    #[test]
    fn digests_are_compared_if_both_have_one() {
        for (want, image, expected) in [
            ("ghcr.io/org/app:1@A", "ghcr.io/org/app:1@A", true),
            ("ghcr.io/org/app:1@A", "ghcr.io/org/app:1@B", false),
            ("ghcr.io/org/app:1@A", "ghcr.io/org/app:1", true),
            ("ghcr.io/org/app:1", "ghcr.io/org/app:1@B", true),
            ("ghcr.io/org/app:1@A", "ghcr.io/org/app:2@A", false),
            // A digest replaces a missing tag.
            ("ghcr.io/org/app:1@A", "ghcr.io/org/app@A", true),
            ("ghcr.io/org/app:1@A", "ghcr.io/org/app@B", false),
            ("ghcr.io/org/app:1", "ghcr.io/org/app@A", false),
            ("ghcr.io/org/app:latest", "ghcr.io/org/app@A", false),
            // A marker that writes the digest only.
            ("ghcr.io/org/app@A", "ghcr.io/org/app@A", true),
            ("ghcr.io/org/app@A", "ghcr.io/org/app:1@A", true),
            ("ghcr.io/org/app@A", "ghcr.io/org/app:1@B", false),
            ("ghcr.io/org/app@A", "ghcr.io/org/app:1", true),
        ] {
            assert_eq!(is_met(want, image), expected, "{want} {image}");
        }
    }

    #[test]
    fn repositories_are_the_same_or_mirrored() {
        for (want, image, expected) in [
            ("alpine", "docker.io/library/alpine", true),
            ("alpine", "index.docker.io/alpine", true),
            ("docker.io/org/app", "org/app", true),
            ("ghcr.io/org/app", "mirror.example/ghcr.io/org/app", true),
            ("ghcr.io/org/app", "localhost:5000/ghcr.io/org/app", true),
            ("ghcr.io/org/app", "mirror.example/proxy/ghcr.io/org/app", true),
            ("org/app", "mirror.example/org/app", true),
            ("org/app", "mirror.example/docker.io/org/app", true),
            ("org/app", "mirror.example/proxy/index.docker.io/org/app", true),
            ("alpine", "mirror.example/alpine", true),
            ("alpine", "mirror.example/library/alpine", true),
            ("docker.io/library/alpine", "mirror.example/docker.io/alpine", true),
            // Another image.
            ("ghcr.io/org/app", "ghcr.io/org/app2", false),
            ("ghcr.io/org/app", "ghcr.io/other/app", false),
            ("ghcr.io/org/app", "ghcr.io/org", false),
            ("ghcr.io/org/app", "quay.io/org/app", false),
            ("ghcr.io/org/app", "mirror.example/quay.io/org/app", false),
            ("ghcr.io/org/app", "mirror.example/xghcr.io/org/app", false),
            ("ghcr.io/org/app", "mirror.example/ghcr.io/org/app/x", false),
            ("ghcr.io/org/app", "org/app", false),
            ("alpine", "ghcr.io/org/alpine", false),
            ("org/app", "mirror.example/proxy/org/app", false),
            // The wanted image is the mirrored one.
            ("mirror.example/ghcr.io/org/app", "ghcr.io/org/app", false),
        ] {
            for (want, image) in
                [(want.to_owned(), image.to_owned()), (format!("{want}:1"), format!("{image}:1"))]
            {
                assert_eq!(is_met(&want, &image), expected, "{want} {image}");
            }
        }
    }

    #[test]
    fn an_equal_digest_makes_the_same_path_on_another_host_a_mirror() {
        for (want, image, expected) in [
            ("ghcr.io/org/app:1@A", "mirror.example/org/app:1@A", true),
            ("ghcr.io/org/app:1@A", "mirror.example/org/app@A", true),
            ("ghcr.io/org/app:1@A", "mirror.example/org/app:1@B", false),
            ("ghcr.io/org/app:1@A", "mirror.example/org/app:1", false),
            ("ghcr.io/org/app:1@A", "mirror.example/org/app:2@A", false),
            ("ghcr.io/org/app:1@A", "mirror.example/other/app:1@A", false),
        ] {
            assert_eq!(is_met(want, image), expected, "{want} {image}");
        }
    }

    #[test]
    fn parts_are_as_a_container_runtime_reads_them() {
        for (text, name, tag, has_digest) in [
            ("nginx", "nginx", Some("latest"), false),
            ("nginx:1", "nginx", Some("1"), false),
            ("nginx@A", "nginx", None, true),
            ("nginx:1@A", "nginx", Some("1"), true),
            ("localhost:5000/app", "localhost:5000/app", Some("latest"), false),
            ("[::1]:5000/app@A", "[::1]:5000/app", None, true),
        ] {
            let image = ObjectImage::parse(&expand(text)).unwrap();
            let found = (image.name.as_str(), image.tag.as_ref().map(Tag::as_str), image.digest.is_some());
            assert_eq!(found, (name, tag, has_digest), "{text}");
        }
        for text in [
            "",
            ":1",
            "nginx:",
            "nginx@",
            "nginx@sha512:00",
            "UPPER",
            "a b/c:1",
            "https://ghcr.io/a/b",
            "nginx@A@A",
        ] {
            assert!(ObjectImage::parse(&expand(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn a_marker_of_the_whole_reference_wants_all_parts() {
        let image = ImageReference::parse(&expand("ghcr.io/org/app:1@A")).unwrap();
        assert_eq!(WantedImage::from(image), wanted("ghcr.io/org/app:1@A"));
    }
}
