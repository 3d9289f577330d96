//! The image of `--image`, and the rule by which a deployment has reached it.
//!
//! A deployment has reached an image if its target
//!
//! - is the image: the digests are equal or, if one of both has none, the tags;
//! - has a higher version, if both tags are versions, as a policy with `semver` reads them;
//! - or, if they are not or have equal versions, came after the image: the image is in `deployHistory`, and the target
//!   is another one.
//!
//! A status does not have the order of its policy, so a target that is later by another order counts only by the third
//! rule. A rollback to a lower version does not reach the image.

use std::cmp::Ordering;
use std::fmt;

use tagboat_api::deployment_status::{HistoryEntry, Report, Target};
use tagboat_versions::Version;

use crate::error::chain;
use crate::reference::{Digest, ImageName, Tag};
use crate::rollout::image::{ObjectImage, is_same_or_mirrored};

/// An image to wait for.
///
/// It has a tag, a digest or both; only a digest may stand alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AwaitedImage {
    text: String,
    repository: Option<ImageName>,
    tag: Option<Tag>,
    digest: Option<Digest>,
}

impl AwaitedImage {
    /// Parses `name:tag`, `name:tag@digest`, `name@digest` or a digest.
    ///
    /// # Errors
    ///
    /// If a part is malformed, or a name has neither a tag nor a digest.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with("sha256:") {
            let digest = Digest::parse(text).map_err(|error| chain(&error))?;
            return Ok(Self { text: text.to_owned(), repository: None, tag: None, digest: Some(digest) });
        }
        let ObjectImage { name, tag, digest } = ObjectImage::parse(text).map_err(|error| chain(&error))?;
        if name.as_str() == text {
            return Err("it has neither a tag nor a digest: write NAME:TAG or NAME@DIGEST".to_owned());
        }
        Ok(Self { text: text.to_owned(), repository: Some(name), tag, digest })
    }

    /// Returns true if a target is in the same repository, or in its mirrored form.
    pub(super) fn is_of_repository(&self, target: &Target) -> bool {
        let Some(repository) = &self.repository else { return true };
        ImageName::parse(&target.name).is_ok_and(|name| is_same_or_mirrored(repository, &name))
    }

    /// Returns true if the target of a status is the image or a later one.
    pub(super) fn is_reached(&self, report: &Report) -> bool {
        let Some(target) = &report.target else { return false };
        let is_in_history = |entry: &HistoryEntry| {
            let has_digests = self.digest.is_some() && target.digest().is_some();
            self.is(entry.version.as_deref(), entry.digest.as_deref())
                && (entry.digest.is_some() || !has_digests)
        };
        if !self.is_of_repository(target) {
            return false;
        }
        self.is(Some(&target.tag), target.digest())
            || match self.compare_versions(&target.tag) {
                Some(Ordering::Less) => true,
                Some(Ordering::Greater) => false,
                Some(Ordering::Equal) | None => report.deploy_history.iter().any(is_in_history),
            }
    }

    /// Returns true if the image has only a digest, and the target has none.
    pub(super) fn needs_digest(&self, target: &Target) -> bool {
        self.tag.is_none() && target.digest().is_none()
    }

    /// Returns true if an image of the repository is this one.
    fn is(&self, tag: Option<&str>, digest: Option<&str>) -> bool {
        match (&self.digest, digest) {
            (Some(own), Some(digest)) => own.as_str() == digest,
            _ => self.tag.as_ref().is_some_and(|own| Some(own.as_str()) == tag),
        }
    }

    /// Compares the version of the image with another one; `None` unless both tags are versions.
    fn compare_versions(&self, tag: &str) -> Option<Ordering> {
        let own = Version::parse_tag(self.tag.as_ref()?.as_str()).ok()?;
        Some(own.cmp(&Version::parse_tag(tag).ok()?))
    }
}

