//! The address of an image repository, and the registry and scheme for requests.

use std::fmt;

use tagboat_api::Reason;

use super::{Digest, ImageName, Tag};
use crate::error::ReconcileError;

/// The address of an image repository: no scheme, no tag, no digest.
///
/// Prints as written, as in the names of a policy's latest image; [`RepositoryAddress::canonical`] is the same for all
/// spellings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepositoryAddress {
    name: ImageName,
    is_insecure: bool,
}

/// The URL scheme of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Without encryption.
    Http,
    /// With TLS.
    Https,
}

impl Scheme {
    /// The scheme as in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl RepositoryAddress {
    /// Parses `spec.image` of an ImageRepository; `is_insecure` is its `spec.insecure`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not an address. The sentences are Flux's.
    pub fn parse(image: &str, is_insecure: bool) -> Result<Self, AddressError> {
        if let Some((scheme, _)) = image.split_once("://") {
            return Err(AddressError::Scheme { image: image.to_owned(), scheme: scheme.to_owned() });
        }
        let name = parse_name(image).ok_or_else(|| AddressError::Malformed { image: image.to_owned() })?;
        let address = Self { name, is_insecure };
        let after_registry = image.strip_prefix(address.registry()).unwrap_or(image);
        match after_registry.split(':').nth(1) {
            Some(tag) => Err(AddressError::Tag { image: image.to_owned(), tag: tag.to_owned() }),
            None => Ok(address),
        }
    }

    /// The name as written.
    pub fn name(&self) -> &ImageName {
        &self.name
    }

    /// The registry's host, with its port if any.
    pub fn registry(&self) -> &str {
        self.name.registry()
    }

    /// The repository's path in the registry.
    pub fn repository(&self) -> String {
        self.name.repository()
    }

    /// Registry and repository in full, such as `index.docker.io/library/alpine`.
    pub fn canonical(&self) -> String {
        self.name.canonical()
    }

    /// The scheme for requests to the registry.
    ///
    /// It is HTTP if the ImageRepository says so, and for local hosts, which have no certificate.
    pub fn scheme(&self) -> Scheme {
        if self.is_insecure || is_local(self.registry()) { Scheme::Http } else { Scheme::Https }
    }
}

impl fmt::Display for RepositoryAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(formatter)
    }
}

/// Returns the name in a reference, which may have a tag, a digest or neither.
fn parse_name(image: &str) -> Option<ImageName> {
    // The last colon precedes a tag, unless a slash follows; then it precedes a port.
    let tagged = |text: &str| match text.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => {
            Tag::parse(tag).ok().and_then(|_| ImageName::parse(name).ok())
        }
        _ => ImageName::parse(text).ok(),
    };
    let digested = || {
        let (name, digest) = image.split_once('@')?;
        Digest::parse(digest).ok()?;
        tagged(name).or_else(|| ImageName::parse(name).ok())
    };
    tagged(image).or_else(digested)
}

/// Returns true if a host is private or local, by the rules of go-containerregistry.
fn is_local(registry: &str) -> bool {
    let host = registry.split(':').next().unwrap_or(registry);
    is_private(host)
        || registry.starts_with("localhost:")
        || ends_in_localhost(registry)
        || registry.contains("127.0.0.1")
        || registry.contains("::1")
}

/// Returns true if a host is an IPv4 address of a private network (RFC 1918).
fn is_private(host: &str) -> bool {
    let octet = |text: &str| {
        let is_plain =
            text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        text.parse::<u8>().ok().filter(|_| is_plain)
    };
    let octets: Option<Vec<u8>> = host.split('.').map(octet).collect();
    matches!(octets.as_deref(), Some([10, _, _, _] | [172, 16..=31, _, _] | [192, 168, _, _]))
}

/// Returns true for `….localhost`, with or without a port of up to five digits.
fn ends_in_localhost(registry: &str) -> bool {
    let host = match registry.rsplit_once(':') {
        Some((host, port))
            if (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            host
        }
        _ => registry,
    };
    host.ends_with(".localhost")
}

/// The error of a text that is not an address. The sentences are Flux's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It begins with a scheme such as `https://`.
    #[error("image '{image}' should not include URL scheme; remove '{scheme}://'")]
    Scheme {
        /// The text as given.
        image: String,
        /// The text before `://`.
        scheme: String,
    },
    /// It is not an image name.
    #[error("could not parse reference: {image}")]
    Malformed {
        /// The text as given.
        image: String,
    },
    /// It has a tag or a digest.
    #[error("image '{image}' should not include a tag; remove ':{tag}'")]
    Tag {
        /// The text as given.
        image: String,
        /// The text after the first colon.
        tag: String,
    },
}

