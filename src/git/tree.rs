//! The tree of a commit, read from a mirror.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::rc::Rc;

use git2::{ErrorClass, ErrorCode, ObjectType, Odb, OdbObject, Oid, Repository};
use memchr::memmem;

use super::name::CommitId;
use super::object::{self, ObjectError};
use super::tree_entries::{MalformedTree, TreeEntries, TreeEntry, TreeEntryKind};
use crate::update::tree_limits::{TreeLimits, check_depth};
use crate::update::{ContentId, Entry, EntryKind, FileTree, TreeError, TreePath, TreeVisitor, WalkDecision};

/// The maximum size, in bytes, of a file that is searched.
/// The whole file must be held in memory.
const MAX_SEARCHED_SIZE: usize = 32 * 1024 * 1024;

/// The maximum size, in bytes, of tree objects that one walk has open.
/// These are the directories from the root to a file.
const MAX_OPEN_BYTES: usize = 64 * 1024 * 1024;

/// The maximum size, in bytes, of tree objects cached for looking up paths.
/// A larger tree object is cached alone.
const MAX_CACHED_BYTES: usize = 16 * 1024 * 1024;

/// The tree of a commit as a [`FileTree`].
///
/// Submodules are directories without content here, as in a checkout that does not fetch them. Entries with a name that
/// no checkout could have are skipped: nothing could be committed there.
pub struct GitTree<'r> {
    objects: Odb<'r>,
    root: Oid,
    is_damaged: Cell<bool>,
    /// The directories of recent lookups, the last one at the end.
    cache: RefCell<Vec<(Oid, Rc<CachedTree>)>>,
}

/// A tree object in which names are looked up.
struct CachedTree {
    bytes: Vec<u8>,
    /// The offsets of its entries, in the order of names.
    by_name: Vec<usize>,
}

impl CachedTree {
    fn new(bytes: Vec<u8>) -> Result<Self, MalformedTree> {
        let mut entries = TreeEntries::new(&bytes).collect::<Result<Vec<_>, _>>()?;
        // Stable, so that the first of several entries with one name counts.
        entries.sort_by_key(|entry| entry.name);
        let by_name = entries.iter().map(|entry| entry.start).collect();
        Ok(Self { bytes, by_name })
    }

    fn entry_at(&self, offset: usize) -> Option<TreeEntry<'_>> {
        TreeEntries::starting_at(&self.bytes, offset).next()?.ok()
    }

    fn find(&self, name: &[u8]) -> Option<TreeEntry<'_>> {
        let is_before = |offset: &usize| self.entry_at(*offset).is_some_and(|entry| entry.name < name);
        let found = self.by_name.get(self.by_name.partition_point(is_before))?;
        self.entry_at(*found).filter(|entry| entry.name == name)
    }
}

/// A directory that is being walked.
struct OpenDirectory<'o> {
    path: TreePath,
    tree: OdbObject<'o>,
    /// The offset of its next entry.
    offset: usize,
}

impl<'r> GitTree<'r> {
    /// Opens the tree of `commit`.
    ///
    /// # Errors
    ///
    /// If the mirror does not have the commit, or it is too large.
    pub fn of(repository: &'r Repository, commit: CommitId) -> Result<Self, ObjectError> {
        Ok(Self::of_tree(repository, object::find_commit(repository, commit)?.tree_id())?)
    }

    /// Opens a tree by its id.
    ///
    /// # Errors
    ///
    /// If the mirror cannot be read.
    pub(super) fn of_tree(repository: &'r Repository, root: Oid) -> Result<Self, git2::Error> {
        let objects = repository.odb()?;
        Ok(Self { objects, root, is_damaged: Cell::new(false), cache: RefCell::default() })
    }

