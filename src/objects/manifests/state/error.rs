//! The error of the state directory.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The error of reading or writing the state.
#[derive(Debug, thiserror::Error)]
#[error("cannot {deed} the state in {}{}", root.display(), Place { root, culprit })]
pub struct StateError {
    /// The operation: `read`, `keep`, `lock` or `use`.
    pub(super) deed: &'static str,
    /// The state directory as it was given.
    pub(super) root: PathBuf,
    /// The file or directory of the error.
    pub(super) culprit: PathBuf,
    /// The cause.
    #[source]
    pub(super) cause: io::Error,
}

/// Formats the path, unless it is the state directory itself.
struct Place<'a> {
    root: &'a Path,
    culprit: &'a Path,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.culprit.strip_prefix(self.root).unwrap_or(self.culprit);
        if place.as_os_str().is_empty() { Ok(()) } else { write!(formatter, ": {}", place.display()) }
    }
}
