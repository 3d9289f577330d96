//! Tables of selections: the cases of Flux's own tests, ties, and our settings.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use tagboat_api::settings::PolicySettings;

use super::*;
use crate::error::chain;
use crate::policy::{PolicyError, TagAge};

fn policy_with(rule: &Value, filter: &Value, settings: &[(&str, &str)]) -> Result<Policy, PolicyError> {
    let spec = json!({"imageRepositoryRef": {"name": "app"}, "policy": rule, "filterTags": filter});
    let annotations: BTreeMap<String, String> =
        settings.iter().map(|(name, value)| (format!("tagboat.dev/{name}"), (*value).to_owned())).collect();
    Policy::new(
        &serde_json::from_value(spec).unwrap(),
        PolicySettings::from_annotations(&annotations).unwrap(),
    )
}

fn no_age(_: &str) -> TagAge {
    TagAge::default()
}

const UNKNOWN: Ages<'_> = Ages { now: Timestamp::UNIX_EPOCH, age_of: &no_age };

/// The winner, or the error as in the condition's message.
fn latest(tags: &str, rule: &Value, filter: &Value) -> Result<String, String> {
    let policy = policy_with(rule, filter, &[]).map_err(|error| chain(&error))?;
    let tags: TagList = tags.split_whitespace().collect();
    let selection = policy.select(&tags, UNKNOWN).map_err(|error| chain(&error))?;
    match (selection.latest(), selection.error()) {
        (Some(tag), None) => Ok(tag.to_owned()),
        (None, Some(error)) => Err(error.to_string()),
        other => panic!("{other:?}"),
    }
}

/// Each tag with its outcome and reason, one per line.
fn verdicts(policy: &Policy, tags: &str, ages: Ages<'_>) -> Vec<String> {
    let tags: TagList = tags.split_whitespace().collect();
    let selection = policy.select(&tags, ages).unwrap();
    let line = |verdict: &Verdict<'_>| {
        let Verdict { tag, outcome, .. } = verdict;
        format!("{tag} {}: {}", outcome.as_str(), selection.reason(verdict))
    };
    selection.verdicts().iter().map(line).collect()
}

fn semver(range: &str) -> Value {
    json!({"semver": {"range": range}})
}

fn text(order: &str) -> Value {
    json!({"alphabetical": {"order": order}})
}

fn number(order: &str) -> Value {
    json!({"numerical": {"order": order}})
}

