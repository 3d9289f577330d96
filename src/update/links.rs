//! Links of a tree, followed part by part as the kernel does it.

use super::tree::{Entry, EntryKind, FileTree, TreeError, TreePath};

/// The maximum number of links that follow one another, as on Linux.
const LINKS_IN_A_ROW: usize = 40;

/// A link's target is a path, and a path has at most this many bytes.
const LINK_TARGET: usize = 4096;

/// The reason for which a link or directory was left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SkipCause {
    /// Its target is outside the tree.
    #[error("the link leads out of the directory")]
    Leaves,
    /// Its target does not exist.
    #[error("the link's target does not exist")]
    Dangles,
    /// Too many links in a row.
    #[error("the link leads back to itself")]
    Loops,
    /// It, or something on the way, cannot be read.
    #[error("it cannot be read")]
    Closed,
    /// `update.path` is a file whose name is not that of a YAML file.
    #[error("its name is not that of a YAML file: .yaml, .yml or Kustomization")]
    NotYaml,
    /// It leads into `.git`.
    #[error("it leads into .git")]
    IntoGit,
    /// Its target is a directory, which is looked into at its own place if at all.
    #[error("the link's target is a directory")]
    ToDirectory,
}

/// Resolves `path`, as seen from the directory `from`, to a path without links, `.` and `..`.
///
/// Part by part, as the kernel does it: `..` behind a link leads to the parent of the link's target.
pub(super) fn follow(tree: &dyn FileTree, from: &TreePath, path: &[u8]) -> Result<TreePath, SkipCause> {
    let split = |path: &[u8]| -> Vec<Vec<u8>> {
        path.split(|&byte| byte == b'/').rev().map(<[u8]>::to_vec).collect()
    };
    let mut links = 0;
    let mut at = from.clone();
    let mut rest = split(path);
    while let Some(part) = rest.pop() {
        match part.as_slice() {
            b"" | b"." => continue,
            b".." if at.is_root() => return Err(SkipCause::Leaves),
            b".." => {
                at = at.parent();
                continue;
            }
            b".git" => return Err(SkipCause::IntoGit),
            _ => {}
        }
        let next = at.join(&part);
        match tree.kind(&next).map_err(|error| cause_of(&error))? {
            EntryKind::Link => {
                links += 1;
                if links > LINKS_IN_A_ROW {
                    return Err(SkipCause::Loops);
                }
                let mut target = Vec::new();
                let entry = Entry { path: next, kind: EntryKind::Link, content: None };
                tree.read(&entry, LINK_TARGET, &mut target).map_err(|error| cause_of(&error))?;
                if target.starts_with(b"/") {
                    return Err(SkipCause::Leaves);
                }
                rest.extend(split(&target));
            }
            EntryKind::File if rest.iter().any(|part| !part.is_empty() && part != b".") => {
                return Err(SkipCause::Dangles);
            }
            _ => at = next,
        }
    }
    Ok(at)
}

/// The reason for leaving alone what cannot be read.
pub(super) fn cause_of(error: &TreeError) -> SkipCause {
    match error {
        TreeError::NotFound { .. } => SkipCause::Dangles,
        _ => SkipCause::Closed,
    }
}
