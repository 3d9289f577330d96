//! Names of objects, and their validation.

use std::fmt;

use kube::ResourceExt;
use schemars::JsonSchema;
use serde::Serialize;

/// The name of an object with its namespace, which is empty for a cluster-scoped object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
pub struct ObjectName {
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// The longest namespace, and the longest part of a name, in bytes.
const LABEL_LENGTH: usize = 63;

/// The longest name, in bytes.
const NAME_LENGTH: usize = 253;

/// A name or namespace that Kubernetes rejects, in its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// The name is too long.
    #[error("must be no more than 253 bytes")]
    LongName,
    /// The name is no subdomain.
    #[error(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and \
         end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )]
    Name,
    /// The namespace is too long.
    #[error("must be no more than 63 bytes")]
    LongNamespace,
    /// The namespace is no label of a domain.
    #[error(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with \
         an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    )]
    Namespace,
}

/// Formats a name as `namespace/name`, or as `name` without a namespace.
impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return formatter.write_str(&self.name);
        }
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

impl ObjectName {
    /// Returns the name of an object.
    pub fn of(object: &impl ResourceExt) -> Self {
        Self { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}

/// Validates the name of an object, which is an RFC 1123 subdomain.
///
/// # Errors
///
/// If Kubernetes rejects it.
pub fn validate_name(name: &str) -> Result<(), InvalidName> {
    if name.len() > NAME_LENGTH {
        return Err(InvalidName::LongName);
    }
    if is_subdomain(name) { Ok(()) } else { Err(InvalidName::Name) }
}

/// Validates a namespace, which is an RFC 1123 label.
///
/// # Errors
///
/// If Kubernetes rejects it.
pub fn validate_namespace(namespace: &str) -> Result<(), InvalidName> {
    if namespace.len() > LABEL_LENGTH {
        return Err(InvalidName::LongNamespace);
    }
    if is_label(namespace) { Ok(()) } else { Err(InvalidName::Namespace) }
}

/// Returns whether a text of any length is an RFC 1123 subdomain.
#[must_use]
pub fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_subdomains_and_namespaces_are_labels() {
        let (label, name) = ("x".repeat(63), ["y".repeat(62).as_str(); 4].join("."));
        for text in ["a", "0", "my-app", "123-abc", &label] {
            assert_eq!((validate_name(text), validate_namespace(text)), (Ok(()), Ok(())), "{text}");
        }
        for text in ["app.example.com", "a.b-c.0", &name] {
            assert_eq!(validate_name(text), Ok(()), "{text}");
            assert!(validate_namespace(text).is_err(), "{text}");
        }
        for text in ["", "Shop X", "../../x", "a/b", "-a", "a-", "a_b", "\u{e4}", "a.", "a..b", "${name}"] {
            assert_eq!(validate_name(text), Err(InvalidName::Name), "{text}");
            assert_eq!(validate_namespace(text), Err(InvalidName::Namespace), "{text}");
        }
        assert_eq!(validate_name(&format!("{name}.abc")), Err(InvalidName::LongName));
        assert_eq!(validate_namespace(&format!("{label}x")), Err(InvalidName::LongNamespace));
    }
}
