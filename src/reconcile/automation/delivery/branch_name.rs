//! Rendered texts made into names of branches.

use crate::git::BranchName;
use crate::git::name::NameError;

/// The maximum length of a name in bytes.
///
/// Forges have limits of about 255 for `refs/heads/NAME`.
const MAX_LENGTH: usize = 240;

/// The text by which Go's templates stand for a value that does not exist.
const NO_VALUE: &str = "<no value>";

/// The error of a text that is no name of a branch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BranchNameError {
    /// A part of the template has no value.
    #[error(
        "the template renders to {text:?}: a value in it does not exist, such as a label that the policy lacks"
    )]
    NoValue {
        /// The text.
        text: String,
    },
    /// The name is too long.
    #[error("the template renders to a name of {length} bytes, and at most {MAX_LENGTH} are allowed")]
    Long {
        /// The length in bytes.
        length: usize,
    },
    /// Git means something else by it.
    #[error("the template renders to {0}")]
    Reference(ReferenceName),
    /// It is no name in git, even with other characters.
    #[error("the template renders to no name of a branch")]
    Name(#[source] NameError),
}

/// A name by which git means something else than a branch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceName {
    /// It is the full name of a reference.
    #[error("{name:?}, and a branch has a name without {start}: leave {start} out")]
    Full {
        /// The name.
        name: String,
        /// The begin that only the full name of a reference has.
        start: &'static str,
    },
    /// It is the name of the checked-out commit.
    #[error("HEAD, by which git means what is checked out: give the branch another name")]
    Head,
}

impl ReferenceName {
    /// Returns the name if git means something else than a branch by it.
    ///
    /// Git would make a branch `refs/heads/refs/heads/x` or `refs/heads/HEAD`.
    pub fn of(name: &str) -> Option<Self> {
        if name == "HEAD" {
            return Some(Self::Head);
        }
        let start = ["refs/heads/", "refs/"].into_iter().find(|start| name.starts_with(start))?;
        Some(Self::Full { name: name.to_owned(), start })
    }
}

/// Makes the name of a branch from a rendered text.
///
/// White space around it is left out, and characters that git refuses become `-`.
///
/// # Errors
///
/// If the text is empty, too long, names a reference that is no branch, or lacks a part between slashes.
pub fn branch_name(text: &str) -> Result<BranchName, BranchNameError> {
    let text = text.trim();
    if text.contains(NO_VALUE) {
        let shown = text.chars().take(MAX_LENGTH).collect();
        return Err(BranchNameError::NoValue { text: shown });
    }
    if text.len() > MAX_LENGTH {
        return Err(BranchNameError::Long { length: text.len() });
    }
    if let Some(name) = ReferenceName::of(text) {
        return Err(BranchNameError::Reference(name));
    }
    let parts: Vec<String> = text.split('/').map(part).collect();
    parts.join("/").parse().map_err(BranchNameError::Name)
}

/// Replaces what git refuses in a part of a name.
fn part(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for c in text.chars() {
        let is_refused = c.is_control()
            || c.is_whitespace()
            || "~^:?*[\\".contains(c)
            || c == '.' && (made.is_empty() || made.ends_with('.'))
            || c == '{' && made.ends_with('@');
        made.push(if is_refused { '-' } else { c });
    }
    if let Some(start) = made.strip_suffix(".lock") {
        made = format!("{start}-lock");
    }
    if made.ends_with('.') {
        made.replace_range(made.len() - 1.., "-");
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_git_refuses_become_dashes() {
        for (text, expected) in [
            ("tagboat/web", "tagboat/web"),
            (" tagboat/web\n", "tagboat/web"),
            ("tagboat/web:1.2 ~ x", "tagboat/web-1.2---x"),
            ("tagboat/a?*[\\^b", "tagboat/a-----b"),
            ("tagboat/1..2", "tagboat/1.-2"),
            ("tagboat/.hidden/x.", "tagboat/-hidden/x-"),
            ("tagboat/x.lock", "tagboat/x-lock"),
            ("tagboat/x.lock/y", "tagboat/x-lock/y"),
            ("a@{b", "a@-b"),
            ("tagboat/\u{7f}x\ty", "tagboat/-x-y"),
            ("tagboat/ü/sha256:0a", "tagboat/ü/sha256-0a"),
        ] {
            assert_eq!(branch_name(text).unwrap().as_str(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_text_without_a_part_is_no_name() {
        for (text, start) in [
            ("", "the template renders to no name of a branch: \"\" is not a valid branch name: it is empty"),
            ("tagboat/", "the template renders to no name"),
            ("/x", "the template renders to no name"),
            ("tagboat//x", "the template renders to no name"),
            (":x", "the template renders to no name"),
            ("@", "the template renders to no name"),
            (
                "tagboat/<no value>",
                "the template renders to \"tagboat/<no value>\": a value in it does not exist",
            ),
            // Git would make the branch refs/heads/refs/heads/x.
            (
                "refs/heads/x",
                "the template renders to \"refs/heads/x\", and a branch has a name without refs/heads/",
            ),
            (
                "refs/tags/v1",
                "the template renders to \"refs/tags/v1\", and a branch has a name without refs/",
            ),
            (" HEAD ", "the template renders to HEAD"),
            (&"x".repeat(241), "the template renders to a name of 241 bytes"),
        ] {
            let message = crate::error::chain(&branch_name(text).unwrap_err());
            assert!(message.starts_with(start), "{text:?}: {message}");
        }
        assert!(branch_name(&"x".repeat(240)).is_ok());
    }
}
