//! Resolves symbolic links of a tree one path component at a time, like the kernel.

use schemars::JsonSchema;
use serde::Serialize;

use super::report::as_text;
use super::tree::{Entry, EntryKind, FileTree, TreeError, TreePath};

/// The maximum number of links to resolve in one path, as on Linux.
const MAX_LINKS: usize = 40;

/// The maximum length of a link's target in bytes, that of a path.
const MAX_TARGET_LENGTH: usize = 4096;

/// The reason for which a link or directory is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    /// Its target is outside the tree.
    #[error("the link leads out of the directory")]
    OutsideTree,
    /// Its target does not exist.
    #[error("the link's target does not exist")]
    Dangling,
    /// Too many links follow one another.
    #[error("the link leads back to itself")]
    Loop,
    /// The link, or a part of its path, cannot be read.
    #[error("it cannot be read")]
    Unreadable,
    /// `update.path` is a file whose name is not that of a YAML file.
    #[error("its name is not that of a YAML file: .yaml, .yml or Kustomization")]
    NotYaml,
    /// Its target is in `.git`.
    #[error("it leads into .git")]
    InsideGit,
    /// Its target is a directory, which is walked only at its own path.
    #[error("the link's target is a directory")]
    Directory,
}

/// A link or directory that was not followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Skipped {
    /// Its path, relative to `update.path`.
    pub file: String,
    /// The reason.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub cause: SkipReason,
}

/// Resolves `path`, relative to the directory `from`, to a path without links, `.` and `..`.
///
/// Components are resolved one at a time, like in the kernel: `..` after a link is the parent of the link's target.
pub(super) fn resolve(tree: &dyn FileTree, from: &TreePath, path: &[u8]) -> Result<TreePath, SkipReason> {
    let split = |path: &[u8]| -> Vec<Vec<u8>> {
        path.split(|&byte| byte == b'/').rev().map(<[u8]>::to_vec).collect()
    };
    let mut links = 0;
    let mut at = from.clone();
    let mut rest = split(path);
    while let Some(part) = rest.pop() {
        match part.as_slice() {
            b"" | b"." => continue,
            b".." if at.is_root() => return Err(SkipReason::OutsideTree),
            b".." => {
                at = at.parent();
                continue;
            }
            b".git" => return Err(SkipReason::InsideGit),
            _ => {}
        }
        let next = at.join(&part);
        match tree.kind(&next).map_err(|error| skip_reason(&error))? {
            EntryKind::Link => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(SkipReason::Loop);
                }
                let mut target = Vec::new();
                let entry = Entry { path: next, kind: EntryKind::Link, content: None };
                tree.read(&entry, MAX_TARGET_LENGTH, &mut target).map_err(|error| skip_reason(&error))?;
                if target.starts_with(b"/") {
                    return Err(SkipReason::OutsideTree);
                }
                rest.extend(split(&target));
            }
            EntryKind::File if rest.iter().any(|part| !part.is_empty() && part != b".") => {
                return Err(SkipReason::Dangling);
            }
            _ => at = next,
        }
    }
    Ok(at)
}

/// Returns the reason for skipping an entry that cannot be read.
pub(super) fn skip_reason(error: &TreeError) -> SkipReason {
    match error {
        TreeError::NotFound { .. } => SkipReason::Dangling,
        _ => SkipReason::Unreadable,
    }
}
