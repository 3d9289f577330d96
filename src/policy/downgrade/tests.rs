//! Chains of reconciles, step by step.

use serde_json::json;
use tagboat_api::settings::PolicySettings;

use super::*;

fn policy() -> Policy {
    let spec = json!({"imageRepositoryRef": {"name": "app"}, "policy": {"semver": {"range": ">=0"}}});
    Policy::new(&serde_json::from_value(spec).unwrap(), PolicySettings::default()).unwrap()
}

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_795_000_000 + minute * 60).unwrap()
}

/// One reconcile: its minute, its complete scan, its winner and its trigger.
struct Step {
    minute: i64,
    scan: Option<i64>,
    winner: Option<&'static str>,
    trigger: Trigger,
}

const fn step(minute: i64, scan: i64, winner: &'static str) -> Step {
    Step { minute, scan: Some(scan), winner: Some(winner), trigger: Trigger::TagList }
}

/// Returns the accepted tag after each step, and the scans of the held one.
///
/// The first accepted tag is 1.4.0.
fn chain(steps: &[Step]) -> Vec<(String, u32)> {
    let policy = policy();
    let mut current = "1.4.0".to_owned();
    let mut pending: Option<HeldDowngrade> = None;
    let mut found = Vec::new();
    for step in steps {
        let inputs = DowngradeInputs {
            policy: &policy,
            current: Some(&current),
            winner: step.winner,
            trigger: step.trigger,
            complete_scan: step.scan.map(at),
            now: at(step.minute),
        };
        match DowngradeProtection::default().decide(pending.as_ref(), &inputs) {
            Decision::Accept => (current, pending) = (step.winner.unwrap().to_owned(), None),
            Decision::Hold(kept) => {
                // The held downgrade passes through the status, as text.
                let text = serde_json::to_string(&kept).unwrap();
                pending = serde_json::from_str(&text).unwrap();
                assert_eq!(pending, kept);
            }
        }
        found.push((current.clone(), pending.as_ref().map_or(0, |pending| pending.scans)));
    }
    found
}

#[track_caller]
fn check(steps: &[Step], expected: &[(&str, u32)]) {
    let expected: Vec<(String, u32)> =
        expected.iter().map(|(tag, scans)| ((*tag).to_owned(), *scans)).collect();
    assert_eq!(chain(steps), expected);
}

/// A clock that was ahead for a moment left a scan of next week.
#[test]
fn a_scan_of_the_future_counts_as_one_of_now() {
    let week = 7 * 24 * 60;
    check(
        &[
            step(0, week, "1.3.0"),
            step(5, 5, "1.3.0"),
            step(10, 10, "1.3.0"),
            step(14, 14, "1.3.0"),
            step(15, 15, "1.3.0"),
        ],
        &[("1.4.0", 1), ("1.4.0", 2), ("1.4.0", 3), ("1.4.0", 4), ("1.3.0", 0)],
    );
    let policy = policy();
    let pending = HeldDowngrade { tag: "1.3.0".to_owned(), since: at(week), scans: 3, last_scan: at(week) };
    let inputs = DowngradeInputs {
        policy: &policy,
        current: Some("1.4.0"),
        winner: Some("1.3.0"),
        trigger: Trigger::TagList,
        complete_scan: Some(at(0)),
        now: at(1),
    };
    let Decision::Hold(Some(held)) = DowngradeProtection::default().decide(Some(&pending), &inputs) else {
        panic!("it has waited for no time yet")
    };
    assert_eq!((held.since, held.last_scan), (at(1), at(1)));
    let inputs = DowngradeInputs { complete_scan: Some(at(16)), now: at(16), ..inputs };
    assert_eq!(DowngradeProtection::default().decide(Some(&held), &inputs), Decision::Accept);
}

#[test]
fn a_higher_or_equal_winner_counts_at_once() {
    check(
        &[step(0, 0, "1.4.1"), step(1, 1, "v1.4.1"), step(2, 2, "2.0.0")],
        &[("1.4.1", 0), ("v1.4.1", 0), ("2.0.0", 0)],
    );
}

#[test]
fn a_lower_winner_counts_after_three_scans_and_fifteen_minutes() {
    let slow = [step(0, 0, "1.3.0"), step(10, 10, "1.3.0"), step(20, 20, "1.3.0")];
    check(&slow, &[("1.4.0", 1), ("1.4.0", 2), ("1.3.0", 0)]);
    let quick = [
        step(0, 0, "1.3.0"),
        step(1, 1, "1.3.0"),
        step(2, 2, "1.3.0"),
        step(14, 14, "1.3.0"),
        step(15, 14, "1.3.0"),
    ];
    check(&quick, &[("1.4.0", 1), ("1.4.0", 2), ("1.4.0", 3), ("1.4.0", 4), ("1.3.0", 0)]);
}