#[test]
fn winners_match_flux() {
    let none = Value::Null;
    let filter = |pattern: &str, extract: &str| json!({"pattern": pattern, "extract": extract});
    let all = "0.1.0 0.1.1 0.2.0 1.0.0 1.0.1 1.0.2 1.1.0-alpha";
    let mixed = "test-0.1.0 test-0.1.1 dev-0.2.0 1.0.0 1.0.1 1.0.2 1.1.0-alpha";
    let times = "1606234201 1606364286 1606334092 1606334284 1606334201";
    for (tags, rule, filter, expected) in [
        ("1.0.0 1.0.0.1 1.0.0p 1.0.1 1.2.0 0.1.0", semver("1.0.x"), none.clone(), "1.0.1"),
        ("v1.2.3 v1.0.0 v0.1.0", semver("1.0.x"), none.clone(), "v1.0.0"),
        ("1.0.0 2.0.0 1.0.1 1.2.0", semver("v1.0.x"), none.clone(), "1.0.1"),
        ("v1.0.0 v2.0.0 v1.0.1 v1.2.0", semver("1.0.x"), none.clone(), "v1.0.1"),
        (all, semver("1.0.x"), none.clone(), "1.0.2"),
        (mixed, semver(">=0.x"), filter("^test-(.*)$", "$1"), "test-0.1.1"),
        ("1.0.0 v1.0.0 01.0.0", semver("*"), none.clone(), "v1.0.0"),
        ("1.2.3-alpine 1.2.2", semver(">=1.0.0"), none.clone(), "1.2.2"),
        ("1.2.3-alpine 1.2.2", semver(">=1.0.0-0"), none.clone(), "1.2.3-alpine"),
        ("2024.01.15 2024.1.16 2024.02.01", semver(">=2024"), none.clone(), "2024.02.01"),
        ("16.04 16.04.1 16.10 20.04 20.10", text("asc"), none.clone(), "20.10"),
        ("16.04 16.04.1 16.10 20.04 20.10", text("desc"), none.clone(), "16.04"),
        ("xenial yakkety zesty artful bionic", json!({"alphabetical": {}}), none.clone(), "zesty"),
        ("xenial yakkety zesty artful bionic", text("DESC"), none.clone(), "artful"),
        (
            "foo-aaa bar-bbb foo-zzz baz-nnn foo-ooo",
            text("asc"),
            filter("foo-(?P<word>[a-z]+)", "$word"),
            "foo-zzz",
        ),
        ("-62 -88 73 72 15 16 29 -33 -91", number("asc"), none.clone(), "73"),
        ("5 -8 -78 25 70 -4 80 92 -20 -24", number("desc"), none.clone(), "-78"),
        (
            "47.40896403322944 -27.8520927455902 53.47333823144817",
            number("asc"),
            none.clone(),
            "53.47333823144817",
        ),
        (times, number("asc"), none.clone(), "1606364286"),
        (times, number("desc"), none.clone(), "1606234201"),
        ("1", number("desc"), none.clone(), "1"),
        ("1.0 1 01", number("asc"), none.clone(), "01"),
        ("1e1 10 9", number("asc"), none.clone(), "10"),
        ("nan 5", number("asc"), none.clone(), "5"),
        ("5 7 nan", number("asc"), none.clone(), "7"),
        ("9 nan 5 inf", number("asc"), none.clone(), "inf"),
        (
            "1.0.0 1.0.0-rc.1 1.0.0-rc.2 1.0.0-rc.3 1.0.1-rc.2",
            number("asc"),
            filter(r"1.0.0-rc\.(?P<num>[0-9]+)", "$num"),
            "1.0.0-rc.3",
        ),
        ("a-1 b-1", number("asc"), filter("-(.*)", "$1"), "a-1"),
        ("a-v1.0.0 b-1.0.0", semver("*"), filter("-(.*)", "$1"), "b-1.0.0"),
    ] {
        assert_eq!(latest(tags, &rule, &filter).as_deref(), Ok(expected), "{tags} {rule} {filter}");
    }
}

#[test]
fn errors_match_flux() {
    let none = Value::Null;
    let undetermined = "unable to determine latest version from provided list";
    let pattern = |pattern: &str| json!({"pattern": pattern});
    for (tags, rule, filter, expected) in [
        ("b1.2.3 b1.0.0 b0.1.0", semver("1.0.x"), none.clone(), undetermined),
        ("1.2.0", semver("1.0.x"), none.clone(), undetermined),
        ("1.2.0", semver("1.0.x"), pattern("^v"), "version list argument cannot be empty"),
        ("1.2.0", text("asc"), pattern("^v"), "version list argument cannot be empty"),
        ("0 1a b", number("asc"), none.clone(), "failed to parse invalid numeric value 'b'"),
        ("1e400", number("asc"), none.clone(), "failed to parse invalid numeric value '1e400'"),
        ("", semver("*"), none.clone(), "no tags in database"),
        ("", semver("*"), pattern("["), "no tags in database"),
        ("1.0.0", json!({}), none.clone(), "invalid policy: given ImagePolicyChoice object is invalid"),
        ("", json!({}), none.clone(), "invalid policy: given ImagePolicyChoice object is invalid"),
        ("1.0.0", semver("*-*"), none.clone(), "invalid policy: improper constraint: \"*-*\""),
        ("1.0.0", semver("1x"), none.clone(), "invalid policy: constraint parser error"),
        (
            "1",
            text("up"),
            none.clone(),
            "invalid policy: invalid order argument provided: 'UP', must be one of: ASC, DESC",
        ),
        (
            "1.0.0",
            semver("*"),
            pattern("[="),
            "failed to filter tags: invalid regular expression pattern '[=': error parsing regexp: missing closing ]: `[=`",
        ),
    ] {
        assert_eq!(latest(tags, &rule, &filter), Err(expected.to_owned()), "{tags} {rule} {filter}");
    }
}

