//! What stands in the way of the state.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why the state could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot {deed} the state in {}{}", root.display(), Place { root, culprit })]
pub struct StateError {
    /// `read`, `keep` or `lock`.
    pub(super) deed: &'static str,
    /// The state directory as it was given.
    pub(super) root: PathBuf,
    /// The file or directory that is in the way.
    pub(super) culprit: PathBuf,
    /// Why.
    #[source]
    pub(super) cause: io::Error,
}

/// Prints what is in the way, where that is not the whole directory.
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
