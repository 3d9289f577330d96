//! Semantic versions and their order.

use std::cmp::Ordering;
use std::fmt;

use super::shape::Shape;

/// The maximum length of a version, in bytes: the library's own limit.
const MAX_LENGTH: usize = 256;

/// A version, as Go's `Masterminds/semver` v3.5.0 parses it, with its original text.
///
/// Versions compare by precedence (§11 of Semantic Versioning 2.0.0): `v1.2`, `1.2.0` and `01.2.0+build` are equal,
/// and print as they were written. One rule differs from the standard: a number in a prerelease that does not fit
/// into 64 bits counts as a word.
#[derive(Debug, Clone)]
pub struct Version {
    text: String,
    precedence: Precedence,
}

/// The sort key of a version; its fields are in order of precedence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Precedence {
    major: u64,
    minor: u64,
    patch: u64,
    stage: Stage,
}

/// The release stage: any prerelease is lower than the release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The identifiers, compared from left to right.
    ///
    /// If one list is a prefix of the other, the longer one is greater.
    Prerelease(Vec<Identifier>),
    Release,
}

/// An identifier of a prerelease.
///
/// A number is lower than any word, and words compare by their bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Identifier {
    Number(u64),
    Word(String),
}

impl Version {
    /// Parses a version leniently, as the library's `NewVersion` does.
    ///
    /// It may have a leading `v`, only one or two parts, and leading zeros.
    ///
    /// # Errors
    ///
    /// If the text is not a version.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        Self::from_shape(&shape(text)?)
    }

    /// Parses a strict Semantic Versioning 2.0.0 version, as the library's `StrictNewVersion` does.
    ///
    /// # Errors
    ///
    /// If the text is not such a version.
    pub fn parse_strict(text: &str) -> Result<Self, VersionError> {
        let shape = shape(text)?;
        let (false, Some(minor), Some(patch)) = (shape.has_prefix, shape.minor, shape.patch) else {
            return Err(VersionError::Malformed { text: text.to_owned() });
        };
        [shape.major, minor, patch].into_iter().try_for_each(refuse_leading_zero)?;
        Self::from_shape(&shape)
    }

    /// Parses a tag of an image or of git, as Flux does (`ParseVersion` of `fluxcd/pkg/version`).
    ///
    /// The syntax is lenient, but the text must have two dots. The dots may be anywhere, so `1.2-rc.1` is accepted
    /// and `1.2` is not.
    ///
    /// # Errors
    ///
    /// If the tag is not a version.
    pub fn parse_tag(tag: &str) -> Result<Self, VersionError> {
        if tag.bytes().filter(|&byte| byte == b'.').count() < 2 {
            return Err(VersionError::TooFewDots { text: tag.to_owned() });
        }
        Self::parse(tag)
    }

    fn from_shape(shape: &Shape<'_>) -> Result<Self, VersionError> {
        let precedence = Precedence {
            major: number(shape.major)?,
            minor: number(shape.minor.unwrap_or("0"))?,
            patch: number(shape.patch.unwrap_or("0"))?,
            stage: stage(shape.prerelease)?,
        };
        Ok(Self { text: shape.text.to_owned(), precedence })
    }

    /// Returns the original text of the version.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the first number.
    pub fn major(&self) -> u64 {
        self.precedence.major
    }

    /// Returns the second number, 0 if there is none.
    pub fn minor(&self) -> u64 {
        self.precedence.minor
    }

    /// Returns the third number, 0 if there is none.
    pub fn patch(&self) -> u64 {
        self.precedence.patch
    }

    /// Returns whether the version is a prerelease, such as `1.2.3-rc.1`.
    pub fn is_prerelease(&self) -> bool {
        self.precedence.stage != Stage::Release
    }

    /// Returns the prerelease behind the `-`, for example `rc.1` in `1.2.3-rc.1+build`.
    pub fn prerelease(&self) -> Option<&str> {
        let release = self.text.split_once('+').map_or(self.text.as_str(), |(release, _)| release);
        release.split_once('-').map(|(_, prerelease)| prerelease)
    }

    /// Returns the build metadata behind the `+`, which comparisons ignore.
    pub fn metadata(&self) -> Option<&str> {
        self.text.split_once('+').map(|(_, metadata)| metadata)
    }

    pub(super) fn stage(&self) -> &Stage {
        &self.precedence.stage
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.precedence == other.precedence
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.precedence.cmp(&other.precedence)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Splits a text that has the syntax of a version from end to end.
fn shape(text: &str) -> Result<Shape<'_>, VersionError> {
    if text.len() > MAX_LENGTH {
        return Err(VersionError::TooLong { length: text.len() });
    }
    Shape::scan(text, |byte| byte.is_ascii_digit())
        .filter(|shape| shape.text == text)
        .ok_or_else(|| VersionError::Malformed { text: text.to_owned() })
}

