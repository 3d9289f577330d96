//! How old tags are, as a cooldown sees it.

use std::time::Duration;

use jiff::Timestamp;

/// Since when a tag can be known, as far as we know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Birth {
    /// When a scan of ours first saw the tag. Nothing where the first scan of all saw it, for then it may be any age.
    pub first_seen: Option<Timestamp>,
    /// When the image says that it was made.
    pub created: Option<Timestamp>,
}

impl Birth {
    /// The moment that counts: what we saw ourselves, for images can say what they like.
    fn moment(self) -> Option<Timestamp> {
        self.first_seen.or(self.created)
    }
}

/// What is known of the age of tags at one moment.
#[derive(Clone, Copy)]
pub struct Ages<'a> {
    /// The moment.
    pub now: Timestamp,
    /// What is known of a tag.
    pub birth: &'a dyn Fn(&str) -> Birth,
}

impl Ages<'_> {
    /// How old a tag is; one from the future is not a moment old.
    pub(super) fn of(&self, tag: &str) -> Option<Duration> {
        let moment = (self.birth)(tag).moment()?;
        Some(Duration::try_from(self.now.duration_since(moment)).unwrap_or(Duration::ZERO))
    }
}

impl std::fmt::Debug for Ages<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Ages").field("now", &self.now).finish_non_exhaustive()
    }
}
