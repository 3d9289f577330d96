//! The image of a pool by a tag, which is resolved again and again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tagboat_api::node_pool::NodePoolStatus;

use super::node::digest_of;
use super::{Node, image_of, keys};
use crate::reference::{Digest, ImageName, Tag};

/// The time after which a failed resolution is tried again, unless the interval is shorter.
const RETRY: Duration = Duration::from_secs(30);

/// The last resolution of the tag of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// The reference that was resolved.
    reference: String,
    /// The image with the digest of the tag: `NAME@DIGEST`.
    ///
    /// If a tag cannot be resolved, it is the previous image, of any reference.
    pub image: Option<String>,
    /// The time of the next resolution; none if it is due.
    pub next: Option<Timestamp>,
    /// The error of the last resolution.
    pub error: Option<String>,
}

impl Resolution {
    /// Returns the resolution of an earlier process from the status and the nodes.
    ///
    /// The status has the digest only, so the name comes from a node that wants it. Without one, the name is that of the
    /// reference, if it is the one that the status describes.
    pub fn restored<'n>(
        (name, tag): (&ImageName, &Tag),
        status: Option<(&NodePoolStatus, i64)>,
        nodes: impl IntoIterator<Item = &'n Node>,
    ) -> Self {
        let Some((status, generation)) = status else { return Self::default() };
        let is_same = status.observed_generation == generation;
        let digest = status.target_digest.as_deref();
        let mut wanted = nodes.into_iter().filter_map(|node| node.annotation(keys::DESIRED_IMAGE));
        let mut of_nodes = || wanted.find(|image| digest_of(image) == digest).map(str::to_owned);
        let own = || Digest::parse(digest?).ok().map(|digest| image_of(name, &digest));
        let image = digest.and_then(|_| of_nodes()).or_else(|| is_same.then(own).flatten());
        Self {
            reference: if is_same { reference(name, tag) } else { String::new() },
            next: status
                .next_tag_resolution_time
                .as_ref()
                .map(|time| time.0)
                .filter(|_| is_same && image.is_some()),
            image,
            error: None,
        }
    }

    /// Returns `true` if the tag must be resolved now.
    #[must_use]
    pub fn is_due(&self, (name, tag): (&ImageName, &Tag), now: Timestamp) -> bool {
        self.reference != reference(name, tag) || self.next.is_none_or(|next| next <= now)
    }

    /// Returns `true` if the image of this reference is still being resolved.
    ///
    /// The image is that of another reference then, or none.
    #[must_use]
    pub fn is_pending(&self, (name, tag): (&ImageName, &Tag), now: Timestamp) -> bool {
        self.reference != reference(name, tag) || (self.image.is_none() && self.is_due((name, tag), now))
    }

    /// Records the result of a resolution.
    pub fn record(
        &mut self,
        (name, tag): (&ImageName, &Tag),
        result: Result<Digest, String>,
        interval: Duration,
        now: Timestamp,
    ) {
        let wait = if result.is_ok() { interval } else { interval.min(RETRY) };
        self.next = SignedDuration::try_from(wait).ok().and_then(|wait| now.checked_add(wait).ok());
        self.reference = reference(name, tag);
        match result {
            Ok(digest) => {
                self.image = Some(image_of(name, &digest));
                self.error = None;
            }
            Err(error) => self.error = Some(error),
        }
    }
}

fn reference(name: &ImageName, tag: &Tag) -> String {
    format!("{name}:{tag}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    const INTERVAL: Duration = Duration::from_mins(5);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn digest(hex: &str) -> String {
        format!("sha256:{}", hex.repeat(32))
    }

    fn names(name: &str) -> (ImageName, Tag) {
        (ImageName::parse(name).unwrap(), Tag::parse("v1").unwrap())
    }

    #[test]
    fn a_tag_is_resolved_again_after_its_interval_and_at_once_if_it_is_another() {
        let (os, tag) = names("r.example/os");
        let mut resolution = Resolution::default();
        assert!(resolution.is_due((&os, &tag), at(0)));
        resolution.record((&os, &tag), Ok(Digest::parse(&digest("0a")).unwrap()), INTERVAL, at(0));
        let image = Some(format!("r.example/os@{}", digest("0a")));
        assert_eq!((&resolution.image, resolution.next), (&image, Some(at(300))));
        assert!(!resolution.is_due((&os, &tag), at(299)) && resolution.is_due((&os, &tag), at(300)));
        assert!(!resolution.is_pending((&os, &tag), at(300)), "the image before counts until then");
        let (other, _) = names("r.example/other");
        assert!(resolution.is_due((&other, &tag), at(1)) && resolution.is_pending((&other, &tag), at(1)));
        // A failure keeps the image, even that of another reference.
        resolution.record((&other, &tag), Err("no answer".to_owned()), INTERVAL, at(1));
        assert_eq!((&resolution.image, resolution.next), (&image, Some(at(31))));
        assert!(!resolution.is_pending((&other, &tag), at(31)));
        assert_eq!(resolution.error.as_deref(), Some("no answer"));
        resolution.record((&other, &tag), Err("no answer".to_owned()), Duration::from_secs(2), at(31));
        assert_eq!(resolution.next, Some(at(33)));
        resolution.record((&other, &tag), Ok(Digest::parse(&digest("0b")).unwrap()), INTERVAL, at(33));
        assert_eq!(resolution.image, Some(format!("r.example/other@{}", digest("0b"))));
        assert_eq!(resolution.error, None);
    }

    #[test]
    fn a_pool_without_any_image_waits_for_each_resolution() {
        let (os, tag) = names("r.example/os");
        let mut resolution = Resolution::default();
        assert!(resolution.is_pending((&os, &tag), at(0)));
        resolution.record((&os, &tag), Err("no answer".to_owned()), INTERVAL, at(0));
        assert!(!resolution.is_pending((&os, &tag), at(29)) && resolution.is_pending((&os, &tag), at(30)));
    }

    #[test]
    fn a_restart_keeps_the_image_and_the_time_of_the_next_resolution() {
        let (os, tag) = names("r.example/os");
        let status = NodePoolStatus {
            observed_generation: 3,
            target_digest: Some(digest("0a")),
            next_tag_resolution_time: Some(Time(at(300))),
            ..NodePoolStatus::default()
        };
        let node = |image: &str| {
            let mut node = Node::default();
            Arc::make_mut(&mut node.annotations).insert(keys::DESIRED_IMAGE.to_owned(), image.to_owned());
            node
        };
        let own = format!("r.example/os@{}", digest("0a"));
        let former = format!("r.example/former@{}", digest("0a"));
        let nodes = [node(""), node(&format!("r.example/os@{}", digest("0b"))), node(&former)];
        for (generation, nodes, image, is_due) in [
            (3, &[][..], Some(&own), false),
            (3, &nodes[..], Some(&former), false),
            (4, &[][..], None, true),
            (4, &nodes[..], Some(&former), true),
        ] {
            let found = Resolution::restored((&os, &tag), Some((&status, generation)), nodes);
            assert_eq!(found.image.as_ref(), image);
            assert_eq!(found.is_due((&os, &tag), at(299)), is_due, "{found:?}");
        }
        assert_eq!(Resolution::restored((&os, &tag), None, &nodes), Resolution::default());
        let empty = NodePoolStatus { target_digest: None, ..status };
        let found = Resolution::restored((&os, &tag), Some((&empty, 3)), &nodes);
        assert!(found.image.is_none() && found.is_due((&os, &tag), at(0)));
    }
}