/// Parses digits as a number.
fn number(digits: &str) -> Result<u64, VersionError> {
    digits.parse().map_err(|_| VersionError::NumberTooLarge { number: digits.to_owned() })
}

fn stage(prerelease: Option<&str>) -> Result<Stage, VersionError> {
    let Some(text) = prerelease else { return Ok(Stage::Release) };
    Ok(Stage::Prerelease(text.split('.').map(identifier).collect::<Result<_, _>>()?))
}

fn identifier(text: &str) -> Result<Identifier, VersionError> {
    let word = || Identifier::Word(text.to_owned());
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(word());
    }
    refuse_leading_zero(text)?;
    Ok(text.parse().map_or_else(|_| word(), Identifier::Number))
}

fn refuse_leading_zero(number: &str) -> Result<(), VersionError> {
    if number.len() > 1 && number.starts_with('0') {
        return Err(VersionError::LeadingZero { number: number.to_owned() });
    }
    Ok(())
}

/// The error of a text that is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The text is too long.
    #[error("the version has {length} bytes; at most {MAX_LENGTH} are allowed")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// The text does not have the syntax of a version.
    #[error("{text:?} is not a version; a version is written as 1.2.3, 1.2.3-rc.1 or 1.2.3+build")]
    Malformed {
        /// The text as given.
        text: String,
    },
    /// The text is a version, but Flux does not accept it as a tag.
    #[error("{text:?} is not a version: it has fewer than two dots")]
    TooFewDots {
        /// The text as given.
        text: String,
    },
    /// One of the three numbers does not fit into 64 bits.
    #[error("the number {number} in the version is too large; at most {} is allowed", u64::MAX)]
    NumberTooLarge {
        /// The number.
        number: String,
    },
    /// A number has leading zeros, which the strict syntax forbids.
    #[error("the number {number} in the version must not begin with 0")]
    LeadingZero {
        /// The number.
        number: String,
    },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn versions_parse_leniently_and_print_unchanged() {
        for text in [
            "1.2.3",
            "v1.2.3",
            "1.2.3+test.01",
            "1.2.3-alpha.-1",
            "1.0",
            "v1.0",
            "1",
            "v1",
            "1.2-5",
            "v1.2-beta.5",
            "1.2.0-x.Y.0+metadata",
            "v1.2.0-x.Y.0+metadata-width-hypen",
            "1.2.3-rc1-with-hypen",
            "1.2.3-0abc123",
            "1.2.2147483648",
            "1.2147483648.3",
            "2147483648.3.0",
            "20221209-update-renovatejson-v4",
            "01.1.1",
            "1.01.1",
            "1.1.01",
        ] {
            assert_eq!(version(text).to_string(), text);
        }
    }

    #[test]
    fn invalid_versions_are_refused() {
        for text in [
            "1.2.3-alpha.01",
            "1.2.3-beta.01",
            "1.2.beta",
            "v1.2.beta",
            "foo",
            "\n1.2",
            "\nv1.2",
            "1.2.3.4",
            "v1.2.3.4",
            "12.3.4.1234",
            "12.23.4.1234",
            "12.3.34.1234",
            "1.1.2+.123",
            "1.0.0-alpha_beta",
            "1.0.0-alpha..",
            "1.0.0-alpha..1",
            "9.8.7+meta+meta",
            "1.2.31----RC-SNAPSHOT.12.09.1--.12+788",
        ] {
            assert!(Version::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_invalid_version_has_a_specific_error() {
        let refusal = |text: &str| Version::parse(text).unwrap_err().to_string();
        assert_eq!(
            refusal("1.2\n"),
            r#""1.2\n" is not a version; a version is written as 1.2.3, 1.2.3-rc.1 or 1.2.3+build"#
        );
        assert_eq!(
            refusal("1.18446744073709551616"),
            "the number 18446744073709551616 in the version is too large; at most 18446744073709551615 is allowed"
        );
        assert_eq!(refusal("1.0-rc.01"), "the number 01 in the version must not begin with 0");
        assert_eq!(refusal(&"1".repeat(257)), "the version has 257 bytes; at most 256 are allowed");
        assert_eq!(
            Version::parse_tag("1.2").unwrap_err().to_string(),
            "\"1.2\" is not a version: it has fewer than two dots"
        );
    }

    #[test]
    fn flux_takes_tags_with_two_dots_for_versions() {
        for tag in [
            "v1.2.3",
            "v2025.07.03",
            "v1.2.0-x.Y.0+metadata",
            "v1.2.0-x.Y.0+metadata-width-hypen",
            "v1.2.3-rc1-with-hypen",
            "1.2.3-alpine3.19",
            "1.2.3-20240101",
            "01.02.03",
            "2025.07.03",
            "v1.2.3-amd64",
            "1.2.3-0a",
            "1.2-rc.1",
            "1-alpha.1.2",
        ] {
            assert_eq!(Version::parse_tag(tag).unwrap().as_str(), tag);
        }
        for tag in [
            "v1.0",
            "v1",
            "v1.2.beta",
            "v1.2-5",
            "v1.2-beta5",
            "\nv1.2",
            "v1.2.3.4",
            "V1.2.3",
            "1.2.3-01",
            "1.2.3-rc.01",
            "1.2.3-rc_1",
            "1.2.3-",
            "sha-1.2.3",
            "1.2-5",
            "18446744073709551616.0.0",
        ] {
            assert!(Version::parse_tag(tag).is_err(), "{tag:?}");
        }
    }

    #[test]
    fn versions_compare_by_precedence() {
        use Ordering::{Equal, Greater, Less};
        for (left, order, right) in [
            ("1.2.3", Less, "1.5.1"),
            ("2.2.3", Greater, "1.5.1"),
            ("2.2.3", Greater, "2.2.2"),
            ("3.2-beta", Equal, "3.2-beta"),
            ("1.3", Greater, "1.1.4"),
            ("4.2", Greater, "4.2-beta"),
            ("4.2-alpha", Less, "4.2-beta"),
            ("4.2-beta.2", Greater, "4.2-beta.1"),
            ("4.2-beta2", Greater, "4.2-beta1"),
            ("4.2-beta", Less, "4.2-beta.2"),
            ("4.2-beta", Less, "4.2-beta.foo"),
            ("1.2+bar", Equal, "1.2+baz"),
            ("1.0.0-beta.4", Less, "1.0.0-beta.-2"),
            ("1.0.0-beta.-2", Less, "1.0.0-beta.-3"),
            ("1.0.0-beta.-3", Greater, "1.0.0-beta.5"),
            ("1.0.0-SNAPSHOT.99", Less, "1.0.0-SNAPSHOT.103"),
            ("1.0.0-SNAPSHOT.FOO", Greater, "1.0.0-SNAPSHOT.103"),
            ("1.0.0-rc.10", Greater, "1.0.0-rc.9"),
            ("1.0.0-rc10", Less, "1.0.0-rc9"),
            ("1.0.0-BETA", Less, "1.0.0-alpha"),
            ("1.0.0-9", Less, "1.0.0-18446744073709551616"),
            ("1.0.0-18446744073709551616", Less, "1.0.0-9a"),
            ("v1", Equal, "01.0.00+b"),
        ] {
            assert_eq!(version(left).cmp(&version(right)), order, "{left} and {right}");
            assert_eq!(version(right).cmp(&version(left)), order.reverse(), "{right} and {left}");
            assert_eq!(version(left) == version(right), order == Equal, "{left} and {right}");
        }
    }

    #[test]
    fn metadata_is_kept() {
        assert_eq!(version("1.2+a.b-c").metadata(), Some("a.b-c"));
        assert_eq!(version("1.2-a").metadata(), None);
    }

    /// Generates versions that often share parts, so that their later members matter.
    fn any_version() -> impl Strategy<Value = Version> {
        let text =
            "v?[0-2](\\.[0-2]){0,2}(-(0|1|10|99999999999999999999|-|a|b|B1)(\\.(0|2|a)){0,2})?(\\+[ab])?";
        text.prop_map(|text| version(&text))
    }

    proptest! {
        #[test]
        fn no_text_makes_parsing_panic(text in any::<String>(), near in "[v0-9.+xa٣ -]{0,20}") {
            for text in [text, near] {
                let read = [Version::parse(&text), Version::parse_strict(&text), Version::parse_tag(&text)];
                for version in read.into_iter().flatten() {
                    prop_assert_eq!(version.as_str(), &text);
                }
            }
        }

        #[test]
        fn strict_versions_parse_leniently_to_the_same_value(text in "[v0-2.+a-]{0,12}") {
            if let Ok(strict) = Version::parse_strict(&text) {
                prop_assert_eq!(Version::parse(&text), Ok(strict));
            }
        }

        #[test]
        fn the_order_is_total(a in any_version(), b in any_version(), c in any_version()) {
            prop_assert_eq!(a.cmp(&a), Ordering::Equal);
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a == b, a.cmp(&b) == Ordering::Equal);
            if a <= b && b <= c {
                prop_assert!(a <= c, "{} <= {} <= {}", a, b, c);
            }
            if a == b {
                prop_assert_eq!(a.cmp(&c), b.cmp(&c));
            }
        }
    }
}
