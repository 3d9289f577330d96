//! The pull requests of a branch, and the facts about the branch that follow.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Instant;

pub use tagboat_api::settings::REBUILD_LABEL;

use super::known::{OpenPullRequest, PastPullRequest};
use super::memory::{ClosedReason, ImageHash, OwnerHash};
use crate::forge::{PullRequest, PullRequestState};
use crate::git::{BranchFacts, CommitId};

/// The pull requests of one branch and base.
#[derive(Clone, Copy, Debug, Default)]
pub struct FoundPullRequests<'a> {
    /// The open one, if there is one.
    pub open: Option<&'a OpenPullRequest>,
    /// The others, the newest first; none if they were not looked up.
    pub past: Option<&'a [PastPullRequest]>,
    /// The head with which people handed the branch back.
    pub handed_back: Option<CommitId>,
    /// The time since which the newest of the others is known to have ended.
    pub ended_at: Option<Instant>,
    /// True if a person has reopened the open one, and its branch was deleted.
    pub is_reopened: bool,
}

impl FoundPullRequests<'_> {
    /// Returns true if past pull requests must be looked up for these images.
    ///
    /// Beside an open one that has the images already, they do not matter.
    pub fn lack_past(&self, images: &BTreeSet<ImageHash>) -> bool {
        self.past.is_none() && self.open.is_none_or(|open| !has_all(open, images))
    }

    /// Returns true if git may have read the base before the last pull request ended.
    ///
    /// The run of git began at a time. Only one that was merged, or that we closed, says something about the base.
    pub fn have_ended_since(&self, began: Instant) -> bool {
        let past = self.past.filter(|_| self.open.is_none());
        past.and_then(newest).is_some_and(has_ended) && self.ended_at.is_some_and(|ended| began <= ended)
    }
}

/// Returns the facts about a branch whose bundle has these images to set.
///
/// They are unknown until the past pull requests were looked up, beside an open one too if the images are not in it. A branch has
/// served its purpose only if its newest pull request was one of `owner`, the automation.
pub fn branch_facts(
    images: &BTreeSet<ImageHash>,
    owner: &OwnerHash,
    found: FoundPullRequests<'_>,
) -> BranchFacts {
    if let Some(open) = found.open {
        let past = found.past.unwrap_or_default();
        let is_refused_if_absent = open.memory().is_some() && has_all(open, images);
        return BranchFacts {
            is_unknown: found.lack_past(images),
            is_refused: !images.is_empty() && refusal(images, past).is_some(),
            is_refused_if_absent,
            // Another proposal may have an image that is not in it.
            deleted_tip: open
                .head_commit
                .filter(|_| is_refused_if_absent && !found.is_reopened && images.is_empty()),
            has_pull_request: true,
            is_reopened: found.is_reopened,
            is_in_merge_queue: open.is_in_merge_queue,
            handed_back: found.handed_back,
            ..BranchFacts::default()
        };
    }
    let Some(past) = found.past else { return BranchFacts { is_unknown: true, ..BranchFacts::default() } };
    let refused = refusal(images, past);
    let is_refused = refused.is_some();
    // Without images of its own, those of others on the branch count.
    let at_tip = if images.is_empty() { refused } else { untold_refusal(past) };
    let refused_tip = at_tip.and_then(|closed| closed.head_commit);
    let is_own =
        |one: &PastPullRequest| one.memory.as_ref().is_some_and(|memory| memory.owners.contains(owner));
    let is_finished = newest(past).is_some_and(|newest| has_ended(newest) && is_own(newest));
    let merged = past.iter().find(|one| one.state == PullRequestState::Merged);
    let merged_tip = merged.and_then(|merged| merged.head_commit);
    let handed_back = found.handed_back;
    BranchFacts { is_refused, refused_tip, handed_back, merged_tip, is_finished, ..BranchFacts::default() }
}

