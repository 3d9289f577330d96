//! The tree of a commit, read from a mirror.

use std::cell::Cell;

use git2::{ErrorCode, ObjectType, Odb, Oid, Repository, Tree};
use memchr::memmem;

use super::name::CommitId;
use crate::update::{ContentId, Entry, EntryKind, FileTree, TreeError, TreePath};

/// A file whose content is not looked for beyond this size, because all of it has to be held in memory.
const SEARCHED_SIZE: usize = 256 * 1024 * 1024;

/// The type bits of an entry's mode, and what they stand for.
const TYPE: i32 = 0o170_000;
const DIRECTORY: i32 = 0o040_000;
const LINK: i32 = 0o120_000;
const FILE: i32 = 0o100_000;

/// The tree of a commit as a [`FileTree`].
///
/// Submodules are directories without content here, as in a checkout that does not fetch them.
pub struct GitTree<'r> {
    repository: &'r Repository,
    objects: Odb<'r>,
    root: Oid,
    is_damaged: Cell<bool>,
}

impl<'r> GitTree<'r> {
    /// The tree of `commit`.
    ///
    /// # Errors
    ///
    /// When the mirror does not have the commit.
    pub fn of(repository: &'r Repository, commit: CommitId) -> Result<Self, git2::Error> {
        let root = repository.find_commit(commit.oid())?.tree_id();
        Ok(Self { repository, objects: repository.odb()?, root, is_damaged: Cell::new(false) })
    }

    /// Whether an object could not be read that should be there.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.get()
    }

    fn damaged(&self, path: &TreePath, cause: git2::Error) -> TreeError {
        self.is_damaged.set(true);
        TreeError::Read { path: path.clone(), cause: cause.into() }
    }

    /// The entry at `path`: its mode and object.
    fn find(&self, path: &TreePath) -> Result<(i32, Oid), TreeError> {
        let not_found = || TreeError::NotFound { path: path.clone() };
        let (mut mode, mut object) = (DIRECTORY, self.root);
        for part in path.parts() {
            if mode & TYPE != DIRECTORY {
                return Err(not_found());
            }
            let tree = self.repository.find_tree(object).map_err(|cause| self.damaged(path, cause))?;
            let entry = tree.iter().find(|entry| entry.name_bytes() == part).ok_or_else(not_found)?;
            (mode, object) = (entry.filemode(), entry.id());
        }
        Ok((mode, object))
    }

    fn list(
        &self,
        tree: &Tree<'_>,
        at: &TreePath,
        is_left_out: &mut dyn FnMut(&TreePath, ContentId) -> bool,
        entries: &mut Vec<Entry>,
    ) -> Result<(), TreeError> {
        // Git sorts a directory as if its name ended in a slash, so this is the order of the paths' bytes.
        for entry in tree {
            let path = at.join(entry.name_bytes());
            let mode = entry.filemode() & TYPE;
            // Git takes no commit with such a directory, but whoever writes objects by hand can make one.
            if mode == DIRECTORY && entry.name_bytes() == b".git" {
                continue;
            }
            if mode == DIRECTORY {
                if is_left_out(&path, content_id(entry.id())) {
                    continue;
                }
                let below =
                    self.repository.find_tree(entry.id()).map_err(|cause| self.damaged(&path, cause))?;
                self.list(&below, &path, is_left_out, entries)?;
            } else if let Some(kind) = entry_kind(mode) {
                entries.push(Entry { path, kind, content: Some(content_id(entry.id())) });
            }
        }
        Ok(())
    }

    fn content(&self, entry: &Entry) -> Result<Oid, TreeError> {
        entry.content.as_ref().map_or_else(
            || self.find(&entry.path).map(|(_, object)| object),
            |content| Oid::from_bytes(&content.0).map_err(|cause| self.damaged(&entry.path, cause)),
        )
    }

    /// The size of a blob, without reading it.
    fn size(&self, entry: &Entry, content: Oid) -> Result<usize, TreeError> {
        match self.objects.read_header(content) {
            Ok((size, ObjectType::Blob)) => Ok(size),
            Ok(_) => Err(TreeError::NotFound { path: entry.path.clone() }),
            Err(cause) => Err(self.damaged(&entry.path, cause)),
        }
    }
}

impl FileTree for GitTree<'_> {
    fn entries(&self, under: &TreePath) -> Result<Vec<Entry>, TreeError> {
        self.entries_except(under, &mut |_, _| false)
    }

    fn entries_except(
        &self,
        under: &TreePath,
        is_left_out: &mut dyn FnMut(&TreePath, ContentId) -> bool,
    ) -> Result<Vec<Entry>, TreeError> {
        let (mode, object) = self.find(under)?;
        if let Some(kind) = entry_kind(mode & TYPE) {
            return Ok(vec![Entry { path: under.clone(), kind, content: Some(content_id(object)) }]);
        }
        let mut entries = Vec::new();
        if mode & TYPE == DIRECTORY {
            let tree = self.repository.find_tree(object).map_err(|cause| self.damaged(under, cause))?;
            self.list(&tree, under, is_left_out, &mut entries)?;
        }
        Ok(entries)
    }

    fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError> {
        let (mode, _) = self.find(path)?;
        Ok(entry_kind(mode & TYPE).unwrap_or(EntryKind::Directory))
    }

    fn read(&self, entry: &Entry, limit: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
        content.clear();
        let object = self.content(entry)?;
        let size = self.size(entry, object)?;
        if entry.kind == EntryKind::File && size > limit {
            return Err(TreeError::TooLarge { path: entry.path.clone(), size: size as u64 });
        }
        let object = self.objects.read(object).map_err(|cause| self.damaged(&entry.path, cause))?;
        content.extend_from_slice(object.data());
        Ok(())
    }

    fn contains(&self, entry: &Entry, token: &[u8]) -> Result<bool, TreeError> {
        let object = self.content(entry)?;
        let size = self.size(entry, object)?;
        if size > SEARCHED_SIZE {
            return Err(TreeError::TooLarge { path: entry.path.clone(), size: size as u64 });
        }
        let object = self.objects.read(object).map_err(|cause| self.damaged(&entry.path, cause))?;
        Ok(memmem::find(object.data(), token).is_some())
    }
}

/// Whether an error of libgit2 says that something in a mirror is missing or broken, and not that the system has no
/// room or no right.
pub(super) fn is_damage(error: &git2::Error) -> bool {
    use git2::ErrorClass::{Filesystem, NoMemory, Os};
    error.code() == ErrorCode::NotFound || !matches!(error.class(), Filesystem | NoMemory | Os)
}

fn entry_kind(mode: i32) -> Option<EntryKind> {
    match mode {
        FILE => Some(EntryKind::File),
        LINK => Some(EntryKind::Link),
        _ => None,
    }
}

fn content_id(object: Oid) -> ContentId {
    ContentId(object.as_bytes().try_into().expect("an id of a SHA-1 repository has 20 bytes"))
}
