//! Our own settings: annotations `tagboat.dev/…` on Flux's kinds.
//!
//! A field of ours would break clusters whose CRDs are Flux's, so what Flux does not have stands in annotations.
//! They are read once, into one struct per kind; an unknown or bad one is an error that stalls its object. A new
//! setting is one entry in a table below and one field of a struct.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::duration::GoDuration;
use crate::nearest;

/// What the name of every annotation of ours begins with.
pub const PREFIX: &str = "tagboat.dev/";

/// A setting as the documentation and the errors know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the annotation without [`PREFIX`].
    pub name: &'static str,
    /// Values that are allowed, in words.
    pub allowed: &'static str,
    /// Value that holds where the annotation is absent.
    pub default: &'static str,
    /// What the setting does, in a sentence.
    pub meaning: &'static str,
}

/// The settings that a kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindSettings {
    /// Kind that carries the annotations.
    pub kind: &'static str,
    /// Settings of the kind.
    pub settings: &'static [Setting],
}

/// The table of all settings.
pub const TABLE: &[KindSettings] = &[AUTOMATION, POLICY, REPOSITORY];

const AUTOMATION: KindSettings =
    KindSettings { kind: "ImageUpdateAutomation", settings: &[TEMPLATE_LANGUAGE] };
const POLICY: KindSettings = KindSettings {
    kind: "ImagePolicy",
    settings: &[ORDER, EXCLUDE, MINIMUM_AGE, UNKNOWN_AGE, POLL_INTERVAL, POLL_GROUP],
};
const REPOSITORY: KindSettings = KindSettings { kind: "ImageRepository", settings: &[] };

const TEMPLATE_LANGUAGE: Setting = Setting {
    name: "template-language",
    allowed: "go, handlebars",
    default: "go",
    meaning: "The language that the template of the commit message is written in.",
};

const ORDER: Setting = Setting {
    name: "order",
    allowed: "bytes, natural",
    default: "bytes",
    meaning: "How an alphabetical policy compares: byte by byte as Flux does, or as people read versions (`rc9` before `rc10`).",
};
const EXCLUDE: Setting = Setting {
    name: "exclude",
    allowed: "a tag, or a YAML list of tags",
    default: "[]",
    meaning: "Tags that are never chosen, so that a rollback holds.",
};
const MINIMUM_AGE: Setting = Setting {
    name: "minimum-age",
    allowed: "a duration in w, d, h, m, s and ms, such as 3d or 36h",
    default: "0s",
    meaning: "How long a tag must be known, or else its image exist, before it can be chosen.",
};
const UNKNOWN_AGE: Setting = Setting {
    name: "unknown-age",
    allowed: "wait, accept",
    default: "wait",
    meaning: "What becomes of a tag whose age is not known where a minimum age is set.",
};
const POLL_INTERVAL: Setting = Setting {
    name: "poll-interval",
    allowed: "a duration in w, d, h, m, s and ms, such as 6h, or default",
    default: "the policy's spec.interval",
    meaning: "How often the digest of a policy with `digestReflectionPolicy: Always` is looked up; `0s` is never, `default` is `UPDATE_POLLING_INTERVAL` of the controller.",
};
const POLL_GROUP: Setting = Setting {
    name: "poll-group",
    allowed: "a name of letters, digits, `-`, `_` and `.`",
    default: "none",
    meaning: "Policies of a namespace with the same group and `digestReflectionPolicy: Always` get their digests together or not at all.",
};

/// The settings of an ImageUpdateAutomation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutomationSettings {
    /// The language that the template of the commit message is written in.
    pub template_language: TemplateLanguage,
}

/// The settings of an ImagePolicy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicySettings {
    /// How an alphabetical policy compares.
    pub order: TextOrder,
    /// Tags that are never chosen.
    pub exclude: ExcludedTags,
    /// How old a tag must be before it can be chosen.
    pub minimum_age: MinimumAge,
    /// What becomes of a tag whose age is not known.
    pub unknown_age: UnknownAge,
    /// How often the digest is looked up, where the policy says so here.
    pub poll_interval: PollInterval,
    /// The group that the policy belongs to, if any.
    pub poll_group: PollGroup,
}