/// Returns true if a pull request has all of some images by its last line.
fn has_all(open: &OpenPullRequest, images: &BTreeSet<ImageHash>) -> bool {
    images.is_empty() || open.memory().is_some_and(|memory| images.is_subset(&memory.images))
}

/// Returns what is kept of the ended pull requests of a branch, the newest first.
///
/// Decisions depend on the newest one that says something, on the newest one that was merged, and on those that people closed
/// with our last line. A branch may have had thousands.
pub fn past_of(mut ended: Vec<PullRequest>) -> Vec<PastPullRequest> {
    ended.sort_by_key(|one| Reverse(one.number));
    let past: Vec<PastPullRequest> = ended.iter().map(PastPullRequest::of).collect();
    let newest = past.iter().position(says_something).unwrap_or(past.len());
    let merged = past.iter().position(|one| one.state == PullRequestState::Merged);
    let is_kept = |(at, one): &(usize, PastPullRequest)| {
        *at <= newest || Some(*at) == merged || is_closed_by_person(one) && one.memory.is_some()
    };
    past.into_iter().enumerate().filter(is_kept).map(|(_, one)| one).collect()
}

/// Returns the newest pull request by which people refused all of some images.
///
/// An image that was in no pull request that a person closed is not refused. One that does not say which images it had is an
/// [`untold_refusal`]. Without images, the newest pull request decides: its branch stays as people left it.
pub(super) fn refusal<'p>(
    images: &BTreeSet<ImageHash>,
    past: &'p [PastPullRequest],
) -> Option<&'p PastPullRequest> {
    let closed = || past.iter().filter(|one| is_closed_by_person(one));
    if images.is_empty() {
        return newest(past).filter(|one| is_closed_by_person(one));
    }
    let refuses = |one: &PastPullRequest, image: &ImageHash| {
        one.memory.as_ref().is_some_and(|memory| memory.images.contains(image))
    };
    if !images.iter().all(|image| closed().any(|one| refuses(one, image))) {
        return None;
    }
    closed().find(|one| images.iter().any(|image| refuses(one, image)))
}

/// Returns the newest pull request if a person refused untold images by it.
///
/// Its last line was removed, or was never there. The images are those of its head.
pub(super) fn untold_refusal(past: &[PastPullRequest]) -> Option<&PastPullRequest> {
    newest(past).filter(|one| is_closed_by_person(one) && one.memory.is_none())
}

/// Returns the newest pull request that says something about a branch.
fn newest(past: &[PastPullRequest]) -> Option<&PastPullRequest> {
    past.iter().find(|one| says_something(one))
}

/// Returns true unless we closed a pull request as a duplicate.
fn says_something(one: &PastPullRequest) -> bool {
    one.state != PullRequestState::Closed || closed_reason(one) != Some(ClosedReason::Duplicate)
}

/// Returns true if a pull request was merged, or closed by us.
fn has_ended(one: &PastPullRequest) -> bool {
    one.state == PullRequestState::Merged || is_closed_by_us(one)
}

fn is_closed_by_us(one: &PastPullRequest) -> bool {
    one.state == PullRequestState::Closed && closed_reason(one).is_some()
}

fn is_closed_by_person(one: &PastPullRequest) -> bool {
    one.state == PullRequestState::Closed && !is_closed_by_us(one)
}

/// Returns the reason for which we closed a pull request, if we did.
fn closed_reason(one: &PastPullRequest) -> Option<ClosedReason> {
    one.memory.as_ref()?.closed
}

#[cfg(test)]
pub(super) mod tests {
    use PullRequestState::{Closed, Merged};

    use super::super::memory::Memory;
    use super::super::memory::tests::{image, owner};
    use super::super::text::tests::pull_request;
    use super::*;

