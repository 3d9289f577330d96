//! A list of tags as it is stored.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::reference::TagList;
use crate::registry::manifest::ImageFacts;

/// The maximum number of images per repository whose age is kept.
pub(super) const MAX_IMAGES: usize = 1024;

/// The result of the last scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTags {
    /// The repository's canonical name. Tags of one repository are never used for another.
    pub canonical: String,
    /// The time of the scan.
    pub scanned: Timestamp,
    /// The `ETag` that the registry gave to this state of its list.
    pub etag: Option<String>,
    /// The tags.
    pub tags: TagList,
    /// The time in seconds after 1970 at which each tag was first seen.
    /// It is `0` for tags of the first scan.
    pub(super) first_seen: Box<[u32]>,
    /// The time of the first scan.
    pub(super) first_scan: Timestamp,
    /// The images whose age was looked up, by their tags.
    pub(super) images: BTreeMap<String, KnownImage>,
}

/// The identity of a stored list, without its tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHead {
    /// The repository's canonical name.
    pub canonical: String,
    /// The `ETag` that the registry gave to this state of its list.
    pub etag: Option<String>,
}

/// The size of a stored list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredSize {
    /// Its bytes, in memory or on disk.
    pub bytes: u64,
    /// The maximum number of its tags.
    pub tags: u64,
}

/// An image whose age was looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownImage {
    /// The digest of the tag at that time.
    pub digest: String,
    /// The creation time, if the image has one.
    pub created: Option<Timestamp>,
}

impl StoredTags {
    /// Returns the time at which a tag was first seen.
    /// The result is `None` for tags of the first scan.
    pub fn first_seen(&self, tag: &str) -> Option<Timestamp> {
        let seconds = self.first_seen[self.tags.position(tag)?];
        (seconds > 0).then(|| Timestamp::from_second(i64::from(seconds)).ok())?
    }

    /// Returns the time of the first scan for a tag that it found.
    pub fn listed_since(&self, tag: &str) -> Option<Timestamp> {
        let seconds = self.first_seen[self.tags.position(tag)?];
        (seconds == 0).then_some(self.first_scan)
    }

    /// Returns the image of a tag, as it was looked up.
    pub fn image(&self, tag: &str) -> Option<&KnownImage> {
        self.images.get(tag)
    }

    /// Returns a copy with more images.
    ///
    /// If there are too many, those first in the order of bytes are dropped.
    pub(super) fn with_images(&self, images: Vec<(String, ImageFacts)>) -> Self {
        let mut copy = self.clone();
        for (tag, facts) in images.into_iter().filter(|(tag, _)| self.tags.position(tag).is_some()) {
            let image = KnownImage { digest: facts.digest.to_string(), created: facts.created };
            copy.images.insert(tag, image);
        }
        while copy.images.len() > MAX_IMAGES {
            copy.images.pop_first();
        }
        copy
    }

    /// Merges the result of a scan with the stored result of the one before.
    pub(super) fn merge(before: Option<&Self>, scan: Scan) -> Self {
        let now = u32::try_from(scan.scanned.as_second()).unwrap_or_default();
        let before = before.filter(|before| before.canonical == scan.canonical);
        let first_seen = scan.tags.iter().map(|tag| match before {
            None => 0,
            Some(before) => before.tags.position(tag).map_or(now, |index| before.first_seen[index]),
        });
        let first_seen = first_seen.collect();
        let first_scan = before.map_or(scan.scanned, |before| before.first_scan);
        let is_there = |tag: &str| scan.tags.position(tag).is_some();
        let images = before.map(|before| &before.images).into_iter().flatten();
        let images = images.filter(|(tag, _)| is_there(tag));
        let images = images.map(|(tag, image)| (tag.clone(), image.clone())).collect();
        let Scan { canonical, scanned, etag, tags } = scan;
        Self { canonical, scanned, etag, tags, first_seen, first_scan, images }
    }

    /// Returns the identity of this list.
    pub fn head(&self) -> StoredHead {
        StoredHead { canonical: self.canonical.clone(), etag: self.etag.clone() }
    }

    /// Returns the size in memory, in bytes.
    pub(super) fn size(&self) -> u64 {
        let image = |(tag, image): (&String, &KnownImage)| {
            tag.len() + image.digest.len() + size_of::<(String, KnownImage)>()
        };
        let images: usize = self.images.iter().map(image).sum();
        let own =
            size_of::<Self>() + self.tags.size() + size_of_val(&*self.first_seen) + self.canonical.len();
        u64::try_from(own + images).unwrap_or(u64::MAX)
    }
}

/// The result of a scan.
#[derive(Debug, Clone)]
pub struct Scan {
    /// The repository's canonical name.
    pub canonical: String,
    /// The time of the scan.
    pub scanned: Timestamp,
    /// The `ETag` that the registry gave to this state of its list.
    pub etag: Option<String>,
    /// The tags.
    pub tags: TagList,
}
