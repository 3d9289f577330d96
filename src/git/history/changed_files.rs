//! The files in which two trees differ.
//!
//! Equal directories have equal ids, so only directories with a difference are read, and each version of one once.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::rc::Rc;

use git2::Oid;

use super::directories::Directories;
use crate::error::chain;
use crate::git::tree::oid;
use crate::git::tree_entries::{TreeEntries, TreeEntry, TreeEntryKind};
use crate::update::TreePath;
use crate::update::history::is_file_name;
use crate::update::tree_limits::{TreeLimits, check_depth};

/// A file in which two trees differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangedFile {
    pub(super) path: TreePath,
    /// The blob in the older tree.
    pub(super) old: Option<Oid>,
    /// The blob in the newer tree.
    pub(super) new: Option<Oid>,
}

/// A directory that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnreadableDirectory {
    pub(super) path: TreePath,
    pub(super) message: String,
}

/// The differences of two trees.
#[derive(Debug, Default)]
pub(super) struct TreeDifferences {
    /// The files that may be manifests, in ascending order.
    pub(super) files: Vec<ChangedFile>,
    pub(super) unreadable: Vec<UnreadableDirectory>,
}

/// Compares two trees at and below `scope`, which is a file or a directory.
///
/// Only regular files are compared: an update edits the target of a symbolic link under its own path. Trees with more differences than a tree may have entries are not compared.
pub(super) fn compare_trees(
    directories: &mut Directories<'_>,
    scope: &TreePath,
    old: Option<Oid>,
    new: Option<Oid>,
) -> TreeDifferences {
    let mut differences = TreeDifferences::default();
    let mut limits = TreeLimits::new(scope);
    let mut open = vec![(TreePath::root(), old, new)];
    let mut is_endless = false;
    while let Some((path, old, new)) = open.pop() {
        let contents = check_depth(&path)
            .map_err(|error| chain(&error))
            .and_then(|()| Ok((directories.take(new)?, directories.keep(old)?)));
        let compared = contents.and_then(|(new, old)| {
            compare_directories(scope, (&path, &old, &new), &mut |entry| {
                is_endless |= limits.count(entry.path()).is_err();
                match entry {
                    _ if is_endless => {}
                    Difference::Directory(path, old, new) => open.push((path, old, new)),
                    Difference::File(file) => differences.files.push(file),
                }
            })
        });
        if is_endless {
            let message = "too many files and directories differ".to_owned();
            let unreadable = vec![UnreadableDirectory { path: scope.clone(), message }];
            return TreeDifferences { files: Vec::new(), unreadable };
        }
        if let Err(message) = compared {
            differences.unreadable.push(UnreadableDirectory { path, message });
        }
    }
    differences.files.sort_by(|left, right| left.path.cmp(&right.path));
    differences
}

/// A difference in one directory.
enum Difference {
    Directory(TreePath, Option<Oid>, Option<Oid>),
    File(ChangedFile),
}

impl Difference {
    fn path(&self) -> &TreePath {
        match self {
            Self::Directory(path, ..) => path,
            Self::File(file) => &file.path,
        }
    }
}

/// Compares the entries of one directory.
fn compare_directories(
    scope: &TreePath,
    (path, old, new): (&TreePath, &Rc<[u8]>, &Rc<[u8]>),
    found: &mut dyn FnMut(Difference),
) -> Result<(), String> {
    let mut merged = Merged { old: TreeEntries::new(old).peekable(), new: TreeEntries::new(new).peekable() };
    while let Some(Pair { old, new }) = merged.next_pair()? {
        if old.map(|entry| (entry.id, entry.kind)) == new.map(|entry| (entry.id, entry.kind)) {
            continue;
        }
        let Some(name) = old.or(new).map(|entry| entry.name) else { continue };
        let directory = |entry: Option<TreeEntry<'_>>| id_if(entry, |kind| kind == TreeEntryKind::Directory);
        let file = |entry: Option<TreeEntry<'_>>| {
            id_if(entry, |kind| matches!(kind, TreeEntryKind::File | TreeEntryKind::Executable))
        };
        let directories = (directory(old), directory(new));
        let files = if is_file_name(name) { (file(old), file(new)) } else { (None, None) };
        if (directories, files) == ((None, None), (None, None)) {
            continue;
        }
        let path = path.join(name);
        let is_within = path == *scope || path.relative_to(scope).is_some();
        if directories.0 != directories.1 && (is_within || scope.relative_to(&path).is_some()) {
            found(Difference::Directory(path.clone(), directories.0, directories.1));
        }
        if files.0 != files.1 && is_within {
            found(Difference::File(ChangedFile { path, old: files.0, new: files.1 }));
        }
    }
    Ok(())
}

fn id_if(entry: Option<TreeEntry<'_>>, is_wanted: impl Fn(TreeEntryKind) -> bool) -> Option<Oid> {
    entry.filter(|entry| is_wanted(entry.kind)).map(|entry| oid(&entry.id))
}

/// The entries of one name in two directories.
struct Pair<'t> {
    old: Option<TreeEntry<'t>>,
    new: Option<TreeEntry<'t>>,
}

/// Two lists of entries, merged by name.
struct Merged<'t> {
    old: Peekable<TreeEntries<'t>>,
    new: Peekable<TreeEntries<'t>>,
}

impl<'t> Merged<'t> {
    /// Returns the entries of the next name.
    fn next_pair(&mut self) -> Result<Option<Pair<'t>>, String> {
        let order = match (self.old.peek(), self.new.peek()) {
            (None, None) => return Ok(None),
            (Some(Err(error)), _) | (_, Some(Err(error))) => return Err(error.to_string()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(Ok(old)), Some(Ok(new))) => compare_names(old, new),
        };
        let old = if order.is_le() { self.old.next().and_then(Result::ok) } else { None };
        let new = if order.is_ge() { self.new.next().and_then(Result::ok) } else { None };
        Ok(Some(Pair { old, new }))
    }
}

/// Compares two entries in the order of a tree.
///
/// There, the name of a directory ends in a slash.
fn compare_names(left: &TreeEntry<'_>, right: &TreeEntry<'_>) -> Ordering {
    let common = left.name.len().min(right.name.len());
    let next = |entry: &TreeEntry<'_>| match entry.name.get(common) {
        Some(byte) => *byte,
        None if entry.kind == TreeEntryKind::Directory => b'/',
        None => 0,
    };
    left.name[..common].cmp(&right.name[..common]).then_with(|| next(left).cmp(&next(right)))
}
