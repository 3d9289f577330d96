//! Validates the keys and values of labels, by the rules and in the words of Kubernetes.

/// The longest name part of a key, and the longest value, in bytes.
const NAME_LENGTH: usize = 63;

/// The longest prefix of a key, in bytes.
const PREFIX_LENGTH: usize = 253;

/// A defect of the key or the value of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LabelDefect {
    /// A key with more than one slash.
    #[error(
        "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
    )]
    SeveralSlashes,
    /// A key that begins with a slash.
    #[error("prefix part must be non-empty")]
    EmptyPrefix,
    /// A prefix that is too long.
    #[error("prefix part must be no more than {PREFIX_LENGTH} bytes")]
    LongPrefix,
    /// A prefix that is no domain name.
    #[error(
        "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )]
    Prefix,
    /// A key without a name.
    #[error("name part must be non-empty")]
    EmptyName,
    /// A key with a name that is too long.
    #[error("name part must be no more than {NAME_LENGTH} bytes")]
    LongName,
    /// A key with a forbidden character, or with one at its end that is only allowed inside.
    #[error(
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    )]
    Name,
    /// A value that is too long.
    #[error("must be no more than {NAME_LENGTH} bytes")]
    LongValue,
    /// A value with a forbidden character, or with one at its end that is only allowed inside.
    #[error(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    )]
    Value,
}

/// Returns all defects of the key of a label: `[PREFIX/]NAME`.
pub fn faults_of_key(key: &str) -> Vec<LabelDefect> {
    let (prefix, name) = match key.split_once('/') {
        Some((_, name)) if name.contains('/') => return vec![LabelDefect::SeveralSlashes],
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let mut faults = Vec::new();
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            faults.push(LabelDefect::EmptyPrefix);
        } else {
            faults.extend((prefix.len() > PREFIX_LENGTH).then_some(LabelDefect::LongPrefix));
            faults.extend((!is_domain(prefix)).then_some(LabelDefect::Prefix));
        }
    }
    faults.extend(name.is_empty().then_some(LabelDefect::EmptyName));
    faults.extend((name.len() > NAME_LENGTH).then_some(LabelDefect::LongName));
    faults.extend((!is_name(name)).then_some(LabelDefect::Name));
    faults
}

/// Returns all defects of the value of a label.
pub fn faults_of_value(value: &str) -> Vec<LabelDefect> {
    let mut faults = Vec::new();
    faults.extend((value.len() > NAME_LENGTH).then_some(LabelDefect::LongValue));
    faults.extend((!value.is_empty() && !is_name(value)).then_some(LabelDefect::Value));
    faults
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

fn is_domain(text: &str) -> bool {
    text.split('.').all(|part| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_qualified_names() {
        let long = "x".repeat(64);
        let long_prefix = format!("{}/a", ["y".repeat(60).as_str(); 5].join("."));
        for (key, faults) in [
            ("a", vec![]),
            ("app.kubernetes.io/part-of", vec![]),
            ("My_Name.1", vec![]),
            (&long[1..], vec![]),
            ("", vec![LabelDefect::EmptyName, LabelDefect::Name]),
            ("a b", vec![LabelDefect::Name]),
            ("-a", vec![LabelDefect::Name]),
            ("a.", vec![LabelDefect::Name]),
            ("\u{e4}", vec![LabelDefect::Name]),
            (&long, vec![LabelDefect::LongName]),
            ("/a", vec![LabelDefect::EmptyPrefix]),
            ("a/", vec![LabelDefect::EmptyName, LabelDefect::Name]),
            ("Example.com/a", vec![LabelDefect::Prefix]),
            ("a..b/a", vec![LabelDefect::Prefix]),
            ("-a.b/a", vec![LabelDefect::Prefix]),
            (&long_prefix, vec![LabelDefect::LongPrefix]),
            ("a/b/c", vec![LabelDefect::SeveralSlashes]),
        ] {
            assert_eq!(faults_of_key(key), faults, "{key:?}");
        }
    }

    #[test]
    fn values_are_names_or_nothing() {
        let long = "x".repeat(64);
        for (value, faults) in [
            ("", vec![]),
            ("x-Y_z.1", vec![]),
            ("a b", vec![LabelDefect::Value]),
            ("_a", vec![LabelDefect::Value]),
            ("a/b", vec![LabelDefect::Value]),
            (&long, vec![LabelDefect::LongValue]),
        ] {
            assert_eq!(faults_of_value(value), faults, "{value:?}");
        }
    }
}
