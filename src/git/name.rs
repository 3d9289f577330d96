//! Names in git: references, branches, commits.

use std::fmt;
use std::str::FromStr;

/// The id of a commit, or of a tag object: 40 hexadecimal digits (SHA-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(git2::Oid);

impl CommitId {
    /// The id as libgit2 has it.
    pub(super) fn oid(self) -> git2::Oid {
        self.0
    }

    /// Returns the first seven digits, as people quote it.
    pub fn short(self) -> String {
        self.to_string()[..7].to_owned()
    }
}

impl From<git2::Oid> for CommitId {
    fn from(oid: git2::Oid) -> Self {
        Self(oid)
    }
}

impl FromStr for CommitId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let is_full = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let oid = is_full.then(|| git2::Oid::from_str(text).ok()).flatten();
        oid.map(Self).ok_or_else(|| NameError::NotACommit { text: text.to_owned() })
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl serde::Serialize for CommitId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for CommitId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The full name of a reference, such as `refs/heads/main`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RefName(String);

impl RefName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name without its first two parts, as revisions quote it. `refs/heads/a/b` is `a/b`.
    pub fn short(&self) -> &str {
        self.0.splitn(3, '/').nth(2).unwrap_or(&self.0)
    }

    /// Returns the branch of the reference, if it is one.
    pub fn branch(&self) -> Option<BranchName> {
        self.0.strip_prefix("refs/heads/").map(|name| BranchName(name.to_owned()))
    }

    /// Returns the reference of a tag.
    ///
    /// # Errors
    ///
    /// If the name is not valid for a reference.
    pub fn of_tag(tag: &str) -> Result<Self, NameError> {
        check(tag).map_err(|cause| malformed("tag name", tag, cause))?;
        Ok(Self(format!("refs/tags/{tag}")))
    }
}

impl FromStr for RefName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let invalid = |cause| malformed("reference name", text, cause);
        let rest = text.strip_prefix("refs/").ok_or_else(|| invalid("it does not begin with refs/"))?;
        if !rest.contains('/') {
            return Err(invalid("it has no part after refs/heads/, refs/tags/ or the like"));
        }
        check(rest).map_err(invalid)?;
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for RefName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<RefName> for String {
    fn from(name: RefName) -> Self {
        name.0
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The name of a branch, such as `main`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BranchName(String);

impl BranchName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the reference of the branch.
    pub fn reference(&self) -> RefName {
        RefName(format!("refs/heads/{}", self.0))
    }
}

impl FromStr for BranchName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        check(text).map_err(|cause| malformed("branch name", text, cause))?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The error of a text that is not a valid name in git.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is no name of this kind.
    #[error("{text:?} is not a valid {kind}: {cause}")]
    Malformed {
        /// The kind, such as `branch name`.
        kind: &'static str,
        /// The text.
        text: String,
        /// The rule that it breaks.
        cause: &'static str,
    },
    /// It is no full commit id.
    #[error("{text:?} is not a commit ID: a commit ID has 40 hexadecimal digits")]
    NotACommit {
        /// The text.
        text: String,
    },
}

fn malformed(kind: &'static str, text: &str, cause: &'static str) -> NameError {
    NameError::Malformed { kind, text: text.to_owned(), cause }
}

/// Checks a name by git's rules for references (`git check-ref-format`).
/// A leading dash is refused too, as git does for branches, because a name must never be taken for an option.
fn check(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("it is empty");
    }
    if name.starts_with('-') {
        return Err("it begins with a dash");
    }
    if name == "@" || name.contains("@{") {
        return Err("it is '@', or contains '@{'");
    }
    if name.contains("..") {
        return Err("it has two dots in a row");
    }
    if name.ends_with('.') {
        return Err("it ends in a dot");
    }
    if name.chars().any(|c| c.is_ascii_control() || " ~^:?*[\\".contains(c)) {
        return Err("it has a space, a control character or one of ~ ^ : ? * [ \\");
    }
    for part in name.split('/') {
        if part.is_empty() {
            return Err("it has an empty part");
        }
        if part.starts_with('.') {
            return Err("a part of it begins with a dot");
        }
        if part.ends_with(".lock") {
            return Err("a part of it ends in .lock");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_follow_the_rules_of_git() {
        for good in ["main", "feature/x", "a.b", "a-b", "ü", "@a", "a@b", "HEAD"] {
            let branch: BranchName = good.parse().unwrap();
            assert_eq!(branch.reference().branch(), Some(branch), "{good}");
        }
        for bad in [
            "", "-x", "@", "a@{1}", "a..b", "a.", "a b", "a~", "a^", "a:b", "a?", "a*", "a[", "a\\b", "a\n",
            "\u{7f}", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b",
        ] {
            assert!(bad.parse::<BranchName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn references_are_named_in_full() {
        let name: RefName = "refs/heads/feature/x".parse().unwrap();
        assert_eq!(
            (name.short(), name.branch().map(|branch| branch.to_string())),
            ("feature/x", Some("feature/x".to_owned()))
        );
        let name: RefName = "refs/for/main".parse().unwrap();
        assert_eq!((name.short(), name.branch()), ("main", None));
        for bad in ["main", "heads/main", "refs/", "refs/main", "refs/heads/", "refs/heads/*", "HEAD"] {
            assert!(bad.parse::<RefName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn commits_are_named_by_forty_digits() {
        let id: CommitId = "00112233445566778899aabbccddeeff00112233".parse().unwrap();
        assert_eq!(id.short(), "0011223");
        for bad in ["", "0011223", "00112233445566778899aabbccddeeff0011223g", &"0".repeat(64)] {
            assert!(bad.parse::<CommitId>().is_err(), "{bad:?}");
        }
    }
}
