//! The image of a policy, as templates see it.

use tagboat_api::ObjectName;

use crate::reference::ImageReference;

/// The latest image of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PolicyImage {
    /// The policy.
    pub policy: ObjectName,
    /// Its image.
    pub image: ImageReference,
}

impl PolicyImage {
    /// The digest, or the tag without a digest.
    pub fn identifier(&self) -> &str {
        match &self.image.digest {
            Some(digest) => digest.as_str(),
            None => self.image.tag.as_str(),
        }
    }

    /// Registry and repository, followed by `@` and the digest, or by `:` and the tag.
    pub fn name(&self) -> String {
        let mark = if self.image.digest.is_some() { '@' } else { ':' };
        format!("{}{mark}{}", self.image.name.canonical(), self.identifier())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docker_hub_is_filled_in() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for (image, registry, repository, name) in [
            ("busybox:1", "index.docker.io", "library/busybox", "index.docker.io/library/busybox:1"),
            ("org/app:1", "index.docker.io", "org/app", "index.docker.io/org/app:1"),
            (
                "docker.io/busybox:1",
                "index.docker.io",
                "library/busybox",
                "index.docker.io/library/busybox:1",
            ),
            ("index.docker.io/org/app:1", "index.docker.io", "org/app", "index.docker.io/org/app:1"),
            ("ghcr.io/app:1", "ghcr.io", "app", "ghcr.io/app:1"),
            ("localhost:5000/app:1", "localhost:5000", "app", "localhost:5000/app:1"),
            ("localhost/app:1", "index.docker.io", "localhost/app", "index.docker.io/localhost/app:1"),
        ] {
            let policy = ObjectName { namespace: "n".to_owned(), name: "p".to_owned() };
            let mut of_policy = PolicyImage { policy, image: ImageReference::parse(image).unwrap() };
            assert_eq!(
                (of_policy.image.name.registry(), &*of_policy.image.name.repository(), &*of_policy.name()),
                (registry, repository, name),
                "{image}"
            );
            assert_eq!(of_policy.identifier(), "1");
            of_policy.image = ImageReference::parse(&format!("{image}@{digest}")).unwrap();
            assert_eq!(of_policy.identifier(), digest);
            assert_eq!(of_policy.name(), format!("{registry}/{repository}@{digest}"));
        }
    }
}
