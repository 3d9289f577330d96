//! Sequences of events. Subscribers are letters, tags are `registry/repository:tag`.

use super::*;

type Plain = Schedule<&'static str, &'static str, &'static str>;

impl AtRegistry for &'static str {
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

fn good(digest: &str) -> Result<String, Failure<&'static str>> {
    Ok(digest.to_owned())
}

fn bad(retry_after: Option<u64>) -> Result<String, Failure<&'static str>> {
    let retry_after = retry_after.map(Duration::from_secs);
    Err(Failure { why: "down", concern: Concern::Registry, retry_after })
}

fn missing() -> Result<String, Failure<&'static str>> {
    Err(Failure { why: "not there", concern: Concern::Tag, retry_after: None })
}

fn digest(schedule: &Plain, subscriber: &'static str, target: &'static str) -> (String, bool) {
    let known = schedule.known(&subscriber, &target).cloned().unwrap_or_default();
    (known.digest.unwrap_or_default(), known.trouble.is_some())
}

#[test]
fn ten_who_follow_one_tag_share_one_look() {
    let mut schedule = Plain::default();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    for name in names {
        schedule.subscribe(&name, follow("r/x:1"), at(0));
    }
    assert_eq!(schedule.take_due(at(0)), ["r/x:1"]);
    assert_eq!(schedule.take_due(at(9_999)), [""; 0], "nobody looks twice at once");
    assert_eq!(schedule.done(&"r/x:1", good("A"), at(1), 0.5), names);
    assert_eq!(schedule.next(), Some(at(3601)));
    // The same digest again changes no state, and another one does.
    schedule.take_due(at(3601));
    assert!(schedule.done(&"r/x:1", good("A"), at(3602), 0.5).is_empty());
    schedule.take_due(at(7202));
    assert_eq!(schedule.done(&"r/x:1", good("C"), at(7202), 0.5).len(), 10);
    assert_eq!(digest(&schedule, "j", "r/x:1"), ("C".to_owned(), false));
}

#[test]
fn the_most_impatient_follower_sets_the_pace() {
    let mut schedule = Plain::default();
    schedule.subscribe(&"a", follow("x"), at(0));
    schedule.take_due(at(0));
    schedule.done(&"x", good("A"), at(0), 0.5);
    assert_eq!(schedule.next(), Some(at(3600)));
    let quick = Subscription { interval: Duration::from_secs(60), ..follow("x") };
    assert_eq!(schedule.subscribe(&"b", quick, at(10)), ["b"], "what is known is told at once");
    assert_eq!(schedule.next(), Some(at(73)));
    schedule.take_due(at(73));
    schedule.done(&"x", good("A"), at(73), 0.5);
    assert_eq!(schedule.next(), Some(at(133)));
    schedule.unsubscribe(&"b");
    schedule.unsubscribe(&"a");
    assert_eq!(schedule.next(), None);
    assert!(schedule.done(&"x", good("B"), at(140), 0.5).is_empty());
}

#[test]
fn a_registry_that_is_down_takes_nothing_away_and_is_asked_again_soon() {
    let mut schedule = Plain::default();
    let seeded = Subscription { seed: Some("A".to_owned()), ..follow("x") };
    assert!(schedule.subscribe(&"a", seeded.clone(), at(0)).is_empty());
    assert_eq!(digest(&schedule, "a", "x"), ("A".to_owned(), false));
    // The first lookup is made at once even with a seed, because the process may have been away for long.
    assert_eq!(schedule.take_due(at(0)), ["x"]);
    assert_eq!(schedule.done(&"x", bad(None), at(0), 0.5), ["a"]);
    assert_eq!(digest(&schedule, "a", "x"), ("A".to_owned(), true));
    let mut now = 0;
    for wait in [30, 60, 120, 240, 480, 900, 900] {
        now += wait;
        assert_eq!(schedule.next(), Some(at(now)));
        schedule.take_due(at(now));
        assert!(schedule.done(&"x", bad(None), at(now), 0.5).is_empty(), "that is no news");
    }
    schedule.take_due(at(now + 900));
    assert_eq!(schedule.done(&"x", good("A"), at(now + 900), 0.5), ["a"]);
    assert_eq!(digest(&schedule, "a", "x"), ("A".to_owned(), false));
    // Repeating a subscription makes nothing due.
    assert!(schedule.subscribe(&"a", seeded, at(now + 901)).is_empty());
    assert_eq!(schedule.next(), Some(at(now + 900 + 3600)));
    schedule.take_due(at(now + 4500));
    schedule.done(&"x", bad(Some(60)), at(now + 4500), 0.5);
    assert_eq!(schedule.next(), Some(at(now + 4560)));
}

