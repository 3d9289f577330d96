//! The part of an image's repository that its mirrors share.

use crate::reference::ImageName;

/// The path of the images of Docker Hub whose names may omit it.
const OFFICIAL: &str = "library";

/// The last two components of a repository, without a host.
///
/// A repository and its mirrored forms have the same key; other repositories may have it, too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageKey(String);

impl From<&ImageName> for ImageKey {
    fn from(name: &ImageName) -> Self {
        let (_, path) = name.parts();
        let above = path.rsplit_once('/').map(|(above, _)| above.rsplit('/').next().unwrap_or(above));
        let last = path.rsplit('/').next().unwrap_or(path);
        Self(match above {
            // In `mirror.example/ghcr.io/app`, the second component is a host.
            Some(above) if above != OFFICIAL && !above.contains(['.', ':']) => format!("{above}/{last}"),
            _ => last.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ImageKey {
        ImageKey::from(&ImageName::parse(name).unwrap())
    }

    #[test]
    fn mirrored_forms_have_the_key_of_the_repository() {
        for (name, mirror) in [
            ("ghcr.io/org/app", "mirror.example/ghcr.io/org/app"),
            ("ghcr.io/org/app", "mirror.example/proxy/ghcr.io/org/app"),
            ("ghcr.io/org/app", "mirror.example/org/app"),
            ("ghcr.io/app", "mirror.example/ghcr.io/app"),
            ("alpine", "docker.io/library/alpine"),
            ("alpine", "mirror.example/alpine"),
            ("alpine", "mirror.example/docker.io/alpine"),
            ("alpine", "mirror.example/proxy/docker.io/library/alpine"),
            ("org/app", "mirror.example/docker.io/org/app"),
            ("ghcr.io/a/b/c", "mirror.example/ghcr.io/a/b/c"),
        ] {
            assert_eq!(key(name), key(mirror), "{name} {mirror}");
        }
        assert_ne!(key("ghcr.io/org/app"), key("ghcr.io/other/app"));
        assert_ne!(key("ghcr.io/org/app"), key("ghcr.io/org/api"));
    }
}
