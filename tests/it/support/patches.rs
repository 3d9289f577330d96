//! Patches, applied by git.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::program::{Run, run};

/// Applies a unified diff to the files in `directory`, which is not in a repository.
pub(crate) fn apply(directory: &Path, diff: &str) -> Run {
    let outside = tempfile::tempdir().unwrap();
    let patch = outside.path().join("patch");
    fs::write(&patch, diff).unwrap();
    let mut git = Command::new("git");
    git.current_dir(directory).args(["apply", "--whitespace=nowarn"]).arg(&patch);
    git.env("GIT_CEILING_DIRECTORIES", directory.parent().unwrap());
    run(git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1"))
}