#[test]
fn the_same_scan_counts_once() {
    let steps = [step(0, 0, "1.3.0"), step(20, 0, "1.3.0"), step(40, 0, "1.3.0")];
    check(&steps, &[("1.4.0", 1), ("1.4.0", 1), ("1.4.0", 1)]);
}

#[test]
fn a_winner_that_comes_back_ends_the_wait() {
    let steps = [step(0, 0, "1.3.0"), step(10, 10, "1.3.0"), step(12, 12, "1.4.0"), step(20, 20, "1.3.0")];
    check(&steps, &[("1.4.0", 1), ("1.4.0", 2), ("1.4.0", 0), ("1.4.0", 1)]);
}

#[test]
fn an_empty_list_and_a_scan_that_failed_change_nothing() {
    let empty = Step { winner: None, ..step(12, 12, "") };
    let failed = Step { scan: None, ..step(14, 0, "1.2.0") };
    let steps = [step(0, 0, "1.3.0"), step(10, 10, "1.3.0"), empty, failed, step(20, 20, "1.3.0")];
    check(&steps, &[("1.4.0", 1), ("1.4.0", 2), ("1.4.0", 2), ("1.4.0", 2), ("1.3.0", 0)]);
    let only_failed =
        [Step { scan: None, ..step(60, 0, "1.3.0") }, Step { winner: None, ..step(61, 61, "") }];
    check(&only_failed, &[("1.4.0", 0), ("1.4.0", 0)]);
}

#[test]
fn the_wait_restarts_for_a_lower_winner_and_not_for_a_higher_one() {
    let falling = [step(0, 0, "1.3.0"), step(10, 10, "1.2.0"), step(20, 20, "1.2.0"), step(30, 30, "1.2.0")];
    check(&falling, &[("1.4.0", 1), ("1.4.0", 1), ("1.4.0", 2), ("1.2.0", 0)]);
    let rising = [step(0, 0, "0.1.0"), step(10, 10, "0.2.0"), step(20, 20, "0.3.0")];
    check(&rising, &[("1.4.0", 1), ("1.4.0", 2), ("0.3.0", 0)]);
}

#[test]
fn a_user_change_applies_at_once() {
    let person = Step { trigger: Trigger::User, ..step(1, 0, "1.3.0") };
    check(&[step(0, 0, "1.3.0"), person], &[("1.4.0", 1), ("1.3.0", 0)]);
    let without_scan = Step { scan: None, trigger: Trigger::User, ..step(1, 0, "1.3.0") };
    check(&[without_scan], &[("1.3.0", 0)]);
    let nothing = Step { winner: None, trigger: Trigger::User, ..step(1, 0, "") };
    check(&[nothing], &[("1.4.0", 0)]);
}

#[test]
fn the_first_winner_and_one_that_cannot_be_compared_count_at_once() {
    let policy = policy();
    for current in [None, Some("latest")] {
        let inputs = DowngradeInputs {
            policy: &policy,
            current,
            winner: Some("0.1.0"),
            trigger: Trigger::TagList,
            complete_scan: None,
            now: at(0),
        };
        assert_eq!(DowngradeProtection::default().decide(None, &inputs), Decision::Accept, "{current:?}");
    }
}

#[test]
fn the_message_counts_at_most_the_required_scans() {
    for (scans, required, said) in [(4, 3, "3 of 3"), (3, 3, "3 of 3"), (2, 3, "2 of 3"), (1, 0, "1 of 1")] {
        let pending = HeldDowngrade { tag: "1.3.9".to_owned(), since: at(0), scans, last_scan: at(5) };
        let downgrade_protection = DowngradeProtection { scans: required, ..DowngradeProtection::default() };
        let message = downgrade_protection.message("1.4.0", &pending);
        assert!(message.contains(&format!(" waits: {said} complete scans in a row ")), "{message}");
    }
}

#[test]
fn the_message_names_the_held_tag_and_its_time_and_can_be_parsed() {
    let pending = HeldDowngrade { tag: "1.3.9".to_owned(), since: at(0), scans: 1, last_scan: at(5) };
    let message = DowngradeProtection::default().message("1.4.0", &pending);
    assert_eq!(
        message,
        "1.3.9 is lower than 1.4.0 and waits: 1 of 3 complete scans in a row have shown a lower winner, from \
         2026-11-18T11:06:40Z to 2026-11-18T11:11:40Z, and it counts at 2026-11-18T11:21:40Z at the earliest; set the \
         annotation reconcile.fluxcd.io/requestedAt of the policy to a new value to accept it at once"
    );
    assert_eq!(HeldDowngrade::from_message(&message), Some(pending));
    for other in ["", "something else", " is lower than 1 and waits: x of 3"] {
        assert_eq!(HeldDowngrade::from_message(other), None, "{other}");
    }
}