#[test]
fn the_first_of_several_rules_counts() {
    let both = json!({"numerical": {}, "alphabetical": {}, "semver": {"range": "*"}});
    assert_eq!(latest("1.9.0 1.10.0 9", &both, &Value::Null).as_deref(), Ok("1.10.0"));
}

#[test]
fn every_tag_has_a_reason() {
    let policy =
        policy_with(&semver("^1"), &json!({"pattern": "^(v?[0-9.]+)(-.*)?$", "extract": "$1"}), &[]).unwrap();
    assert_eq!(
        verdicts(&policy, "1.4.2 1.4.2-a v1.4.2 1.3.0 2.0.0 1.2 latest", UNKNOWN),
        [
            "v1.4.2 latest: the greatest of 3 candidates",
            "1.4.2 candidate: v1.4.2 is equal to it, and comes first in the list",
            "1.3.0 candidate: v1.4.2 is greater",
            "latest filtered: it does not match the pattern \"^(v?[0-9.]+)(-.*)?$\"",
            "2.0.0 out-of-range: \"^1\" does not include it: it does not satisfy ^1",
            "1.4.2-a shadowed: 1.4.2 has the same value \"1.4.2\" and counts in its place",
            "1.2 not-a-version: \"1.2\" is not a version: it has fewer than two dots",
        ]
    );
    let policy = policy_with(&number("asc"), &Value::Null, &[]).unwrap();
    assert_eq!(
        verdicts(&policy, "3 x 20", UNKNOWN),
        [
            "20 candidate: nothing is selected while x is not a number",
            "3 candidate: nothing is selected while x is not a number",
            "x not-a-number: \"x\" is not a number: invalid syntax",
        ]
    );
    for (rule, lines) in [
        (
            text("asc"),
            ["b latest: the last of 2 candidates in alphabetical order", "a candidate: b comes after it"],
        ),
        (
            text("desc"),
            ["a latest: the first of 2 candidates in alphabetical order", "b candidate: a comes before it"],
        ),
    ] {
        assert_eq!(verdicts(&policy_with(&rule, &Value::Null, &[]).unwrap(), "a b", UNKNOWN), lines);
    }
    let policy = policy_with(&number("desc"), &Value::Null, &[]).unwrap();
    assert_eq!(
        verdicts(&policy, "1 01 2", UNKNOWN),
        [
            "01 latest: the least of 3 candidates",
            "1 candidate: 01 is equal to it, and comes last in the list",
            "2 candidate: 01 is less",
        ]
    );
}

#[test]
fn natural_order_needs_the_alphabetical_rule() {
    let natural = [("order", "natural")];
    let policy = policy_with(&text("asc"), &Value::Null, &natural).unwrap();
    assert_eq!(
        verdicts(&policy, "1.0-rc9 1.0-rc10 1.0 0.9.9.9 0.9.9.10", UNKNOWN)[..2],
        ["1.0 latest: the last of 5 candidates in natural order", "1.0-rc10 candidate: 1.0 comes after it"]
    );
    for rule in [semver("*"), number("asc")] {
        assert_eq!(
            chain(&policy_with(&rule, &Value::Null, &natural).unwrap_err()),
            "invalid policy: the annotation tagboat.dev/order needs spec.policy.alphabetical, since no other rule compares texts"
        );
    }
}

#[test]
fn excluded_tags_cannot_win() {
    let policy = policy_with(&semver("*"), &Value::Null, &[("exclude", "[1.4.2, 1.4.1]")]).unwrap();
    assert_eq!(
        verdicts(&policy, "1.4.2 1.4.1 1.4.0", UNKNOWN),
        [
            "1.4.0 latest: the only candidate",
            "1.4.2 excluded: the annotation tagboat.dev/exclude names it",
            "1.4.1 excluded: the annotation tagboat.dev/exclude names it",
        ]
    );
    let tags: TagList = ["1.4.2", "1.4.1"].into_iter().collect();
    let selection = policy.select(&tags, UNKNOWN).unwrap();
    assert_eq!(
        selection.error().unwrap().to_string(),
        "version list argument cannot be empty: 2 tags are excluded"
    );
    // An excluded tag does not shadow another one either.
    let filter = json!({"pattern": "^(.*)-", "extract": "$1"});
    let policy = policy_with(&semver("*"), &filter, &[("exclude", "1.0.0-a")]).unwrap();
    assert!(verdicts(&policy, "1.0.0-a 1.0.0-b", UNKNOWN)[0].starts_with("1.0.0-b latest"));
}

