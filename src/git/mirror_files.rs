//! The files of a mirror: creating, restoring, measuring, and removing the left-overs of killed processes.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use git2::{Config, ErrorCode, Repository, RepositoryInitOptions};

use super::mirror_error::MirrorError;
use super::mirror_key::MirrorKey;
use crate::directory;

/// The configuration of every mirror.
///
/// The second section bounds the memory for finding similar objects when a pack is made. Libgit2 takes `deltaCacheSize`
/// also for the size beyond which an object is not compared with others.
const CONFIGURATION: &[u8] = b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n\
    [pack]\n\twindowMemory = 4m\n\tdeltaCacheSize = 1m\n";

/// The lock file within a mirror's folder.
pub(super) const LOCK: &str = "lock";

/// Returns true if a file is the one at `path`.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(there)) = (file.metadata(), fs::metadata(path)) else { return false };
    (own.dev(), own.ino()) == (there.dev(), there.ino())
}

/// The repository within a mirror's folder.
pub(super) const REPOSITORY: &str = "repository.git";

/// Git's list of commits whose parents are not here, within the repository.
pub(super) const SHALLOW: &str = "shallow";

/// Assigns a folder to a key.
/// Files of another key are removed, even if the folder's name is the same by chance.
pub(super) fn claim(folder: &Path, key: &MirrorKey) -> io::Result<()> {
    match MirrorKey::load(folder) {
        Some(found) if found == *key => return Ok(()),
        Some(_) => {
            for item in fs::read_dir(folder)? {
                let item = item?;
                if item.file_name() != LOCK {
                    remove(&item.path())?;
                }
            }
        }
        // An earlier version wrote no key.
        None => {}
    }
    key.store(folder)
}

/// Makes an empty repository in a mirror's folder, in place of what stands there.
pub(super) fn create(folder: &Path) -> Result<Repository, MirrorError> {
    let path = folder.join(REPOSITORY);
    let refused = |cause| MirrorError::Refused { folder: folder.to_owned(), cause };
    remove(&path).map_err(refused)?;
    let mut options = RepositoryInitOptions::new();
    options.bare(true).external_template(false).initial_head("none");
    let made = Repository::init_opts(&path, &options);
    restore_configuration(&path).map_err(refused)?;
    made.and_then(|_| open(&path)).map_err(|cause| MirrorError::Unusable { folder: folder.to_owned(), cause })
}

/// Opens a repository with its own configuration alone.
///
/// Libgit2 has no safe way not to read those of the user and the system, so they are replaced after it.
pub(super) fn open(path: &Path) -> Result<Repository, git2::Error> {
    let repository = Repository::open_bare(path)?;
    repository.set_config(&Config::open(&path.join("config"))?)?;
    Ok(repository)
}

/// Checks that libgit2 can read the configuration of the user and the system.
///
/// Otherwise it opens no repository, although no setting there is used.
pub(super) fn check_user_configuration() -> Result<(), MirrorError> {
    match Config::open_default() {
        // Like git, libgit2 ignores a file that exists and may not be read.
        Err(cause) if cause.code() != ErrorCode::NotFound => Err(MirrorError::UserConfiguration { cause }),
        _ => Ok(()),
    }
}

/// Restores the initial configuration of a repository. Git obeys it in much, addresses included.
pub(super) fn restore_configuration(repository: &Path) -> io::Result<()> {
    let path = repository.join("config");
    if repository.is_dir() && directory::read(&path).ok().as_deref() != Some(CONFIGURATION) {
        remove(&path)?;
        fs::write(path, CONFIGURATION)?;
    }
    Ok(())
}