impl PolicySettings {
    /// Whether annotations name a group of policies, be it one that makes no sense.
    pub fn name_a_group(annotations: &BTreeMap<String, String>) -> bool {
        annotations.keys().any(|key| key.strip_prefix(PREFIX) == Some(POLL_GROUP.name))
    }
}

/// The settings of an ImageRepository: none so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositorySettings {}

/// A language for the template of a commit message.
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

/// How texts are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextOrder {
    /// Byte by byte, as Flux does.
    #[default]
    Bytes,
    /// As people read versions.
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
    /// Whether a tag is among them.
    #[must_use]
    pub fn contains(&self, tag: &str) -> bool {
        self.0.contains(tag)
    }
}

/// One tag as it is, or a YAML list of tags, in which `1.10` and `2024` are tags and no numbers.
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

/// How old a tag must be before it can be chosen; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinimumAge(Duration);

impl MinimumAge {
    /// As a length of time.
    #[must_use]
    pub fn duration(self) -> Duration {
        self.0
    }
}

/// Flux's durations, with weeks and days in front.
impl FromStr for MinimumAge {
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
        // Beyond what Flux's own durations hold, no moment can be reckoned with any more.
        if age.as_nanos() > i64::MAX as u128 { Err(()) } else { Ok(Self(age)) }
    }
}

/// What becomes of a tag whose age is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownAge {
    /// It counts as too new.
    #[default]
    Wait,
    /// It counts as old enough.
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

/// How often the digest of a floating tag is looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollInterval {
    /// As the spec has it.
    #[default]
    Spec,
    /// As the controller's environment has it.
    Process,
    /// This often; never, if it is nothing.
    Every(Duration),
}

impl FromStr for PollInterval {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "default" => Ok(Self::Process),
            "0" => Ok(Self::Every(Duration::ZERO)),
            _ => text.parse().map(|MinimumAge(interval)| Self::Every(interval)),
        }
    }
}

/// The name of a group of policies; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PollGroup(Option<String>);

impl PollGroup {
    /// The name, if there is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl FromStr for PollGroup {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_good = (1..=63).contains(&text.len()) && text.chars().all(is_name);
        if is_good { Ok(Self(Some(text.to_owned()))) } else { Err(()) }
    }
}

impl AutomationSettings {
    /// Reads the settings from an object's annotations; those of others are left alone.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        let mut reader = Reader::new(AUTOMATION, annotations);
        let settings = Self { template_language: reader.read(TEMPLATE_LANGUAGE) };
        reader.finish(settings)
    }
}

impl PolicySettings {
    /// Reads the settings from an object's annotations; those of others are left alone.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        let mut reader = Reader::new(POLICY, annotations);
        let settings = Self {
            order: reader.read(ORDER),
            exclude: reader.read(EXCLUDE),
            minimum_age: reader.read(MINIMUM_AGE),
            unknown_age: reader.read(UNKNOWN_AGE),
            poll_interval: reader.read(POLL_INTERVAL),
            poll_group: reader.read(POLL_GROUP),
        };
        reader.finish(settings)
    }
}

impl RepositorySettings {
    /// Reads the settings from an object's annotations; those of others are left alone.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        Reader::new(REPOSITORY, annotations).finish(Self {})
    }
}

/// What is wrong with one annotation of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The kind has no such setting.
    #[error("annotation {annotation} (value `{value}`) is not a setting of {}: {}", .table.kind, hint(.annotation, .table))]
    Unknown {
        /// Full name of the annotation.
        annotation: String,
        /// Value of the annotation.
        value: String,
        /// Settings that the kind has.
        table: KindSettings,
    },
    /// The setting does not take the value.
    #[error("annotation {PREFIX}{} has the value `{value}`: allowed are {}", .setting.name, .setting.allowed)]
    BadValue {
        /// Setting that the annotation stands for.
        setting: Setting,
        /// Value of the annotation.
        value: String,
    },
}

