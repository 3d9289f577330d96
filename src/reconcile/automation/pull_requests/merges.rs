//! The merges that a forge was asked for, and its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::forge::{Merge, MergeAnswer, MergeTime};

/// The time after which a forge is asked again for what it has refused.
pub(super) const REFUSAL_AGE: Duration = Duration::from_secs(10 * 60);

/// The number of times that a merge is asked for again soon.
const SOON_TRIES: u32 = 3;

/// The merges that a forge was asked for, by the number of the pull request.
///
/// A merge that the forge has accepted is not asked for again, so one that a person cancels stays cancelled until the pull
/// request has another commit or setting, or another process begins: not each forge tells that one was cancelled.
#[derive(Clone, Debug, Default)]
pub(super) struct AskedMerges {
    asked: BTreeMap<u64, AskedMerge>,
    /// The pull requests without an auto-merge of ours.
    ///
    /// They are new, or theirs was cancelled, and none was asked for since. One that they have is that of a person.
    without: BTreeSet<u64>,
}

/// The facts by which an auto-merge stays or is cancelled.
#[derive(Clone, Copy, Debug)]
pub(super) struct AutoMergeFacts<'a> {
    /// The number of the pull request.
    pub(super) number: u64,
    /// True if the pull request has one; none if the forge does not tell.
    pub(super) shown: Option<bool>,
    /// The merge that is wanted now.
    pub(super) wanted: Option<&'a Merge>,
    /// True if the commits or the text of the pull request change.
    pub(super) has_changes: bool,
    /// True if one of its automations merges `when-ready`.
    pub(super) is_of_ours: bool,
}

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
        let asked = self.asked.get(&number).filter(|asked| asked.merge == *merge)?;
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
        let AskedMerge { answer, .. } = self.asked.get(&number)?;
        let is_refusal = match answer {
            MergeAnswer::NothingRequired | MergeAnswer::Refused { .. } | MergeAnswer::Blocked { .. } => true,
            MergeAnswer::NotYet { .. } => self.is_lasting(number),
            MergeAnswer::Merged | MergeAnswer::Scheduled => false,
        };
        is_refusal.then(|| answer.clone())
    }

    /// Returns true if a merge was asked for too often to be possible soon.
    pub(super) fn is_lasting(&self, number: u64) -> bool {
        self.asked.get(&number).is_some_and(|asked| asked.tries > SOON_TRIES)
    }

    /// Records the answer to a merge.
    ///
    /// Returns true if the merge is to be asked for again soon: after a push, a forge computes in the background if it is possible.
    pub(super) fn add(&mut self, number: u64, merge: Merge, answer: MergeAnswer, now: Instant) -> bool {
        let is_before =
            |asked: &&AskedMerge| asked.merge == merge && matches!(asked.answer, MergeAnswer::NotYet { .. });
        let before = self.asked.get(&number).filter(is_before);
        let tries = before.map_or(0, |asked| asked.tries).saturating_add(1);
        let is_soon = matches!(answer, MergeAnswer::NotYet { .. }) && tries <= SOON_TRIES;
        self.asked.insert(number, AskedMerge { merge, answer, at: now, tries });
        is_soon
    }

    /// Returns true if an auto-merge has to be cancelled.
    ///
    /// The forge may merge what is not wanted, or by another method. One that does not show auto-merges may keep the message of
    /// the time at which it was asked. One that may be that of a person is cancelled only if an automation merges by itself.
    pub(super) fn is_to_cancel(&self, facts: &AutoMergeFacts<'_>) -> bool {
        let accepted = self.asked.get(&facts.number).filter(|asked| asked.answer == MergeAnswer::Scheduled);
        let is_stale = |wanted: &Merge| match facts.shown {
            Some(_) => accepted.is_some_and(|asked| asked.merge.method != wanted.method),
            None => facts.has_changes || accepted.is_some_and(|asked| asked.merge != *wanted),
        };
        let is_unwanted =
            facts.wanted.is_none_or(|wanted| wanted.time == MergeTime::Immediately || is_stale(wanted));
        let is_ours = accepted.is_some() || facts.wanted.is_some() || facts.is_of_ours;
        is_unwanted && is_ours && facts.shown.unwrap_or(true) && !self.without.contains(&facts.number)
    }

    /// Records that a pull request has no auto-merge of ours.
    pub(super) fn set_without(&mut self, number: u64) {
        self.asked.retain(|other, asked| *other != number || asked.answer != MergeAnswer::Scheduled);
        self.without.insert(number);
    }

    /// Records that a merge is asked for.
    ///
    /// The forge may accept it although its answer is lost.
    pub(super) fn begin(&mut self, number: u64, merge: &Merge) {
        if merge.time == MergeTime::WhenReady {
            self.without.remove(&number);
        }
    }

    /// Forgets the pull requests that have ended.
    pub(super) fn retain(&mut self, is_open: impl Fn(u64) -> bool) {
        self.asked.retain(|number, _| is_open(*number));
        self.without.retain(|number| is_open(*number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::MergeMethod;

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

    /// No auto-merge was ever cancelled: the forge merged during a freeze, and commits of people.
    #[test]
    fn an_auto_merge_is_cancelled_unless_it_is_wanted_as_it_is() {
        use MergeTime::{Immediately, WhenReady};
        let merge =
            |time, digit: &str| Merge { time, method: None, head_commit: digit.repeat(40).parse().unwrap() };
        let (same, other) = (Some(merge(WhenReady, "1")), Some(merge(WhenReady, "2")));
        let squash = Some(Merge { method: Some(MergeMethod::Squash), ..merge(WhenReady, "1") });
        let now = Some(merge(Immediately, "1"));
        let scheduled = Some(MergeAnswer::Scheduled);
        let blocked = Some(MergeAnswer::Blocked { reason: "no".to_owned() });
        for (name, answer, shown, wanted, has_changes, is_of_ours, expected) in [
            ("wanted as it is", &scheduled, None, &same, false, true, false),
            ("wanted as it is, and shown", &scheduled, Some(true), &same, false, true, false),
            ("another commit", &scheduled, None, &other, false, true, true),
            ("another commit, and shown", &scheduled, Some(true), &other, true, true, false),
            ("another method, and shown", &scheduled, Some(true), &squash, false, true, true),
            ("another text", &scheduled, None, &same, true, true, true),
            ("not wanted any more", &scheduled, None, &None, false, true, true),
            ("by hand by now", &scheduled, None, &None, false, false, true),
            ("a person has cancelled it", &scheduled, Some(false), &None, false, true, false),
            ("merged at once", &scheduled, None, &now, false, false, true),
            // A process before this one may have asked.
            ("unknown, and wanted", &None, None, &same, false, true, false),
            ("unknown, with another text", &None, None, &same, true, true, true),
            ("unknown, and not wanted", &None, None, &None, false, true, true),
            ("unknown, and merged at once", &None, None, &now, false, false, true),
            ("perhaps that of a person", &None, None, &None, false, false, false),
            ("perhaps that of a person, and shown", &None, Some(true), &None, false, false, false),
            ("shown, and not wanted", &None, Some(true), &None, false, true, true),
            ("not there", &None, Some(false), &None, false, true, false),
            ("not there, with another text", &None, Some(false), &same, true, true, false),
            ("refused since", &blocked, None, &None, false, true, true),
        ] {
            let (mut asked, at) = (AskedMerges::default(), Instant::now());
            if let Some(answer) = answer.clone() {
                asked.add(7, merge(WhenReady, "1"), answer, at);
            }
            let wanted = wanted.as_ref();
            let facts = AutoMergeFacts { number: 7, shown, wanted, has_changes, is_of_ours };
            assert_eq!(asked.is_to_cancel(&facts), expected, "{name}");
            // It is cancelled once, and asked for again when it is wanted.
            asked.set_without(7);
            assert!(!asked.is_to_cancel(&AutoMergeFacts { shown: Some(true), ..facts }), "{name}");
            assert_eq!(asked.answer(7, &merge(WhenReady, "1"), at), None, "{name}");
            asked.begin(7, &merge(Immediately, "1"));
            assert!(!asked.is_to_cancel(&facts), "{name}");
            asked.begin(7, &merge(WhenReady, "1"));
            assert!(asked.is_to_cancel(&AutoMergeFacts {
                wanted: None,
                is_of_ours: true,
                shown: None,
                ..facts
            }));
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
