//! Our own settings: annotations `tagboat.dev/…` on Flux's kinds.
//!
//! A field of ours would break clusters whose CRDs are Flux's, so what Flux does not have stands in annotations.
//! They are read once, into one struct per kind; an unknown or bad one is an error that stalls its object. A new
//! setting is one entry in a table below and one field of a struct.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

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
const POLICY: KindSettings = KindSettings { kind: "ImagePolicy", settings: &[] };
const REPOSITORY: KindSettings = KindSettings { kind: "ImageRepository", settings: &[] };

const TEMPLATE_LANGUAGE: Setting = Setting {
    name: "template-language",
    allowed: "go, handlebars",
    default: "go",
    meaning: "The language that the template of the commit message is written in.",
};

/// The settings of an ImageUpdateAutomation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutomationSettings {
    /// The language that the template of the commit message is written in.
    pub template_language: TemplateLanguage,
}

/// The settings of an ImagePolicy: none so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicySettings {}

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
        Reader::new(POLICY, annotations).finish(Self {})
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
        AutomationSettings, PolicySettings, RepositorySettings, TABLE, TEMPLATE_LANGUAGE, TemplateLanguage,
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
    fn the_table_says_what_the_types_do() {
        for value in TEMPLATE_LANGUAGE.allowed.split(", ") {
            assert!(value.parse::<TemplateLanguage>().is_ok(), "{value}");
        }
        assert_eq!(TEMPLATE_LANGUAGE.default.parse(), Ok(TemplateLanguage::default()));
        for setting in TABLE.iter().flat_map(|table| table.settings) {
            assert!(setting.meaning.ends_with('.'), "{}", setting.name);
        }
    }
}