/// Everything that is wrong with the annotations of one object, at least one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingErrors(Vec<SettingError>);

impl SettingErrors {
    /// The errors, first the bad values, then the unknown names.
    #[must_use]
    pub fn errors(&self) -> &[SettingError] {
        &self.0
    }
}

impl fmt::Display for SettingErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(formatter, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingErrors {}

/// Reads the annotations of one object and collects what is wrong with them.
struct Reader<'a> {
    table: KindSettings,
    annotations: &'a BTreeMap<String, String>,
    errors: Vec<SettingError>,
}

impl<'a> Reader<'a> {
    fn new(table: KindSettings, annotations: &'a BTreeMap<String, String>) -> Self {
        Self { table, annotations, errors: Vec::new() }
    }

    /// The value of a setting; the default where it is absent or bad.
    fn read<T: FromStr + Default>(&mut self, setting: Setting) -> T {
        let Some(value) = self.annotations.get(&format!("{PREFIX}{}", setting.name)) else {
            return T::default();
        };
        value.parse().unwrap_or_else(|_| {
            self.errors.push(SettingError::BadValue { setting, value: value.clone() });
            T::default()
        })
    }

    /// Gives the settings, unless some annotation is bad or unknown.
    fn finish<T>(mut self, settings: T) -> Result<T, SettingErrors> {
        for (annotation, value) in self.annotations {
            let Some(name) = annotation.strip_prefix(PREFIX) else { continue };
            if self.table.settings.iter().all(|setting| setting.name != name) {
                let (annotation, value) = (annotation.clone(), value.clone());
                self.errors.push(SettingError::Unknown { annotation, value, table: self.table });
            }
        }
        if self.errors.is_empty() { Ok(settings) } else { Err(SettingErrors(self.errors)) }
    }
}

