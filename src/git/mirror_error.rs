//! The error of a mirror that cannot be used.

use std::io;
use std::path::PathBuf;

/// The error of a mirror that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// Another process has held the mirror for too long.
    #[error("another process is working in {}; run again when it is done", folder.display())]
    Held {
        /// The mirror's folder.
        folder: PathBuf,
    },
    /// The file system refuses an operation.
    #[error("cannot keep a mirror in {}", folder.display())]
    Refused {
        /// The mirror's folder.
        folder: PathBuf,
        /// The error of the file system.
        #[source]
        cause: io::Error,
    },
    /// The configuration of the user or the system cannot be read.
    #[error(
        "libgit2 cannot read your configuration of git, or that of the system; correct the file, or set HOME and \
         XDG_CONFIG_HOME to a directory without one"
    )]
    UserConfiguration {
        /// The error of libgit2, with the file.
        #[source]
        cause: git2::Error,
    },
    /// The repository cannot be opened or changed.
    #[error("the mirror in {} cannot be used", folder.display())]
    Unusable {
        /// The mirror's folder.
        folder: PathBuf,
        /// The error of libgit2.
        #[source]
        cause: git2::Error,
    },
}
