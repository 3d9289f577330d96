//! Any text as a constraint in the first line and versions in the others.

use tagboat::policy::{Constraint, Version};

use crate::text::text_of;

/// The maximum number of lines that are read as versions.
/// Each pair of them is compared.
const MAX_VERSIONS: usize = 12;

/// Parses any text as a constraint in the first line and versions in the others.
pub fn version(input: &[u8]) {
    let text = text_of(input);
    let (constraint, versions) = text.split_once('\n').unwrap_or((text, ""));
    let versions: Vec<Version> = versions.split('\n').take(MAX_VERSIONS).filter_map(read_version).collect();
    check_order(&versions);
    // A line break counts as a space, so the whole text may be a constraint, too.
    check_constraint(text, &versions);
    check_constraint(constraint, &versions);
}

fn read_version(text: &str) -> Option<Version> {
    let version = Version::parse(text);
    for narrower in [Version::parse_strict(text), Version::parse_tag(text)].into_iter().flatten() {
        assert_eq!(version.as_ref(), Ok(&narrower), "{text:?}");
    }
    let version = version.ok()?;
    assert_eq!(version.as_str(), text);
    Some(version)
}

fn check_order(versions: &[Version]) {
    for a in versions {
        for b in versions {
            assert_eq!(a.cmp(b), b.cmp(a).reverse(), "{a} and {b}");
            for c in versions {
                assert!(!(a <= b && b <= c) || a <= c, "{a} and {b} and {c}");
            }
        }
    }
}

fn check_constraint(text: &str, versions: &[Version]) {
    let Ok(constraint) = Constraint::parse(text) else { return };
    assert_eq!(constraint.as_str(), text);
    let twice = Constraint::parse(&format!("{text} || {text}"));
    for version in versions {
        let is_wanted = constraint.matches(version);
        assert_eq!(is_wanted, constraint.mismatches(version).is_empty(), "{text:?} and {version}");
        assert!(!is_wanted || !version.is_prerelease() || text.contains('-'), "{text:?} and {version}");
        // Duplicated alternatives can only fail because of the bounds on length and number.
        match &twice {
            Ok(twice) => assert_eq!(is_wanted, twice.matches(version), "{text:?} and {version}"),
            Err(error) => assert!(text.len() > 250 || text.matches("||").count() > 14, "{text:?}: {error}"),
        }
    }
    let highest = constraint.highest(versions);
    assert_eq!(highest.is_empty(), !versions.iter().any(|version| constraint.matches(version)));
    assert!(
        highest.iter().all(|high| versions.iter().all(|other| other <= high || !constraint.matches(other)))
    );
}