#[test]
fn what_has_just_been_looked_up_is_due_after_the_interval() {
    let mut schedule = Plain::default();
    let fresh = Subscription { seed: Some("A".to_owned()), is_fresh: true, ..follow("x") };
    schedule.subscribe(&"a", fresh, at(0));
    assert_eq!(schedule.next(), Some(at(3600)));
    assert_eq!(schedule.subscribe(&"b", follow("x"), at(1)), ["b"]);
    schedule.hurry(&"b", at(2));
    assert_eq!(schedule.take_due(at(2)), ["x"]);
    // The state of the first tag does not carry over to the second.
    assert!(schedule.subscribe(&"b", follow("y"), at(3)).is_empty());
    assert_eq!(schedule.known(&"b", &"x"), None);
    assert_eq!(digest(&schedule, "b", "y"), (String::new(), false));
}

#[test]
fn a_group_gets_its_digests_together_or_not_at_all() {
    let mut schedule = Plain::default();
    schedule.subscribe(&"a", in_group("x"), at(0));
    assert_eq!(schedule.take_due(at(0)), ["x"]);
    // The other one is not there yet.
    assert_eq!(schedule.done(&"x", good("A"), at(0), 0.5), ["a"]);
    assert_eq!(digest(&schedule, "a", "x"), (String::new(), true));
    let waits_for = |schedule: &Plain| schedule.known(&"a", &"x").unwrap().trouble.clone();
    let for_b = Some(Trouble::GroupIncomplete(Missing { first: "b", others: 0 }));
    assert_eq!(waits_for(&schedule), for_b);
    schedule.subscribe(&"b", in_group("y"), at(1));
    assert_eq!(schedule.take_due(at(1)), ["x", "y"], "all of the group are looked at in one go");
    assert!(schedule.done(&"x", good("B"), at(2), 0.5).is_empty());
    assert_eq!(schedule.done(&"y", bad(None), at(2), 0.5), ["b"]);
    assert_eq!(digest(&schedule, "a", "x"), (String::new(), true));
    // It arrives, and both are published at once.
    assert_eq!(schedule.take_due(at(32)), ["x", "y"]);
    assert!(schedule.done(&"y", good("Y"), at(32), 0.5).is_empty());
    assert_eq!(schedule.done(&"x", good("B"), at(33), 0.5), ["a", "b"]);
    assert_eq!(digest(&schedule, "a", "x"), ("B".to_owned(), false));
    assert_eq!(digest(&schedule, "b", "y"), ("Y".to_owned(), false));
    // A new digest waits while the other member's lookup fails.
    schedule.hurry(&"a", at(40));
    assert_eq!(schedule.take_due(at(40)), ["x", "y"]);
    schedule.done(&"x", good("C"), at(40), 0.5);
    assert_eq!(schedule.done(&"y", bad(None), at(40), 0.5), ["a", "b"]);
    assert_eq!(digest(&schedule, "a", "x"), ("B".to_owned(), true));
    assert_eq!(digest(&schedule, "b", "y"), ("Y".to_owned(), true));
    assert_eq!(waits_for(&schedule), for_b);
}

#[test]
fn a_bad_registry_does_not_hold_up_others() {
    let mut schedule = Plain::default();
    schedule.subscribe(&"a", follow("x"), at(0));
    schedule.subscribe(&"b", follow("y"), at(0));
    schedule.take_due(at(0));
    // One lookup never ends; the other target goes on.
    for second in [0, 3600, 7200] {
        schedule.done(&"y", good("Y"), at(second), 0.5);
        assert_eq!(schedule.next(), Some(at(second + 3600)));
        assert_eq!(schedule.take_due(at(second + 3600)), ["y"]);
    }
}

#[test]
fn a_registry_in_trouble_is_left_alone_whichever_tag_is_due() {
    let mut schedule = Plain::default();
    for (subscriber, target) in [("a", "r/x"), ("b", "r/y"), ("c", "r/z"), ("d", "s/x")] {
        schedule.subscribe(&subscriber, follow(target), at(0));
    }
    assert_eq!(schedule.take_due(at(0)), ["r/x", "r/y", "r/z", "s/x"]);
    assert_eq!(schedule.overtaken(&"r/y"), None);
    schedule.done(&"r/x", bad(None), at(1), 0.5);
    // Targets that were taken before are obsolete; another registry goes on.
    assert_eq!((schedule.overtaken(&"r/y"), schedule.overtaken(&"s/x")), (Some(at(31)), None));
    schedule.done(&"r/y", bad(None), at(2), 0.5);
    schedule.done(&"r/z", good("Z"), at(2), 0.5);
    schedule.done(&"s/x", good("X"), at(2), 0.5);
    assert_eq!(
        schedule.next(),
        Some(at(31)),
        "it answered to one, and those who failed try again as they were to"
    );
    schedule.hurry(&"c", at(3));
    assert_eq!(schedule.take_due(at(3)), ["r/z"]);
    schedule.done(&"r/z", bad(None), at(4), 0.5);
    schedule.hurry(&"a", at(5));
    schedule.hurry(&"d", at(5));
    assert_eq!(schedule.take_due(at(5)), ["s/x"], "who is in a hurry waits for the registry, too");
    assert_eq!((schedule.next(), schedule.next_of(&"a")), (Some(at(34)), Some(at(34))));
    // One target is taken as the probe, and the others wait for its result.
    assert_eq!(schedule.take_due(at(34)), ["r/x"]);
    assert_eq!(schedule.overtaken(&"r/x"), None);
    assert_eq!((schedule.take_due(at(35)), schedule.next()), (vec![], Some(at(94))));
    schedule.done(&"r/x", bad(None), at(36), 0.5);
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
    schedule.done(&taken[0], good("A"), at(95), 0.5);
    assert_eq!(schedule.take_due(at(95)).len(), 3, "it is back for all at once");
}