    /// A pull request of ours with these images, each as policy and tag.
    pub(in super::super) fn with_images(
        number: u64,
        state: PullRequestState,
        images: &[(&str, &str)],
        closed: Option<ClosedReason>,
    ) -> PullRequest {
        let images = images.iter().map(|(policy, tag)| image(policy, tag)).collect();
        let memory = Memory { owners: [owner("fleet")].into(), images, closed, ..Memory::default() };
        PullRequest { number, state, ..pull_request("t", &format!("text\n\n{memory}")) }
    }

    /// The past of a branch, and what is kept of it.
    fn pasts(ended: Vec<PullRequest>) -> [Vec<PastPullRequest>; 2] {
        [ended.iter().map(PastPullRequest::of).collect(), past_of(ended)]
    }

    #[test]
    fn a_refusal_lasts_until_there_is_a_new_image() {
        let merged = |number, images| with_images(number, Merged, images, None);
        let refused = |number, images| with_images(number, Closed, images, None);
        let by_us = |number, images| with_images(number, Closed, images, Some(ClosedReason::NothingLeft));
        let second = |number, images| with_images(number, Closed, images, Some(ClosedReason::Duplicate));
        let unmarked = PullRequest { number: 1, state: Closed, ..pull_request("t", "by ann") };
        let web1: &[(&str, &str)] = &[("web", "1")];
        let none = BranchFacts::default();
        let open_one = BranchFacts { has_pull_request: true, ..none };
        let is_refused = BranchFacts { is_refused: true, ..none };
        let is_finished = BranchFacts { is_finished: true, ..none };
        for (name, images, past, expected) in [
            ("no pull request", web1, vec![], none),
            ("closed by a person", web1, vec![refused(9, web1)], is_refused),
            ("a new image", &[("web", "2")], vec![refused(9, web1)], none),
            ("one new image suffices", &[("web", "1"), ("api", "2")], vec![refused(9, web1)], none),
            (
                "a part of the refused images",
                web1,
                vec![refused(9, &[("web", "1"), ("api", "1")])],
                is_refused,
            ),
            (
                "refused in two pull requests",
                &[("web", "1"), ("api", "2")],
                vec![refused(9, &[("api", "2")]), refused(8, web1)],
                is_refused,
            ),
            (
                "an image beside the one that is open",
                &[("api", "1")],
                vec![refused(9, &[("api", "1")])],
                is_refused,
            ),
            ("an older image again", web1, vec![refused(9, &[("web", "2")]), refused(8, web1)], is_refused),
            (
                "refused before the last was merged",
                web1,
                vec![merged(9, &[("web", "2")]), refused(8, web1)],
                BranchFacts { is_refused: true, is_finished: true, ..none },
            ),
            ("merged", web1, vec![merged(9, web1)], is_finished),
            (
                "merged by people from a branch of theirs",
                web1,
                vec![PullRequest { number: 9, state: Merged, ..pull_request("t", "by ann") }],
                none,
            ),
            ("closed by us", web1, vec![by_us(9, web1)], is_finished),
            ("closed without images", web1, vec![unmarked.clone()], none),
            ("the same tag of another policy", &[("api", "1")], vec![refused(9, web1)], none),
            // Nothing is left to change.
            ("refused and then done", &[], vec![refused(9, web1)], is_refused),
            ("refused by people before us", &[], vec![unmarked], is_refused),
            ("merged and then done", &[], vec![merged(9, web1), refused(8, web1)], is_finished),
            ("closed by us and then done", &[], vec![by_us(9, web1), refused(8, web1)], is_finished),
            ("never opened", &[], vec![], none),
            (
                "a second one closed by us, and then refused",
                &[],
                vec![second(9, web1), refused(8, web1)],
                is_refused,
            ),
            (
                "a second one closed by us, and then merged",
                &[],
                vec![second(9, web1), merged(8, web1)],
                is_finished,
            ),
        ] {
            let images: BTreeSet<ImageHash> = images.iter().map(|(policy, tag)| image(policy, tag)).collect();
            for past in pasts(past) {
                let found = FoundPullRequests { past: Some(&past), ..FoundPullRequests::default() };
                let owned = |found| branch_facts(&images, &owner("fleet"), found);
                assert_eq!(owned(found), expected, "{name}");
                let of_another = branch_facts(&images, &owner("other"), found);
                assert_eq!(of_another, BranchFacts { is_finished: false, ..expected }, "{name}");
                // An open one with these images is what counts: a person has reopened it, or it is a new one.
                let open = OpenPullRequest::new(with_images(10, PullRequestState::Open, web1, None));
                let found = FoundPullRequests { open: Some(&open), ..found };
                let facts = owned(found);
                let is_refused = expected.is_refused && !images.is_empty();
                let is_refused_if_absent = facts.is_refused_if_absent;
                assert_eq!(facts, BranchFacts { is_refused, is_refused_if_absent, ..open_one }, "{name}");
                let has_images = images.is_subset(&BTreeSet::from([image("web", "1")]));
                assert_eq!(is_refused_if_absent, has_images, "{name}");
                let tip = Some("1".repeat(40).parse().unwrap());
                assert_eq!(facts.is_refused_at(tip), is_refused && !has_images, "{name}");
            }
        }
    }

