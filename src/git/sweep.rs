//! Removing mirrors that nobody uses any more: of repositories that have gone, or that are elsewhere now.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::mirror::LOCK;

/// A mirror that nobody has used for so long is removed. Should it be wanted again, it is fetched again.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 3600);

/// Removes the mirrors below `mirrors` that nobody has used for a week, as of `now`.
///
/// # Errors
///
/// When the file system refuses; the others are looked at all the same.
pub fn sweep_mirrors(mirrors: &Path, now: SystemTime) -> io::Result<()> {
    let listing = match fs::read_dir(mirrors) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listing => listing?,
    };
    let mut result = Ok(());
    for item in listing {
        let folder = item?.path();
        let removed = sweep(&folder, now);
        result = result.and(removed);
    }
    result
}

fn sweep(folder: &Path, now: SystemTime) -> io::Result<()> {
    // What has no lock is no mirror.
    let Ok(lock) = File::options().write(true).open(folder.join(LOCK)) else { return Ok(()) };
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let age = now.duration_since(lock.metadata()?.modified()?).unwrap_or_default();
    if age < UNUSED { Ok(()) } else { fs::remove_dir_all(folder) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_that_nobody_uses_go_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for (name, days) in [("old", 8), ("new", 6), ("held", 8), ("other", 8)] {
            let folder = directory.path().join(name);
            fs::create_dir(&folder).unwrap();
            let file = if name == "other" { "note" } else { LOCK };
            let file = File::create(folder.join(file)).unwrap();
            file.set_modified(now - Duration::from_secs(days * 24 * 3600)).unwrap();
        }
        let held = File::options().write(true).open(directory.path().join("held").join(LOCK)).unwrap();
        held.lock().unwrap();
        sweep_mirrors(directory.path(), now).unwrap();
        sweep_mirrors(&directory.path().join("missing"), now).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|item| item.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["held", "new", "other"]);
    }
}
