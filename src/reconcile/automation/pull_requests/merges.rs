//! The merges that a forge was asked for, and its answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::forge::{Merge, MergeAnswer};

/// The time after which a forge is asked again for what it has refused.
pub(super) const REFUSAL_AGE: Duration = Duration::from_secs(10 * 60);

/// The number of times that a merge is asked for again soon.
const SOON_TRIES: u32 = 3;

/// The merges that a forge was asked for, by the number of the pull request.
///
/// A merge that the forge has accepted is not asked for again, so one that a person cancels stays cancelled until the pull
/// request has another commit or setting, or another process begins: not each forge tells that one was cancelled.
#[derive(Clone, Debug, Default)]
pub(super) struct AskedMerges(BTreeMap<u64, AskedMerge>);

#[derive(Clone, Debug)]
struct AskedMerge {
    merge: Merge,
    answer: MergeAnswer,
    at: Instant,
    /// The number of answers in a row that it is not possible yet.
    tries: u32,
}

impl AskedMerges {
    /// Returns the answer to a merge that need not be asked for again.
    pub(super) fn answer(&self, number: u64, merge: &Merge, now: Instant) -> Option<MergeAnswer> {
        let asked = self.0.get(&number).filter(|asked| asked.merge == *merge)?;
        let counts = match asked.answer {
            MergeAnswer::Merged | MergeAnswer::Scheduled => true,
            MergeAnswer::NothingRequired | MergeAnswer::Refused { .. } => {
                now.saturating_duration_since(asked.at) < REFUSAL_AGE
            }
            MergeAnswer::Blocked { .. } | MergeAnswer::NotYet { .. } => false,
        };
        counts.then(|| asked.answer.clone())
    }

    /// Returns the last answer about a pull request, if it was a refusal.
    pub(super) fn refusal(&self, number: u64) -> Option<MergeAnswer> {
        let AskedMerge { answer, .. } = self.0.get(&number)?;
        let is_refusal = match answer {
            MergeAnswer::NothingRequired | MergeAnswer::Refused { .. } | MergeAnswer::Blocked { .. } => true,
            MergeAnswer::NotYet { .. } => self.is_lasting(number),
            MergeAnswer::Merged | MergeAnswer::Scheduled => false,
        };
        is_refusal.then(|| answer.clone())
    }

    /// Returns true if a merge was asked for too often to be possible soon.
    pub(super) fn is_lasting(&self, number: u64) -> bool {
        self.0.get(&number).is_some_and(|asked| asked.tries > SOON_TRIES)
    }

    /// Records the answer to a merge.
    ///
    /// Returns true if the merge is to be asked for again soon: after a push, a forge computes in the background if it is possible.
    pub(super) fn add(&mut self, number: u64, merge: Merge, answer: MergeAnswer, now: Instant) -> bool {
        let is_before =
            |asked: &&AskedMerge| asked.merge == merge && matches!(asked.answer, MergeAnswer::NotYet { .. });
        let before = self.0.get(&number).filter(is_before);
        let tries = before.map_or(0, |asked| asked.tries).saturating_add(1);
        let is_soon = matches!(answer, MergeAnswer::NotYet { .. }) && tries <= SOON_TRIES;
        self.0.insert(number, AskedMerge { merge, answer, at: now, tries });
        is_soon
    }

    /// Forgets the pull requests that have ended.
    pub(super) fn retain(&mut self, is_open: impl Fn(u64) -> bool) {
        self.0.retain(|number, _| is_open(*number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::MergeTime;

    #[test]
    fn an_accepted_merge_is_asked_for_once_and_a_refused_one_again_later() {
        let commit = |digit: &str| digit.repeat(40).parse().unwrap();
        let merge = |digit| Merge { time: MergeTime::WhenReady, method: None, head_commit: commit(digit) };
        let now = Instant::now();
        let later = now + REFUSAL_AGE;
        let refused = || MergeAnswer::Refused { reason: "no".to_owned() };
        for (answer, is_kept, is_kept_later) in [
            (MergeAnswer::Scheduled, true, true),
            (MergeAnswer::NothingRequired, true, false),
            (refused(), true, false),
            (MergeAnswer::NotYet { reason: "busy".to_owned() }, false, false),
            // An approval may come at any time.
            (MergeAnswer::Blocked { reason: "no approval".to_owned() }, false, false),
        ] {
            let mut asked = AskedMerges::default();
            asked.add(7, merge("1"), answer.clone(), now);
            assert_eq!(asked.answer(7, &merge("1"), now).is_some(), is_kept, "{answer:?}");
            assert_eq!(asked.answer(7, &merge("1"), later).is_some(), is_kept_later, "{answer:?}");
            // Another commit is another merge, and so is that of another pull request.
            assert!(
                asked.answer(7, &merge("2"), now).is_none() && asked.answer(8, &merge("1"), now).is_none()
            );
            asked.retain(|number| number != 7);
            assert!(asked.answer(7, &merge("1"), now).is_none());
        }
    }

    /// A merge was asked for again only after the interval.
    #[test]
    fn a_merge_that_is_not_possible_yet_is_asked_for_again_soon_a_few_times() {
        let merge = |digit: &str| Merge {
            time: MergeTime::WhenReady,
            method: None,
            head_commit: digit.repeat(40).parse().unwrap(),
        };
        let not_yet = || MergeAnswer::NotYet { reason: "busy".to_owned() };
        let (mut asked, now) = (AskedMerges::default(), Instant::now());
        let mut add = |digit: &str, answer| {
            let is_soon = asked.add(7, merge(digit), answer, now);
            // Then it is told why: nothing was ever.
            assert_eq!(asked.is_lasting(7), asked.refusal(7) == Some(not_yet()));
            is_soon
        };
        assert_eq!([(); 5].map(|()| add("1", not_yet())), [true, true, true, false, false]);
        // Another commit begins anew.
        assert!(add("2", not_yet()));
        assert!(!add("2", MergeAnswer::Scheduled) && !add("3", MergeAnswer::NothingRequired));
        // A missing approval uses up none of the tries.
        let blocked = || MergeAnswer::Blocked { reason: "no approval".to_owned() };
        assert_eq!([(); 5].map(|()| add("4", blocked())), [false; 5]);
        assert!(add("4", not_yet()));
    }
}