    /// Its images counted as new, and it was opened again.
    #[test]
    fn a_closed_pull_request_without_the_last_line_refuses_what_its_head_has() {
        let head = |digit: &str| Some(digit.repeat(40).parse::<CommitId>().unwrap());
        let closed = |number| PullRequest {
            number,
            state: Closed,
            head_commit: head("1"),
            ..pull_request("t", "We stay at 1.0.0.")
        };
        let web: &[(&str, &str)] = &[("web", "1")];
        let told =
            |state, reason| PullRequest { head_commit: head("2"), ..with_images(9, state, web, reason) };
        for (name, past, expected) in [
            ("none", vec![], None),
            ("the newest", vec![closed(8)], head("1")),
            ("its head is unknown", vec![PullRequest { head_commit: None, ..closed(8) }], None),
            ("another one was closed by a person since", vec![told(Closed, None), closed(8)], None),
            ("another one was merged since", vec![told(Merged, None), closed(8)], None),
            (
                "a second one was closed by us",
                vec![told(Closed, Some(ClosedReason::Duplicate)), closed(8)],
                head("1"),
            ),
            ("merged", vec![PullRequest { state: Merged, ..closed(8) }], None),
        ] {
            let images = BTreeSet::from([image("web", "2")]);
            for past in pasts(past) {
                let found = FoundPullRequests { past: Some(&past), ..FoundPullRequests::default() };
                let facts = branch_facts(&images, &owner("fleet"), found);
                assert_eq!((facts.refused_tip, facts.is_refused), (expected, false), "{name}");
            }
        }
    }

    /// All that there ever was of a branch stayed in memory, with the bodies.
    #[test]
    fn of_the_past_of_a_branch_the_newest_and_refusals_are_kept() {
        let web: &[(&str, &str)] = &[("web", "1")];
        let of = |number, state, reason| with_images(number, state, web, reason);
        let untold = |number| PullRequest { number, state: Closed, ..pull_request("t", "by ann") };
        let (duplicate, nothing_left) = (Some(ClosedReason::Duplicate), Some(ClosedReason::NothingLeft));
        for (ended, kept) in [
            (vec![], vec![]),
            (vec![of(2, Merged, None), of(3, Merged, None), of(1, Merged, None)], vec![3]),
            (vec![of(3, Closed, duplicate), of(2, Merged, None), of(1, Closed, None)], vec![3, 2, 1]),
            (vec![of(3, Closed, nothing_left), of(2, Closed, nothing_left)], vec![3]),
            (vec![untold(3), untold(2), of(1, Closed, None)], vec![3, 1]),
        ] {
            let numbers: Vec<u64> = past_of(ended).iter().map(|one| one.number).collect();
            assert_eq!(numbers, kept);
        }
    }

