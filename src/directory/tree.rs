//! Listing and reading a directory.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use memchr::memmem;

use super::write::is_left_over;
use crate::update::reach::{Reach, check_depth};
use crate::update::{ContentId, Entry, EntryKind, FileTree, TreeError, TreePath};

/// How much of a large file is searched at a time.
const WINDOW: usize = 256 * 1024;

/// A directory of the file system as a [`FileTree`].
///
/// Links are never followed on the way to a file, so nothing outside the directory is read.
#[derive(Debug, Clone)]
pub struct Directory {
    root: PathBuf,
    /// Where a listing met what a killed run left: noted in passing, so that nobody has to list again for it.
    littered: RefCell<BTreeSet<TreePath>>,
}

impl Directory {
    /// The directory at `root`, which may itself be reached through links.
    ///
    /// # Errors
    ///
    /// When `root` does not exist, is no directory or cannot be listed.
    pub fn open(root: &Path) -> io::Result<Self> {
        fs::read_dir(root)?;
        Ok(Self { root: root.to_owned(), littered: RefCell::default() })
    }

    /// The directories listed so far in which a killed run left a file.
    pub(super) fn littered(&self) -> BTreeSet<TreePath> {
        self.littered.borrow().clone()
    }

    /// Where a path of the tree stands in the file system.
    pub fn locate(&self, path: &TreePath) -> PathBuf {
        if path.is_root() {
            return self.root.clone();
        }
        self.root.join(std::ffi::OsStr::from_bytes(path.as_bytes()))
    }
}

impl FileTree for Directory {
    // Nothing here has an id to be left out by.
    fn entries_except(
        &self,
        under: &TreePath,
        _: &mut dyn FnMut(&TreePath, ContentId) -> bool,
    ) -> Result<Vec<Entry>, TreeError> {
        let metadata =
            fs::symlink_metadata(self.locate(under)).map_err(|error| read_error(under.clone(), error))?;
        if let Some(kind) = entry_kind(metadata.file_type())
            && !under.is_root()
        {
            return Ok(vec![Entry { path: under.clone(), kind, content: None }]);
        }
        let mut entries = Vec::new();
        let mut reach = Reach::of(under);
        let mut directories = vec![under.clone()];
        while let Some(directory) = directories.pop() {
            let listing = match fs::read_dir(self.locate(&directory)) {
                Ok(listing) => listing,
                Err(error) if directory == *under => return Err(read_error(directory, error)),
                // One closed directory must not keep the others from being looked into.
                Err(_) => {
                    let kind = EntryKind::ClosedDirectory;
                    entries.push(Entry { path: directory, kind, content: None });
                    continue;
                }
            };
            for item in listing {
                let item = item.map_err(|error| read_error(directory.clone(), error))?;
                let name = item.file_name().into_vec();
                let kind = item.file_type().map_err(|error| read_error(directory.clone(), error))?;
                let path = directory.join(&name);
                reach.meet(&path)?;
                if kind.is_dir() {
                    if name != b".git" {
                        directories.push(path);
                    }
                } else if let Some(kind) = entry_kind(kind) {
                    if is_left_over(&name) {
                        self.littered.borrow_mut().insert(directory.clone());
                    }
                    entries.push(Entry { path, kind, content: None });
                }
            }
        }
        entries.sort_unstable_by(|left, right| left.path.cmp(&right.path));
        Ok(entries)
    }

    fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError> {
        check_depth(path)?;
        let metadata =
            fs::symlink_metadata(self.locate(path)).map_err(|error| read_error(path.clone(), error))?;
        match entry_kind(metadata.file_type()) {
            Some(kind) => Ok(kind),
            None if metadata.is_dir() => Ok(EntryKind::Directory),
            // A device, a socket or a pipe holds no file of ours.
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
            // One byte more than allowed tells a file at the limit from one beyond it.
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

/// Files and links; directories, sockets, devices and pipes are `None`.
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
