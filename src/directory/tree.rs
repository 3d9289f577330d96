//! Lists and reads a directory as a tree of files.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use memchr::memmem;

use super::write::is_stale_temporary;
use crate::update::tree_limits::{TreeLimits, check_depth};
use crate::update::{Entry, EntryKind, FileTree, TreeError, TreePath, TreeVisitor, WalkDecision};

/// The number of bytes of a large file that are searched at a time.
const WINDOW: usize = 256 * 1024;

/// A directory of the file system as a [`FileTree`].
///
/// Symbolic links are never followed on the way to a file, so nothing outside the directory is read.
#[derive(Debug, Clone)]
pub struct Directory {
    root: PathBuf,
    /// The directories in which a listing found temporary files of a killed run.
    ///
    /// They are recorded to save a second listing.
    stale_directories: RefCell<BTreeSet<TreePath>>,
}

impl Directory {
    /// Opens the directory at `root`; its own path may contain symbolic links.
    ///
    /// # Errors
    ///
    /// Returns an error if `root` does not exist, is not a directory or cannot be listed.
    pub fn open(root: &Path) -> io::Result<Self> {
        fs::read_dir(root)?;
        Ok(Self { root: root.to_owned(), stale_directories: RefCell::default() })
    }

    /// The directories listed so far that contain a temporary file of a killed run.
    pub(super) fn stale_directories(&self) -> BTreeSet<TreePath> {
        self.stale_directories.borrow().clone()
    }

    /// Lists one directory.
    fn list(
        &self,
        path: &TreePath,
        listing: fs::ReadDir,
        limits: &mut TreeLimits,
    ) -> Result<OpenDirectory, TreeError> {
        let mut items = Vec::new();
        for item in listing {
            let item = item.map_err(|error| read_error(path.clone(), error))?;
            let kind = item.file_type().map_err(|error| read_error(path.clone(), error))?;
            let name = item.file_name().into_vec();
            limits.count(&path.join(&name))?;
            if kind.is_dir() {
                if name != b".git" {
                    items.push(Item { name, kind: None });
                }
            } else if let Some(kind) = entry_kind(kind) {
                if is_stale_temporary(&name) {
                    self.stale_directories.borrow_mut().insert(path.clone());
                }
                items.push(Item { name, kind: Some(kind) });
            }
        }
        items.sort_unstable_by(|left, right| right.sort_key().cmp(left.sort_key()));
        Ok(OpenDirectory { path: path.clone(), items })
    }

    /// The path in the file system of a path in the tree.
    pub fn locate(&self, path: &TreePath) -> PathBuf {
        if path.is_root() {
            return self.root.clone();
        }
        self.root.join(std::ffi::OsStr::from_bytes(path.as_bytes()))
    }
}

/// A directory in the course of a walk.
struct OpenDirectory {
    path: TreePath,
    /// Its items that were not visited yet, in descending order.
    items: Vec<Item>,
}

/// An item of a directory.
struct Item {
    name: Vec<u8>,
    /// The type; `None` for a directory.
    kind: Option<EntryKind>,
}

impl Item {
    /// The sort key that orders items like the paths of everything inside them.
    fn sort_key(&self) -> impl Iterator<Item = u8> {
        self.name.iter().copied().chain(self.kind.is_none().then_some(b'/'))
    }
}

impl FileTree for Directory {
    fn walk(&self, under: &TreePath, visitor: &mut dyn TreeVisitor) -> Result<(), TreeError> {
        let metadata =
            fs::symlink_metadata(self.locate(under)).map_err(|error| read_error(under.clone(), error))?;
        if let Some(kind) = entry_kind(metadata.file_type())
            && !under.is_root()
        {
            let _ = visitor.entry(Entry { path: under.clone(), kind, content: None });
            return Ok(());
        }
        let mut limits = TreeLimits::new(under);
        let listing = fs::read_dir(self.locate(under)).map_err(|error| read_error(under.clone(), error))?;
        let mut open = vec![self.list(under, listing, &mut limits)?];
        while let Some(directory) = open.last_mut() {
            let Some(item) = directory.items.pop() else {
                open.pop();
                if !open.is_empty() {
                    visitor.leave();
                }
                continue;
            };
            let path = directory.path.join(&item.name);
            if let Some(kind) = item.kind {
                if visitor.entry(Entry { path, kind, content: None }).is_break() {
                    break;
                }
                continue;
            }
            match fs::read_dir(self.locate(&path)) {
                Ok(listing) => match visitor.enter(&path, None) {
                    ControlFlow::Continue(WalkDecision::Enter) => {
                        open.push(self.list(&path, listing, &mut limits)?);
                    }
                    ControlFlow::Continue(WalkDecision::Skip) => {}
                    ControlFlow::Break(()) => break,
                },
                // One unreadable directory must not keep the others from being visited.
                Err(_) => {
                    let kind = EntryKind::UnreadableDirectory;
                    if visitor.entry(Entry { path, kind, content: None }).is_break() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError> {
        check_depth(path)?;
        let metadata =
            fs::symlink_metadata(self.locate(path)).map_err(|error| read_error(path.clone(), error))?;
        match entry_kind(metadata.file_type()) {
            Some(kind) => Ok(kind),
            None if metadata.is_dir() => Ok(EntryKind::Directory),
            // A device, a socket or a pipe is no file to update.
            None => Err(TreeError::NotFound { path: path.clone() }),
        }
    }

    fn read(&self, entry: &Entry, limit: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
        let path = self.locate(&entry.path);
        content.clear();
        let mut read = || -> io::Result<Option<u64>> {
            if entry.kind == EntryKind::Link {
                content.extend(fs::read_link(&path)?.into_os_string().into_vec());
                return Ok(if content.len() > limit { u64::try_from(content.len()).ok() } else { None });
            }
            let file = File::open(&path)?;
            // One byte more than the limit distinguishes a file at the limit from a larger one.
            let allowed = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
            (&file).take(allowed).read_to_end(content)?;
            if content.len() > limit { Ok(Some(file.metadata()?.len())) } else { Ok(None) }
        };
        match read() {
            Ok(None) => Ok(()),
            Ok(Some(size)) => Err(TreeError::TooLarge { path: entry.path.clone(), size }),
            Err(error) => Err(read_error(entry.path.clone(), error)),
        }
    }

    fn contains(&self, entry: &Entry, token: &[u8]) -> Result<bool, TreeError> {
        let search = || -> io::Result<bool> {
            let mut file = File::open(self.locate(&entry.path))?;
            let mut window = vec![0; WINDOW];
            let mut kept = 0;
            loop {
                let read = file.read(&mut window[kept..])?;
                if read == 0 {
                    return Ok(false);
                }
                let filled = kept + read;
                if memmem::find(&window[..filled], token).is_some() {
                    return Ok(true);
                }
                // A token may begin in one window and end in the next.
                let tail = filled.min(token.len().saturating_sub(1));
                window.copy_within(filled - tail..filled, 0);
                kept = tail;
            }
        };
        search().map_err(|error| read_error(entry.path.clone(), error))
    }
}

/// The type of files and links; `None` for directories, sockets, devices and pipes.
fn entry_kind(kind: fs::FileType) -> Option<EntryKind> {
    if kind.is_file() {
        Some(EntryKind::File)
    } else if kind.is_symlink() {
        Some(EntryKind::Link)
    } else {
        None
    }
}

fn read_error(path: TreePath, error: io::Error) -> TreeError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => TreeError::NotFound { path },
        _ => TreeError::Read { path, cause: Box::new(error) },
    }
}
