//! The types of the settings' values.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

use crate::duration::GoDuration;

/// The language of a commit message's template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TemplateLanguage {
    /// Go's text/template with sprig's functions, as in Flux.
    #[default]
    Go,
    /// Handlebars.
    Handlebars,
}

impl FromStr for TemplateLanguage {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "go" => Ok(Self::Go),
            "handlebars" => Ok(Self::Handlebars),
            _ => Err(()),
        }
    }
}

/// The treatment of values that others took back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRevert {
    /// They are written again, as in Flux.
    #[default]
    Overwrite,
    /// They are not written until the policy selects another image.
    Hold,
    /// They are not written until the wanted value is there.
    Pause,
}

impl OnRevert {
    /// The value of the annotation.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Hold => "hold",
            Self::Pause => "pause",
        }
    }
}

impl FromStr for OnRevert {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [Self::Overwrite, Self::Hold, Self::Pause];
        all.into_iter().find(|value| value.as_str() == text).ok_or(())
    }
}

/// The comparison of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextOrder {
    /// Byte by byte, as in Flux.
    #[default]
    Bytes,
    /// In natural order: numbers in the text are compared as numbers.
    Natural,
}

impl FromStr for TextOrder {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "bytes" => Ok(Self::Bytes),
            "natural" => Ok(Self::Natural),
            _ => Err(()),
        }
    }
}

/// Tags that are never chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExcludedTags(BTreeSet<String>);

impl ExcludedTags {
    /// Returns whether a tag is excluded.
    #[must_use]
    pub fn contains(&self, tag: &str) -> bool {
        self.0.contains(tag)
    }

    /// Iterates over the tags, in ascending byte order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Parses one tag, or a YAML list of tags.
///
/// In the list, `1.10` and `2024` are strings.
impl FromStr for ExcludedTags {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim();
        let is_list = text.starts_with('[') || text.starts_with("- ") || text == "-";
        let tags: Vec<String> =
            if is_list { serde_saphyr::from_str(text).map_err(|_| ())? } else { vec![text.to_owned()] };
        let is_tag_character = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let is_tag = |tag: &String| (1..=128).contains(&tag.len()) && tag.chars().all(is_tag_character);
        if tags.iter().all(is_tag) { Ok(Self(tags.into_iter().collect())) } else { Err(()) }
    }
}

/// A duration that may have weeks and days; zero by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongDuration(Duration);

impl LongDuration {
    /// Returns the duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        self.0
    }

    /// Returns a multiple of it.
    #[must_use]
    pub(super) fn times(self, factor: u32) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

/// Parses Flux's durations with optional weeks and days in front.
impl FromStr for LongDuration {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut rest = text;
        let mut seconds: u64 = 0;
        for (unit, length) in [('w', 604_800), ('d', 86_400)] {
            let Some((number, after)) = rest.split_once(unit) else { continue };
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(());
            }
            let number: u64 = number.parse().map_err(|_| ())?;
            seconds = number.checked_mul(length).and_then(|more| seconds.checked_add(more)).ok_or(())?;
            rest = after;
        }
        let below = match rest {
            "" if rest.len() < text.len() => Duration::ZERO,
            _ => GoDuration::new(rest).to_duration().map_err(|_| ())?,
        };
        let age = Duration::from_secs(seconds).checked_add(below).ok_or(())?;
        // Flux's durations have this limit, and times beyond it cannot be computed.
        if age.as_nanos() > i64::MAX as u128 { Err(()) } else { Ok(Self(age)) }
    }
}

/// The treatment of a tag of unknown age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownAge {
    /// The tag counts as too new.
    #[default]
    Wait,
    /// The tag counts as old enough.
    Accept,
}

impl FromStr for UnknownAge {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "wait" => Ok(Self::Wait),
            "accept" => Ok(Self::Accept),
            _ => Err(()),
        }
    }
}

/// The interval between two lookups of a floating tag's digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollInterval {
    /// The interval of the spec.
    #[default]
    Spec,
    /// The interval of the controller's environment.
    Process,
    /// This interval; zero means never.
    Every(Duration),
}

impl FromStr for PollInterval {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "default" => Ok(Self::Process),
            "0" => Ok(Self::Every(Duration::ZERO)),
            _ => text.parse().map(|LongDuration(interval)| Self::Every(interval)),
        }
    }
}

/// The name of a group of policies; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName(Option<String>);

impl GroupName {
    /// Returns the name, if there is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl FromStr for GroupName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_good = (1..=63).contains(&text.len()) && text.chars().all(is_name);
        if is_good { Ok(Self(Some(text.to_owned()))) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excluded_tag_is_a_text_in_any_yaml_style() {
        for (value, tags) in [
            ("1.4.2", &["1.4.2"][..]),
            (" 1.10 ", &["1.10"]),
            ("-x", &["-x"]),
            ("[]", &[]),
            ("[1.10]", &["1.10"]),
            (
                "[1.10, 2024, 0x10, 1e3, true, 'null', \"x\"]",
                &["1.10", "2024", "0x10", "1e3", "true", "null", "x"],
            ),
            ("- 1.4.2\n- 1.4.3\n", &["1.4.2", "1.4.3"]),
        ] {
            let read: ExcludedTags = value.parse().expect(value);
            assert_eq!(read.0.len(), tags.len(), "{value}: {read:?}");
            for tag in tags {
                assert!(read.contains(tag), "{value}: no {tag} in {read:?}");
            }
        }
        for value in [
            "",
            "a b",
            "[a b]",
            "[null]",
            "[~]",
            "[",
            "[a",
            "{a: b}",
            "[[a]]",
            "a,b",
            "1.4.2 1.4.3",
            "[]]",
            "[ä]",
        ] {
            assert_eq!(value.parse::<ExcludedTags>(), Err(()), "{value}");
        }
    }

    #[test]
    fn a_minimum_age_may_have_weeks_and_days() {
        for (value, seconds) in [
            ("0s", 0),
            ("36h", 129_600),
            ("3d", 259_200),
            ("1w", 604_800),
            ("1w2d3h4m5s", 604_800 + 172_800 + 10_800 + 245),
            ("1d0.5h", 88_200),
        ] {
            let read: LongDuration = value.parse().expect(value);
            assert_eq!(read.duration().as_secs(), seconds, "{value}");
        }
        for value in
            ["", "3", "d", "-3d", "1d2w", "1.5d", "3 d", "1d ", "20000w", "99999999999999999999d", "1y"]
        {
            assert_eq!(value.parse::<LongDuration>(), Err(()), "{value}");
        }
    }

    #[test]
    fn polling_intervals_are_a_duration_zero_or_the_default() {
        for (value, expected) in [
            ("default", PollInterval::Process),
            ("0", PollInterval::Every(Duration::ZERO)),
            ("0s", PollInterval::Every(Duration::ZERO)),
            ("6h", PollInterval::Every(Duration::from_secs(21_600))),
            ("1w", PollInterval::Every(Duration::from_secs(604_800))),
        ] {
            assert_eq!(value.parse(), Ok(expected), "{value}");
        }
        for value in ["", "never", "-1h", "6", "Default"] {
            assert_eq!(value.parse::<PollInterval>(), Err(()), "{value}");
        }
        assert_eq!("web-2.x_a".parse::<GroupName>().unwrap().name(), Some("web-2.x_a"));
        for value in ["", "a b", "ä", &"x".repeat(64)] {
            assert_eq!(value.parse::<GroupName>(), Err(()), "{value}");
        }
        assert_eq!(GroupName::default().name(), None);
    }
}
