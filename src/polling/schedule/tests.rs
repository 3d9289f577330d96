//! Sequences of events. Subscribers are letters, tags are `registry/repository:tag`.

use super::*;

type Plain = Schedule<&'static str, &'static str, &'static str>;

impl InRegistry for &'static str {
    fn registry(&self) -> &str {
        self.split_once('/').map_or(self, |(registry, _)| registry)
    }
}

const HOUR: Duration = Duration::from_secs(3600);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_795_000_000 + second).unwrap()
}

fn follow(target: &'static str) -> Subscription<&'static str, &'static str> {
    Subscription { target, interval: HOUR, group: None, seed: None, is_fresh: false }
}

fn in_group(target: &'static str) -> Subscription<&'static str, &'static str> {
    let group = Group { name: "g".to_owned(), members: ["a", "b"].into() };
    Subscription { group: Some(group), ..follow(target) }
}

fn good(digest: &str) -> Result<String, PollFailure<&'static str>> {
    Ok(digest.to_owned())
}

fn bad(retry_after: Option<u64>) -> Result<String, PollFailure<&'static str>> {
    let retry_after = retry_after.map(Duration::from_secs);
    Err(PollFailure { reason: "down", scope: FailureScope::Registry, retry_after })
}

fn missing() -> Result<String, PollFailure<&'static str>> {
    Err(PollFailure { reason: "not there", scope: FailureScope::Tag, retry_after: None })
}

fn digest(schedule: &Plain, subscriber: &'static str, target: &'static str) -> (String, bool) {
    let state = schedule.state(&subscriber, &target).cloned().unwrap_or_default();
    (state.digest.unwrap_or_default(), state.stale.is_some())
}

#[test]
fn ten_followers_of_one_tag_share_one_lookup() {
    let mut schedule = Plain::default();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    for name in names {
        schedule.subscribe(&name, follow("r/x:1"), at(0));
    }
    assert_eq!(schedule.take_due(at(0)), ["r/x:1"]);
    assert_eq!(schedule.take_due(at(9_999)), [""; 0], "its lookup is in flight");
    assert_eq!(schedule.record(&"r/x:1", good("A"), at(1), 0.5), names);
    assert_eq!(schedule.next(), Some(at(3601)));
    // The same digest again changes no state, and another one does.
    schedule.take_due(at(3601));
    assert!(schedule.record(&"r/x:1", good("A"), at(3602), 0.5).is_empty());
    schedule.take_due(at(7202));
    assert_eq!(schedule.record(&"r/x:1", good("C"), at(7202), 0.5).len(), 10);
    assert_eq!(digest(&schedule, "j", "r/x:1"), ("C".to_owned(), false));
}

#[test]
fn the_shortest_interval_of_the_followers_counts() {
    let mut schedule = Plain::default();
    schedule.subscribe(&"a", follow("x"), at(0));
    schedule.take_due(at(0));
    schedule.record(&"x", good("A"), at(0), 0.5);
    assert_eq!(schedule.next(), Some(at(3600)));
    let quick = Subscription { interval: Duration::from_secs(60), ..follow("x") };
    assert_eq!(schedule.subscribe(&"b", quick, at(10)), ["b"], "the known state is published at once");
    assert_eq!(schedule.next(), Some(at(73)));
    schedule.take_due(at(73));
    schedule.record(&"x", good("A"), at(73), 0.5);
    assert_eq!(schedule.next(), Some(at(133)));
    schedule.unsubscribe(&"b");
    schedule.unsubscribe(&"a");
    assert_eq!(schedule.next(), None);
    assert!(schedule.record(&"x", good("B"), at(140), 0.5).is_empty());
}

