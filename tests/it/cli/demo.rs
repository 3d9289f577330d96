//! `tagboat demo`: the first thing that a newcomer runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::program::{run, tagboat};

fn demo(directory: &Path) -> Command {
    let mut command = tagboat();
    command.arg("demo").arg(directory);
    command
}

#[test]
fn it_updates_its_sample_and_shows_report_and_diff() {
    let root = tempfile::tempdir().unwrap();
    let ended = run(&mut demo(&root.path().join("new/sample"))).with_status(0);
    assert_eq!(ended.errors, "");
    for words in ["$ tagboat update ", "- File: ", "Worth saying:", " diff --unified=0", "\n+", "\n-"] {
        assert!(ended.output.contains(words), "no {words:?} in {}", ended.output);
    }
}

#[test]
fn it_unpacks_into_no_directory_that_holds_something() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("mine"), "x").unwrap();
    let ended = run(&mut demo(root.path())).with_status(1);
    assert!(ended.only_error().contains("is not empty; name a directory that is"), "{ended:?}");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

/// Once git is there, the same command is to work in the same place.
#[test]
fn without_git_nothing_is_unpacked() {
    let root = tempfile::tempdir().unwrap();
    let (sample, nothing) = (root.path().join("sample"), root.path().join("nothing"));
    fs::create_dir(&nothing).unwrap();
    let ended = run(demo(&sample).env("PATH", &nothing)).with_status(1);
    assert_eq!(
        ended.only_error(),
        "error: git is not installed, or not in PATH; tagboat needs git 2.32 or newer"
    );
    assert_eq!(ended.output, "");
    assert!(!sample.exists());
    run(&mut demo(&sample)).with_status(0);
}
