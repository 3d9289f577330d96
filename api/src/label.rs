//! Validates label keys and values by the rules of Kubernetes, in its words.

use crate::object_name::is_subdomain;

/// The longest name part of a key, and the longest value, in bytes.
const NAME_LENGTH: usize = 63;

/// The longest prefix of a key, in bytes.
const PREFIX_LENGTH: usize = 253;

/// A key with more than one slash.
const SEVERAL_SLASHES: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";

/// A key that begins with a slash.
const EMPTY_PREFIX: &str = "prefix part must be non-empty";

/// A prefix that is too long.
const LONG_PREFIX: &str = "prefix part must be no more than 253 bytes";

/// A prefix that is no domain name.
const PREFIX: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// A key without a name.
const EMPTY_NAME: &str = "name part must be non-empty";

/// A key with a name that is too long.
const LONG_NAME: &str = "name part must be no more than 63 bytes";

/// A key with a forbidden character, or with one that is forbidden at its ends.
const NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// A value that is too long.
const LONG_VALUE: &str = "must be no more than 63 bytes";

/// A value with a forbidden character, or with one that is forbidden at its ends.
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Returns all defects of the key of a label: `[PREFIX/]NAME`.
#[must_use]
pub fn key_defects(key: &str) -> Vec<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((_, name)) if name.contains('/') => return vec![SEVERAL_SLASHES],
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let mut defects = Vec::new();
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            defects.push(EMPTY_PREFIX);
        } else {
            defects.extend((prefix.len() > PREFIX_LENGTH).then_some(LONG_PREFIX));
            defects.extend((!is_subdomain(prefix)).then_some(PREFIX));
        }
    }
    defects.extend(name.is_empty().then_some(EMPTY_NAME));
    defects.extend((name.len() > NAME_LENGTH).then_some(LONG_NAME));
    defects.extend((!is_name(name)).then_some(NAME));
    defects
}

/// Returns all defects of the value of a label.
#[must_use]
pub fn value_defects(value: &str) -> Vec<&'static str> {
    let mut defects = Vec::new();
    defects.extend((value.len() > NAME_LENGTH).then_some(LONG_VALUE));
    defects.extend((!value.is_empty() && !is_name(value)).then_some(VALUE));
    defects
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_keys_are_qualified_names() {
        let long = "x".repeat(64);
        let long_prefix = format!("{}/a", ["y".repeat(60).as_str(); 5].join("."));
        for (key, defects) in [
            ("a", vec![]),
            ("app.kubernetes.io/part-of", vec![]),
            ("My_Name.1", vec![]),
            (&long[1..], vec![]),
            ("", vec![EMPTY_NAME, NAME]),
            ("a b", vec![NAME]),
            ("-a", vec![NAME]),
            ("a.", vec![NAME]),
            ("\u{e4}", vec![NAME]),
            (&long, vec![LONG_NAME]),
            ("/a", vec![EMPTY_PREFIX]),
            ("a/", vec![EMPTY_NAME, NAME]),
            ("Example.com/a", vec![PREFIX]),
            ("a..b/a", vec![PREFIX]),
            ("-a.b/a", vec![PREFIX]),
            (&long_prefix, vec![LONG_PREFIX]),
            ("a/b/c", vec![SEVERAL_SLASHES]),
        ] {
            assert_eq!(key_defects(key), defects, "{key:?}");
        }
    }

    #[test]
    fn label_values_are_names_or_empty() {
        let long = "x".repeat(64);
        for (value, defects) in [
            ("", vec![]),
            ("x-Y_z.1", vec![]),
            ("a b", vec![VALUE]),
            ("_a", vec![VALUE]),
            ("a/b", vec![VALUE]),
            (&long, vec![LONG_VALUE]),
        ] {
            assert_eq!(value_defects(value), defects, "{value:?}");
        }
    }
}
