//! The files that are held against the rules.

use std::rc::Rc;

use memchr::memmem;
use tagboat_api::settings::TemplateLanguage;
use tagboat_api::{IMAGE_GROUP, SOURCE_GROUP};

use super::finding::Place;
use crate::update::marker;
use crate::yaml::{Limits, Node, YamlError, trees};

/// A file to look at.
#[derive(Debug)]
pub struct Source {
    /// Its name in findings.
    pub name: String,
    /// How it is looked at.
    pub role: Role,
    /// Its bytes, or why they cannot be had.
    pub content: Result<Vec<u8>, String>,
}

/// How a file is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// As YAML: manifests, and values with markers.
    Manifest,
    /// As the template of a commit message.
    Template(TemplateLanguage),
    /// As YAML that says something about other files, and is not looked at for its own sake.
    Context,
}

/// The words without which a file has no object that is looked at.
const WORDS: [&str; 4] =
    [IMAGE_GROUP, SOURCE_GROUP, "kustomize.toolkit.fluxcd.io", "kustomize.config.k8s.io"];

impl Source {
    /// A file of which no more is kept than is looked at: most files of a repository are nothing of ours.
    pub fn new(name: String, role: Role, content: Result<Vec<u8>, String>) -> Self {
        let is_looked_at = |content: &[u8]| {
            matches!(role, Role::Template(_))
                || has_objects(&name, content)
                || memmem::find(content, marker::TOKEN.as_bytes()).is_some()
                || has_near_marker(content)
        };
        let content = content.map(|content| if is_looked_at(&content) { content } else { Vec::new() });
        Self { name, role, content }
    }
}

/// How the token of markers is written by mistake, with its quotes.
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

/// Whether a file may have objects that are looked at.
fn has_objects(name: &str, content: &[u8]) -> bool {
    is_kustomization(name) || WORDS.iter().any(|word| memmem::find(content, word.as_bytes()).is_some())
}

/// A YAML file that was read.
pub(super) struct Document<'a> {
    pub(super) name: &'a str,
    pub(super) role: Role,
    pub(super) text: &'a str,
    /// The documents in it; empty where nothing in it is of interest, or where it is not YAML.
    pub(super) roots: Vec<Rc<Node>>,
    /// Why it is not YAML, where that is of interest.
    pub(super) error: Option<YamlError>,
}

impl<'a> Document<'a> {
    /// Reads a source, if it is YAML and its bytes are text.
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

    /// Whether the file speaks of Flux's image objects or has a marker, so that it has to be understood.
    pub(super) fn matters(&self) -> bool {
        self.has_marker() || (self.text.contains(IMAGE_GROUP) && !self.is_templated())
    }

    pub(super) fn has_marker(&self) -> bool {
        memmem::find(self.text.as_bytes(), marker::QUOTED_TOKEN).is_some()
    }

    /// Whether another program makes YAML of the file before anybody reads it as such: a chart's template.
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

/// The charts among the files.
pub(super) struct Charts<'a>(Vec<&'a str>);

impl<'a> Charts<'a> {
    pub(super) fn among(documents: &[Document<'a>]) -> Self {
        let roots = documents.iter().filter_map(|document| document.name.strip_suffix("Chart.yaml"));
        Self(roots.filter(|root| root.is_empty() || root.ends_with('/')).collect())
    }

    /// Whether a file is a template of a chart.
    pub(super) fn have_template(&self, name: &str) -> bool {
        let is_in =
            |chart: &&str| name.strip_prefix(chart).is_some_and(|rest| rest.starts_with("templates/"));
        self.0.iter().any(is_in)
    }
}

/// Whether a file of this name is one of kustomize's own, whatever stands in it.
pub(super) fn is_kustomization(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    matches!(base, "kustomization.yaml" | "kustomization.yml" | "Kustomization")
}

/// Whether a text is filled in later: by Flux's substitution, a chart, or a set of resources.
pub(super) fn is_filled_in_later(text: &str) -> bool {
    ["${", "{{", "<<"].iter().any(|opening| text.contains(opening))
}

/// Where the bytes of a file that has to be understood are no text.
pub(super) fn not_text(content: &[u8], role: Role) -> Option<Place> {
    let valid = std::str::from_utf8(content).err()?.valid_up_to();
    let matters = matches!(role, Role::Template(_))
        || [marker::QUOTED_TOKEN, IMAGE_GROUP.as_bytes()]
            .iter()
            .any(|word| memmem::find(content, word).is_some());
    let before = String::from_utf8_lossy(&content[..valid]);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    matters.then_some(Place { line, column })
}
