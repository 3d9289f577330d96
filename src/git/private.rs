//! Private directories, which are removed with their owner.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use tempfile::TempDir;

/// The prefix of the directories' names.
const PREFIX: &str = "tagboat-private-";

/// The path of a file system in memory, if the machine has it.
/// Its files never reach a disk.
const MEMORY_FILE_SYSTEM: &str = "/dev/shm";

/// The number of attempts at a directory that a concurrent sweep removed.
const ATTEMPTS: usize = 16;

/// A directory of mode 0700 with files of mode 0600.
///
/// It is locked while it is used, so that [`PrivateDirectory::sweep`] recognizes the directories of killed processes.
#[derive(Debug)]
pub struct PrivateDirectory {
    // Fields are dropped in this order: the directory first, then its lock.
    directory: TempDir,
    _lock: File,
}

/// The error of a private directory or of a file in it.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// No place accepts a directory.
    #[error("cannot make a private directory below {base}: set TMPDIR to a directory that can be written", base = .base.display())]
    NotMade {
        /// The last place that was tried.
        base: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// There is no place from which programs can be started.
    #[error(
        "no temporary directory allows programs to be started: set TMPDIR to one that is not mounted noexec"
    )]
    NoexecFileSystem,
    /// A file could not be written.
    #[error("cannot write {path}: free disk space, or set TMPDIR to another directory", path = .path.display())]
    NotWritten {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
}

/// The requirement on the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectoryPurpose {
    Files,
    Programs,
}

impl PrivateDirectory {
    /// Creates a directory for files, in memory if possible.
    ///
    /// # Errors
    ///
    /// If neither the memory file system nor the temporary directory accepts it.
    pub fn create() -> Result<Self, PrivateError> {
        Self::create_below(&bases(), DirectoryPurpose::Files)
    }

    /// Creates a directory for files that are too large for memory.
    ///
    /// # Errors
    ///
    /// If the temporary directory does not accept it.
    pub fn create_on_disk() -> Result<Self, PrivateError> {
        Self::create_below(&[std::env::temp_dir()], DirectoryPurpose::Files)
    }

    /// Creates a directory for programs.
    /// The memory file system is often mounted without the right to execute.
    ///
    /// # Errors
    ///
    /// If no place accepts it.
    pub fn create_for_programs() -> Result<Self, PrivateError> {
        Self::create_below(&bases(), DirectoryPurpose::Programs)
    }

    fn create_below(bases: &[PathBuf], purpose: DirectoryPurpose) -> Result<Self, PrivateError> {
        let fits = |base: &&PathBuf| purpose == DirectoryPurpose::Files || starts_programs(base);
        let bases: Vec<PathBuf> = bases.iter().filter(fits).cloned().collect();
        Self::create_with(&bases, |_| Ok(())).map(|(directory, ())| directory)
    }

    /// Creates a directory and lets `write` put files into it.
    /// The directory is in the first of `bases` that has room for both.
    ///
    /// # Errors
    ///
    /// The error of the last base, if none has room.
    pub(super) fn create_with<T>(
        bases: &[PathBuf],
        mut write: impl FnMut(&Self) -> Result<T, PrivateError>,
    ) -> Result<(Self, T), PrivateError> {
        let mut error = PrivateError::NoexecFileSystem;
        for base in bases {
            let made = Self::create_in(base)
                .map_err(|cause| PrivateError::NotMade { base: base.clone(), cause })
                .and_then(|directory| write(&directory).map(|written| (directory, written)));
            match made {
                Ok(made) => return Ok(made),
                Err(cause) => error = cause,
            }
        }
        Err(error)
    }

    fn create_in(base: &Path) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let directory = tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(fs::Permissions::from_mode(0o700))
                .tempdir_in(base)?;
            // A sweep may find the directory before it is locked. Then the sweep removes it, and another one is made.
            let lock = match File::open(directory.path()) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if is_still(directory.path(), &lock)? {
                return Ok(Self { directory, _lock: lock });
            }
        }
        Err(io::Error::other("other processes sweep there all the time"))
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file that only we can read.
    ///
    /// # Errors
    ///
    /// If the file exists, or there is no room.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, PrivateError> {
        self.write_with_mode(name, content, 0o600)
    }

    /// Writes a program that only we can start.
    ///
    /// # Errors
    ///
    /// If the file exists, or there is no room.
    pub fn write_program(&self, name: &str, content: &[u8]) -> Result<PathBuf, PrivateError> {
        self.write_with_mode(name, content, 0o700)
    }

    fn write_with_mode(&self, name: &str, content: &[u8], mode: u32) -> Result<PathBuf, PrivateError> {
        let path = self.path().join(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        match options.open(&path).and_then(|mut file| file.write_all(content)) {
            Ok(()) => Ok(path),
            Err(cause) => Err(PrivateError::NotWritten { path, cause }),
        }
    }

    /// Removes the directories of killed processes of the same user.
    ///
    /// Directories that cannot be removed remain.
    pub fn sweep() {
        sweep_below(&bases());
    }
}

