use futures::FutureExt;

use super::super::test_forge::{TestForge, open};
use super::*;
use crate::forge::PullRequestState;

#[test]
fn git_is_told_of_the_branch_of_a_superseded_pull_request_until_it_has_dealt_with_it() {
    let name = |name: &str| tagboat_api::ObjectName { namespace: "apps".to_owned(), name: name.to_owned() };
    let (owner, other) = (OwnerHash::of(&name("fleet"), None), OwnerHash::of(&name("other"), None));
    let memory = Memory {
        owners: [owner.clone()].into(),
        closed: Some(crate::reconcile::automation::delivery::ClosedReason::Superseded),
        ..Memory::default()
    };
    let closed = PullRequest { state: PullRequestState::Closed, body: memory.to_string(), ..open(1, "a") };
    let (base, head) = (closed.base.clone(), closed.head.clone());
    let mut snapshot = Snapshot::default();
    snapshot.close_unwanted(&closed);
    let facts = |snapshot: &Snapshot, images, owner| snapshot.facts(&base, &head, images, owner);
    assert_eq!(snapshot.branches_for_git(&base, &owner), BTreeSet::from([head.clone()]));
    assert!(snapshot.branches_for_git(&base, &other).is_empty());
    assert!(facts(&snapshot, None, &owner).is_finished);
    // A branch that is rendered again needs its whole past.
    assert!(facts(&snapshot, Some(&BTreeSet::new()), &owner).is_unknown);
    snapshot.retain(|_| false, |_| false, |_| false);
    assert!(!snapshot.branches_for_git(&base, &owner).is_empty());
    snapshot.retain(|_| false, |_| true, |_| false);
    assert!(snapshot.branches_for_git(&base, &owner).is_empty());
}

/// Bodies of 16 MiB were copied while the queue of all namespaces was locked.
#[test]
fn a_copy_of_a_snapshot_shares_its_pull_requests() {
    let mut snapshot = Snapshot::default();
    snapshot.put(open(1, "a"), Instant::now());
    let branches = key(&open(1, "a"));
    snapshot.past.insert(branches.clone(), Arc::default());
    let copy = snapshot.clone();
    assert!(Arc::ptr_eq(&copy.open[&branches], &snapshot.open[&branches]));
    assert!(Arc::ptr_eq(&copy.past[&branches], &snapshot.past[&branches]));
}

/// Git rebuilt a branch that a person had refused: the round's older list counted again.
#[test]
fn the_listing_beside_a_round_counts_if_it_is_the_later_one() {
    let begin = Instant::now();
    let at = |seconds| begin + Duration::from_secs(seconds);
    let branches = |head: &str| key(&open(0, head));
    let ended = |number, head: &str| PullRequest { state: PullRequestState::Merged, ..open(number, head) };
    let listed = |seconds, heads: &[(u64, &str)], before: &Snapshot| {
        let one = |(number, head): &(u64, &str)| {
            (branches(head), Arc::new(OpenPullRequest::new(open(*number, head))))
        };
        let open: BTreeMap<_, _> = heads.iter().map(one).collect();
        let gone = before.open.keys().filter(|branches| !open.contains_key(*branches)).cloned();
        let vanished: BTreeSet<Branches> = gone.collect();
        let mut past = before.past.clone();
        past.retain(|branches, _| !vanished.contains(branches));
        Snapshot { open, vanished, past, listed_after: Some(at(seconds)), ..before.clone() }
    };
    let known = ["a", "b", "c", "d", "e"].map(|head| (branches(head), Arc::default()));
    let first = Snapshot { past: known.into(), ..Snapshot::default() };
    let mut round = listed(0, &[(5, "a"), (6, "b")], &first);
    // The round opens one for each of `c` and `d` before the other listing, and one for `e` after it. It merges #6.
    let mut beside = listed(30, &[(6, "b"), (7, "c")], &round);
    round.put(open(7, "c"), at(10));
    round.put(open(8, "d"), at(20));
    round.put(open(9, "e"), at(40));
    round.put(ended(6, "b"), at(50));
    beside.records.hand_back(branches("c"), "1".repeat(40).parse().unwrap());
    let shown = |snapshot: &Snapshot| {
        let of = |head: &str| {
            let found = snapshot.found(&branches(head).0, &branches(head).1);
            let past = found.past.map(|past| past.iter().map(|one| one.number).collect::<Vec<_>>());
            format!("{head} {:?} {past:?}", found.open.map(|open| open.number))
        };
        ["a", "b", "c", "d", "e"].map(of).join(", ")
    };
    // People have closed #5 and #8 by then.
    let after = beside.after_round(round.clone());
    assert_eq!(
        shown(&after),
        "a None None, b None Some([6]), c Some(7) Some([]), d None None, e Some(9) Some([])"
    );
    assert!(after.records.ended(&branches("b")).is_some() && after.made.is_empty());
    assert_eq!(after.vanished, ["a", "d"].map(branches).into());
    // The round's list is the later one.
    let earlier = Snapshot { listed_after: None, ..beside };
    let after = earlier.after_round(round);
    assert_eq!(
        shown(&after),
        "a Some(5) Some([]), b None Some([6]), c Some(7) Some([]), d Some(8) Some([]), e Some(9) Some([])"
    );
}

#[test]
fn pull_requests_in_the_merge_queue_are_marked_and_a_base_without_one_is_rarely_asked() {
    let (forge, mut snapshot) = (TestForge::with([open(1, "a"), open(2, "b")]), Snapshot::default());
    let heads = BTreeSet::from(["a", "b"].map(|name| name.parse().unwrap()));
    let mut list = |times: u32| {
        for _ in 0..times {
            snapshot.list(&forge, &heads, false).now_or_never().unwrap().unwrap();
        }
        let queued = snapshot.open.values().filter(|one| one.is_in_merge_queue).map(|one| one.number);
        (queued.collect::<Vec<_>>(), *forge.queue_reads.lock())
    };
    assert_eq!(list(QUEUE_LISTINGS), (vec![], 1));
    *forge.queue.lock() = Some(vec![2, 7]);
    assert_eq!(list(1), (vec![2], 2));
    assert_eq!(list(2), (vec![2], 4));
    *forge.queue.lock() = Some(Vec::new());
    assert_eq!(list(1), (vec![], 5));
}

/// Git would have rebuilt a branch in the queue after an answer that was lost.
#[test]
fn a_merge_queue_that_cannot_be_read_keeps_the_marks_of_the_last_answer() {
    let (forge, mut snapshot) = (TestForge::with([open(1, "a"), open(2, "b")]), Snapshot::default());
    let heads = BTreeSet::from(["a", "b"].map(|name| name.parse().unwrap()));
    *forge.queue.lock() = Some(vec![2]);
    for is_failing in [false, true, true, false] {
        *forge.is_queue_failing.lock() = is_failing;
        let listed = snapshot.list(&forge, &heads, false).now_or_never().unwrap();
        assert_eq!(listed.is_err(), is_failing);
        let queued = snapshot.open.values().filter(|one| one.is_in_merge_queue).map(|one| one.number);
        assert_eq!(queued.collect::<Vec<_>>(), [2]);
    }
}