    /// All images of an automation without a forge counted as refused.
    #[test]
    fn a_closed_pull_request_refuses_what_its_head_has_of_others() {
        let head: Option<CommitId> = Some("1".repeat(40).parse().unwrap());
        let at = |state, closed| PullRequest {
            head_commit: head,
            ..with_images(9, state, &[("web", "1")], closed)
        };
        let [none, same, other] = [None, Some("1"), Some("2")]
            .map(|tag| tag.map(|tag| image("web", tag)).into_iter().collect::<BTreeSet<_>>());
        for (name, images, past, expected) in [
            ("closed by a person", &none, at(Closed, None), (true, head)),
            ("closed by us", &none, at(Closed, Some(ClosedReason::NothingLeft)), (false, None)),
            ("merged", &none, at(Merged, None), (false, None)),
            ("its last line tells of this image", &same, at(Closed, None), (true, None)),
            ("its last line does not have this image", &other, at(Closed, None), (false, None)),
        ] {
            let past = [PastPullRequest::of(&past)];
            let found = FoundPullRequests { past: Some(&past), ..FoundPullRequests::default() };
            let facts = branch_facts(images, &owner("fleet"), found);
            assert_eq!((facts.is_refused, facts.refused_tip), expected, "{name}");
        }
    }

    /// A branch whose commits were squashed counted as edited by others for ever.
    #[test]
    fn the_newest_merged_pull_request_tells_the_tip_that_was_merged() {
        let head = |digit: &str| Some(digit.repeat(40).parse::<CommitId>().unwrap());
        let one = |number, state, digit: &str| PullRequest {
            head_commit: head(digit),
            ..with_images(number, state, &[("web", "1")], None)
        };
        let by_people =
            PullRequest { state: Merged, head_commit: head("3"), number: 7, ..pull_request("t", "by ann") };
        for (name, past, expected) in [
            ("none", vec![], None),
            ("merged", vec![one(9, Merged, "1")], head("1")),
            ("merged twice", vec![one(9, Merged, "2"), one(8, Merged, "1")], head("2")),
            ("another one was closed since", vec![one(9, Closed, "2"), one(8, Merged, "1")], head("1")),
            ("closed", vec![one(9, Closed, "1")], None),
            ("of people", vec![by_people], head("3")),
            ("its head is unknown", vec![PullRequest { head_commit: None, ..one(9, Merged, "1") }], None),
        ] {
            let images = BTreeSet::from([image("web", "2")]);
            let past = past_of(past);
            let found = FoundPullRequests { past: Some(&past), ..FoundPullRequests::default() };
            assert_eq!(branch_facts(&images, &owner("fleet"), found).merged_tip, expected, "{name}");
        }
    }

    #[test]
    fn an_open_pull_request_shows_the_queue_and_the_label_alone_hands_nothing_back() {
        let none = BranchFacts { has_pull_request: true, ..BranchFacts::default() };
        let open = with_images(10, PullRequestState::Open, &[("web", "1")], None);
        let labels = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect();
        let head: Option<CommitId> = Some("1".repeat(40).parse().unwrap());
        let with_head = PullRequest { head_commit: head, ..open.clone() };
        for (open, handed_back, expected) in [
            (open.clone(), None, none),
            (with_head, None, none),
            (
                PullRequest { is_in_merge_queue: true, ..open.clone() },
                None,
                BranchFacts { is_in_merge_queue: true, ..none },
            ),
            // Until the label is removed, its head is not known.
            (PullRequest { labels: labels(&["a", "tagboat/rebuild"]), ..open.clone() }, None, none),
            (open, head, BranchFacts { handed_back: head, ..none }),
        ] {
            let (past, open) = (Some([].as_slice()), OpenPullRequest::new(open));
            let found =
                FoundPullRequests { open: Some(&open), past, handed_back, ..FoundPullRequests::default() };
            let facts = |tag| branch_facts(&BTreeSet::from([image("web", tag)]), &owner("fleet"), found);
            assert_eq!(facts("2"), expected);
            // Some forges leave it open if its branch is deleted.
            assert_eq!(facts("1"), BranchFacts { is_refused_if_absent: true, ..expected });
            let without_images = branch_facts(&BTreeSet::new(), &owner("fleet"), found);
            assert_eq!(without_images.deleted_tip, open.head_commit);
            // Only a search tells whether a person has refused another image.
            let unsearched = |tag| {
                let found = FoundPullRequests { past: None, ..found };
                branch_facts(&BTreeSet::from([image("web", tag)]), &owner("fleet"), found).is_unknown
            };
            assert_eq!((unsearched("1"), unsearched("2")), (false, true));
        }
        assert!(branch_facts(&BTreeSet::new(), &owner("fleet"), FoundPullRequests::default()).is_unknown);
    }

