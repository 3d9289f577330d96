//! Checks Tagboat's annotations against the table of settings.

use std::collections::BTreeMap;

use tagboat_api::Kind;
use tagboat_api::nearest::nearest;
use tagboat_api::settings::{
    AutomationSettings, GitRepositorySettings, NamespaceSettings, PREFIX, PolicySettings, RepositorySettings,
    SettingError, SettingErrors,
};
use tagboat_api::substitution::contains_placeholder;

use super::finding::{Findings, Location, Rule, hint};
use super::object::{Object, own_texts};
use crate::yaml::Node;
use crate::yaml::tree::Field;

/// Checks the annotations of an object with our prefix, or almost with it.
pub(super) fn check(object: &Object<'_>, findings: &mut Findings<'_>) {
    let Some(annotations) = object.annotations() else { return };
    add_errors(annotations, errors(object.kind, &object.own_annotations()), object.location(), findings);
}

/// Checks the annotations of a Namespace in the same way.
pub(super) fn check_namespace(annotations: &Node, findings: &mut Findings<'_>) {
    let settings = NamespaceSettings::from_annotations(&own_texts(annotations));
    add_errors(annotations, listed(settings.err()), Location::of(annotations), findings);
}

fn add_errors(
    annotations: &Node,
    errors: Vec<SettingError>,
    otherwise: Location,
    findings: &mut Findings<'_>,
) {
    for field in annotations.fields().iter().filter(|field| !field.name.starts_with(PREFIX)) {
        check_prefix(field, findings);
    }
    for error in errors {
        if matches!(&error, SettingError::BadValue { value, .. } if contains_placeholder(value)) {
            continue;
        }
        let (name, rule) = match &error {
            SettingError::Unknown { annotation, .. } => (annotation.clone(), Rule::UnknownAnnotation),
            SettingError::BadValue { setting, .. } | SettingError::Conflict { setting, .. } => {
                (format!("{PREFIX}{}", setting.name), Rule::InvalidAnnotation)
            }
        };
        let location = annotations.field(&name).map_or_else(
            || otherwise,
            |field| match rule {
                Rule::InvalidAnnotation => Location::of(field.value),
                _ => Location::of(field.key),
            },
        );
        findings.add(location, rule, error.to_string());
    }
}

/// Checks the prefix of an annotation for a misspelling of ours.
fn check_prefix(field: &Field<'_>, findings: &mut Findings<'_>) {
    let Some((prefix, name)) = field.name.split_once('/') else { return };
    let ours = PREFIX.trim_end_matches('/');
    if nearest(prefix, [ours]).is_some() {
        let hint = hint(Some(&format!("{PREFIX}{name}")));
        findings.add(
            Location::of(field.key),
            Rule::UnknownAnnotation,
            format!("annotation {} is unknown{hint}", field.name),
        );
    }
}

fn listed(errors: Option<SettingErrors>) -> Vec<SettingError> {
    errors.map(|errors| errors.errors().to_vec()).unwrap_or_default()
}

fn errors(kind: Kind, annotations: &BTreeMap<String, String>) -> Vec<SettingError> {
    match kind {
        Kind::Automation => listed(AutomationSettings::from_annotations(annotations).err()),
        Kind::Policy => listed(PolicySettings::from_annotations(annotations).err()),
        Kind::Repository => listed(RepositorySettings::from_annotations(annotations).err()),
        Kind::GitRepository => listed(GitRepositorySettings::from_annotations(annotations).err()),
    }
}