/// Returns the parents of private directories, the best one first.
pub(super) fn bases() -> Vec<PathBuf> {
    vec![PathBuf::from(MEMORY_FILE_SYSTEM), std::env::temp_dir()]
}

/// Returns true if the directory at `path` is still the opened one.
fn is_still(path: &Path, opened: &File) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) => {
            let opened = opened.metadata()?;
            Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn starts_programs(base: &Path) -> bool {
    rustix::fs::statvfs(base).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

fn sweep_below(bases: &[PathBuf]) {
    for item in bases.iter().flat_map(fs::read_dir).flatten().flatten() {
        if item.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            // Another sweep or the owner may be faster.
            let _ = remove_if_stale(&item.path());
        }
    }
}

/// Removes a directory of ours whose lock is free.
fn remove_if_stale(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    // The parents are writable for all: directories of other users, and links, are not ours.
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let lock = File::open(path)?;
    match lock.try_lock() {
        Ok(()) => fs::remove_dir_all(path),
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn base() -> (TempDir, Vec<PathBuf>) {
        let base = TempDir::new().unwrap();
        let bases = vec![base.path().join("missing"), base.path().to_owned()];
        (base, bases)
    }

    #[test]
    fn private_files_are_readable_by_the_owner_only_and_removed_on_drop() {
        let (_base, bases) = base();
        let directory = PrivateDirectory::create_below(&bases, DirectoryPurpose::Files).unwrap();
        let file = directory.write("config", b"x").unwrap();
        let program = directory.write_program("ask", b"#!/bin/sh\n").unwrap();
        assert_eq!((mode(directory.path()), mode(&file), mode(&program)), (0o700, 0o600, 0o700));
        assert_eq!(fs::read(&file).unwrap(), b"x");
        assert!(matches!(directory.write("config", b"y"), Err(PrivateError::NotWritten { .. })));
        let path = directory.path().to_owned();
        assert!(path.starts_with(&bases[1]));
        drop(directory);
        assert!(!path.exists());
    }

    /// A file system in memory has 64 MiB in a pod.
    /// Other processes write there too.
    #[test]
    fn a_directory_without_room_for_its_file_is_left_for_the_next_base() {
        let (full, empty) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let bases = [full.path().to_owned(), empty.path().to_owned()];
        let write = |directory: &PrivateDirectory| {
            if directory.path().starts_with(full.path()) {
                fs::write(directory.path().join("part"), b"x").unwrap();
                let cause = io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
                return Err(PrivateError::NotWritten { path: directory.path().to_owned(), cause });
            }
            directory.write("ca.crt", b"x")
        };
        let (_directory, path) = PrivateDirectory::create_with(&bases, write).unwrap();
        assert!(path.starts_with(empty.path()) && path.exists());
        assert_eq!(fs::read_dir(full.path()).unwrap().count(), 0);
        let error = PrivateDirectory::create_with(&bases[..1], write).unwrap_err();
        assert!(error.to_string().contains("free disk space"), "{error}");
    }

    #[test]
    fn a_sweep_removes_directories_that_no_process_holds() {
        let (base, bases) = base();
        let used = PrivateDirectory::create_below(&bases, DirectoryPurpose::Files).unwrap();
        used.write("config", b"x").unwrap();
        let left = base.path().join(format!("{PREFIX}left"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("identity"), "x").unwrap();
        let held = base.path().join(format!("{PREFIX}held"));
        fs::create_dir(&held).unwrap();
        let handle = File::open(&held).unwrap();
        handle.lock().unwrap();
        let other = base.path().join("of-somebody-else");
        fs::create_dir(&other).unwrap();
        symlink(&other, base.path().join(format!("{PREFIX}link"))).unwrap();
        fs::write(base.path().join(format!("{PREFIX}file")), "x").unwrap();

        sweep_below(&bases);
        assert!(!left.exists() && held.exists() && other.exists() && used.path().join("config").exists());

        drop(handle);
        sweep_below(&bases);
        assert!(!held.exists() && used.path().exists());
    }

    #[test]
    fn concurrent_sweeps_remove_no_directory_in_use() {
        let (base, bases) = base();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let directory =
                            PrivateDirectory::create_below(&bases, DirectoryPurpose::Files).unwrap();
                        let file = directory.write("config", b"x").unwrap();
                        std::thread::yield_now();
                        assert_eq!(fs::read(file).unwrap(), b"x");
                    }
                });
                scope.spawn(|| {
                    for _ in 0..200 {
                        sweep_below(&bases);
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_base_directory_is_named() {
        let (base, bases) = base();
        let error = PrivateDirectory::create_below(&bases[..1], DirectoryPurpose::Files).unwrap_err();
        assert!(error.to_string().contains(&base.path().join("missing").display().to_string()), "{error}");
        let error = PrivateDirectory::create_below(&[], DirectoryPurpose::Programs).unwrap_err();
        assert!(matches!(error, PrivateError::NoexecFileSystem));
    }
}