/// Removes the file or directory at `path`, if there is one.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes locks and unfinished files of killed processes, and loose objects, which are not ours.
pub(super) fn remove_leftovers(folder: &Path, repository: &Path) -> io::Result<()> {
    remove_from(folder, &is_unfinished)?;
    remove_from(repository, &is_unfinished)?;
    remove_from(&repository.join("objects"), &|name| {
        is_unfinished(name) || (name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit))
    })?;
    remove_from(&repository.join("objects/pack"), &|name| {
        // With the last prefix git marks a pack that it has not yet referred to; nothing else would ever remove it, or
        // the file to which libgit2 writes a pack.
        let is_of_libgit2 = name.starts_with(b"pack_git2_");
        is_unfinished(name) || is_of_libgit2 || name.starts_with(b".tmp-") || name.ends_with(b".keep")
    })?;
    let mut directories = vec![repository.join("refs")];
    while let Some(directory) = directories.pop() {
        remove_from(&directory, &is_unfinished)?;
        let Ok(listing) = fs::read_dir(&directory) else { continue };
        let is_directory = |item: &fs::DirEntry| item.file_type().is_ok_and(|kind| kind.is_dir());
        directories.extend(listing.flatten().filter(is_directory).map(|item| item.path()));
    }
    Ok(())
}

/// Returns true for a temporary file of git, of libgit2 or of this program.
/// Such a file is renamed when it is complete.
fn is_unfinished(name: &[u8]) -> bool {
    name.ends_with(b".lock") || name.starts_with(b"tmp_") || name.starts_with(b"shallow_")
}

fn remove_from(directory: &Path, is_left_over: &dyn Fn(&[u8]) -> bool) -> io::Result<()> {
    let listing = match fs::read_dir(directory) {
        // A file in the place of a directory is noticed when it is opened.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(());
        }
        listing => listing?,
    };
    for item in listing {
        let item = item?;
        if is_left_over(item.file_name().as_bytes()) {
            remove(&item.path())?;
        }
    }
    Ok(())
}

/// Returns the number of packs.
pub(super) fn packs(repository: &Path) -> usize {
    let Ok(listing) = fs::read_dir(repository.join("objects/pack")) else { return 0 };
    listing.flatten().filter(|item| item.path().extension().is_some_and(|is| is == "pack")).count()
}

/// Returns the size of the files below a directory, in bytes.
pub(super) fn size_of(directory: &Path) -> u64 {
    sum_of(directory, &|metadata| metadata.len())
}

/// Returns the size of a directory on the disk, in bytes of whole blocks.
/// An empty mirror takes some space, too.
pub(super) fn size_on_disk(directory: &Path) -> u64 {
    sum_of(directory, &|metadata| metadata.len().next_multiple_of(BLOCK)) + BLOCK
}

/// The block of most file systems, in bytes.
const BLOCK: u64 = 4096;

/// Returns the sum over all files below a directory.
fn sum_of(directory: &Path, size: &dyn Fn(&fs::Metadata) -> u64) -> u64 {
    let Ok(listing) = fs::read_dir(directory) else { return 0 };
    let sizes = listing.flatten().map(|item| match item.metadata() {
        Ok(metadata) if metadata.is_dir() => sum_of(&item.path(), size),
        Ok(metadata) => size(&metadata),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_key_is_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path();
        let key = |name: &str| MirrorKey { namespace: "n".into(), name: name.to_owned(), url: "u".into() };
        fs::write(folder.join(LOCK), "").unwrap();
        fs::create_dir(folder.join(REPOSITORY)).unwrap();
        for (name, expected) in [("a", true), ("a", true), ("b", false), ("b", false)] {
            claim(folder, &key(name)).unwrap();
            assert_eq!(MirrorKey::load(folder), Some(key(name)));
            assert_eq!(folder.join(REPOSITORY).exists(), expected, "{name}");
            assert!(folder.join(LOCK).exists());
        }
        // An unreadable key is one of an earlier version.
        fs::write(folder.join(MirrorKey::FILE), "{").unwrap();
        fs::create_dir(folder.join(REPOSITORY)).unwrap();
        claim(folder, &key("c")).unwrap();
        assert!(folder.join(REPOSITORY).exists() && MirrorKey::load(folder) == Some(key("c")));
    }
}
