//! Files that cannot be written, not even by root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use super::program::run;

/// A file that its owner cannot write, even if that is root.
pub(crate) struct Unwritable {
    path: PathBuf,
    is_immutable: bool,
}

impl Unwritable {
    pub(crate) fn make(path: PathBuf) -> Self {
        if fs::metadata(&path).unwrap().uid() != 0 {
            fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
            return Self { path, is_immutable: false };
        }
        let chattr = run(Command::new("chattr").arg("+i").arg(&path));
        assert_eq!(
            chattr.status,
            Some(0),
            "root can write any file unless it is immutable, and chattr +i does not work in {}: {chattr:?}; set TMPDIR \
             to a directory on ext4, xfs or btrfs, or run the tests as another user",
            path.display()
        );
        Self { path, is_immutable: true }
    }
}

impl Drop for Unwritable {
    fn drop(&mut self) {
        if self.is_immutable {
            let _ = Command::new("chattr").arg("-i").arg(&self.path).status();
        }
    }
}
