//! Image names, and image references with a tag and an optional digest.

use std::fmt;

use tagboat_api::ImageRef;
use tagboat_api::reference::NoTag;

use super::{Digest, DigestError, Tag, TagError};

/// The registry of names without a registry.
const DOCKER_HUB: &str = "index.docker.io";

/// The alias of Docker Hub, used in images but not in requests.
const DOCKER_HUB_ALIAS: &str = "docker.io";

/// The path prefix of Docker Hub's official images, whose names have only one component.
const OFFICIAL: &str = "library/";

/// The name of an image repository as written, such as `podinfo` or `localhost:5000/app`.
///
/// The rules for registry and length are those of go-containerregistry, which Flux uses (`docs/flux-behaviour.md`,
/// Images and scans of a repository): the text before the first `/` is a registry only if it contains a `.` or a `:`;
/// the rest has 2 to 255 characters of `a-z 0-9 _ . - /`. In addition, each component of the rest must be acceptable to
/// registries and container runtimes: words separated by one `.`, one or two `_`, or any number of `-`. Other names can
/// be neither pushed nor pulled, and would only break the files that they are written into.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageName(String);

impl ImageName {
    /// Parses a name without tag and digest.
    ///
    /// # Errors
    ///
    /// Returns an error if the text violates these rules.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let error = |cause: NameError| ReferenceError::Name { name: text.to_owned(), cause };
        if text.contains("://") {
            return Err(error(NameError::Scheme));
        }
        let (registry, repository) = split(text);
        if let Some(registry) = registry {
            check_registry(registry).map_err(error)?;
        }
        check_repository(repository).map_err(error)?;
        Ok(Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The registry's host, with its port if any; Docker Hub is `index.docker.io`.
    pub fn registry(&self) -> &str {
        match self.parts() {
            (None | Some(DOCKER_HUB_ALIAS), _) => DOCKER_HUB,
            (Some(registry), _) => registry,
        }
    }

    /// The repository's path in the registry; a single component on Docker Hub is in `library/`.
    pub fn repository(&self) -> String {
        let (_, path) = self.parts();
        let is_official = self.registry() == DOCKER_HUB && !path.contains('/');
        format!("{}{path}", if is_official { OFFICIAL } else { "" })
    }

    /// Registry and repository in full, such as `index.docker.io/library/alpine`.
    pub fn canonical(&self) -> String {
        format!("{}/{}", self.registry(), self.repository())
    }

    /// The registry as written, if any, and the repository.
    pub fn parts(&self) -> (Option<&str>, &str) {
        split(&self.0)
    }
}

/// The registry, if the text has one, and the repository.
fn split(text: &str) -> (Option<&str>, &str) {
    match text.split_once('/') {
        Some((registry, rest)) if registry.contains(['.', ':']) => (Some(registry), rest),
        _ => (None, text),
    }
}

/// Checks a registry: a host and an optional port.
///
/// The host is as in a URL, with or without brackets.
fn check_registry(registry: &str) -> Result<(), NameError> {
    let (host, port) = match registry.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (registry, ""),
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    let has_brackets = host.contains(['[', ']']);
    let is_bracketed = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|ip| !ip.contains(['[', ']']));
    let is_host = !host.is_empty() && host.chars().all(is_allowed) && (!has_brackets || is_bracketed);
    let is_port = port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    if is_host && is_port { Ok(()) } else { Err(NameError::Registry { registry: registry.to_owned() }) }
}

fn check_repository(repository: &str) -> Result<(), NameError> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-/".contains(c);
    if let Some(character) = repository.chars().find(|&c| !is_allowed(c)) {
        return Err(NameError::Character { character });
    }
    if !(2..=255).contains(&repository.len()) {
        return Err(NameError::Length);
    }
    match repository.split('/').find(|part| !is_part(part)) {
        Some(part) => Err(NameError::Part { part: part.to_owned() }),
        None => Ok(()),
    }
}

/// Returns true if a component of allowed characters consists of words with separators between them.
fn is_part(part: &str) -> bool {
    let is_separator = |c: char| "_.-".contains(c);
    let mut separators = part.split(|c: char| !is_separator(c)).filter(|separator| !separator.is_empty());
    let is_good =
        |separator: &str| matches!(separator, "." | "_" | "__") || separator.bytes().all(|c| c == b'-');
    !part.is_empty()
        && !part.starts_with(is_separator)
        && !part.ends_with(is_separator)
        && separators.all(is_good)
}

impl fmt::Display for ImageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The image of a policy: name, tag and an optional digest.
///
/// Prints as `name:tag` or `name:tag@digest`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageReference {
    /// The repository's name as written.
    pub name: ImageName,
    /// The tag.
    pub tag: Tag,
    /// The digest, if the policy reflects it.
    pub digest: Option<Digest>,
}