#[test]
fn a_tag_waits_until_it_is_old_enough() {
    let now = Timestamp::from_second(1_000_000).unwrap();
    let ago = |hours: i64| Timestamp::from_second(1_000_000 - hours * 3600).ok();
    // Our own clock takes precedence over the image's time.
    let age_of = |tag: &str| match tag {
        "1.4.0" => TagAge { first_seen: ago(2), created: ago(200), ..TagAge::default() },
        "1.3.0" => TagAge { created: ago(71), ..TagAge::default() },
        "1.2.0" => TagAge::default(),
        "1.1.0" => TagAge { first_seen: ago(72), created: ago(-5), ..TagAge::default() },
        _ => TagAge { first_seen: ago(-1), ..TagAge::default() },
    };
    let ages = Ages { now, age_of: &age_of };
    let tags = "1.5.0 1.4.0 1.3.0 1.2.0 1.1.0 x";
    let policy = policy_with(&semver("*"), &Value::Null, &[("minimum-age", "3d")]).unwrap();
    assert_eq!(
        verdicts(&policy, tags, ages),
        [
            "1.1.0 latest: the only candidate",
            "x not-a-version: \"x\" is not a version: it has fewer than two dots",
            "1.5.0 too-new: it is 0s old, and tagboat.dev/minimum-age requires 72h",
            "1.4.0 too-new: it is 2h old, and tagboat.dev/minimum-age requires 72h",
            "1.3.0 too-new: it is 71h old, and tagboat.dev/minimum-age requires 72h",
            "1.2.0 too-new: its age is not known, and tagboat.dev/minimum-age requires 72h",
        ]
    );
    let settings = [("minimum-age", "3d"), ("unknown-age", "accept")];
    let open = policy_with(&semver("*"), &Value::Null, &settings).unwrap();
    assert!(verdicts(&open, tags, ages)[0].starts_with("1.2.0 latest"));
    let all_new: TagList = ["1.4.0"].into_iter().collect();
    let selection = policy.select(&all_new, ages).unwrap();
    assert_eq!(
        selection.error().unwrap().to_string(),
        "version list argument cannot be empty: 1 tag is too new"
    );
    // An invalid number that is too new does not count yet.
    let numbers = policy_with(&number("asc"), &Value::Null, &[("minimum-age", "1h")]).unwrap();
    assert!(verdicts(&numbers, "1.1.0 1.5.0", ages).len() == 2);
    let age_of =
        |tag: &str| TagAge { first_seen: if tag == "x" { Some(now) } else { ago(9) }, ..TagAge::default() };
    assert_eq!(
        verdicts(&numbers, "7 x", Ages { now, age_of: &age_of }),
        ["7 latest: the only candidate", "x too-new: it is 0s old, and tagboat.dev/minimum-age requires 1h"]
    );
}

#[test]
fn the_age_of_a_tag_matters_only_if_it_could_win() {
    let aged = [("minimum-age", "3d")];
    let suffix = json!({"pattern": "^(.*)-[a-z]$", "extract": "$1"});
    let none = Value::Null;
    for (rule, filter, settings, tags, expected) in [
        (semver("1.x"), &none, &aged[..], "1.0.0 1.2.0 1.10.0 2.0.0 x", "1.10.0 1.2.0 1.0.0"),
        (semver("1.x"), &none, &[("minimum-age", "3d"), ("exclude", "1.10.0")], "1.0.0 1.10.0", "1.0.0"),
        (semver("1.x"), &none, &[], "1.0.0 1.2.0", ""),
        (text("desc"), &none, &aged, "b a c", "a b c"),
        // Invalid numbers are looked up first, since they make the whole selection fail.
        (number("asc"), &none, &aged, "1 x 20 y 3", "y x 20 3 1"),
        // Each tag with a value counts if the others are too new.
        (semver("*"), &suffix, &aged, "1.0.0-a 1.0.0-b 0.9.0-c x", "1.0.0-b 1.0.0-a 0.9.0-c"),
    ] {
        let policy = policy_with(&rule, filter, settings).unwrap();
        let tags: TagList = tags.split_whitespace().collect();
        assert_eq!(policy.age_candidates(&tags, &|| Ok(())).unwrap().join(" "), expected, "{rule}");
    }
}

