//! The tree of a commit, read from a mirror.

use std::cell::Cell;

use git2::{ErrorClass, ErrorCode, ObjectType, Odb, Oid, Repository, Tree};
use memchr::memmem;

use super::name::CommitId;
use crate::update::reach::{Reach, check_depth};
use crate::update::{ContentId, Entry, EntryKind, FileTree, TreeError, TreePath};

/// A file beyond this size is not searched, because all of it has to be held in memory.
const SEARCHED_SIZE: usize = 64 * 1024 * 1024;

/// The type bits of an entry's mode, and what they stand for.
const TYPE: i32 = 0o170_000;
const DIRECTORY: i32 = 0o040_000;
const LINK: i32 = 0o120_000;
const FILE: i32 = 0o100_000;

/// The tree of a commit as a [`FileTree`].
///
/// Submodules are directories without content here, as in a checkout that does not fetch them. What has a name that no
/// checkout could have is passed over: nothing could be committed there.
pub struct GitTree<'r> {
    repository: &'r Repository,
    objects: Odb<'r>,
    root: Oid,
    is_damaged: Cell<bool>,
}

/// A directory that is being listed.
struct OpenDirectory<'r> {
    path: TreePath,
    tree: Tree<'r>,
    /// How many of its entries were met.
    met: usize,
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
        if !is_malformed(&cause) {
            self.is_damaged.set(true);
        }
        TreeError::Read { path: path.clone(), cause: cause.into() }
    }

    /// The entry at `path`: its mode and object.
    fn find(&self, path: &TreePath) -> Result<(i32, Oid), TreeError> {
        let not_found = || TreeError::NotFound { path: path.clone() };
        check_depth(path)?;
        let (mut mode, mut object) = (DIRECTORY, self.root);
        for part in path.parts() {
            if mode & TYPE != DIRECTORY || !is_possible(part) {
                return Err(not_found());
            }
            let tree = self.repository.find_tree(object).map_err(|cause| self.damaged(path, cause))?;
            let entry = tree.iter().find(|entry| entry.name_bytes() == part).ok_or_else(not_found)?;
            (mode, object) = (entry.filemode(), entry.id());
        }
        Ok((mode, object))
    }

    fn open(&self, path: TreePath, object: Oid) -> Result<OpenDirectory<'r>, TreeError> {
        let tree = self.repository.find_tree(object).map_err(|cause| self.damaged(&path, cause))?;
        Ok(OpenDirectory { path, tree, met: 0 })
    }

    /// The files and links below a directory. No call for each level: nobody knows how many there are.
    fn list(
        &self,
        directory: OpenDirectory<'r>,
        is_left_out: &mut dyn FnMut(&TreePath, ContentId) -> bool,
    ) -> Result<Vec<Entry>, TreeError> {
        let mut entries = Vec::new();
        let mut reach = Reach::of(&directory.path);
        let mut open = vec![directory];
        // Git sorts a directory as if its name ended in a slash, so this is the order of the paths' bytes.
        while let Some(directory) = open.last_mut() {
            let Some(entry) = directory.tree.get(directory.met) else {
                open.pop();
                continue;
            };
            directory.met += 1;
            let path = directory.path.join(entry.name_bytes());
            reach.meet(&path)?;
            let (mode, object) = (entry.filemode() & TYPE, entry.id());
            if !is_possible(entry.name_bytes()) {
                continue;
            }
            drop(entry);
            if mode == DIRECTORY {
                if !is_left_out(&path, content_id(object)) {
                    let below = self.open(path, object)?;
                    open.push(below);
                }
            } else if let Some(kind) = entry_kind(mode) {
                entries.push(Entry { path, kind, content: Some(content_id(object)) });
            }
        }
        Ok(entries)
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
    fn entries_except(
        &self,
        under: &TreePath,
        is_left_out: &mut dyn FnMut(&TreePath, ContentId) -> bool,
    ) -> Result<Vec<Entry>, TreeError> {
        let (mode, object) = self.find(under)?;
        if let Some(kind) = entry_kind(mode & TYPE) {
            return Ok(vec![Entry { path: under.clone(), kind, content: Some(content_id(object)) }]);
        }
        if mode & TYPE == DIRECTORY {
            self.list(self.open(under.clone(), object)?, is_left_out)
        } else {
            Ok(Vec::new())
        }
    }

    fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError> {
        let (mode, _) = self.find(path)?;
        Ok(entry_kind(mode & TYPE).unwrap_or(EntryKind::Directory))
    }

    fn read(&self, entry: &Entry, limit: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
        content.clear();
        let object = self.content(entry)?;
        let size = self.size(entry, object)?;
        if size > limit {
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
    let is_of_system = matches!(error.class(), Filesystem | NoMemory | Os);
    error.code() == ErrorCode::NotFound || !(is_of_system || is_malformed(error))
}

/// Whether an error says that a tree is none, or that none can be made with such a name: an object's bytes are held
/// against its id before they are understood, so it was made so, and no fetch brings another.
fn is_malformed(error: &git2::Error) -> bool {
    error.class() == ErrorClass::Tree && error.code() != ErrorCode::NotFound
}

/// Whether a file or directory can have this name in a commit that libgit2 makes, or in a checkout. Git itself makes no
/// commit with another one, but whoever writes objects by hand can.
fn is_possible(name: &[u8]) -> bool {
    let begins_with =
        |prefix: &[u8]| name.get(..prefix.len()).is_some_and(|it| it.eq_ignore_ascii_case(prefix));
    // What Windows takes for `.git`: spaces and dots at the end do not count there, and a colon begins a stream.
    let is_git = [b".git".as_slice(), b"git~1"].iter().any(|prefix| {
        let rest = || name[prefix.len()..].iter().find(|byte| !matches!(byte, b' ' | b'.'));
        begins_with(prefix) && matches!(rest(), None | Some(b':' | b'\\'))
    });
    !is_git && !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/')
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_checkout_has() {
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
            assert!(is_possible(name.as_bytes()), "{name}");
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
            assert!(!is_possible(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_malformed_tree_is_no_damage() {
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
