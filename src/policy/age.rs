//! How old tags are, as a cooldown sees it.

use std::time::Duration;

use jiff::Timestamp;

/// Since when a tag can be known, as far as we know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Birth {
    /// When a scan of ours first saw the tag. Nothing where the first scan of all saw it, for then it may be any age.
    pub first_seen: Option<Timestamp>,
    /// When the first scan of all was, where that saw the tag: it is older than that.
    pub listed_since: Option<Timestamp>,
    /// When the image says that it was made.
    pub created: Option<Timestamp>,
    /// Whether a better tag is old enough, so that nobody was asked how old this one is, and it does not matter.
    pub is_outdone: bool,
}

/// Whether a tag is old enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maturity {
    /// It is.
    Mature,
    /// It is not.
    Young {
        /// How old it is.
        age: Duration,
        /// How long it takes until it is old enough.
        left: Duration,
    },
    /// Nobody knows.
    Unknown {
        /// How long it takes until it is old enough in any case, where that is known.
        left: Option<Duration>,
    },
}

impl Birth {
    /// That of a tag which is old enough for whatever is asked.
    pub const LONG_AGO: Self =
        Self { first_seen: None, listed_since: Some(Timestamp::MIN), created: None, is_outdone: false };

    /// Whether a tag is old enough at a moment.
    ///
    /// What we saw ourselves counts, for images can say what they like. A tag that was there before us has been there
    /// for as long as we know it, whatever its image says.
    pub fn maturity(self, now: Timestamp, wanted: Duration) -> Maturity {
        // One from the future is not a moment old.
        let since = |moment| Duration::try_from(now.duration_since(moment)).unwrap_or(Duration::ZERO);
        let listed = self.listed_since.filter(|_| self.first_seen.is_none()).map(since);
        let age = self.first_seen.or(self.created).map(since);
        let least = age.max(listed);
        let left = least.map(|least| wanted.saturating_sub(least));
        match (age, least) {
            (_, Some(least)) if least >= wanted => Maturity::Mature,
            (Some(age), _) => Maturity::Young { age, left: left.unwrap_or(wanted) },
            (None, _) if self.is_outdone => Maturity::Mature,
            (None, _) => Maturity::Unknown { left },
        }
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
    /// Whether a tag is old enough.
    pub(super) fn maturity(&self, tag: &str, wanted: Duration) -> Maturity {
        (self.birth)(tag).maturity(self.now, wanted)
    }
}

impl std::fmt::Debug for Ages<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Ages").field("now", &self.now).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Maturity::{Mature, Unknown, Young};
    use super::*;

    fn hours(hours: u64) -> Duration {
        Duration::from_secs(hours * 3600)
    }

    #[test]
    fn our_own_clock_counts_before_that_of_the_image() {
        let now = Timestamp::from_second(10_000_000).unwrap();
        let ago = |hours: i64| (hours != i64::MAX).then(|| now - jiff::SignedDuration::from_hours(hours));
        let none = i64::MAX;
        for (first_seen, listed_since, created, expected) in [
            (80, none, 1, Mature),
            (72, none, none, Mature),
            (1, none, 1000, Young { age: hours(1), left: hours(71) }),
            (-3, none, 1000, Young { age: hours(0), left: hours(72) }),
            // First seen is first seen, however long others are listed.
            (1, 90, 90, Young { age: hours(1), left: hours(71) }),
            (none, none, 72, Mature),
            (none, none, 71, Young { age: hours(71), left: hours(1) }),
            (none, none, -5, Young { age: hours(0), left: hours(72) }),
            (none, none, none, Unknown { left: None }),
            // What was there before us is as old as our knowledge of it at least.
            (none, 72, none, Mature),
            (none, 72, 1, Mature),
            (none, 2, 100, Mature),
            (none, 2, 1, Young { age: hours(1), left: hours(70) }),
            (none, 2, none, Unknown { left: Some(hours(70)) }),
        ] {
            let birth = Birth {
                first_seen: ago(first_seen),
                listed_since: ago(listed_since),
                created: ago(created),
                is_outdone: false,
            };
            let found = birth.maturity(now, hours(72));
            assert_eq!(found, expected, "{first_seen} {listed_since} {created}");
            let outdone = Birth { is_outdone: true, ..birth }.maturity(now, hours(72));
            let unasked = if matches!(found, Unknown { .. }) { Mature } else { found };
            assert_eq!(outdone, unasked);
        }
    }
}
