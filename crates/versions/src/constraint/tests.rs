//! Compares constraints with tables of the library's results.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn version(text: &str) -> Version {
    Version::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn constraint(text: &str) -> Constraint {
    Constraint::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn check<T: AsRef<str>>(text: &str, wanted: &[T], unwanted: &[T]) {
    for (candidates, is_wanted) in [(wanted, true), (unwanted, false)] {
        for candidate in candidates.iter().map(AsRef::as_ref) {
            assert_eq!(constraint(text).matches(&version(candidate)), is_wanted, "{text:?} and {candidate}");
        }
    }
}

#[derive(serde::Deserialize)]
struct Vector {
    constraint: String,
    wanted: Vec<String>,
    unwanted: Vec<String>,
}

/// The test vectors of the library.
#[test]
fn the_test_vectors_of_the_library_pass() {
    let table = include_str!("../../../../testdata/semver/vectors.json");
    let vectors: Vec<Vector> = serde_json::from_str(table).unwrap();
    let mut count = 0;
    for Vector { constraint, wanted, unwanted } in &vectors {
        check(constraint, wanted, unwanted);
        count += wanted.len() + unwanted.len();
    }
    assert_eq!((vectors.len(), count), (128, 237));
}

#[test]
fn surprising_constraints_match_as_in_the_library() {
    let all = ["0.0.0", "0.0.1", "0.1.0", "1.2.3"];
    for text in ["*", "x.1.2", "*.5", "~*", "=*"] {
        check(text, &all, &["1.2.3-a", "0.0.0-0"]);
    }
    for (text, wanted, unwanted) in [
        ("^*", &["0.0.0"][..], &["0.0.1", "0.1.0", "1.2.3"][..]),
        (">*", &["0.0.1", "1.0.0"], &["0.0.0"]),
        ("<*", &[], &["0.0.0", "1.0.0"]),
        ("<=*", &["0.0.0", "0.0.9"], &["0.1.0", "1.0.0"]),
        ("!=*", &["0.0.1", "1.0.0"], &["0.0.0"]),
        ("~0.0.0", &["0.0.0", "9.9.9"], &["9.9.9-a"]),
        ("0.0.x", &["0.0.9"], &["0.1.0"]),
        ("~0.0.x", &["0.0.9"], &["0.1.0"]),
        ("^0.0.x", &["0.0.9"], &["0.1.0"]),
        ("0", &["0.9.9"], &["1.0.0"]),
        ("~0", &["0.9.9"], &["1.0.0"]),
        ("^0.x", &["0.9.9"], &["1.0.0"]),
        ("=1.2.3+abc", &["1.2.3", "1.2.3+def"], &["1.2.4"]),
        (">=1.2.3-BETA", &["1.2.3-alpha"], &["1.2.3-ALPHA"]),
        ("01.2.3", &["1.2.3"], &[]),
        (">=2025.07.03", &["2025.7.4"], &["2025.7.2"]),
        ("1.2 - 1.4", &["1.2.0", "1.4.9"], &["1.5.0"]),
        ("1.2 - 1.4.5", &["1.4.5"], &["1.4.6"]),
        ("1.2-1.4.5", &["1.2.0", "1.2.7"], &["1.3.0"]),
        ("^1.x-0", &["1.5.0-rc.1"], &["2.0.0-rc.1"]),
        ("^1.2.3-beta.2", &["1.2.3-beta.4", "1.3.0-alpha"], &["1.2.3-beta.1"]),
        ("^0.0.3-0", &["0.0.3-rc.1", "0.0.3"], &["0.0.4-rc.1"]),
        ("1.2.3||2.0.0", &["1.2.3", "2.0.0"], &["1.2.4"]),
        ("1.2.3 2.0.0", &[], &["1.2.3", "2.0.0"]),
        ("!=1.x || 1.2.3", &["1.2.3", "2.0.0"], &["1.2.4"]),
        ("~>1.2", &["1.2.9"], &["1.3.0"]),
        ("^v1.2.3", &["1.9.0", "v1.9.0"], &["2.0.0"]),
        ("^1.2.3\n", &["1.9.0", "v1.9.0"], &["2.0.0"]),
    ] {
        check(text, wanted, unwanted);
    }
}

#[test]
fn a_prerelease_matches_only_an_alternative_with_a_prerelease() {
    for (text, wanted, unwanted) in [
        (">=1.0.0", &[][..], &["2.0.0-alpha.1"][..]),
        (">=1.0.0-0", &["2.0.0-alpha.1"], &[]),
        (">=1.0.0-0 <2.0.0", &["2.0.0-rc.1"], &[]),
        (">=1.0.0 <2.0.0-0", &["1.9.0-rc.1"], &["2.0.0-rc.1"]),
        ("^1.2.0-0", &["1.9.0-rc.1"], &["2.0.0-rc.1"]),
        ("~1.2.0-0", &["1.2.9-rc.1"], &["1.3.0-rc.1"]),
        ("*-0", &["0.0.0-0", "1.2.3-rc.1", "1.2.3"], &[]),
        (">=1.0.0-0 || <0.5.0", &["1.0.0-a"], &["0.4.0-rc.1"]),
    ] {
        check(text, wanted, unwanted);
    }
}

#[test]
fn invalid_constraints_are_refused_with_the_messages_of_the_library() {
    let error = |text: &str| Constraint::parse(text).expect_err(text).to_string();
    let improper = "|latest|*-*|V1.2.3|==1.2.3|> = 1.2|!1.2.3|~=1.2.3|1.2 -1.4.5|>=1.2,,<2|>=1.2,|>=1.2.3-rc_1|\
        >=1.2.3<2.0.0|>=1.2.3 and <2|>= 1.2.3 && < 2|[1.2,2)|v|-1|a|1.0.0p|>= bar|BAR >= 1.2.3|12.3.4.1234|\
        12.3.34~ 1.2.3| ";
    for text in improper.split('|') {
        assert_eq!(error(text), format!("improper constraint: {text:?}"));
    }
    for (text, segment) in [
        ("|| 1.2.3", ""),
        ("1.2.3 ||", ""),
        (">=1.2 - 1.4", ">=>= 1.2, <= 1.4 "),
        ("1 || a\t", " a\\t"),
        ("1 || a\u{7f}", " a\\x7f"),
    ] {
        assert_eq!(error(text), format!("improper constraint: \"{segment}\""), "{text:?}");
    }
    for text in
        ["1.2.3 | 2.0.0", "1.2|3", "|", "1x", "x1", "1.xx", "v1.2.3-beta.01", "99999999999999999999.0.0"]
    {
        assert_eq!(error(text), "constraint parser error", "{text:?}");
        assert!(!Constraint::parse(text).unwrap_err().is_retryable(), "{text:?}");
    }
    assert_eq!(error(&"1".repeat(513)), "constraint string is too long (max 512 bytes)");
    assert_eq!(error(&["1"; 33].join("||")), "too many constraint groups (max 32)");
    assert!(Constraint::parse(&["1"; 32].join("||")).is_ok());
}

#[test]
fn comparators_are_distinguished() {
    for (text, counts) in [
        ("12.3.34 ~1.2.3", &[2][..]),
        ("3 - 4 || => 3.0, < 4", &[2, 2]),
        ("1.0.0 - 2.0.0, <=2.0.0", &[3]),
        (">40.50.60, < 50.70", &[2]),
        (">= 1.2.3 < 2.0 || => 3.0 < 4", &[2, 2]),
        ("v2.3.5-20161202202307-sha.e8fc5e5", &[1]),
        ("v1.2.3-0abc", &[1]),
        ("2.0", &[1]),
        (">= 1.1", &[1]),
        (">=1.2 , <2", &[2]),
        (">=1.2,<2", &[2]),
    ] {
        let found: Vec<_> = constraint(text).groups.iter().map(|group| group.comparators.len()).collect();
        assert_eq!(found, counts, "{text:?}");
        assert_eq!(constraint(text).to_string(), text);
    }
}

#[test]
fn each_alternative_explains_its_mismatch() {
    let mismatches = |text: &str, candidate: &str| {
        let constraint = constraint(text);
        constraint.mismatches(&version(candidate)).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(mismatches(">=1.2, <2 || > 3", "2.5.0"), ["it does not satisfy <2", "it does not satisfy >3"]);
    assert_eq!(
        mismatches("^1 || =2.0.0-rc.1", "2.0.0-rc.2"),
        ["it is a prerelease, and only releases are accepted", "it does not satisfy =2.0.0-rc.1"]
    );
    assert_eq!(mismatches("1 || 2", "2.0.0"), [""; 0]);
}

#[test]
fn the_highest_are_found_with_all_that_are_equal() {
    let highest = |text: &str, candidates: &str| {
        let versions: Vec<Version> = candidates.split(' ').map(version).collect();
        constraint(text).highest(&versions).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(highest(">=1.0.0", "1.2.3-alpine 1.2.2"), "1.2.2");
    assert_eq!(highest(">=1.0.0-0", "1.2.3-alpine 1.2.2"), "1.2.3-alpine");
    assert_eq!(highest(">=2024", "2024.01.15 2024.1.16 2024.02.01"), "2024.02.01");
    assert_eq!(highest("1.x", "1.0.0 1.1.0+b 0.9.0 1.1.0+a 1.0.5 v1.1.0 2.0.0"), "1.1.0+b 1.1.0+a v1.1.0");
    assert_eq!(highest("3.x", "1.0.0 1.1.0"), "");
}

/// The output of `hack/oracle/semver`.
#[derive(serde::Deserialize)]
struct Table {
    modules: BTreeMap<String, String>,
    versions: Vec<VersionRow>,
    constraints: Vec<ConstraintRow>,
}

#[derive(serde::Deserialize)]
struct VersionRow {
    text: String,
    strict: bool,
    tag: bool,
    /// Its rank in the order; equal versions share a rank.
    ///
    /// Absent if it is not a version, not even leniently parsed.
    rank: Option<usize>,
}

#[derive(serde::Deserialize)]
struct ConstraintRow {
    text: String,
    error: Option<String>,
    /// One character per ranked version, in the order of the table: 1 if it matches.
    wanted: Option<String>,
}

fn table() -> Table {
    serde_json::from_str(include_str!("../../../../testdata/semver/table.json")).unwrap()
}

/// Fails with the first few differences.
#[track_caller]
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} differ, such as\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn the_same_texts_are_versions_as_in_the_library() {
    let table = table();
    assert_eq!(table.modules["github.com/Masterminds/semver/v3"], "v3.5.0");
    let mut wrong = Vec::new();
    for row in &table.versions {
        let found = (
            Version::parse(&row.text).is_ok(),
            Version::parse_strict(&row.text).is_ok(),
            Version::parse_tag(&row.text).is_ok(),
        );
        let expected = (row.rank.is_some(), row.strict, row.tag);
        if found != expected {
            wrong.push(format!("{:?}: expected {expected:?}, found {found:?}", row.text));
        }
    }
    assert_none(&wrong);
}

#[test]
fn versions_have_the_same_order_as_in_the_library() {
    let rows = table().versions;
    let ranked: Vec<_> = rows.iter().filter_map(|row| Some((row.rank?, version(&row.text)))).collect();
    let mut wrong = Vec::new();
    for (left_rank, left) in &ranked {
        for (right_rank, right) in &ranked {
            if left.cmp(right) != left_rank.cmp(right_rank) {
                wrong.push(format!("{left} and {right}: expected {:?}", left_rank.cmp(right_rank)));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn constraints_match_the_same_versions_as_in_the_library() {
    let table = table();
    let rows = table.versions.iter().filter(|row| row.rank.is_some());
    let versions: Vec<Version> = rows.map(|row| version(&row.text)).collect();
    let mut wrong = Vec::new();
    for row in &table.constraints {
        let text = &row.text;
        match (Constraint::parse(text), &row.error, &row.wanted) {
            (Err(found), Some(expected), None) if found.to_string() == *expected => {}
            (Ok(constraint), None, Some(expected)) => {
                assert_eq!(expected.len(), versions.len());
                for (version, bit) in versions.iter().zip(expected.bytes()) {
                    if constraint.matches(version) != (bit == b'1') {
                        wrong.push(format!("{text:?} and {version}: expected {}", bit == b'1'));
                    }
                }
            }
            (found, error, _) => wrong.push(format!("{text:?}: expected error {error:?}, found {found:?}")),
        }
    }
    assert_none(&wrong);
}

proptest! {
    #[test]
    fn no_text_makes_parsing_panic(
        text in any::<String>(),
        near in "([<>=!~^]{0,2} ?v?[0-9xX*|]{0,2}(\\.[0-3x*]){0,3}(-[0-2a.]{0,3})?( - | ?\\|\\| ?|,| |ä){0,2}){0,5}",
    ) {
        for text in [text, near] {
            if let Ok(constraint) = Constraint::parse(&text) {
                prop_assert_eq!(constraint.to_string(), text);
            }
        }
    }

    #[test]
    fn a_mismatch_is_named_when_there_is_one(
        text in "[<>=!~^]?[0-2x](\\.[0-2x]){0,2}(-[01])?( [<>]=?[0-2](\\.[0-2])?)?( \\|\\| [~^]?[0-2]\\.[0-2])?",
        candidate in "[0-2]\\.[0-2]\\.[0-2](-[01a])?",
    ) {
        let version = version(&candidate);
        let Ok(constraint) = Constraint::parse(&text) else { return Ok(()) };
        let mismatches = constraint.mismatches(&version);
        prop_assert_eq!(constraint.matches(&version), mismatches.is_empty());
        prop_assert_eq!(!mismatches.is_empty(), mismatches.len() == constraint.groups.len());
    }
}
