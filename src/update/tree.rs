//! The interface to a tree of files: a directory or a commit.

use std::fmt;
use std::ops::ControlFlow;

/// A path relative to the root of a tree, as bytes separated by `/`.
///
/// It has no leading `/`. The root itself is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(Vec<u8>);

impl TreePath {
    /// The root of the tree.
    pub fn root() -> Self {
        Self::default()
    }

    /// Creates a path from bytes that already have this form.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The path of `part`, a single component, within the directory `self`.
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

    /// Returns true if this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The components between the slashes.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/').filter(|part| !part.is_empty())
    }

    /// The last component; empty for the root.
    pub fn file_name(&self) -> &[u8] {
        self.parts().next_back().unwrap_or_default()
    }

    /// The directory that contains this path.
    pub fn parent(&self) -> Self {
        let end = self.0.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        Self(self.0[..end].to_vec())
    }

    /// The path relative to `directory`, or `None` if it is not below it.
    pub fn relative_to(&self, directory: &Self) -> Option<Self> {
        if directory.is_root() {
            return Some(self.clone());
        }
        let rest = self.0.strip_prefix(directory.as_bytes())?.strip_prefix(b"/")?;
        Some(Self(rest.to_vec()))
    }
}

/// Prints the path with escapes, so that no two paths print alike.
///
/// Bytes that are not UTF-8 are printed as `\xNN`, and a backslash as two.
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

/// The type of an entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file, executable or not.
    File,
    /// A symbolic link; its content is the target.
    Link,
    /// A directory; it is never listed as an entry.
    Directory,
    /// A directory that cannot be listed.
    UnreadableDirectory,
}

/// Identifies an entry's content without reading it: the id of a git blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentId(pub [u8; 20]);

/// A file or symbolic link of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path from the root.
    pub path: TreePath,
    /// Its type.
    pub kind: EntryKind,
    /// The id of its content, if known.
    pub content: Option<ContentId>,
}

/// The decision of a visitor on a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkDecision {
    /// Its entries are visited.
    Enter,
    /// It is skipped, and [`TreeVisitor::leave`] is not called for it.
    Skip,
}

/// Receives the entries of a tree one by one.
///
/// A large tree is never in memory as a whole.
///
/// A method that returns [`ControlFlow::Break`] ends the walk.
pub trait TreeVisitor {
    /// Visits a file, a link, or a directory that cannot be listed.
    fn entry(&mut self, entry: Entry) -> ControlFlow<()>;

    /// Decides about a directory before its entries are visited.
    ///
    /// `content` identifies all that is below it, if the tree knows the id.
    fn enter(&mut self, path: &TreePath, content: Option<ContentId>) -> ControlFlow<(), WalkDecision>;

    /// Ends the innermost entered directory.
    fn leave(&mut self);
}

/// A visitor that collects all entries.
#[derive(Debug, Default)]
struct Entries(Vec<Entry>);

impl TreeVisitor for Entries {
    fn entry(&mut self, entry: Entry) -> ControlFlow<()> {
        self.0.push(entry);
        ControlFlow::Continue(())
    }

    fn enter(&mut self, _: &TreePath, _: Option<ContentId>) -> ControlFlow<(), WalkDecision> {
        ControlFlow::Continue(WalkDecision::Enter)
    }

    fn leave(&mut self) {}
}

/// A tree of files that can be listed and read.
pub trait FileTree {
    /// Visits the files and links at or below `under`, in ascending byte order of paths.
    ///
    /// If `under` is a file or link, it is the only entry. The visitor decides about each directory below `under`, but
    /// not about `under` itself. Links are not followed, and `.git` is not entered.
    ///
    /// # Errors
    ///
    /// Returns [`TreeError::NotFound`] if there is nothing at `under`, and another error beyond the limits of
    /// [`TreeLimits`](super::tree_limits::TreeLimits). A walk that the visitor ends is no error.
    fn walk(&self, under: &TreePath, visitor: &mut dyn TreeVisitor) -> Result<(), TreeError>;

    /// Lists the files and links at or below `under`, in ascending byte order of paths.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`walk`](Self::walk).
    fn entries(&self, under: &TreePath) -> Result<Vec<Entry>, TreeError> {
        let mut entries = Entries::default();
        self.walk(under, &mut entries)?;
        Ok(entries.0)
    }

    /// Returns the type of the entry at `path`, without following links.
    ///
    /// # Errors
    ///
    /// Returns [`TreeError::NotFound`] if there is nothing at `path`.
    fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError>;

    /// Reads an entry into `content`, replacing its bytes: a file's bytes, or a link's target.
    ///
    /// # Errors
    ///
    /// Returns [`TreeError::TooLarge`] if there are more than `limit` bytes; `content` is undefined then.
    fn read(&self, entry: &Entry, limit: usize, content: &mut Vec<u8>) -> Result<(), TreeError>;

    /// Returns true if a file contains `token`, even one too large to be read.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read; [`TreeError::TooLarge`] if it cannot even be searched.
    fn contains(&self, entry: &Entry, token: &[u8]) -> Result<bool, TreeError>;
}

/// The error of listing or reading a tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// There is nothing at this path.
    #[error("there is no file or directory {path}")]
    NotFound {
        /// The path.
        path: TreePath,
    },
    /// The file or link is larger than the limit.
    #[error("{path} has {size} bytes")]
    TooLarge {
        /// The path of the file or link.
        path: TreePath,
        /// Its size in bytes.
        size: u64,
    },
    /// A path has too many components.
    #[error(
        "a path has more than {limit} parts, the limit: {}; remove it, or set update.path to another directory",
        beginning(path)
    )]
    TooDeep {
        /// The path.
        path: TreePath,
        /// The maximum number of components.
        limit: usize,
    },
    /// There are too many entries.
    #[error(
        "there are more than {limit} files and directories in {}, the limit; set update.path to a smaller directory",
        name(directory)
    )]
    TooMany {
        /// The listed directory.
        directory: TreePath,
        /// The maximum number of files and directories.
        limit: usize,
    },
    /// The paths of all entries are too long.
    #[error(
        "the paths of all files in {} have more than {limit} bytes, the limit; set update.path to a smaller directory",
        name(directory)
    )]
    TooLong {
        /// The listed directory.
        directory: TreePath,
        /// The maximum length of all paths in bytes.
        limit: usize,
    },
    /// The directories above a file have too many entries.
    #[error(
        "the directories from the root to {} have more than {limit} bytes of entries together, the limit; set update.path \
         to a smaller directory",
        name(directory)
    )]
    TooWide {
        /// The innermost directory.
        directory: TreePath,
        /// The maximum size of their entries in git, in bytes.
        limit: usize,
    },
    /// Reading failed.
    #[error("cannot read {}", name(path))]
    Read {
        /// The file or directory.
        path: TreePath,
        /// The cause.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The first characters of a path: a hostile one can be long.
fn beginning(path: &TreePath) -> String {
    path.to_string().chars().take(100).chain(['…']).collect()
}

fn name(directory: &TreePath) -> String {
    if directory.is_root() { "the root".to_owned() } else { directory.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> TreePath {
        TreePath::from_bytes(text)
    }

    #[test]
    fn relative_paths_are_split_at_whole_components() {
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
