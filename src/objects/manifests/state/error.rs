//! The error of the state directory.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The error of reading or writing the state.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} the state in {}{}", root.display(), RelativePath { root, path })]
pub struct StateError {
    /// The operation: `read`, `save`, `lock` or `use`.
    pub(super) operation: &'static str,
    /// The state directory as it was given.
    pub(super) root: PathBuf,
    /// The file or directory of the error.
    pub(super) path: PathBuf,
    /// The cause.
    #[source]
    pub(super) cause: io::Error,
}

/// Formats the path, unless it is the state directory itself.
struct RelativePath<'a> {
    root: &'a Path,
    path: &'a Path,
}

impl fmt::Display for RelativePath<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relative = self.path.strip_prefix(self.root).unwrap_or(self.path);
        if relative.as_os_str().is_empty() { Ok(()) } else { write!(formatter, ": {}", relative.display()) }
    }
}
