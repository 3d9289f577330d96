//! Our own settings: the annotations `tagboat.dev/…` on Flux's kinds.
//!
//! Fields of our own would break on clusters with Flux's CRDs, so settings that Flux lacks are annotations. They are
//! read once, into one struct per kind; an unknown name or an invalid value is an error that stalls the object. A new
//! setting needs one entry in the `table`, a type in `values` and one field of a struct here.

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

/// The prefix of our annotations.
pub const PREFIX: &str = "tagboat.dev/";

/// Returns the annotations that are settings of ours, by their full names.
pub fn own_annotations(annotations: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    annotations.iter().filter(|(name, _)| name.starts_with(PREFIX))
}

/// The settings of an ImageUpdateAutomation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutomationSettings {
    /// The language of the commit message's template.
    pub template_language: TemplateLanguage,
}

impl AutomationSettings {
    /// Parses the settings from an object's annotations; other annotations are ignored.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        let mut reader = Reader::new(AUTOMATION, annotations);
        let settings = Self { template_language: reader.read(TEMPLATE_LANGUAGE) };
        reader.finish(settings)
    }
}

/// The settings of an ImagePolicy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicySettings {
    /// The comparison of an alphabetical policy.
    pub order: TextOrder,
    /// Tags that are never chosen.
    pub exclude: ExcludedTags,
    /// The minimum age of a tag that may be chosen.
    pub minimum_age: MinimumAge,
    /// The treatment of a tag of unknown age.
    pub unknown_age: UnknownAge,
    /// The interval between two lookups of the digest, if it is set here.
    pub poll_interval: PollInterval,
    /// The group of the policy, if any.
    pub poll_group: PollGroup,
}

impl PolicySettings {
    /// Parses the settings from an object's annotations; other annotations are ignored.
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

    /// Returns whether annotations have the group of a policy, valid or not.
    pub fn has_group(annotations: &BTreeMap<String, String>) -> bool {
        annotations.keys().any(|key| key.strip_prefix(PREFIX) == Some(POLL_GROUP.name))
    }
}

/// The settings of an ImageRepository: none so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositorySettings {}

impl RepositorySettings {
    /// Parses the settings from an object's annotations; other annotations are ignored.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, SettingErrors> {
        Reader::new(REPOSITORY, annotations).finish(Self {})
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{
        AutomationSettings, ExcludedTags, MinimumAge, PolicySettings, RepositorySettings, TEMPLATE_LANGUAGE,
        TemplateLanguage, TextOrder, UnknownAge,
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
    fn an_invalid_setting_has_a_helpful_message() {
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

    /// A suggestion was computed for each of 15,000 annotations.
    ///
    /// The error message had megabytes.
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
    fn the_table_and_the_documented_defaults_match_the_types() {
        for value in TEMPLATE_LANGUAGE.allowed.split(", ") {
            assert!(value.parse::<TemplateLanguage>().is_ok(), "{value}");
        }
        assert_eq!("go".parse(), Ok(TemplateLanguage::default()));
        assert_eq!("bytes".parse(), Ok(TextOrder::default()));
        assert_eq!("wait".parse(), Ok(UnknownAge::default()));
        assert_eq!("0s".parse(), Ok(MinimumAge::default()));
        assert_eq!("[]".parse(), Ok(ExcludedTags::default()));
    }
}