#[test]
fn the_time_of_the_next_winner_by_age_is_known() {
    let now = Timestamp::from_second(1_000_000).unwrap();
    let ago = |hours: i64| Timestamp::from_second(1_000_000 - hours * 3600).ok();
    let age_of = |tag: &str| match tag {
        "1.4.0" => TagAge { first_seen: ago(2), ..TagAge::default() },
        "1.3.0" => TagAge { listed_since: ago(60), ..TagAge::default() },
        "1.2.0" => TagAge { listed_since: ago(60), created: ago(70), ..TagAge::default() },
        _ => TagAge::default(),
    };
    let policy = policy_with(&semver("*"), &Value::Null, &[("minimum-age", "3d")]).unwrap();
    for (tags, hours) in
        [("1.4.0", Some(70)), ("1.4.0 1.3.0", Some(12)), ("1.4.0 1.3.0 1.2.0", Some(2)), ("1.0.0", None)]
    {
        let tags: TagList = tags.split_whitespace().collect();
        let selection = policy.select(&tags, Ages { now, age_of: &age_of }).unwrap();
        assert_eq!(selection.matures_in(), hours.map(|hours| Duration::from_secs(hours * 3600)));
    }
}

#[test]
fn two_tags_compare_by_the_rule() {
    let filter = json!({"pattern": "^main-(.*)$", "extract": "$1"});
    let policy = policy_with(&number("desc"), &filter, &[("exclude", "main-1")]).unwrap();
    assert_eq!(policy.compare("main-1", "main-2"), Some(std::cmp::Ordering::Greater));
    assert_eq!(policy.compare("main-1", "dev-2"), None);
    assert_eq!(policy.compare("main-x", "main-1"), None);
}

fn rules() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(semver("*")),
        Just(semver(">=1.1-0")),
        Just(text("asc")),
        Just(text("desc")),
        Just(number("asc")),
        Just(number("desc"))
    ]
}

proptest! {
    /// Every tag has one verdict and a reason, and no tag beats the winner.
    #[test]
    fn every_tag_of_any_list_is_judged(
        tags in proptest::collection::vec("[v0-2.a-]{0,7}|nan|-?[0-9]|.{0,5}", 0..20),
        rule in rules(),
        filter in prop_oneof![Just(Value::Null), Just(json!({"pattern": "^v?(.*?)(-a)?$", "extract": "$1"}))],
    ) {
        let policy = policy_with(&rule, &filter, &[]).unwrap();
        let tags: TagList = tags.into_iter().collect();
        let selection = policy.select(&tags, UNKNOWN).unwrap();
        let mut evaluated: Vec<&str> = selection.verdicts().iter().map(|verdict| verdict.tag).collect();
        evaluated.sort_unstable_by(|left, right| right.cmp(left));
        prop_assert_eq!(evaluated, tags.iter().collect::<Vec<_>>());
        for verdict in selection.verdicts() {
            prop_assert!(!selection.reason(verdict).is_empty());
        }
        prop_assert_eq!(selection.latest().is_some(), selection.error().is_none());
        let in_contest = |verdict: &&Verdict<'_>| matches!(verdict.outcome, Outcome::Latest | Outcome::Candidate);
        let has_nan = tags.iter().any(|tag| tag.to_lowercase().contains("nan"));
        if let Some(winner) = selection.latest().filter(|_| !has_nan) {
            for verdict in selection.verdicts().iter().filter(in_contest) {
                prop_assert!(policy.compare(verdict.tag, winner).unwrap().is_le(), "{} and {winner}", verdict.tag);
            }
        }
    }
}
