//! A tree of files as the update sees it, be it a directory or a commit.

use std::fmt;
use std::ops::ControlFlow;

use tagboat_api::Reason;

use crate::failing::Failing;

/// A path below the root of a tree: bytes, parts separated by `/`, no `/` in front; the root itself is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(Vec<u8>);

impl TreePath {
    /// The root of the tree.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path from bytes that are already in the form above.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The path of `part`, one part, within the directory `self`.
    #[must_use]
    pub fn join(&self, part: &[u8]) -> Self {
        let mut bytes = self.0.clone();
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(part);
        Self(bytes)
    }

    /// The path's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The parts between the slashes.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/').filter(|part| !part.is_empty())
    }

    /// The last part; empty for the root.
    pub fn file_name(&self) -> &[u8] {
        self.parts().next_back().unwrap_or_default()
    }

    /// The directory that holds this path.
    pub fn parent(&self) -> Self {
        let end = self.0.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        Self(self.0[..end].to_vec())
    }

    /// The path as seen from `directory`, or `None` when it is not below it.
    pub fn relative_to(&self, directory: &Self) -> Option<Self> {
        if directory.is_root() {
            return Some(self.clone());
        }
        let rest = self.0.strip_prefix(directory.as_bytes())?.strip_prefix(b"/")?;
        Some(Self(rest.to_vec()))
    }
}

/// Prints the path; bytes that are not UTF-8 as `\xNN`, and a backslash as two, so that no two paths print alike.
impl fmt::Display for TreePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            formatter.write_str(&chunk.valid().replace('\\', "\\\\"))?;
            for byte in chunk.invalid() {
                write!(formatter, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file, executable or not.
    File,
    /// A symbolic link; its content is the target.
    Link,
    /// A directory; never listed as an entry.
    Directory,
    /// A directory that cannot be listed, and so cannot be looked into.
    ClosedDirectory,
}

/// Identifies an entry's content, where the tree knows it without reading: a git blob's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentId(pub [u8; 20]);

/// One file or link of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands, from the root.
    pub path: TreePath,
    /// What it is.
    pub kind: EntryKind,
    /// What it holds, if that is known.
    pub content: Option<ContentId>,
}

/// Whether a walk looks into a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// Its entries are visited.
    Enter,
    /// It is passed over, and [`TreeVisitor::leave`] is not called for it.
    Skip,
}

/// Receives the entries of a tree one by one, so that a large tree need not be held in memory.
///
/// A method that returns [`ControlFlow::Break`] ends the walk.
pub trait TreeVisitor {
    /// Visits a file, a link, or a directory that cannot be listed.
    fn entry(&mut self, entry: Entry) -> ControlFlow<()>;

    /// Decides about a directory before its entries are visited; `content` identifies all that is below it, if the
    /// tree knows that.
    fn enter(&mut self, path: &TreePath, content: Option<ContentId>) -> ControlFlow<(), Descent>;

    /// Ends the directory that was entered last.
    fn leave(&mut self);
}

/// Collects all entries.
#[derive(Debug, Default)]
struct Entries(Vec<Entry>);

impl TreeVisitor for Entries {
    fn entry(&mut self, entry: Entry) -> ControlFlow<()> {
        self.0.push(entry);
        ControlFlow::Continue(())
    }

    fn enter(&mut self, _: &TreePath, _: Option<ContentId>) -> ControlFlow<(), Descent> {
        ControlFlow::Continue(Descent::Enter)
    }

    fn leave(&mut self) {}
}

/// A tree of files that can be listed and read.
pub trait FileTree {
    /// Visits the files and links at or below `under`, in rising order of their paths' bytes.
    ///
    /// A file or link given as `under` is the only entry then. The visitor is asked about each directory below
    /// `under`, but not about `under` itself. Links are not followed, and `.git` is not entered.
    ///
    /// # Errors
    ///
    /// [`TreeError::NotFound`] when there is nothing at `under`; another when there is more than a
    /// [`Reach`](super::reach::Reach) allows. A walk that the visitor ends is no error.
    fn walk(&self, under: &TreePath, visitor: &mut dyn TreeVisitor) -> Result<(), TreeError>;

