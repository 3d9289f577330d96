//! Ages of tags, for the minimum age of a policy.

use std::time::Duration;

use jiff::Timestamp;

/// The known facts about a tag's age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TagAge {
    /// The time of the first scan that saw the tag.
    ///
    /// `None` if the repository's first scan already saw it, since it may have any age then.
    pub first_seen: Option<Timestamp>,
    /// The time of the repository's first scan, if that saw the tag.
    ///
    /// The tag is older than that.
    pub listed_since: Option<Timestamp>,
    /// The creation time according to the image.
    pub created: Option<Timestamp>,
    /// True if a better tag is old enough.
    ///
    /// This tag's age was not looked up then, and does not matter.
    pub is_irrelevant: bool,
}

/// The result of comparing a tag's age with the minimum age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maturity {
    /// The tag is old enough.
    Mature,
    /// The tag is not old enough.
    Young {
        /// Its age.
        age: Duration,
        /// The time until it is old enough.
        left: Duration,
    },
    /// The age is unknown.
    Unknown {
        /// The time until the tag is certainly old enough, if known.
        left: Option<Duration>,
    },
}

impl TagAge {
    /// A tag that satisfies any minimum age.
    pub const ALWAYS_OLD_ENOUGH: Self =
        Self { first_seen: None, listed_since: Some(Timestamp::MIN), created: None, is_irrelevant: false };

    /// Compares the age at `now` with the minimum age `minimum`.
    ///
    /// Our own observations take precedence, since images can claim any time. A tag that existed before our first scan
    /// is at least as old as that scan, independent of its image's claim.
    pub fn maturity(self, now: Timestamp, minimum: Duration) -> Maturity {
        // A time in the future counts as an age of zero.
        let since = |moment| Duration::try_from(now.duration_since(moment)).unwrap_or(Duration::ZERO);
        let listed = self.listed_since.filter(|_| self.first_seen.is_none()).map(since);
        let age = self.first_seen.or(self.created).map(since);
        let least = age.max(listed);
        let left = least.map(|least| minimum.saturating_sub(least));
        match (age, least) {
            (_, Some(least)) if least >= minimum => Maturity::Mature,
            (Some(age), _) => Maturity::Young { age, left: left.unwrap_or(minimum) },
            (None, _) if self.is_irrelevant => Maturity::Mature,
            (None, _) => Maturity::Unknown { left },
        }
    }
}

/// The known ages of tags at one time.
#[derive(Clone, Copy)]
pub struct Ages<'a> {
    /// The current time.
    pub now: Timestamp,
    /// Returns the known facts about a tag's age.
    pub age_of: &'a dyn Fn(&str) -> TagAge,
}

impl Ages<'_> {
    /// Compares a tag's age with the minimum age `minimum`.
    pub(super) fn maturity(&self, tag: &str, minimum: Duration) -> Maturity {
        (self.age_of)(tag).maturity(self.now, minimum)
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
    fn the_time_of_the_first_scan_counts_before_the_creation_time() {
        let now = Timestamp::from_second(10_000_000).unwrap();
        let ago = |hours: i64| (hours != i64::MAX).then(|| now - jiff::SignedDuration::from_hours(hours));
        let none = i64::MAX;
        for (first_seen, listed_since, created, expected) in [
            (80, none, 1, Mature),
            (72, none, none, Mature),
            (1, none, 1000, Young { age: hours(1), left: hours(71) }),
            (-3, none, 1000, Young { age: hours(0), left: hours(72) }),
            // The time of the first scan that saw it counts, however long others have been listed.
            (1, 90, 90, Young { age: hours(1), left: hours(71) }),
            (none, none, 72, Mature),
            (none, none, 71, Young { age: hours(71), left: hours(1) }),
            (none, none, -5, Young { age: hours(0), left: hours(72) }),
            (none, none, none, Unknown { left: None }),
            // A tag from before our first scan is at least as old as that scan.
            (none, 72, none, Mature),
            (none, 72, 1, Mature),
            (none, 2, 100, Mature),
            (none, 2, 1, Young { age: hours(1), left: hours(70) }),
            (none, 2, none, Unknown { left: Some(hours(70)) }),
        ] {
            let age = TagAge {
                first_seen: ago(first_seen),
                listed_since: ago(listed_since),
                created: ago(created),
                is_irrelevant: false,
            };
            let found = age.maturity(now, hours(72));
            assert_eq!(found, expected, "{first_seen} {listed_since} {created}");
            let outdone = TagAge { is_irrelevant: true, ..age }.maturity(now, hours(72));
            let unasked = if matches!(found, Unknown { .. }) { Mature } else { found };
            assert_eq!(outdone, unasked);
        }
    }
}
