//! Writes edits atomically: a file has either its old or its new content.
//!
//! The new bytes go to a temporary file beside the old one, get its mode and owner, and replace it in one rename. There
//! is no flush to disk, as in git's checkout: it would cost more than everything else. So a killed process does no
//! harm, but a power failure may. The temporary file of a killed process has a recognizable name, and the next run in
//! that directory [removes](sweep) it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

use super::tree::Directory;
use crate::error::chain;
use crate::update::FileEdit;

const PREFIX: &str = ".tagboat-";
const SUFFIX: &str = ".part";

/// The error of a file that cannot be written; it is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file changed since it was read.
    #[error("{file} changed during the run and was not written; run again")]
    ChangedMeanwhile {
        /// The file.
        file: String,
    },
    /// The file system returned an error.
    #[error("cannot write {file}; it is unchanged")]
    Io {
        /// The file.
        file: String,
        /// The cause.
        #[source]
        cause: io::Error,
    },
}

impl WriteError {
    /// Returns true if the disk is full: writing further files would fail as well.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { cause, .. } if matches!(cause.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

/// Writes one edit into `directory`.
///
/// # Errors
///
/// Returns an error if the file changed since it was read, or if the file system refuses; the file is untouched then.
fn write_edit(directory: &Directory, edit: &FileEdit) -> Result<(), WriteError> {
    let file = edit.entry.path.to_string();
    let failed = |cause| WriteError::Io { file: file.clone(), cause };
    let path = directory.locate(&edit.entry.path);
    // A rename would replace even a read-only file; opening the file for writing checks the permission.
    let mut old = OpenOptions::new().read(true).write(true).open(&path).map_err(failed)?;
    let mut before = Vec::new();
    old.read_to_end(&mut before).map_err(failed)?;
    let after = edit.apply(&before).ok_or_else(|| WriteError::ChangedMeanwhile { file: file.clone() })?;
    replace(&path, &old, &after).map_err(failed)
}

fn replace(path: &Path, old: &File, content: &[u8]) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let mut new = tempfile::Builder::new().prefix(&prefix).suffix(SUFFIX).tempfile_in(parent)?;
    new.write_all(content)?;
    let (old, mine) = (old.metadata()?, new.as_file().metadata()?);
    if (old.uid(), old.gid()) != (mine.uid(), mine.gid()) {
        // Only a privileged process may change the owner; otherwise the file becomes its own, as with sed -i.
        match fchown(new.as_file(), Some(old.uid()), Some(old.gid())) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            _ => {}
        }
    }
    new.as_file().set_permissions(old.permissions())?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Files that cannot be written, with the error.
#[derive(Debug)]
pub struct WriteFailure<'p> {
    /// The files, by their names in results.
    pub files: Vec<&'p str>,
    /// The error.
    pub message: String,
}

/// Writes the edits independently of one another.
///
/// A full disk ends it, since nothing else would fit.
pub fn write_all<'p>(directory: &Directory, edits: &'p [FileEdit]) -> Vec<WriteFailure<'p>> {
    sweep(directory, edits);
    let mut failures = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let Err(error) = write_edit(directory, edit) else { continue };
        let message = chain(&error);
        if error.is_disk_full() {
            let files: Vec<&str> = edits[index..].iter().map(|edit| &*edit.key).collect();
            let message = format!("{message}; {} more files are unchanged", files.len() - 1);
            failures.push(WriteFailure { files, message });
            break;
        }
        failures.push(WriteFailure { files: vec![&edit.key], message });
    }
    failures
}

/// Removes temporary files of killed runs, and returns their number.
///
/// It looks in the directories of `edits`, and in those where a listing of `directory` found such files.
///
/// Call it under the directory's [`Lock`](super::Lock), so that no running process loses a file.
fn sweep(directory: &Directory, edits: &[FileEdit]) -> usize {
    let mut parents = directory.stale_directories();
    parents.extend(edits.iter().map(|edit| edit.entry.path.parent()));
    let mut removed = 0;
    for parent in &parents {
        let Ok(listing) = fs::read_dir(directory.locate(parent)) else { continue };
        for item in listing.flatten().filter(|item| is_stale_temporary(item.file_name().as_bytes())) {
            removed += usize::from(fs::remove_file(item.path()).is_ok());
        }
    }
    removed
}

/// Returns true if a process is running.
///
/// A run in a parent or child directory may be writing.
fn is_alive(process: &str) -> bool {
    process != std::process::id().to_string() && Path::new("/proc").join(process).exists()
}

/// Returns true if the name is that of an ended run's temporary file.
pub(super) fn is_stale_temporary(name: &[u8]) -> bool {
    let middle = name.strip_prefix(PREFIX.as_bytes()).and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    let Some((process, random)) = middle.and_then(|middle| std::str::from_utf8(middle).ok()?.split_once('-'))
    else {
        return false;
    };
    let is_ours = random.len() == 6 && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
    is_ours && is_number && !is_alive(process)
}