#[test]
fn a_failed_lookup_keeps_the_digest_and_is_retried_soon() {
    let mut schedule = Plain::default();
    let seeded = Subscription { seed: Some("A".to_owned()), ..follow("x") };
    assert!(schedule.subscribe(&"a", seeded.clone(), at(0)).is_empty());
    assert_eq!(digest(&schedule, "a", "x"), ("A".to_owned(), false));
    // The first lookup is made at once even with a seed, because the process may have been away for long.
    assert_eq!(schedule.take_due(at(0)), ["x"]);
    assert_eq!(schedule.record(&"x", bad(None), at(0), 0.5), ["a"]);
    assert_eq!(digest(&schedule, "a", "x"), ("A".to_owned(), true));
    let mut now = 0;
    for wait in [30, 60, 120, 240, 480, 900, 900] {
        now += wait;
        assert_eq!(schedule.next(), Some(at(now)));
        schedule.take_due(at(now));
        assert!(schedule.record(&"x", bad(None), at(now), 0.5).is_empty(), "the state has not changed");
    }
    schedule.take_due(at(now + 900));
    assert_eq!(schedule.record(&"x", good("A"), at(now + 900), 0.5), ["a"]);
    assert_eq!(digest(&schedule, "a", "x"), ("A".to_owned(), false));
    // Repeating a subscription makes nothing due.
    assert!(schedule.subscribe(&"a", seeded, at(now + 901)).is_empty());
    assert_eq!(schedule.next(), Some(at(now + 900 + 3600)));
    schedule.take_due(at(now + 4500));
    schedule.record(&"x", bad(Some(60)), at(now + 4500), 0.5);
    assert_eq!(schedule.next(), Some(at(now + 4560)));
}

#[test]
fn a_fresh_digest_is_due_after_the_interval() {
    let mut schedule = Plain::default();
    let fresh = Subscription { seed: Some("A".to_owned()), is_fresh: true, ..follow("x") };
    schedule.subscribe(&"a", fresh, at(0));
    assert_eq!(schedule.next(), Some(at(3600)));
    assert_eq!(schedule.subscribe(&"b", follow("x"), at(1)), ["b"]);
    schedule.make_due(&"b", at(2));
    assert_eq!(schedule.take_due(at(2)), ["x"]);
    // The state of the first tag does not carry over to the second.
    assert!(schedule.subscribe(&"b", follow("y"), at(3)).is_empty());
    assert_eq!(schedule.state(&"b", &"x"), None);
    assert_eq!(digest(&schedule, "b", "y"), (String::new(), false));
}

#[test]
fn a_group_gets_its_digests_together_or_not_at_all() {
    let mut schedule = Plain::default();
    schedule.subscribe(&"a", in_group("x"), at(0));
    assert_eq!(schedule.take_due(at(0)), ["x"]);
    // The other one is not there yet.
    assert_eq!(schedule.record(&"x", good("A"), at(0), 0.5), ["a"]);
    assert_eq!(digest(&schedule, "a", "x"), (String::new(), true));
    let waits_for = |schedule: &Plain| schedule.state(&"a", &"x").unwrap().stale.clone();
    let for_b = Some(StaleReason::GroupIncomplete(Missing { first: "b", others: 0 }));
    assert_eq!(waits_for(&schedule), for_b);
    schedule.subscribe(&"b", in_group("y"), at(1));
    assert_eq!(schedule.take_due(at(1)), ["x", "y"], "the group is looked up together");
    assert!(schedule.record(&"x", good("B"), at(2), 0.5).is_empty());
    assert_eq!(schedule.record(&"y", bad(None), at(2), 0.5), ["b"]);
    assert_eq!(digest(&schedule, "a", "x"), (String::new(), true));
    // It arrives, and both are published at once.
    assert_eq!(schedule.take_due(at(32)), ["x", "y"]);
    assert!(schedule.record(&"y", good("Y"), at(32), 0.5).is_empty());
    assert_eq!(schedule.record(&"x", good("B"), at(33), 0.5), ["a", "b"]);
    assert_eq!(digest(&schedule, "a", "x"), ("B".to_owned(), false));
    assert_eq!(digest(&schedule, "b", "y"), ("Y".to_owned(), false));
    // A new digest waits while the other member's lookup fails.
    schedule.make_due(&"a", at(40));
    assert_eq!(schedule.take_due(at(40)), ["x", "y"]);
    schedule.record(&"x", good("C"), at(40), 0.5);
    assert_eq!(schedule.record(&"y", bad(None), at(40), 0.5), ["a", "b"]);
    assert_eq!(digest(&schedule, "a", "x"), ("B".to_owned(), true));
    assert_eq!(digest(&schedule, "b", "y"), ("Y".to_owned(), true));
    assert_eq!(waits_for(&schedule), for_b);
}

