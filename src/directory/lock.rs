//! Locks a directory for one writer at a time.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// The lock of a directory, released when dropped or when the process ends.
#[derive(Debug)]
pub struct Lock {
    _directory: File,
}

/// The error of a directory that cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("another tagboat is writing in {}; run again when it is done", path.display())]
    Held {
        /// The directory.
        path: PathBuf,
    },
    /// The directory cannot be opened or locked.
    #[error("cannot lock {}", path.display())]
    Failed {
        /// The directory.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: std::io::Error,
    },
}

impl Lock {
    /// Locks the directory at `path`, without waiting.
    ///
    /// # Errors
    ///
    /// Returns an error if another process holds the lock.
    pub fn acquire(path: &Path) -> Result<Self, LockError> {
        let failed = |cause| LockError::Failed { path: path.to_owned(), cause };
        let directory = File::open(path).map_err(failed)?;
        match directory.try_lock() {
            Ok(()) => Ok(Self { _directory: directory }),
            Err(TryLockError::WouldBlock) => Err(LockError::Held { path: path.to_owned() }),
            // Some network file systems have no locks; two writers can then at worst redo each other's work.
            Err(TryLockError::Error(cause)) if cause.kind() == std::io::ErrorKind::Unsupported => {
                Ok(Self { _directory: directory })
            }
            Err(TryLockError::Error(cause)) => Err(failed(cause)),
        }
    }
}