#[test]
fn who_never_came_as_far_as_the_registry_knows_nothing_of_it() {
    let mut schedule = Plain::default();
    for (subscriber, target) in [("a", "r/x"), ("b", "r/y"), ("c", "r/z")] {
        schedule.subscribe(&subscriber, follow(target), at(0));
    }
    let looker = || Err(Failure { why: "no secret", concern: Concern::Looker, retry_after: None });
    schedule.take_due(at(0));
    schedule.done(&"r/x", bad(None), at(1), 0.5);
    schedule.done(&"r/y", looker(), at(1), 0.5);
    schedule.done(&"r/z", bad(None), at(1), 0.5);
    for subscriber in ["a", "b", "c"] {
        schedule.hurry(&subscriber, at(2));
    }
    assert_eq!((schedule.take_due(at(2)), schedule.next()), (vec![], Some(at(31))), "it is left alone");
    // It does not count as a probe, so another follows at once.
    let mut tried = Vec::new();
    for _ in 0..2 {
        let taken = schedule.take_due(at(31));
        assert_eq!(taken.len(), 1, "{taken:?}");
        schedule.done(&taken[0], looker(), at(31), 0.5);
        tried.extend(taken);
    }
    assert_ne!(tried[0], tried[1]);
    let taken = schedule.take_due(at(31));
    schedule.done(&taken[0], bad(None), at(32), 0.5);
    assert_eq!((schedule.take_due(at(90)), schedule.next()), (vec![], Some(at(91))));
}

#[test]
fn a_tag_that_is_not_there_is_that_tags_affair() {
    let mut schedule = Plain::default();
    schedule.subscribe(&"a", follow("r/x"), at(0));
    schedule.subscribe(&"b", follow("r/y"), at(0));
    schedule.take_due(at(0));
    let mut now = 0;
    for wait in [30, 60, 120] {
        schedule.done(&"r/x", missing(), at(now), 0.5);
        schedule.done(&"r/y", good("Y"), at(now), 0.5);
        assert_eq!(
            (schedule.next_of(&"a"), schedule.next_of(&"b")),
            (Some(at(now + wait)), Some(at(now + 3600)))
        );
        now += wait;
        schedule.hurry(&"b", at(now));
        assert_eq!(schedule.take_due(at(now)), ["r/x", "r/y"]);
    }
    // A registry that reports a missing tag responds, so its breaker closes.
    schedule.done(&"r/y", bad(None), at(now), 0.5);
    schedule.done(&"r/x", missing(), at(now), 0.5);
    schedule.hurry(&"b", at(now + 1));
    assert_eq!(schedule.take_due(at(now + 1)), ["r/y"]);
}

#[test]
fn the_most_impatient_of_a_registry_sets_the_pace_of_trials() {
    let mut schedule = Plain::default();
    let quick = Subscription { interval: Duration::from_secs(10), ..follow("r/quick") };
    schedule.subscribe(&"a", quick, at(0));
    schedule.subscribe(&"b", follow("r/slow"), at(0));
    schedule.take_due(at(0));
    schedule.done(&"r/slow", bad(None), at(0), 0.5);
    schedule.done(&"r/quick", bad(None), at(0), 0.5);
    let mut now = 5;
    for _ in 0..4 {
        assert_eq!(schedule.next(), Some(at(now)));
        let taken = schedule.take_due(at(now));
        assert_eq!(taken.len(), 1, "{taken:?}");
        schedule.done(&taken[0], bad(None), at(now), 0.5);
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
        schedule.done(&target, good(digest), at(0), 0.5);
    }
    schedule.hurry(&"c", at(1));
    schedule.take_due(at(1));
    schedule.done(&"s/z", bad(None), at(1), 0.5);
    // Otherwise a new digest of one member would be published beside an old one of the other.
    schedule.hurry(&"a", at(2));
    assert_eq!(schedule.take_due(at(2)), [""; 0]);
    assert_eq!(schedule.next(), Some(at(31)));
    let taken = schedule.take_due(at(31));
    assert_eq!(taken, ["r/x", "s/y"], "the group is the trial");
    schedule.done(&"r/x", good("X2"), at(32), 0.5);
    assert_eq!(schedule.done(&"s/y", good("Y2"), at(32), 0.5), ["a", "b"]);
    assert_eq!(schedule.take_due(at(32)), ["s/z"]);
}
