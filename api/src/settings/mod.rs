//! Our own settings: annotations `tagboat.dev/…` on Flux's kinds.
//!
//! A field of ours would break clusters whose CRDs are Flux's, so what Flux does not have stands in annotations.
//! They are read once, into one struct per kind; an unknown or bad one is an error that stalls its object. A new
//! setting is one entry in the `table`, a type among the `values` and one field of a struct here.

mod reading;
mod table;
mod values;

use std::collections::BTreeMap;

use reading::Reader;
use table::{
    AUTOMATION, EXCLUDE, MINIMUM_AGE, ORDER, POLICY, POLL_GROUP, POLL_INTERVAL, REPOSITORY,
    TEMPLATE_LANGUAGE, UNKNOWN_AGE,
};

pub use reading::{SettingError, SettingErrors};
pub use table::{KindSettings, Setting, TABLE};
pub use values::{
    ExcludedTags, MinimumAge, PollGroup, PollInterval, TemplateLanguage, TextOrder, UnknownAge,
};

/// What the name of every annotation of ours begins with.
pub const PREFIX: &str = "tagboat.dev/";

/// Returns the annotations that are settings of ours, by their full names.
pub fn own_annotations(annotations: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    annotations.iter().filter(|(name, _)| name.starts_with(PREFIX))
}

/// The settings of an ImageUpdateAutomation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutomationSettings {
    /// The language that the template of the commit message is written in.
    pub template_language: TemplateLanguage,
}

impl AutomationSettings {
    /// Reads the settings from an object's annotations; those of others are left alone.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        let mut reader = Reader::new(AUTOMATION, annotations);
        let settings = Self { template_language: reader.read(TEMPLATE_LANGUAGE) };
        reader.finish(settings)
    }
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

    /// Whether annotations name a group of policies, be it one that makes no sense.
    pub fn name_a_group(annotations: &BTreeMap<String, String>) -> bool {
        annotations.keys().any(|key| key.strip_prefix(PREFIX) == Some(POLL_GROUP.name))
    }
}

/// The settings of an ImageRepository: none so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositorySettings {}

impl RepositorySettings {
    /// Reads the settings from an object's annotations; those of others are left alone.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        Reader::new(REPOSITORY, annotations).finish(Self {})
    }
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

    /// A hint was searched for each of 15,000 annotations, in a sentence of megabytes.
    #[test]
    fn a_sentence_has_a_bounded_number_of_errors_and_the_begin_of_a_long_value() {
        let many: Vec<String> = (0..15_000).map(|number| format!("tagboat.dev/{number}")).collect();
        let given: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "x")).collect();
        let message = automation_error(&given);
        assert!(message.ends_with("; and 14992 more") && message.len() < 2_000, "{message}");
        assert_eq!(
            AutomationSettings::from_annotations(&annotations(&given)).unwrap_err().errors().len(),
            15_000
        );
        let long = "é".repeat(200_000);
        let message = automation_error(&[("tagboat.dev/template-language", &long)]);
        let value = format!("{}...", "é".repeat(100));
        assert_eq!(
            message,
            format!(
                "annotation tagboat.dev/template-language has the value `{value}`: allowed are go, handlebars"
            )
        );
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