#[test]
fn a_failing_registry_delays_no_other() {
    let mut schedule = Plain::default();
    schedule.subscribe(&"a", follow("x"), at(0));
    schedule.subscribe(&"b", follow("y"), at(0));
    schedule.take_due(at(0));
    // One lookup never ends; the other target goes on.
    for second in [0, 3600, 7200] {
        schedule.record(&"y", good("Y"), at(second), 0.5);
        assert_eq!(schedule.next(), Some(at(second + 3600)));
        assert_eq!(schedule.take_due(at(second + 3600)), ["y"]);
    }
}

#[test]
fn an_open_breaker_blocks_all_tags_of_its_registry() {
    let mut schedule = Plain::default();
    for (subscriber, target) in [("a", "r/x"), ("b", "r/y"), ("c", "r/z"), ("d", "s/x")] {
        schedule.subscribe(&subscriber, follow(target), at(0));
    }
    assert_eq!(schedule.take_due(at(0)), ["r/x", "r/y", "r/z", "s/x"]);
    assert_eq!(schedule.blocked_since_taken(&"r/y"), None);
    schedule.record(&"r/x", bad(None), at(1), 0.5);
    // Targets that were taken before are obsolete; another registry goes on.
    assert_eq!(
        (schedule.blocked_since_taken(&"r/y"), schedule.blocked_since_taken(&"s/x")),
        (Some(at(31)), None)
    );
    schedule.record(&"r/y", bad(None), at(2), 0.5);
    schedule.record(&"r/z", good("Z"), at(2), 0.5);
    schedule.record(&"s/x", good("X"), at(2), 0.5);
    assert_eq!(
        schedule.next(),
        Some(at(31)),
        "it responded to one lookup, and failed ones are retried as planned"
    );
    schedule.make_due(&"c", at(3));
    assert_eq!(schedule.take_due(at(3)), ["r/z"]);
    schedule.record(&"r/z", bad(None), at(4), 0.5);
    schedule.make_due(&"a", at(5));
    schedule.make_due(&"d", at(5));
    assert_eq!(schedule.take_due(at(5)), ["s/x"], "a target that is made due waits for the breaker, too");
    assert_eq!((schedule.next(), schedule.next_of(&"a")), (Some(at(34)), Some(at(34))));
    // One target is taken as the probe, and the others wait for its result.
    assert_eq!(schedule.take_due(at(34)), ["r/x"]);
    assert_eq!(schedule.blocked_since_taken(&"r/x"), None);
    assert_eq!((schedule.take_due(at(35)), schedule.next()), (vec![], Some(at(94))));
    schedule.record(&"r/x", bad(None), at(36), 0.5);
    // A new tag of that registry is no reason for a request, and a probe without followers blocks no other.
    schedule.subscribe(&"e", follow("r/new"), at(40));
    assert_eq!(schedule.next_of(&"e"), Some(at(94)));
    let taken = schedule.take_due(at(94));
    assert_eq!(taken.len(), 1, "{taken:?}");
    for subscriber in ["a", "b", "c", "e"] {
        if schedule.followers(&taken[0]).any(|follower| *follower == subscriber) {
            schedule.unsubscribe(&subscriber);
        }
    }
    schedule.record(&taken[0], good("A"), at(95), 0.5);
    assert_eq!(schedule.take_due(at(95)).len(), 3, "the breaker is closed for all tags at once");
}

