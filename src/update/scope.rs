//! Which files of a tree an update looks into.
//!
//! Flux's rules (spec §3.2): every file below `update.path` whose name ends in `.yaml` or `.yml` or is
//! `Kustomization`. A link is read through and its target edited once, under the target's own path; a link
//! that leaves the tree, dangles or turns in a circle is listed and left alone.

use std::collections::BTreeMap;

use super::tree::{Entry, EntryKind, FileTree, TreeError, TreePath};

/// How many links may follow one another, as on Linux.
const LINKS_IN_A_ROW: usize = 40;

/// A link's target is a path, and a path has at most this many bytes.
const LINK_TARGET: usize = 4096;

/// The files to look into.
#[derive(Debug, Default)]
pub struct Scope {
    /// Each file once, by its path.
    pub files: BTreeMap<TreePath, ScopedFile>,
    /// The links that were left alone, in rising order.
    pub skipped: Vec<SkippedLink>,
}

/// A file to look into.
#[derive(Debug)]
pub struct ScopedFile {
    /// The file itself, never a link.
    pub entry: Entry,
    /// Its name in results: relative to `update.path`, or the base name where that is a file.
    pub key: String,
}

/// A link that was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedLink {
    /// The link, relative to `update.path`.
    pub file: String,
    /// Why.
    pub cause: LinkProblem,
}

/// Why a link was left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkProblem {
    /// Its target is outside the tree.
    #[error("the link leads out of the directory")]
    Leaves,
    /// Its target does not exist.
    #[error("the link's target does not exist")]
    Dangles,
    /// Too many links in a row.
    #[error("the link leads back to itself")]
    Loops,
    /// It leads into `.git`.
    #[error("the link leads into .git")]
    IntoGit,
    /// Its target is a directory, which is looked into at its own place if at all.
    #[error("the link's target is a directory")]
    ToDirectory,
}

/// Why a scope could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    /// `update.path` climbs above the root.
    #[error("the path {path:?} leads out of the directory")]
    Escapes {
        /// The path as given.
        path: String,
    },
    /// `update.path` is, or leads through, a link that cannot be followed.
    #[error("the path {path:?} cannot be followed")]
    Link {
        /// The path as given.
        path: String,
        /// Why.
        #[source]
        cause: LinkProblem,
    },
    /// There is nothing at `update.path`.
    #[error("there is no file or directory {path:?}")]
    NotFound {
        /// The path as given.
        path: String,
    },
    /// The tree could not be listed.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// Lists the files at or below `path` (`None`: the whole tree).
///
/// # Errors
///
/// When `path` does not exist or leads out of the tree, or when the tree cannot be listed.
pub fn scope(tree: &dyn FileTree, path: Option<&str>) -> Result<Scope, ScopeError> {
    let text = path.unwrap_or_default();
    let start = TreePath::root()
        .resolve(text.as_bytes())
        .ok_or_else(|| ScopeError::Escapes { path: text.to_owned() })?;
    let (base, entries) = match follow(tree, start)? {
        Ok(Found::File(entry)) => (entry.path.parent(), vec![entry]),
        Ok(Found::Directory(directory, entries)) => (directory, entries),
        Err(LinkProblem::Dangles) => return Err(ScopeError::NotFound { path: text.to_owned() }),
        Err(cause) => return Err(ScopeError::Link { path: text.to_owned(), cause }),
    };
    let mut scope = Scope::default();
    for entry in entries.into_iter().filter(|entry| is_yaml_name(entry.path.file_name())) {
        let key = entry.path.relative_to(&base).unwrap_or_else(|| entry.path.clone()).to_string();
        match entry.kind {
            EntryKind::File => scope.insert(entry, key),
            EntryKind::Link => match follow(tree, entry.path)? {
                Ok(Found::File(target)) => {
                    let key = target.path.relative_to(&base).map_or(key, |path| path.to_string());
                    scope.insert(target, key);
                }
                Ok(Found::Directory(..)) => {
                    scope.skipped.push(SkippedLink { file: key, cause: LinkProblem::ToDirectory });
                }
                Err(cause) => scope.skipped.push(SkippedLink { file: key, cause }),
            },
        }
    }
    Ok(scope)
}

impl Scope {
    fn insert(&mut self, entry: Entry, key: String) {
        self.files.entry(entry.path.clone()).or_insert(ScopedFile { entry, key });
    }
}

/// Whether a file of this name is looked into.
fn is_yaml_name(name: &[u8]) -> bool {
    let has_extension = |extension: &[u8]| name.ends_with(extension);
    has_extension(b".yaml") || has_extension(b".yml") || name == b"Kustomization"
}

enum Found {
    File(Entry),
    Directory(TreePath, Vec<Entry>),
}

/// Follows all links on the way to `path` and at its end.
fn follow(tree: &dyn FileTree, mut path: TreePath) -> Result<Result<Found, LinkProblem>, TreeError> {
    for _ in 0..=LINKS_IN_A_ROW {
        if path.parts().any(|part| part == b".git") {
            return Ok(Err(LinkProblem::IntoGit));
        }
        let link = match tree.entries(&path) {
            Err(TreeError::NotFound { .. }) => return Ok(Err(LinkProblem::Dangles)),
            Err(TreeError::ThroughLink { at }) => Entry { path: at, kind: EntryKind::Link, content: None },
            Err(error) => return Err(error),
            Ok(mut entries) => match entries.pop() {
                Some(entry) if entry.path == path && entry.kind == EntryKind::File => {
                    return Ok(Ok(Found::File(entry)));
                }
                Some(entry) if entry.path == path => entry,
                last => {
                    entries.extend(last);
                    return Ok(Ok(Found::Directory(path, entries)));
                }
            },
        };
        let mut target = Vec::new();
        tree.read(&link, LINK_TARGET, &mut target)?;
        if target.starts_with(b"/") {
            return Ok(Err(LinkProblem::Leaves));
        }
        let Some(mut next) = link.path.parent().resolve(&target) else {
            return Ok(Err(LinkProblem::Leaves));
        };
        if let Some(rest) = path.relative_to(&link.path) {
            let Some(whole) = next.resolve(rest.as_bytes()) else { return Ok(Err(LinkProblem::Leaves)) };
            next = whole;
        }
        path = next;
    }
    Ok(Err(LinkProblem::Loops))
}
