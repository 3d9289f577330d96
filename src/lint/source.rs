//! The checked files.

use std::rc::Rc;

use memchr::memmem;
use tagboat_api::settings::{PREFIX, TemplateLanguage};
use tagboat_api::{IMAGE_GROUP, SOURCE_GROUP};

use super::finding::Location;
use crate::update::marker;
use crate::yaml::encoding::searchable;
use crate::yaml::{Limits, Node, YamlError, trees};

/// A file to check.
#[derive(Debug)]
pub struct Source {
    /// Its name in findings.
    pub name: String,
    /// Its role in the check.
    pub role: Role,
    /// Its bytes, or the error of reading them.
    pub content: Result<Vec<u8>, String>,
}

/// The role of a file in the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// YAML: manifests, and values with markers.
    Manifest,
    /// The template of a commit message.
    Template(TemplateLanguage),
    /// YAML with information about other files, which is not checked itself.
    Context,
}

/// The API groups of which a file with checked objects mentions at least one.
const API_GROUPS: [&str; 4] =
    [IMAGE_GROUP, SOURCE_GROUP, "kustomize.toolkit.fluxcd.io", "kustomize.config.k8s.io"];

impl Source {
    /// Creates a source.
    ///
    /// The content of an irrelevant file is dropped, since most files of a repository are.
    pub fn new(name: String, role: Role, content: Result<Vec<u8>, String>) -> Self {
        let is_relevant = |content: &[u8]| {
            let content = &searchable(content);
            matches!(role, Role::Template(_))
                || has_objects(&name, content)
                || memmem::find(content, marker::TOKEN.as_bytes()).is_some()
                || has_near_marker(content)
        };
        let content = content.map(|content| if is_relevant(&content) { content } else { Vec::new() });
        Self { name, role, content }
    }
}

/// Misspellings of the token of markers, with quotes.
pub(super) const NEAR_TOKENS: [&str; 8] = [
    "\"$imagePolicy\"",
    "\"$ImagePolicy\"",
    "\"$image-policy\"",
    "\"$image_policy\"",
    "\"$imagepolicies\"",
    "\"imagepolicy\"",
    "\"imagePolicy\"",
    "\"ImagePolicy\"",
];

fn has_near_marker(content: &[u8]) -> bool {
    NEAR_TOKENS.iter().any(|token| memmem::find(content, token.as_bytes()).is_some())
}

/// Returns true if a file may have checked objects.
fn has_objects(name: &str, content: &[u8]) -> bool {
    // Namespaces have no group, and matter only with an annotation.
    let has = |text: &str| memmem::find(content, text.as_bytes()).is_some();
    is_kustomization(name) || API_GROUPS.iter().any(|group| has(group)) || has(PREFIX)
}

/// Returns true if a file may have a Namespace with a setting.
fn has_namespace(content: &[u8]) -> bool {
    ["Namespace", PREFIX].iter().all(|text| memmem::find(content, text.as_bytes()).is_some())
}

/// A parsed YAML file.
pub(super) struct Document<'a> {
    pub(super) name: &'a str,
    pub(super) role: Role,
    pub(super) text: &'a str,
    /// Its documents; empty if it is irrelevant or not YAML.
    pub(super) roots: Vec<Rc<Node>>,
    /// The syntax error, if the file is relevant.
    pub(super) error: Option<YamlError>,
}

impl<'a> Document<'a> {
    /// Parses a source if it is YAML and its bytes are text.
    pub(super) fn read(source: &'a Source, limits: &Limits) -> Option<Self> {
        let Ok(content) = &source.content else { return None };
        if matches!(source.role, Role::Template(_)) {
            return None;
        }
        let text = std::str::from_utf8(content).ok()?;
        let parsed = if has_objects(&source.name, content) { trees(text, limits) } else { Ok(Vec::new()) };
        let (roots, error) = match parsed {
            Ok(roots) => (roots, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        Some(Self { name: &source.name, role: source.role, text, roots, error })
    }

    /// Returns true if the file must be valid YAML.
    ///
    /// It mentions Flux's image objects or a Namespace with a setting, or has a marker.
    pub(super) fn must_be_yaml(&self) -> bool {
        let has_objects = || self.text.contains(IMAGE_GROUP) || has_namespace(self.text.as_bytes());
        self.has_marker() || (has_objects() && !self.is_templated())
    }

    pub(super) fn has_marker(&self) -> bool {
        memmem::find(self.text.as_bytes(), marker::QUOTED_TOKEN).is_some()
    }

    /// Returns true if another program renders the file into YAML: a chart's template.
    fn is_templated(&self) -> bool {
        self.text.contains("{{")
    }

    /// The values of `key: …` on the lines of a file that is not YAML.
    pub(super) fn values_of<'s>(&'s self, key: &'s str) -> impl Iterator<Item = &'s str> {
        self.text.lines().filter_map(move |line| {
            let line = line.trim_start_matches([' ', '-']);
            let value = line.strip_prefix(key)?.strip_prefix(':')?;
            Some(value.trim().trim_matches(['"', '\'']))
        })
    }
}

/// The Helm charts among the files.
pub(super) struct Charts<'a>(Vec<&'a str>);

impl<'a> Charts<'a> {
    pub(super) fn among(documents: &[Document<'a>]) -> Self {
        let roots = documents.iter().filter_map(|document| document.name.strip_suffix("Chart.yaml"));
        Self(roots.filter(|root| root.is_empty() || root.ends_with('/')).collect())
    }

    /// Returns true if a file is a template of a chart.
    pub(super) fn have_template(&self, name: &str) -> bool {
        let is_in =
            |chart: &&str| name.strip_prefix(chart).is_some_and(|rest| rest.starts_with("templates/"));
        self.0.iter().any(is_in)
    }
}

/// Returns true if a file of this name is a kustomization, regardless of its content.
pub(super) fn is_kustomization(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    matches!(base, "kustomization.yaml" | "kustomization.yml" | "Kustomization")
}

/// The location at which a relevant file is not valid UTF-8.
pub(super) fn not_text(content: &[u8], role: Role) -> Option<Location> {
    let YamlError { line, column, .. } = YamlError::not_utf8(content, std::str::from_utf8(content).err()?);
    let content = &searchable(content);
    let matters = matches!(role, Role::Template(_))
        || [marker::QUOTED_TOKEN, IMAGE_GROUP.as_bytes()]
            .iter()
            .any(|group| memmem::find(content, group).is_some())
        || has_namespace(content);
    matters.then_some(Location { line, column })
}