impl ImageReference {
    /// Parses `name:tag` or `name:tag@digest`: [`ImageRef`] splits the text, and each part is checked here.
    ///
    /// # Errors
    ///
    /// Returns an error if a part is missing or malformed; the tag is required.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let parts: ImageRef =
            text.parse().map_err(|NoTag| ReferenceError::NoTag { text: text.to_owned() })?;
        // A digest must follow a written `@`; in a status an empty digest is an absent one.
        let digest = parts.digest.as_deref().map(parse_digest).transpose()?;
        Ok(Self { digest, ..Self::from_parts(&parts.name, &parts.tag, None)? })
    }

    /// Creates a reference from its parts; an empty digest counts as none.
    ///
    /// # Errors
    ///
    /// Returns an error if a part is malformed.
    pub fn from_parts(name: &str, tag: &str, digest: Option<&str>) -> Result<Self, ReferenceError> {
        Ok(Self {
            name: ImageName::parse(name)?,
            tag: Tag::parse(tag).map_err(|cause| ReferenceError::Tag { tag: tag.to_owned(), cause })?,
            digest: digest.filter(|digest| !digest.is_empty()).map(parse_digest).transpose()?,
        })
    }
}

fn parse_digest(text: &str) -> Result<Digest, ReferenceError> {
    Digest::parse(text).map_err(|cause| ReferenceError::Digest { digest: text.to_owned(), cause })
}

impl fmt::Display for ImageReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.name, self.tag)?;
        match &self.digest {
            Some(digest) => write!(formatter, "@{digest}"),
            None => Ok(()),
        }
    }
}

/// The error of a text that is not an image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The name is malformed.
    #[error("{name:?} is not an image name")]
    Name {
        /// The name as given.
        name: String,
        /// The cause.
        #[source]
        cause: NameError,
    },
    /// There is no tag.
    #[error("{text:?} has no tag; expected NAME:TAG or NAME:TAG@DIGEST")]
    NoTag {
        /// The reference as given.
        text: String,
    },
    /// The tag is malformed.
    #[error("{tag:?} is not a tag")]
    Tag {
        /// The tag as given.
        tag: String,
        /// The cause.
        #[source]
        cause: TagError,
    },
    /// The digest is malformed.
    #[error("{digest:?} is not a digest")]
    Digest {
        /// The digest as given.
        digest: String,
        /// The cause.
        #[source]
        cause: DigestError,
    },
}

/// The defect of an image name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It begins with a scheme such as `https://`.
    #[error("a name has no URL scheme")]
    Scheme,
    /// The part before the first `/` is not a host with an optional port.
    #[error("{registry:?} is not a registry host")]
    Registry {
        /// The part.
        registry: String,
    },
    /// It has a character that repositories do not have.
    #[error(
        "it has the character {character:?}; only a-z, 0-9, '_', '.', '-' and '/' are allowed after the registry"
    )]
    Character {
        /// The first such character.
        character: char,
    },
    /// It has a component that repositories do not have.
    #[error("its part {part:?} is invalid: use a-z and 0-9, with '.', '_', '__' or '-' only between them")]
    Part {
        /// The first such component.
        part: String,
    },
    /// It is too short or too long.
    #[error("a repository has 2 to 255 characters")]
    Length,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_print_as_they_were_written() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for text in ["podinfo:1", "ghcr.io/a/b:v1.0", "localhost:5000/app:b", "10.0.0.1:5000/a/b:1.0_x-y"] {
            assert_eq!(ImageReference::parse(text).unwrap().to_string(), text);
            let full = format!("{text}@{digest}");
            assert_eq!(ImageReference::parse(&full).unwrap().to_string(), full);
        }
    }

    #[test]
    fn invalid_references_are_refused() {
        for text in [
            "",
            "podinfo",
            "a:1",
            "ghcr.io/a/b",
            "ghcr.io/a/b:",
            "ghcr.io/A/b:1",
            "img/UPPER CASE:1",
            "a b:1",
            "https://ghcr.io/a/b:1",
            "localhost:5000/app",
            "app:1@sha512:00",
            "app:1@sha256:00",
            "app:1@",
            "ap p:1",
            "ab:t@g",
            "re g.io/app:1",
            "reg.io:port/app:1",
        ] {
            assert!(ImageReference::parse(text).is_err(), "{text:?}");
        }
    }

    /// A name that no registry has must not be written into files.
    #[test]
    fn a_name_that_no_image_can_have_is_refused() {
        let name = |text: &str| ImageName::parse(text).map_err(|error| error.to_string());
        for part in [
            "web/",
            "/web",
            "acme//web",
            "web.",
            "-web",
            "web-",
            "_web",
            "a..b",
            "a___b",
            "a.-b",
            "a_.b",
            "web/.",
        ] {
            for registry in ["", "ghcr.io/", "localhost:5000/"] {
                assert!(name(&format!("{registry}{part}")).is_err(), "{registry}{part}");
            }
        }
        for good in ["acme/web", "a.b/c_d/e__f/g-h/i--j---k", "0/1", "GHCR.io/acme/web", "a./bc"] {
            assert_eq!(name(good).unwrap().as_str(), good);
        }
        let NameError::Part { part } = check_repository("acme/web/").unwrap_err() else { panic!() };
        assert_eq!(part, "");
    }

    #[test]
    fn an_empty_digest_counts_as_absent() {
        let reference = ImageReference::from_parts("podinfo", "1.0", Some("")).unwrap();
        assert_eq!(reference.digest, None);
    }
}