impl fmt::Display for AwaitedImage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::report;
    use super::*;

    /// Replaces `@A` and `@B` by digests.
    fn expand(text: &str) -> String {
        let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
        text.replace("@A", &format!("@{}", digest("a"))).replace("@B", &format!("@{}", digest("b")))
    }

    /// Splits `tag@digest`, of which either may be absent.
    fn parts(text: &str) -> (Option<String>, Option<String>) {
        let text = expand(text);
        let (tag, digest) = text.split_once('@').map_or((&*text, None), |(tag, digest)| (tag, Some(digest)));
        (Some(tag.to_owned()).filter(|tag| !tag.is_empty()), digest.map(str::to_owned))
    }

    /// Returns true if a deployment has reached the image.
    ///
    /// The newest entry of the history is the first.
    fn is_reached(image: &str, target: &str, history: &[&str]) -> bool {
        let mut report = report();
        let (tag, digest) = parts(target);
        let name = "ghcr.io/org/app".to_owned();
        report.target = tag.map(|tag| Target { name, tag, digest });
        report.deploy_history = history
            .iter()
            .map(|entry| {
                let (version, digest) = parts(entry);
                let last_deployed = report.since.clone();
                HistoryEntry { digest, version, object_count: 1, last_deployed, commit: None }
            })
            .collect();
        let image = image.strip_prefix('@').map_or_else(
            || AwaitedImage::parse(&expand(&format!("ghcr.io/org/app{image}"))),
            |digest| AwaitedImage::parse(expand(&format!("@{digest}")).trim_start_matches('@')),
        );
        image.unwrap().is_reached(&report)
    }

    #[test]
    fn the_target_is_the_image_or_a_later_one() {
        for (image, target, history, expected) in [
            // The same.
            (":1.2.0", "1.2.0", &[][..], true),
            (":1.2.0", "1.2.0@A", &[], true),
            (":1.2.0@A", "1.2.0", &[], true),
            (":1.2.0@A", "1.2.0@A", &[], true),
            ("@A", "1.2.0@A", &[], true),
            (":main@A", "1.2.0@A", &[], true),
            (":main", "main", &[], true),
            // Not yet.
            (":1.2.0", "", &[], false),
            (":1.2.0", "1.1.0", &[], false),
            (":1.2.0", "1.1.0", &["1.1.0", "1.0.0"], false),
            (":1.2.0", "1.2.0-rc.1", &[], false),
            // A rollback.
            (":1.2.0", "1.1.0", &["1.1.0", "1.2.0"], false),
            (":1.2.0", "v1.2.0", &[], false),
            (":main@B", "main@A", &["main@A"], false),
            ("@B", "1.2.0@A", &["1.2.0@A"], false),
            ("@B", "1.2.0", &["1.2.0"], false),
            (":build-8", "build-7", &["build-7"], false),
            // A higher version.
            (":1.2.0", "1.10.0", &[], true),
            (":v1.2.0", "1.2.1@B", &[], true),
            (":1.2.0-rc.1", "1.2.0", &[], true),
            (":1.2.0@A", "1.2.1@B", &[], true),
            // A target after one that was deployed.
            (":build-8", "build-9", &["build-8", "build-7"], true),
            (":main@A", "main@B", &["main@A"], true),
            ("@A", "main@B", &["main@B", "main@A"], true),
            (":1.2.0@A", "1.2.0@B", &["1.2.0@A"], true),
            (":build-8@A", "build-9", &["build-8"], true),
            // Other orders are unknown, and an entry without a digest may be any image of its tag.
            (":build-8", "build-9", &["build-9", "build-7"], false),
            (":main@B", "main@A", &["main"], false),
        ] {
            assert_eq!(is_reached(image, target, history), expected, "{image} {target} {history:?}");
        }
    }

    #[test]
    fn images_of_other_repositories_are_not_compared() {
        for (image, expected) in [
            ("ghcr.io/org/app:1.2.0", true),
            ("ghcr.io/org/other:1.2.0", false),
            ("quay.io/org/app:1.0.0", false),
        ] {
            assert_eq!(AwaitedImage::parse(image).unwrap().is_reached(&report()), expected, "{image}");
        }
        // The policy scans a mirror of the repository to which the image was pushed.
        let mut mirrored = report();
        mirrored.target.as_mut().unwrap().name = "mirror.example/ghcr.io/org/app".to_owned();
        assert!(AwaitedImage::parse("ghcr.io/org/app:1.2.0").unwrap().is_reached(&mirrored));
        mirrored.target.as_mut().unwrap().name = "no image".to_owned();
        assert!(!AwaitedImage::parse("ghcr.io/org/app:1.2.0").unwrap().is_reached(&mirrored));
    }

    #[test]
    fn an_image_has_a_tag_or_a_digest() {
        for text in ["app:1", "localhost:5000/app:1", "ghcr.io/org/app@A", "app:1@A"] {
            let text = expand(text);
            assert_eq!(AwaitedImage::parse(&text).unwrap().to_string(), text);
        }
        for text in ["", "app", "localhost:5000/app", "app:", "app@A@B", "sha256:1234", "app@sha512:00"] {
            assert!(AwaitedImage::parse(&expand(text)).is_err(), "{text}");
        }
    }
}
