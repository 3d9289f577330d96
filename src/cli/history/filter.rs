//! Options that restrict a history: policy, object, file, time.

use std::fmt;
use std::os::unix::ffi::OsStrExt;

use clap::builder::{OsStringValueParser, TypedValueParser};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tagboat_api::ObjectName;

use crate::cli::values::duration;
use crate::update::{Marker, ObjectIdentifier, TreePath};

/// The value of `--policy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PolicyFilter(ObjectName);

impl PolicyFilter {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            [namespace, name] if !namespace.is_empty() && !name.is_empty() => {
                Ok(Self(ObjectName { namespace: namespace.to_owned(), name: name.to_owned() }))
            }
            _ => Err("write it as in a marker, such as default:podinfo".to_owned()),
        }
    }

    /// The namespace of the policy.
    pub(super) fn namespace(&self) -> &str {
        &self.0.namespace
    }

    pub(super) fn selects(&self, setter: &str) -> bool {
        Marker::of_setter(setter).policy == self.0
    }
}

impl fmt::Display for PolicyFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.0.namespace, self.0.name)
    }
}

/// The value of `--object`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectFilter {
    kind: String,
    /// `None` for any namespace.
    namespace: Option<String>,
    name: String,
}

impl ObjectFilter {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let (kind, namespace, name) = match parts[..] {
            [kind, name] => (kind, None, name),
            [kind, namespace, name] => (kind, Some(namespace.to_owned()), name),
            _ => ("", None, ""),
        };
        if kind.is_empty() || name.is_empty() || namespace.as_deref() == Some("") {
            return Err(
                "write KIND/NAMESPACE/NAME or KIND/NAME, such as Deployment/default/podinfo".to_owned()
            );
        }
        Ok(Self { kind: kind.to_owned(), namespace, name: name.to_owned() })
    }

    pub(super) fn selects(&self, object: &ObjectIdentifier) -> bool {
        self.kind == object.kind
            && self.name == object.name
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == object.namespace)
    }
}

impl fmt::Display for ObjectFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = self.namespace.iter().map(String::as_str);
        let parts: Vec<&str> =
            [self.kind.as_str()].into_iter().chain(namespace).chain([self.name.as_str()]).collect();
        formatter.write_str(&parts.join("/"))
    }
}

/// The value of `--file`: a path as the tree of a commit has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileFilter(TreePath);

impl FileFilter {
    /// Returns the parser, which accepts names that are not UTF-8.
    pub(super) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(|text| Self::parse(text.as_bytes()))
    }

    fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let parts: Vec<&[u8]> = text.split(|byte| *byte == b'/').collect();
        if text.starts_with(b"/") || parts.contains(&b"..".as_slice()) {
            return Err("write it relative to the root of the repository, without ..");
        }
        let parts: Vec<&[u8]> = parts.into_iter().filter(|part| !matches!(*part, b"" | b".")).collect();
        Ok(Self(TreePath::from_bytes(parts.join(b"/".as_slice()))))
    }

    /// Returns the smaller of the file or directory and `scope`.
    ///
    /// # Errors
    ///
    /// If they have nothing in common.
    pub(super) fn within(&self, scope: &TreePath) -> Result<TreePath, String> {
        if self.0 == *scope || self.0.relative_to(scope).is_some() {
            Ok(self.0.clone())
        } else if scope.relative_to(&self.0).is_some() {
            Ok(scope.clone())
        } else {
            Err(format!(
                "--file {} is not in {scope}, to which PATH restricts the list: give one of both",
                self.0
            ))
        }
    }
}

/// The value of `--since`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Since {
    /// A point in time.
    Time(Timestamp),
    /// A time before now.
    Before(SignedDuration),
}

impl Since {
    /// Parses a duration, a date, which begins at midnight in UTC, or a time.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(time) = text.parse::<Timestamp>() {
            return Ok(Self::Time(time));
        }
        if let Ok(time) = text.parse::<Date>().and_then(|date| date.to_zoned(TimeZone::UTC)) {
            return Ok(Self::Time(time.timestamp()));
        }
        let before = duration(text).ok().and_then(|before| SignedDuration::try_from(before).ok());
        before.map(Self::Before).ok_or_else(|| {
            "write a duration in hours or less such as 72h or 90m, a date such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z".to_owned()
        })
    }

    /// Returns the time, for a duration counted from `now`.
    pub(super) fn before(&self, now: Timestamp) -> Timestamp {
        match self {
            Self::Time(time) => *time,
            Self::Before(duration) => now.checked_sub(*duration).unwrap_or(Timestamp::MIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_as_in_a_shell() {
        for (file, expected) in
            [("a/b.yaml", "a/b.yaml"), ("./a//b.yaml", "a/b.yaml"), ("a/", "a"), ("a..b", "a..b")]
        {
            assert_eq!(FileFilter::parse(file.as_bytes()).unwrap().0.to_string(), expected, "{file}");
        }
        assert_eq!(FileFilter::parse(b".").unwrap().0, TreePath::root());
        assert_eq!(FileFilter::parse(b"a\xff").unwrap().0.as_bytes(), b"a\xff");
        for file in ["/a", "../a", "a/../b", ".."] {
            FileFilter::parse(file.as_bytes()).unwrap_err();
        }
    }

    #[test]
    fn a_policy_is_written_as_in_a_marker() {
        let policy = PolicyFilter::parse("a:b").unwrap();
        for (setter, expected) in
            [("a:b", true), ("a:b:tag", true), ("a:bc", false), ("b:a", false), ("", false)]
        {
            assert_eq!(policy.selects(setter), expected, "{setter}");
        }
        for text in ["", "a", ":b", "a:", "a/b", "a:b:tag"] {
            assert!(PolicyFilter::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_object_without_a_namespace_is_in_any() {
        let object = |namespace: &str| ObjectIdentifier {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name: "a".to_owned(),
            namespace: namespace.to_owned(),
        };
        for (text, namespace, expected) in [
            ("Pod/n/a", "n", true),
            ("Pod/n/a", "m", false),
            ("Pod/n/a", "", false),
            ("Pod/a", "n", true),
            ("Pod/a", "", true),
            ("Pod/b", "n", false),
            ("pod/a", "n", false),
        ] {
            assert_eq!(ObjectFilter::parse(text).unwrap().selects(&object(namespace)), expected, "{text}");
        }
        for text in ["", "a", "Pod/", "/a", "Pod//a", "v1/Pod/n/a"] {
            assert!(ObjectFilter::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_is_a_duration_a_date_or_a_time() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
            ("2026-01-02", "2026-01-02T00:00:00Z"),
            ("24h", "2026-01-30T12:00:00Z"),
            ("0s", "2026-01-31T12:00:00Z"),
        ] {
            assert_eq!(Since::parse(text).unwrap().before(now), expected.parse().unwrap(), "{text}");
        }
        for text in ["", "yesterday", "2026-13-01", "-1h", "7d"] {
            assert!(
                Since::parse(text).unwrap_err().starts_with("write a duration in hours or less such as 72h"),
                "{text}"
            );
        }
    }
}
