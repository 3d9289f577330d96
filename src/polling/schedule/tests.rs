//! Courses of events, step by step. Subscribers are named by letters, tags by `registry/repository:tag`.

use super::*;

type Plain = Schedule<&'static str, &'static str, &'static str>;

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
    Err(Failure { why: "down", retry_after: retry_after.map(Duration::from_secs) })
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
    // The same digest again is no news, and another one is.
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
    // The first look is made at once all the same, for the process may have been away for long.
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
    // What is followed already is not looked at anew because somebody says so again.
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
    // Another tag is another matter, and what was known of the first does not count for it.
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
    schedule.subscribe(&"b", in_group("y"), at(1));
    assert_eq!(schedule.take_due(at(1)), ["x", "y"], "all of the group are looked at in one go");
    assert!(schedule.done(&"x", good("B"), at(2), 0.5).is_empty());
    assert_eq!(schedule.done(&"y", bad(None), at(2), 0.5), ["b"]);
    assert_eq!(digest(&schedule, "a", "x"), (String::new(), true));
    // It comes, and both count at once.
    assert_eq!(schedule.take_due(at(32)), ["x", "y"]);
    assert!(schedule.done(&"y", good("Y"), at(32), 0.5).is_empty());
    assert_eq!(schedule.done(&"x", good("B"), at(33), 0.5), ["a", "b"]);
    assert_eq!(digest(&schedule, "a", "x"), ("B".to_owned(), false));
    assert_eq!(digest(&schedule, "b", "y"), ("Y".to_owned(), false));
    // One that moves while the other cannot be looked up waits for it.
    schedule.hurry(&"a", at(40));
    assert_eq!(schedule.take_due(at(40)), ["x", "y"]);
    schedule.done(&"x", good("C"), at(40), 0.5);
    assert_eq!(schedule.done(&"y", bad(None), at(40), 0.5), ["a", "b"]);
    assert_eq!(digest(&schedule, "a", "x"), ("B".to_owned(), true));
    assert_eq!(digest(&schedule, "b", "y"), ("Y".to_owned(), true));
}

#[test]
fn a_bad_registry_does_not_hold_up_others() {
    let mut schedule = Plain::default();
    schedule.subscribe(&"a", follow("x"), at(0));
    schedule.subscribe(&"b", follow("y"), at(0));
    schedule.take_due(at(0));
    // One never answers; the other goes on.
    for second in [0, 3600, 7200] {
        schedule.done(&"y", good("Y"), at(second), 0.5);
        assert_eq!(schedule.next(), Some(at(second + 3600)));
        assert_eq!(schedule.take_due(at(second + 3600)), ["y"]);
    }
}
