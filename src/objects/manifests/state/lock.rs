//! A lock of the state directory: one run at a time.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;

use super::file::create_private_dir;
use super::{StateDirectory, StateError};
use crate::directory;

/// The lock file.
const LOCK: &str = "lock";

/// The other entries that a state directory may have.
///
/// `lost+found` is one if the directory is the root of a volume.
const ENTRIES: [&str; 4] = ["objects", "tags", "mirrors", "lost+found"];

/// The cause of an error about a directory of another purpose.
const FOREIGN: &str = "it is not a state directory; name an empty directory, or one that does not exist";

/// Locks a state directory for one run.
///
/// The lock is an advisory one (`flock`) on an open file, so the kernel releases it when the process ends, however it
/// ends.
#[derive(Debug)]
pub struct StateLock {
    /// `None` if a read-only directory was never written.
    ///
    /// There is nothing to lock then.
    _file: Option<File>,
}

/// The access of a run to the state that it locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateAccess {
    /// Write statuses and tags.
    ReadWrite,
    /// Read; the lock file is created if that is possible.
    ReadOnly,
}

impl StateDirectory {
    /// Locks the state without waiting; `None` if another process holds it.
    ///
    /// The directory is created if it does not exist.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read or is no state directory, or the lock file cannot be created or locked. A
    /// directory that cannot be written is no error for [`StateAccess::ReadOnly`].
    pub fn try_lock(&self, access: StateAccess) -> Result<Option<StateLock>, StateError> {
        self.check_entries()?;
        let path = self.root.join(LOCK);
        let open = || {
            create_private_dir(&self.root)?;
            // Other users cannot open it, so they cannot lock it either.
            let mut options = OpenOptions::new();
            directory::open_with(&path, options.write(true).create(true).truncate(false).mode(0o600))
        };
        let failed = |cause| self.failed("lock", &path, cause);
        let file = match open() {
            Ok(file) => file,
            Err(error) if access == StateAccess::ReadOnly && is_refused(&error) => {
                match directory::open(&path) {
                    Ok(file) => file,
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        return Ok(Some(StateLock { _file: None }));
                    }
                    Err(error) => return Err(failed(error)),
                }
            }
            Err(error) => return Err(failed(error)),
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(StateLock { _file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            // Some network file systems have no locks. A run proceeds there without one.
            Err(TryLockError::Error(cause)) if cause.kind() == ErrorKind::Unsupported => {
                Ok(Some(StateLock { _file: Some(file) }))
            }
            Err(TryLockError::Error(cause)) => Err(failed(cause)),
        }
    }
}

impl StateDirectory {
    /// Checks that a directory without a lock file has entries of a state directory only.
    fn check_entries(&self) -> Result<(), StateError> {
        let failed = |error| self.failed("read", &self.root, error);
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
        let names = names.collect::<io::Result<Vec<OsString>>>().map_err(failed)?;
        if names.iter().any(|name| name == LOCK) {
            return Ok(());
        }
        match names.iter().filter(|name| ENTRIES.iter().all(|entry| name != entry)).min() {
            None => Ok(()),
            Some(name) => Err(self.failed("use", &self.root.join(name), io::Error::other(FOREIGN))),
        }
    }
}

/// Returns whether an error means that the path is not writable.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::chain;

    #[test]
    fn a_state_is_locked_once_until_the_lock_is_dropped() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(&root.path().join("state"));
        for access in [StateAccess::ReadWrite, StateAccess::ReadOnly] {
            let lock = state.try_lock(access).unwrap();
            assert!(lock.is_some());
            // The lock belongs to an open file, so one process suffices for the test.
            for other in [StateAccess::ReadWrite, StateAccess::ReadOnly] {
                assert!(state.try_lock(other).unwrap().is_none(), "{access:?} {other:?}");
            }
            drop(lock);
        }
        assert!(state.try_lock(StateAccess::ReadWrite).unwrap().is_some());
    }

    #[test]
    fn a_lock_file_of_a_killed_run_does_not_lock_the_state() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        fs::write(root.path().join("lock"), "").unwrap();
        assert!(state.try_lock(StateAccess::ReadWrite).unwrap().is_some());
    }

    /// A bare git repository was accepted, and got a mirror and objects among its own.
    #[test]
    fn a_directory_with_other_content_is_refused_and_unchanged() {
        let root = tempfile::tempdir().unwrap();
        for name in ["objects", "refs"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        fs::write(root.path().join("HEAD"), "").unwrap();
        let state = StateDirectory::new(root.path());
        let error = state.try_lock(StateAccess::ReadWrite).unwrap_err();
        let directory = root.path().display();
        assert_eq!(
            chain(&error),
            format!(
                "cannot use the state in {directory}: HEAD: it is not a state directory; name an empty directory, or one \
                 that does not exist"
            )
        );
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
        for name in ["HEAD", "refs"] {
            fs::rename(root.path().join(name), root.path().join("objects").join(name)).unwrap();
        }
        assert!(state.try_lock(StateAccess::ReadWrite).unwrap().is_some());
    }

    #[test]
    fn only_permission_errors_count_as_a_refused_write() {
        for (kind, expected) in [
            (ErrorKind::PermissionDenied, true),
            (ErrorKind::ReadOnlyFilesystem, true),
            (ErrorKind::NotADirectory, false),
            (ErrorKind::StorageFull, false),
        ] {
            assert_eq!(is_refused(&kind.into()), expected, "{kind}");
        }
    }
}
