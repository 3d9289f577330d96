//! Markers: comments that name the policy whose image a value follows.
//!
//! A marker is a comment that consists of one JSON object (`docs/flux-behaviour.md`, Markers): `# {"$imagepolicy":
//! "namespace:name"}`, with `:tag`, `:name` or `:digest` after the name for a part of the reference. Tagboat adds
//! `:tag@digest`, for fields that take both but not the name. The long form is kustomize's `{"$ref":
//! "#/definitions/io.k8s.cli.setters.namespace:name"}`.

use memchr::memmem;
use serde::{Deserialize, Serialize};
use tagboat_api::ObjectName;

/// The member that makes a JSON object a marker.
pub const TOKEN: &str = "$imagepolicy";

/// The token with its double quotes; a file without it is not parsed.
pub const QUOTED_TOKEN: &[u8] = b"\"$imagepolicy\"";

/// The maximum number of unquoted mentions listed per file.
const MAX_MENTIONS: usize = 20;

const LONG_FORM: &str = "#/definitions/io.k8s.cli.setters.";

/// The content of a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The whole setter, such as `default:podinfo:tag`.
    pub setter: String,
    /// The policy it names.
    pub policy: ObjectName,
    /// The part of the image that the value takes.
    pub field: Field,
}

/// A part of an image reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// `name:tag`, with `@digest` if there is one.
    Reference,
    /// The tag.
    Tag,
    /// The name.
    Name,
    /// The digest, empty if there is none.
    Digest,
    /// `tag@digest`, or the tag alone if there is no digest.
    TagAndDigest,
    /// A part that does not exist.
    Unknown,
}

/// The reason for which a comment that mentions the token is no marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum MarkerError {
    /// The comment is not one JSON object.
    #[error("the comment is not a single JSON object")]
    NotJson,
    /// The token has no double quotes, and without them the file is not parsed.
    #[error("\"$imagepolicy\" must be in double quotes")]
    NoQuotes,
    /// A member is not a string.
    #[error("a marker's members must all be strings")]
    NotStrings,
    /// The token is no member, or its value is empty.
    #[error("the object has no string under \"$imagepolicy\"")]
    NoToken,
}

/// Parses a comment, from its `#` on, as a marker.
///
/// # Errors
///
/// Returns [`MarkerError`] for every other comment; a warning is due only if the comment mentions the token.
pub fn parse(comment: &str) -> Result<Marker, MarkerError> {
    let text = comment.trim_start_matches('#');
    if !text.contains('{') {
        return Err(MarkerError::NotJson);
    }
    let object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text).map_err(|_| MarkerError::NotJson)?;
    if let Some(target) = object.get("$ref").and_then(serde_json::Value::as_str)
        && let Some(setter) = target.strip_prefix(LONG_FORM)
        && !object.contains_key(TOKEN)
    {
        return Ok(Marker::of_setter(setter));
    }
    // A null counts as an empty string, as in Flux (Go's `encoding/json`).
    if object.values().any(|value| !(value.is_string() || value.is_null())) {
        return Err(MarkerError::NotStrings);
    }
    match object.get(TOKEN).and_then(serde_json::Value::as_str) {
        Some(setter) if !setter.is_empty() => Ok(Marker::of_setter(setter)),
        _ => Err(MarkerError::NoToken),
    }
}

/// Finds lines of an unparsed file on which a comment seems to mention the token.
///
/// This is a guess from the text alone: the `#` may be inside a value.
pub fn lines_without_quotes(content: &[u8]) -> Vec<usize> {
    let is_mention = |line: &[u8]| {
        let hash = memchr::memchr(b'#', line);
        hash.is_some_and(|at| memmem::find(&line[at..], TOKEN.as_bytes()).is_some())
    };
    let lines = content.split(|&byte| byte == b'\n').enumerate();
    lines.filter(|(_, line)| is_mention(line)).map(|(index, _)| index + 1).take(MAX_MENTIONS).collect()
}

impl Marker {
    /// Parses a setter such as `default:podinfo:tag`.
    pub fn of_setter(setter: &str) -> Self {
        let mut parts = setter.splitn(3, ':');
        let namespace = parts.next().unwrap_or_default().to_owned();
        let name = parts.next().unwrap_or_default().to_owned();
        let field = match parts.next() {
            None => Field::Reference,
            Some("tag") => Field::Tag,
            Some("name") => Field::Name,
            Some("digest") => Field::Digest,
            Some("tag@digest") => Field::TagAndDigest,
            Some(_) => Field::Unknown,
        };
        Self { setter: setter.to_owned(), policy: ObjectName { namespace, name }, field }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(comment: &str) -> Option<(String, Field)> {
        parse(comment).ok().map(|marker| (marker.setter, marker.field))
    }

    #[test]
    fn marker_comments_are_parsed() {
        for (comment, setter, expected) in [
            (r#"# {"$imagepolicy": "a:b"}"#, "a:b", Field::Reference),
            (r#"#{"$imagepolicy":"a:b:tag"}"#, "a:b:tag", Field::Tag),
            (r#"### {"$imagepolicy": "a:b:name"}  "#, "a:b:name", Field::Name),
            (r#"# {"$imagepolicy" : "a:b:digest" , "note": "x"}"#, "a:b:digest", Field::Digest),
            (r#"# {"$imagepolicy": "a:b:tag@digest", "note": null}"#, "a:b:tag@digest", Field::TagAndDigest),
            (r#"# {"$imagepolicy": "a:b:version"}"#, "a:b:version", Field::Unknown),
            (r#"# {"$imagepolicy": "a:b:tag:x"}"#, "a:b:tag:x", Field::Unknown),
            (r##"# {"$ref": "#/definitions/io.k8s.cli.setters.a:b:tag"}"##, "a:b:tag", Field::Tag),
            (r#"# {"$imagepolicy": "x:y", "$imagepolicy": "a:b"}"#, "a:b", Field::Reference),
            (r#"# {"$imagepolicy": "\u0061:b"}"#, "a:b", Field::Reference),
        ] {
            assert_eq!(field(comment), Some((setter.to_owned(), expected)), "{comment}");
        }
    }

    #[test]
    fn invalid_marker_comments_have_their_error() {
        for (comment, expected) in [
            ("# image", MarkerError::NotJson),
            (r#"# see {"$imagepolicy": "a:b"}"#, MarkerError::NotJson),
            (r#"# {"$imagepolicy": "a:b"} # keep"#, MarkerError::NotJson),
            (r#"# {$imagepolicy: "a:b"}"#, MarkerError::NotJson),
            (r#"# ["$imagepolicy"]"#, MarkerError::NotJson),
            (r#"# {"$imagepolicy": "a:b", "n": 1}"#, MarkerError::NotStrings),
            (r#"# {"$imagepolicy": 1}"#, MarkerError::NotStrings),
            (r#"# {"$imagepolicy": ""}"#, MarkerError::NoToken),
            (r#"# {"$openapi": "a:b"}"#, MarkerError::NoToken),
            (r##"# {"$ref": "#/definitions/other"}"##, MarkerError::NoToken),
        ] {
            assert_eq!(parse(comment), Err(expected), "{comment}");
        }
    }
}