/// An address is part of an object, and is invalid until the object changes.
impl ReconcileError for AddressError {
    fn reason(&self) -> Reason {
        Reason::ImageURLInvalid
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_have_one_canonical_name() {
        for (image, canonical) in [
            ("example.com/foo/bar", "example.com/foo/bar"),
            ("example.com:9999/foo/bar", "example.com:9999/foo/bar"),
            ("alpine", "index.docker.io/library/alpine"),
            ("library/alpine", "index.docker.io/library/alpine"),
            ("docker.io/alpine", "index.docker.io/library/alpine"),
            ("docker.io/library/alpine", "index.docker.io/library/alpine"),
            ("index.docker.io/alpine", "index.docker.io/library/alpine"),
            ("stefanprodan/podinfo", "index.docker.io/stefanprodan/podinfo"),
            ("localhost/foo", "index.docker.io/localhost/foo"),
            ("localhost:5000/foo", "localhost:5000/foo"),
            ("127.0.0.1:41111/test-fetch", "127.0.0.1:41111/test-fetch"),
            ("[::1]:5000/foo", "[::1]:5000/foo"),
            ("gcr.io/google.com/project-id/hello-world", "gcr.io/google.com/project-id/hello-world"),
            ("mirror.gcr.io/ubuntu", "mirror.gcr.io/ubuntu"),
            ("namespace/pathcomponent/image", "index.docker.io/namespace/pathcomponent/image"),
            ("docker.io:443/alpine", "docker.io:443/alpine"),
            ("a./bc", "a./bc"),
        ] {
            let address = RepositoryAddress::parse(image, false).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(address.canonical(), canonical, "{image}");
            assert_eq!(address.to_string(), image);
        }
    }

    #[test]
    fn invalid_addresses_are_refused_with_the_messages_of_flux() {
        let digest = "0a".repeat(32);
        let refused = |image: &str| RepositoryAddress::parse(image, false).expect_err(image).to_string();
        assert_eq!(
            refused("https://example.com/foo/bar"),
            "image 'https://example.com/foo/bar' should not include URL scheme; remove 'https://'"
        );
        assert_eq!(refused("://"), "image '://' should not include URL scheme; remove '://'");
        for (image, tag) in [
            ("example.com/foo/bar:baz", "baz"),
            ("example.com:9999/foo/bar:baz", "baz"),
            ("alpine:3", "3"),
            ("docker.io/alpine:3", "3"),
            ("docker.io:80", "80"),
            (&format!("alpine@sha256:{digest}"), &digest),
            (&format!("alpine:3@sha256:{digest}"), "3@sha256"),
        ] {
            let expected = format!("image '{image}' should not include a tag; remove ':{tag}'");
            assert_eq!(refused(image), expected);
        }
        for image in [
            "",
            "a",
            "Foo/bar",
            "white space",
            "b@char/image",
            "library/ubuntu:",
            "ghcr.io/stefanprodan/podinfo/foo:bar:zzz:qqq/aaa",
            "alpine@sha256:00",
            "alpine@sha512:00",
            "re g.io/app",
            "reg.io:port/app",
            "user@reg.io/app",
            "reg.io?x/app",
            "reg%20.io/app",
            "alpine:a:b",
            "ab//c",
            "ghcr.io/acme/web/",
            "ghcr.io/acme/-web",
            "ghcr.io/acme/web.",
            "ghcr.io/",
            "ghcr.io/a",
            &"a".repeat(256),
        ] {
            assert_eq!(refused(image), format!("could not parse reference: {image}"));
        }
    }

    #[test]
    fn local_and_private_hosts_are_requested_over_http() {
        let scheme =
            |image: &str, is_insecure| RepositoryAddress::parse(image, is_insecure).unwrap().scheme();
        for host in [
            "foo.svc.localhost:1234",
            "foo.localhost",
            "127.0.0.1:1234",
            "127.0.0.1",
            "localhost:8080",
            "::1",
            "[::1]:5000",
            "10.2.3.4:5000",
            "172.16.3.4:3000",
            "192.168.3.4",
        ] {
            assert_eq!(scheme(&format!("{host}/app"), false), Scheme::Http, "{host}");
        }
        for host in [
            "foo.svc.local:1234",
            "registry.local",
            "gcr.io",
            "index.docker.io",
            "8.8.8.8",
            "10.256.0.0:5000",
            "172.32.0.1",
            "10.2.3",
            "10.2.3.04",
            "10.2.3.4.5",
        ] {
            assert_eq!(scheme(&format!("{host}/app"), false), Scheme::Https, "{host}");
            assert_eq!(scheme(&format!("{host}/app"), true), Scheme::Http, "{host}");
        }
        assert_eq!(scheme("localhost/app", false), Scheme::Https);
        assert_eq!(Scheme::Http.as_str(), "http");
    }

    proptest! {
        #[test]
        fn any_text_is_an_address_or_an_error(image in "[a-zA-Z0-9./:@_\\[\\]%-]{0,20}|.{0,20}", is_insecure: bool) {
            if let Ok(address) = RepositoryAddress::parse(&image, is_insecure) {
                prop_assert_eq!(address.to_string(), image.clone());
                let again = RepositoryAddress::parse(&address.canonical(), is_insecure).unwrap();
                prop_assert_eq!(again.canonical(), address.canonical());
                prop_assert_eq!(again.scheme(), address.scheme());
            }
        }
    }
}
