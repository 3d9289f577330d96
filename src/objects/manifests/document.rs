//! Splits the content of a file into documents, and lists into their items.

use memchr::memmem;
use serde_json::Value;
use tagboat_api::settings::PREFIX;

use super::kind::ManifestKind;
use super::source::Source;
use super::{ManifestError, SyntaxError};
use crate::yaml::YamlError;
use crate::yaml::encoding::searchable;

/// The API groups that are read.
pub(super) const GROUPS: [&str; 2] = [tagboat_api::IMAGE_GROUP, tagboat_api::SOURCE_GROUP];

/// The core kinds that are read.
///
/// A file is parsed for them only if it has the name of one.
const CORE_KINDS: [ManifestKind; 3] =
    [ManifestKind::Secret, ManifestKind::ServiceAccount, ManifestKind::Namespace];

/// One document, or one item of a list.
pub(super) struct Document {
    pub(super) value: Value,
}

impl Document {
    /// Returns the string member `key` of the document, or an empty string.
    pub(super) fn text(&self, key: &str) -> &str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns whether it is of a core kind.
    ///
    /// Other tools use these kinds more than we do.
    pub(super) fn is_core(&self) -> bool {
        self.text("apiVersion") == "v1" && CORE_KINDS.iter().any(|kind| kind.name() == self.text("kind"))
    }
}

/// The possible content of a file of a directory, as a text search shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// It has the name of a group of Flux's, so it must be parsed.
    Objects,
    /// At most Secrets, ServiceAccounts and Namespaces.
    ///
    /// It may have any other content as well, and need not be YAML.
    CoreKinds,
    /// No object that we read.
    Nothing,
}

/// Searches a file for text that every object we read contains.
///
/// Text in UTF-16 or UTF-32 is found as well, so that a file in another encoding than UTF-8 is reported as one.
pub(super) fn screen(content: &[u8]) -> Content {
    let content = searchable(content);
    let is_in_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    // It must be a word of its own: most files have an `imagePullSecrets` or a `secretRef`.
    let has_word = |word: &[u8]| {
        let ends = |at: usize| !is_in_word(content[..at].last()) && !is_in_word(content.get(at + word.len()));
        memmem::find_iter(&content, word).any(ends)
    };
    // A Namespace with our annotations must be readable: it may have a freeze.
    let decisive = GROUPS.into_iter().chain([PREFIX]);
    if decisive.into_iter().any(|text| memmem::find(&content, text.as_bytes()).is_some()) {
        Content::Objects
    } else if CORE_KINDS.iter().any(|kind| has_word(kind.name().as_bytes())) {
        Content::CoreKinds
    } else {
        Content::Nothing
    }
}

/// Splits a file into its documents.
///
/// It drops empty ones and expands each `List` into its items.
pub(super) fn split(source: &Source) -> Result<Vec<Document>, ManifestError> {
    let not_yaml =
        |line, column, cause| ManifestError::NotYaml { file: source.file.clone(), line, column, cause };
    let text = std::str::from_utf8(&source.content).map_err(|error| {
        let YamlError { line, column, .. } = YamlError::not_utf8(&source.content, error);
        not_yaml(line as u64, column as u64, SyntaxError::NotUtf8)
    })?;
    // The size of a file is bounded, and aliases are by default; a budget for documents and values would reject what
    // kustomize builds. Like Kubernetes' own YAML library, this reads y, n, on and off as strings. An error that
    // showed the lines around it could show a secret.
    let options = serde_saphyr::options! { strict_booleans: true, budget: None, with_snippet: false };
    let values: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |location| (location.line(), location.column()));
        not_yaml(line, column, SyntaxError::Parser(Box::new(error)))
    })?;
    let mut documents = Vec::new();
    for value in values {
        flatten(value, &mut documents);
    }
    Ok(documents)
}

fn flatten(mut value: Value, documents: &mut Vec<Document>) {
    let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    if is_list && let Some(Value::Array(items)) = value.get_mut("items").map(Value::take) {
        let item_kind = value["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).unwrap_or_default();
        for mut item in items {
            // The items of a typed list omit apiVersion and kind.
            if !item_kind.is_empty()
                && let Value::Object(object) = &mut item
            {
                object.entry("kind").or_insert_with(|| item_kind.into());
                object.entry("apiVersion").or_insert_with(|| value["apiVersion"].clone());
            }
            flatten(item, documents);
        }
    } else if !value.is_null() {
        documents.push(Document { value });
    }
}