#[test]
fn a_failure_of_the_caller_says_nothing_about_the_registry() {
    let mut schedule = Plain::default();
    for (subscriber, target) in [("a", "r/x"), ("b", "r/y"), ("c", "r/z")] {
        schedule.subscribe(&subscriber, follow(target), at(0));
    }
    let caller = || Err(PollFailure { reason: "no secret", scope: FailureScope::Caller, retry_after: None });
    schedule.take_due(at(0));
    schedule.record(&"r/x", bad(None), at(1), 0.5);
    schedule.record(&"r/y", caller(), at(1), 0.5);
    schedule.record(&"r/z", bad(None), at(1), 0.5);
    for subscriber in ["a", "b", "c"] {
        schedule.make_due(&subscriber, at(2));
    }
    assert_eq!((schedule.take_due(at(2)), schedule.next()), (vec![], Some(at(31))), "the breaker is open");
    // It does not count as a probe, so another follows at once.
    let mut tried = Vec::new();
    for _ in 0..2 {
        let taken = schedule.take_due(at(31));
        assert_eq!(taken.len(), 1, "{taken:?}");
        schedule.record(&taken[0], caller(), at(31), 0.5);
        tried.extend(taken);
    }
    assert_ne!(tried[0], tried[1]);
    let taken = schedule.take_due(at(31));
    schedule.record(&taken[0], bad(None), at(32), 0.5);
    assert_eq!((schedule.take_due(at(90)), schedule.next()), (vec![], Some(at(91))));
}

#[test]
fn a_missing_tag_opens_no_breaker() {
    let mut schedule = Plain::default();
    schedule.subscribe(&"a", follow("r/x"), at(0));
    schedule.subscribe(&"b", follow("r/y"), at(0));
    schedule.take_due(at(0));
    let mut now = 0;
    for wait in [30, 60, 120] {
        schedule.record(&"r/x", missing(), at(now), 0.5);
        schedule.record(&"r/y", good("Y"), at(now), 0.5);
        assert_eq!(
            (schedule.next_of(&"a"), schedule.next_of(&"b")),
            (Some(at(now + wait)), Some(at(now + 3600)))
        );
        now += wait;
        schedule.make_due(&"b", at(now));
        assert_eq!(schedule.take_due(at(now)), ["r/x", "r/y"]);
    }
    // A registry that reports a missing tag responds, so its breaker closes.
    schedule.record(&"r/y", bad(None), at(now), 0.5);
    schedule.record(&"r/x", missing(), at(now), 0.5);
    schedule.make_due(&"b", at(now + 1));
    assert_eq!(schedule.take_due(at(now + 1)), ["r/y"]);
}

#[test]
fn the_shortest_interval_at_a_registry_limits_the_wait_for_a_probe() {
    let mut schedule = Plain::default();
    let quick = Subscription { interval: Duration::from_secs(10), ..follow("r/quick") };
    schedule.subscribe(&"a", quick, at(0));
    schedule.subscribe(&"b", follow("r/slow"), at(0));
    schedule.take_due(at(0));
    schedule.record(&"r/slow", bad(None), at(0), 0.5);
    schedule.record(&"r/quick", bad(None), at(0), 0.5);
    let mut now = 5;
    for _ in 0..4 {
        assert_eq!(schedule.next(), Some(at(now)));
        let taken = schedule.take_due(at(now));
        assert_eq!(taken.len(), 1, "{taken:?}");
        schedule.record(&taken[0], bad(None), at(now), 0.5);
        now += 10;
    }
}

#[test]
fn a_group_waits_for_the_registries_of_all_its_members() {
    let mut schedule = Plain::default();
    schedule.subscribe(&"a", in_group("r/x"), at(0));
    schedule.subscribe(&"b", in_group("s/y"), at(0));
    schedule.subscribe(&"c", follow("s/z"), at(0));
    schedule.take_due(at(0));
    for (target, digest) in [("r/x", "X"), ("s/y", "Y"), ("s/z", "Z")] {
        schedule.record(&target, good(digest), at(0), 0.5);
    }
    schedule.make_due(&"c", at(1));
    schedule.take_due(at(1));
    schedule.record(&"s/z", bad(None), at(1), 0.5);
    // Otherwise a new digest of one member would be published beside an old one of the other.
    schedule.make_due(&"a", at(2));
    assert_eq!(schedule.take_due(at(2)), [""; 0]);
    assert_eq!(schedule.next(), Some(at(31)));
    let taken = schedule.take_due(at(31));
    assert_eq!(taken, ["r/x", "s/y"], "the group is the probe");
    schedule.record(&"r/x", good("X2"), at(32), 0.5);
    assert_eq!(schedule.record(&"s/y", good("Y2"), at(32), 0.5), ["a", "b"]);
    assert_eq!(schedule.take_due(at(32)), ["s/z"]);
}
