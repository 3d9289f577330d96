//! The reads of Namespaces that the API server refuses, as a value without a clock.
//!
//! An API server that starts does not know all roles yet. So a refusal counts once a review of the role has confirmed it, or
//! once it has lasted.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cancel::BootTime;

/// The time after which a refusal is confirmed by another one.
const CONFIRMATION: Duration = Duration::from_secs(15);

/// The time after which a refusal says nothing about the next one.
const LONGEST_GAP: Duration = Duration::from_secs(300);

/// The time after which a Namespace is forgotten whose automations have gone.
const LONGEST_MEMORY: Duration = Duration::from_secs(24 * 60 * 60);

/// The Namespaces whose reads are refused.
#[derive(Debug, Default)]
pub(super) struct RefusedReads(BTreeMap<String, Refused>);

/// The refusals of a Namespace since it was read last.
#[derive(Debug)]
struct Refused {
    first: BootTime,
    last: BootTime,
    is_confirmed: bool,
}

/// The consequence of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It need not last.
    Unconfirmed,
    /// The role does not permit the read.
    Confirmed {
        /// True if it is the first one of any Namespace.
        is_news: bool,
    },
}

impl RefusedReads {
    /// Adds a refusal.
    pub(super) fn add(&mut self, namespace: &str, now: BootTime) -> Refusal {
        self.0.retain(|_, refused| now.since(refused.last) < LONGEST_MEMORY);
        let new = Refused { first: now, last: now, is_confirmed: false };
        let refused = self.0.entry(namespace.to_owned()).or_insert(new);
        if now.since(refused.last) > LONGEST_GAP {
            refused.first = now;
        }
        refused.last = now;
        if refused.is_confirmed {
            return Refusal::Confirmed { is_news: false };
        }
        if now.since(refused.first) >= CONFIRMATION { self.confirm(namespace) } else { Refusal::Unconfirmed }
    }

    /// Confirms the refusal of a Namespace: the role does not permit the read.
    pub(super) fn confirm(&mut self, namespace: &str) -> Refusal {
        let is_news = !self.is_any_confirmed();
        self.0.get_mut(namespace).into_iter().for_each(|refused| refused.is_confirmed = true);
        Refusal::Confirmed { is_news }
    }

    /// Handles a read that failed otherwise: the API server may start anew.
    pub(super) fn failed(&mut self, namespace: &str) {
        if self.0.get(namespace).is_some_and(|refused| !refused.is_confirmed) {
            self.0.remove(namespace);
        }
    }

    /// Handles a read that succeeded, and returns true if it was the last refused one.
    pub(super) fn succeeded(&mut self, namespace: &str) -> bool {
        let was_confirmed = self.0.remove(namespace).is_some_and(|refused| refused.is_confirmed);
        was_confirmed && !self.is_any_confirmed()
    }

    fn is_any_confirmed(&self) -> bool {
        self.0.values().any(|refused| refused.is_confirmed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWS: Refusal = Refusal::Confirmed { is_news: true };
    const KNOWN: Refusal = Refusal::Confirmed { is_news: false };

    #[test]
    fn a_refusal_is_confirmed_by_another_one_soon_after_it() {
        let start = BootTime::now();
        for (seconds, expected) in [
            (
                &[0, 1, 14, 15, 16][..],
                &[Refusal::Unconfirmed, Refusal::Unconfirmed, Refusal::Unconfirmed, NEWS, KNOWN][..],
            ),
            (&[0, 300, 4_000], &[Refusal::Unconfirmed, NEWS, KNOWN]),
            // The API server started twice.
            (&[0, 301, 302, 316], &[Refusal::Unconfirmed, Refusal::Unconfirmed, Refusal::Unconfirmed, NEWS]),
        ] {
            let mut reads = RefusedReads::default();
            let found: Vec<Refusal> =
                seconds.iter().map(|second| reads.add("a", start + Duration::from_secs(*second))).collect();
            assert_eq!(found, expected, "{seconds:?}");
        }
    }

    #[test]
    fn another_failure_is_no_confirmation_and_ends_none() {
        let (mut reads, start) = (RefusedReads::default(), BootTime::now());
        let at = |second| start + Duration::from_secs(second);
        assert_eq!(reads.add("a", at(0)), Refusal::Unconfirmed);
        reads.failed("a");
        assert_eq!([reads.add("a", at(20)), reads.add("a", at(40))], [Refusal::Unconfirmed, NEWS]);
        reads.failed("a");
        assert_eq!(reads.add("a", at(60)), KNOWN);
    }

    #[test]
    fn the_first_refused_namespace_and_the_last_are_news() {
        let (mut reads, start) = (RefusedReads::default(), BootTime::now());
        let later = start + CONFIRMATION;
        for namespace in ["a", "b"] {
            reads.add(namespace, start);
        }
        assert_eq!([reads.add("a", later), reads.add("b", later)], [NEWS, KNOWN]);
        assert_eq!([reads.succeeded("a"), reads.succeeded("c"), reads.succeeded("b")], [false, false, true]);
        assert_eq!(reads.add("a", later), Refusal::Unconfirmed);
        assert!(!reads.succeeded("a"));
    }

    #[test]
    fn a_review_confirms_a_refusal_at_once() {
        let (mut reads, start) = (RefusedReads::default(), BootTime::now());
        assert_eq!([reads.add("a", start), reads.confirm("a")], [Refusal::Unconfirmed, NEWS]);
        assert_eq!(reads.add("a", start), KNOWN);
        assert_eq!([reads.add("b", start), reads.confirm("b")], [Refusal::Unconfirmed, KNOWN]);
        assert_eq!([reads.succeeded("a"), reads.succeeded("b")], [false, true]);
    }
}