    /// A pull request that was reopened without its branch counted as refused for ever.
    #[test]
    fn a_reopened_pull_request_gets_its_branch_again() {
        let web = &[("web", "1")][..];
        let head = Some("1".repeat(40).parse().unwrap());
        let open = PullRequest { head_commit: head, ..with_images(10, PullRequestState::Open, web, None) };
        let open = OpenPullRequest::new(open);
        let refused = [PastPullRequest::of(&with_images(9, Closed, &[("web", "2")], None))];
        for (name, images, is_reopened, is_refused) in [
            ("a person has deleted the branch", web, false, true),
            ("a person has reopened it", web, true, false),
            ("a new image", &[("web", "3")], false, false),
            ("a new image of a reopened one", &[("web", "3")], true, false),
            ("another one was closed with the image", &[("web", "2")], true, true),
        ] {
            let found = FoundPullRequests {
                open: Some(&open),
                past: Some(&refused),
                is_reopened,
                ..FoundPullRequests::default()
            };
            let images = images.iter().map(|(policy, tag)| image(policy, tag)).collect();
            let facts = branch_facts(&images, &owner("fleet"), found);
            assert_eq!((facts.is_refused_at(None), facts.is_reopened), (is_refused, is_reopened), "{name}");
            // Another proposal may have an image that is not in it.
            let without_images = branch_facts(&BTreeSet::new(), &owner("fleet"), found);
            assert_eq!(without_images.deleted_tip, head.filter(|_| !is_reopened), "{name}");
        }
    }

    #[test]
    fn only_an_end_that_changed_the_base_makes_an_earlier_run_stale() {
        let began = Instant::now();
        let later = began + std::time::Duration::from_secs(1);
        let web: &[(&str, &str)] = &[("web", "1")];
        let past = |state, reason| PastPullRequest::of(&with_images(9, state, web, reason));
        let merged = past(Merged, None);
        let by_us = past(Closed, Some(ClosedReason::NothingLeft));
        let by_person = past(Closed, None);
        let open = OpenPullRequest::new(with_images(10, PullRequestState::Open, web, None));
        for (name, past, open, ended_at, is_stale) in [
            ("merged after the run began", Some(&merged), None, Some(later), true),
            ("merged as the run began", Some(&merged), None, Some(began), true),
            (
                "merged before",
                Some(&merged),
                None,
                began.checked_sub(std::time::Duration::from_secs(1)),
                false,
            ),
            ("closed by us", Some(&by_us), None, Some(later), true),
            ("closed by a person, so the base is as before", Some(&by_person), None, Some(later), false),
            ("opened again", Some(&merged), Some(&open), Some(later), false),
            ("never opened", None, None, Some(later), false),
            ("not known", Some(&merged), None, None, false),
        ] {
            let past = past.map(std::slice::from_ref);
            let found = FoundPullRequests { open, past, ended_at, ..FoundPullRequests::default() };
            assert_eq!(found.have_ended_since(began), is_stale, "{name}");
        }
    }
}
