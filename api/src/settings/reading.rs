//! Parses the annotations of one object, and reports invalid ones.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::PREFIX;
use super::table::{KindSettings, Setting, TABLE};
use crate::nearest;

/// The maximum number of errors in a message.
///
/// Annotations may have 256 KiB, each with an unknown name.
const MAX_LISTED: usize = 8;

/// The maximum number of characters of a value in a message.
const MAX_SHOWN: usize = 100;

/// The error of one of our annotations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The kind has no such setting.
    #[error("annotation {annotation} (value `{}`) is not a setting of {}: {}", shown(.value), .table.kind, hint(.annotation, .table))]
    Unknown {
        /// Full name of the annotation.
        annotation: String,
        /// Value of the annotation.
        value: String,
        /// The settings of the kind.
        table: KindSettings,
    },
    /// The setting does not accept the value.
    #[error("annotation {PREFIX}{} has the value `{}`: {}", .setting.name, shown(.value), allowed(.setting))]
    BadValue {
        /// The setting of the annotation.
        setting: Setting,
        /// Value of the annotation.
        value: String,
    },
    /// Two settings contradict each other.
    #[error("annotations {PREFIX}{} and {PREFIX}{} contradict each other: {conflict}", .setting.name, .other.name)]
    Conflict {
        /// The setting to change.
        setting: Setting,
        /// The other setting.
        other: Setting,
        /// The conflict and its remedy.
        conflict: &'static str,
    },
}

/// The errors of one object's annotations, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingErrors(Vec<SettingError>);

impl SettingErrors {
    /// Returns the errors: first invalid and contradictory values, then unknown names.
    #[must_use]
    pub fn errors(&self) -> &[SettingError] {
        &self.0
    }
}

impl fmt::Display for SettingErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().take(MAX_LISTED).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(formatter, "{separator}{error}")?;
        }
        match self.0.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            more => write!(formatter, "; and {more} more"),
        }
    }
}

impl std::error::Error for SettingErrors {}

/// Parses the annotations of one object and collects their errors.
pub(super) struct Reader<'a> {
    table: KindSettings,
    annotations: &'a BTreeMap<String, String>,
    errors: Vec<SettingError>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(table: KindSettings, annotations: &'a BTreeMap<String, String>) -> Self {
        Self { table, annotations, errors: Vec::new() }
    }

    /// Parses the value of a setting; returns the default if it is absent or invalid.
    pub(super) fn read<T: FromStr + Default>(&mut self, setting: Setting) -> T {
        self.read_optional(setting).unwrap_or_default()
    }

    /// Parses the value of a setting; returns nothing if it is absent or invalid.
    pub(super) fn read_optional<T: FromStr>(&mut self, setting: Setting) -> Option<T> {
        let value = self.annotations.get(&format!("{PREFIX}{}", setting.name))?;
        let parsed = value.parse().ok();
        if parsed.is_none() {
            self.errors.push(SettingError::BadValue { setting, value: value.clone() });
        }
        parsed
    }

    /// Reports that two settings contradict each other.
    pub(super) fn conflict(&mut self, setting: Setting, other: Setting, conflict: &'static str) {
        self.errors.push(SettingError::Conflict { setting, other, conflict });
    }

    /// Returns the settings, unless an annotation is invalid or unknown.
    pub(super) fn finish<T>(mut self, settings: T) -> Result<T, SettingErrors> {
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

/// Truncates a long value.
fn shown(value: &str) -> String {
    match value.char_indices().nth(MAX_SHOWN) {
        None => value.to_owned(),
        Some((end, _)) => format!("{}...", &value[..end]),
    }
}

/// Returns the allowed values as a clause: one description, or several values.
fn allowed(setting: &Setting) -> String {
    let is_one = ["a ", "an ", "the "].iter().any(|article| setting.allowed.starts_with(article));
    format!("allowed {} {}", if is_one { "is" } else { "are" }, setting.allowed)
}

/// Returns a suggestion for an unknown annotation.
///
/// This is a similar name, another kind, or the list of all names.
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