/// What to write instead of an unknown annotation: a close name, or another kind, or one of all names.
fn hint(annotation: &str, table: &KindSettings) -> String {
    let name = annotation.strip_prefix(PREFIX).unwrap_or(annotation);
    let names = |table: &KindSettings| table.settings.iter().map(|setting| setting.name);
    if let Some(nearest) = nearest::nearest(name, names(table)) {
        return format!("did you mean {PREFIX}{nearest}?");
    }
    if let Some(owner) = TABLE.iter().find(|owner| names(owner).any(|known| known == name)) {
        return format!("it belongs to {}", owner.kind);
    }
    let known: Vec<String> = names(table).map(|known| format!("{PREFIX}{known}")).collect();
    if known.is_empty() {
        return "this kind has no settings".to_owned();
    }
    format!("allowed are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{
        AutomationSettings, ExcludedTags, MinimumAge, ORDER, PolicySettings, RepositorySettings, TABLE,
        TEMPLATE_LANGUAGE, TemplateLanguage, TextOrder, UNKNOWN_AGE, UnknownAge,
    };

    fn annotations(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn automation_error(entries: &[(&str, &str)]) -> String {
        AutomationSettings::from_annotations(&annotations(entries)).unwrap_err().to_string()
    }

    #[test]
    fn reads_the_settings_and_leaves_the_rest_alone() {
        let none = annotations(&[("reconcile.fluxcd.io/requestedAt", "1"), ("x.tagboat.dev/y", "z")]);
        let settings = AutomationSettings::from_annotations(&none).unwrap();
        assert_eq!(settings.template_language, TemplateLanguage::Go);
        assert!(PolicySettings::from_annotations(&none).is_ok());
        assert!(RepositorySettings::from_annotations(&none).is_ok());
        for (value, language) in [("go", TemplateLanguage::Go), ("handlebars", TemplateLanguage::Handlebars)]
        {
            let given = annotations(&[("tagboat.dev/template-language", value)]);
            assert_eq!(AutomationSettings::from_annotations(&given).unwrap().template_language, language);
        }
    }

    #[test]
    fn the_error_is_a_sentence_that_helps() {
        assert_eq!(
            automation_error(&[("tagboat.dev/template-language", "jinja")]),
            "annotation tagboat.dev/template-language has the value `jinja`: allowed are go, handlebars"
        );
        assert_eq!(
            automation_error(&[("tagboat.dev/template-langauge", "go")]),
            "annotation tagboat.dev/template-langauge (value `go`) is not a setting of ImageUpdateAutomation: did \
             you mean tagboat.dev/template-language?"
        );
        assert_eq!(
            automation_error(&[("tagboat.dev/window", "9-17")]),
            "annotation tagboat.dev/window (value `9-17`) is not a setting of ImageUpdateAutomation: allowed are \
             tagboat.dev/template-language"
        );
        let elsewhere = annotations(&[("tagboat.dev/template-language", "go")]);
        assert_eq!(
            PolicySettings::from_annotations(&elsewhere).unwrap_err().to_string(),
            "annotation tagboat.dev/template-language (value `go`) is not a setting of ImagePolicy: it belongs to \
             ImageUpdateAutomation"
        );
        let unknown = annotations(&[("tagboat.dev/", "")]);
        assert_eq!(
            RepositorySettings::from_annotations(&unknown).unwrap_err().to_string(),
            "annotation tagboat.dev/ (value ``) is not a setting of ImageRepository: this kind has no settings"
        );
    }

    #[test]
    fn all_errors_of_an_object_are_reported() {
        let given = annotations(&[("tagboat.dev/template-language", "Go"), ("tagboat.dev/x", "1")]);
        let errors = AutomationSettings::from_annotations(&given).unwrap_err();
        assert_eq!(errors.errors().len(), 2);
        assert!(errors.to_string().contains("`Go`: allowed are go, handlebars; annotation tagboat.dev/x"));
    }

    #[test]
    fn an_excluded_tag_is_a_text_however_it_is_written() {
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
            let read: MinimumAge = value.parse().expect(value);
            assert_eq!(read.duration().as_secs(), seconds, "{value}");
        }
        for value in
            ["", "3", "d", "-3d", "1d2w", "1.5d", "3 d", "1d ", "20000w", "99999999999999999999d", "1y"]
        {
            assert_eq!(value.parse::<MinimumAge>(), Err(()), "{value}");
        }
    }

    #[test]
    fn digests_are_looked_up_as_often_as_the_annotation_says() {
        use std::time::Duration;

        use super::{PollGroup, PollInterval};
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
        assert_eq!("web-2.x_a".parse::<PollGroup>().unwrap().name(), Some("web-2.x_a"));
        for value in ["", "a b", "ä", &"x".repeat(64)] {
            assert_eq!(value.parse::<PollGroup>(), Err(()), "{value}");
        }
        assert_eq!(PollGroup::default().name(), None);
    }

    #[test]
    fn the_table_says_what_the_types_do() {
        for value in TEMPLATE_LANGUAGE.allowed.split(", ") {
            assert!(value.parse::<TemplateLanguage>().is_ok(), "{value}");
        }
        assert_eq!(TEMPLATE_LANGUAGE.default.parse(), Ok(TemplateLanguage::default()));
        assert_eq!(ORDER.default.parse(), Ok(TextOrder::default()));
        assert_eq!(UNKNOWN_AGE.default.parse(), Ok(UnknownAge::default()));
        assert_eq!("0s".parse(), Ok(MinimumAge::default()));
        assert_eq!("[]".parse(), Ok(ExcludedTags::default()));
        for setting in TABLE.iter().flat_map(|table| table.settings) {
            assert!(setting.meaning.ends_with('.'), "{}", setting.name);
        }
    }
}