    /// The files and links at or below `under`, in rising order of their paths' bytes.
    ///
    /// # Errors
    ///
    /// As those of [`walk`](Self::walk).
    fn entries(&self, under: &TreePath) -> Result<Vec<Entry>, TreeError> {
        let mut entries = Entries::default();
        self.walk(under, &mut entries)?;
        Ok(entries.0)
    }

    /// What stands at `path`, links not followed.
    ///
    /// # Errors
    ///
    /// [`TreeError::NotFound`] when there is nothing at `path`.
    fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError>;

    /// Reads an entry into `content`, replacing what is there: a file's bytes, or a link's target.
    ///
    /// # Errors
    ///
    /// [`TreeError::TooLarge`] when that has more than `limit` bytes; `content` is undefined then.
    fn read(&self, entry: &Entry, limit: usize, content: &mut Vec<u8>) -> Result<(), TreeError>;

    /// Whether a file contains `token`, although it may be too large to be read.
    ///
    /// # Errors
    ///
    /// When the file cannot be read; [`TreeError::TooLarge`] when it cannot even be searched.
    fn contains(&self, entry: &Entry, token: &[u8]) -> Result<bool, TreeError>;
}

/// Why a tree could not be listed or read.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// There is nothing at this path.
    #[error("there is no file or directory {path}")]
    NotFound {
        /// The path.
        path: TreePath,
    },
    /// The file or link is larger than asked for.
    #[error("{path} has {size} bytes")]
    TooLarge {
        /// Where it stands.
        path: TreePath,
        /// Its size in bytes.
        size: u64,
    },
    /// Something stands too deep.
    #[error(
        "a path has more than {limit} parts, the limit: {}; remove it, or let update.path lead elsewhere",
        beginning(path)
    )]
    TooDeep {
        /// Where it stands.
        path: TreePath,
        /// How many parts a path may have.
        limit: usize,
    },
    /// There is too much to list.
    #[error(
        "there are more than {limit} files and directories in {}, the limit; let update.path lead to a smaller directory",
        name(directory)
    )]
    TooMany {
        /// The directory that was to be listed.
        directory: TreePath,
        /// How many there may be.
        limit: usize,
    },
    /// The paths of what there is to list are too long.
    #[error(
        "the paths of all files in {} have more than {limit} bytes, the limit; let update.path lead to a smaller directory",
        name(directory)
    )]
    TooLong {
        /// The directory that was to be listed.
        directory: TreePath,
        /// How many bytes they may have.
        limit: usize,
    },
    /// The directories on the way to one file have too many entries.
    #[error(
        "the directories from the root to {} have more than {limit} bytes of entries together, the limit; let update.path \
         lead to a smaller directory",
        name(directory)
    )]
    TooWide {
        /// The innermost of them.
        directory: TreePath,
        /// How many bytes their entries may have in git.
        limit: usize,
    },
    /// Reading failed.
    #[error("cannot read {}", name(path))]
    Read {
        /// The file or directory.
        path: TreePath,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A path's first characters: those of a hostile one can be many.
fn beginning(path: &TreePath) -> String {
    path.to_string().chars().take(100).chain(['…']).collect()
}

fn name(directory: &TreePath) -> String {
    if directory.is_root() { "the root".to_owned() } else { directory.to_string() }
}

/// Whatever could not be listed or read this time may be there, or be less, the next time.
impl Failing for TreeError {
    fn reason(&self) -> Reason {
        Reason::UpdateFailed
    }

    fn is_retryable(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> TreePath {
        TreePath::from_bytes(text)
    }

    #[test]
    fn relative_paths_end_at_whole_parts() {
        assert_eq!(path("a/bc").relative_to(&path("a")), Some(path("bc")));
        assert_eq!(path("ab/c").relative_to(&path("a")), None);
        assert_eq!(path("a/b").relative_to(&TreePath::root()), Some(path("a/b")));
    }

    #[test]
    fn foreign_bytes_print_as_escapes() {
        assert_eq!(TreePath::from_bytes(b"a\xff/\xc3\xa9.yaml".to_vec()).to_string(), "a\\xff/\u{e9}.yaml");
        assert_eq!(TreePath::from_bytes("a\\xff").to_string(), "a\\\\xff");
    }
}