    /// Returns true if an object could not be read that should be there.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.get()
    }

    fn unreadable(&self, path: &TreePath, cause: impl Into<ObjectError>) -> TreeError {
        let cause = cause.into();
        if let ObjectError::Git(cause) = &cause
            && !is_malformed(cause)
        {
            self.is_damaged.set(true);
        }
        let cause: Box<dyn std::error::Error + Send + Sync> = match cause {
            ObjectError::Git(cause) => cause.into(),
            ObjectError::TooLarge(cause) => cause.into(),
        };
        TreeError::Read { path: path.clone(), cause }
    }

    /// Returns the kind and object of the entry at `path`.
    fn find(&self, path: &TreePath) -> Result<(TreeEntryKind, Oid), TreeError> {
        let not_found = || TreeError::NotFound { path: path.clone() };
        check_depth(path)?;
        let (mut kind, mut object) = (TreeEntryKind::Directory, self.root);
        for part in path.parts() {
            if kind != TreeEntryKind::Directory || !is_valid_name(part) {
                return Err(not_found());
            }
            let tree = self.cached(path, object)?;
            let entry = tree.find(part).ok_or_else(not_found)?;
            (kind, object) = (entry.kind, oid(&entry.id));
        }
        Ok((kind, object))
    }

    /// Returns a tree object, which is read again only if many others were read since.
    fn cached(&self, path: &TreePath, object: Oid) -> Result<Rc<CachedTree>, TreeError> {
        let mut cache = self.cache.borrow_mut();
        let found = cache.iter().position(|(id, _)| *id == object);
        let entry = match found {
            Some(at) => cache.remove(at),
            None => {
                let tree = object::read_tree(&self.objects, object);
                let bytes = tree.map_err(|cause| self.unreadable(path, cause))?.data().to_vec();
                (object, Rc::new(CachedTree::new(bytes).map_err(|cause| malformed(path, cause))?))
            }
        };
        let tree = entry.1.clone();
        cache.push(entry);
        let mut bytes: usize = cache.iter().map(|(_, tree)| tree.bytes.len()).sum();
        while bytes > MAX_CACHED_BYTES && cache.len() > 1 {
            bytes -= cache.remove(0).1.bytes.len();
        }
        Ok(tree)
    }

    fn open(&self, path: TreePath, object: Oid) -> Result<OpenDirectory<'_>, TreeError> {
        let tree = object::read_tree(&self.objects, object);
        let tree = tree.map_err(|cause| self.unreadable(&path, cause))?;
        Ok(OpenDirectory { path, tree, offset: 0 })
    }

    /// Visits the files and links below a directory, without recursion: paths may be deep.
    fn visit(&self, under: &TreePath, object: Oid, visitor: &mut dyn TreeVisitor) -> Result<(), TreeError> {
        let mut limits = TreeLimits::new(under);
        let mut open = vec![self.open(under.clone(), object)?];
        let mut open_bytes = open[0].tree.len();
        // Git sorts a directory as if its name ended in a slash, so this is the order of the paths' bytes.
        while let Some(directory) = open.last_mut() {
            let Some(entry) = TreeEntries::starting_at(directory.tree.data(), directory.offset).next() else {
                open_bytes -= directory.tree.len();
                open.pop();
                if !open.is_empty() {
                    visitor.leave();
                }
                continue;
            };
            let entry = entry.map_err(|cause| malformed(&directory.path, cause))?;
            directory.offset = entry.end;
            let path = directory.path.join(entry.name);
            limits.count(&path)?;
            if !is_valid_name(entry.name) {
                continue;
            }
            let content = ContentId(entry.id);
            let flow = if let Some(kind) = entry_kind(entry.kind) {
                visitor.entry(Entry { path, kind, content: Some(content) })
            } else if entry.kind == TreeEntryKind::Directory {
                match visitor.enter(&path, Some(content)) {
                    ControlFlow::Continue(WalkDecision::Enter) => {
                        let below = self.open(path, oid(&content.0))?;
                        open_bytes += below.tree.len();
                        if open_bytes > MAX_OPEN_BYTES {
                            return Err(TreeError::TooWide { directory: below.path, limit: MAX_OPEN_BYTES });
                        }
                        open.push(below);
                        ControlFlow::Continue(())
                    }
                    ControlFlow::Continue(WalkDecision::Skip) => ControlFlow::Continue(()),
                    ControlFlow::Break(()) => ControlFlow::Break(()),
                }
            } else {
                ControlFlow::Continue(())
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn content(&self, entry: &Entry) -> Result<Oid, TreeError> {
        match &entry.content {
            None => self.find(&entry.path).map(|(_, object)| object),
            Some(content) => Ok(oid(&content.0)),
        }
    }

    /// Returns the size of a blob, without reading it.
    fn size(&self, entry: &Entry, content: Oid) -> Result<usize, TreeError> {
        match self.objects.read_header(content) {
            Ok((size, ObjectType::Blob)) => Ok(size),
            Ok(_) => Err(TreeError::NotFound { path: entry.path.clone() }),
            Err(cause) => Err(self.unreadable(&entry.path, cause)),
        }
    }
}

impl FileTree for GitTree<'_> {
    fn walk(&self, under: &TreePath, visitor: &mut dyn TreeVisitor) -> Result<(), TreeError> {
        let (kind, object) = self.find(under)?;
        if let Some(kind) = entry_kind(kind) {
            // It is the only entry, so there is nothing to end.
            let _ = visitor.entry(Entry { path: under.clone(), kind, content: Some(content_id(object)) });
        } else if kind == TreeEntryKind::Directory {
            self.visit(under, object, visitor)?;
        }
        Ok(())
    }

    fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError> {
        let (kind, _) = self.find(path)?;
        Ok(entry_kind(kind).unwrap_or(EntryKind::Directory))
    }

    fn read(&self, entry: &Entry, limit: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
        content.clear();
        let object = self.content(entry)?;
        let size = self.size(entry, object)?;
        if size > limit {
            return Err(TreeError::TooLarge { path: entry.path.clone(), size: size as u64 });
        }
        let object = self.objects.read(object).map_err(|cause| self.unreadable(&entry.path, cause))?;
        content.extend_from_slice(object.data());
        Ok(())
    }

    fn contains(&self, entry: &Entry, token: &[u8]) -> Result<bool, TreeError> {
        let object = self.content(entry)?;
        let size = self.size(entry, object)?;
        if size > MAX_SEARCHED_SIZE {
            return Err(TreeError::TooLarge { path: entry.path.clone(), size: size as u64 });
        }
        let object = self.objects.read(object).map_err(|cause| self.unreadable(&entry.path, cause))?;
        Ok(memmem::find(object.data(), token).is_some())
    }
}

/// Returns the error of a directory whose object is not a tree.
/// The bytes of the object match its id, so a fetch would bring the same.
fn malformed(path: &TreePath, cause: MalformedTree) -> TreeError {
    TreeError::Read { path: path.clone(), cause: cause.into() }
}

/// Returns true if an error of libgit2 means a missing or broken object.
/// A lack of space or of a permission is no damage.
pub(super) fn is_damage(error: &git2::Error) -> bool {
    use git2::ErrorClass::{Filesystem, NoMemory, Os};
    let is_of_system = matches!(error.class(), Filesystem | NoMemory | Os);
    error.code() == ErrorCode::NotFound || !(is_of_system || is_malformed(error))
}

/// Returns true if an error means a malformed tree or an impossible name.
///
/// The bytes of an object are compared with its id before they are parsed, so it was made like this, and a
/// fetch would bring the same.
fn is_malformed(error: &git2::Error) -> bool {
    error.class() == ErrorClass::Tree && error.code() != ErrorCode::NotFound
}

/// Returns true if a commit or checkout can have a directory entry of this name.
/// Libgit2 refuses other names, and git itself makes no commit with one, but objects can be written by hand.
fn is_valid_name(name: &[u8]) -> bool {
    let begins_with =
        |prefix: &[u8]| name.get(..prefix.len()).is_some_and(|it| it.eq_ignore_ascii_case(prefix));
    // Names that Windows reads as `.git`: spaces and dots at the end are ignored there, and a colon starts a stream.
    let is_git = [b".git".as_slice(), b"git~1"].iter().any(|prefix| {
        let rest = || name[prefix.len()..].iter().find(|byte| !matches!(byte, b' ' | b'.'));
        begins_with(prefix) && matches!(rest(), None | Some(b':' | b'\\'))
    });
    !is_git && !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/')
}

/// Returns the kind of an entry for a [`FileTree`]; `None` for directories.
fn entry_kind(kind: TreeEntryKind) -> Option<EntryKind> {
    match kind {
        TreeEntryKind::File | TreeEntryKind::Executable => Some(EntryKind::File),
        TreeEntryKind::Link => Some(EntryKind::Link),
        TreeEntryKind::Directory | TreeEntryKind::Submodule => None,
    }
}

fn content_id(object: Oid) -> ContentId {
    ContentId(object.as_bytes().try_into().expect("an id of a SHA-1 repository has 20 bytes"))
}

/// Converts an id to libgit2's type.
pub(super) fn oid(id: &[u8; 20]) -> Oid {
    Oid::from_bytes(id).expect("an id of a SHA-1 repository has 20 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_does_not_check_out_are_invalid() {
        let possible = [
            ".github",
            ".gitignore",
            ".gitmodules",
            "git",
            "git~10",
            "git~2",
            "...",
            ".g",
            "a b.yaml",
            ".git-x",
        ];
        for name in possible {
            assert!(is_valid_name(name.as_bytes()), "{name}");
        }
        for name in [
            ".git",
            ".GIT",
            ".Git. .",
            "git~1",
            "GIT~1 ",
            ".git::$INDEX_ALLOCATION",
            ".git\\x",
            "",
            ".",
            "..",
            "a/b",
        ] {
            assert!(!is_valid_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_malformed_tree_is_not_a_corrupt_mirror() {
        use git2::ErrorClass::{Odb, Os, Tree, Zlib};
        for (code, class, expected) in [
            (ErrorCode::GenericError, Tree, false),
            (ErrorCode::NotFound, Tree, true),
            (ErrorCode::NotFound, Odb, true),
            (ErrorCode::GenericError, Zlib, true),
            (ErrorCode::GenericError, Os, false),
        ] {
            assert_eq!(is_damage(&git2::Error::new(code, class, "")), expected, "{code:?} {class:?}");
        }
    }
}
