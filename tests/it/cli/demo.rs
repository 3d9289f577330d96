//! `tagboat demo`: the first thing that a newcomer runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::bare_repository::BareRepository;
use crate::support::program::{run, tagboat};

fn demo(directory: &Path) -> Command {
    let mut command = tagboat();
    command.arg("demo").arg(directory);
    command
}

#[test]
fn it_pushes_a_commit_and_then_has_nothing_to_do() {
    let root = tempfile::tempdir().unwrap();
    let sample = root.path().join("new/sample");
    let ended = run(&mut demo(&sample)).with_status(0);
    assert_eq!(ended.errors, "");
    for words in [
        "\n$ cd ",
        "\n- File: shop/values.yaml\n",
        "\nWorth saying:\n- charts/template.yaml:",
        "\npushed commit '",
        "\n 3 files changed, 3 insertions(+), 3 deletions(-)\n",
        "\n+        image: \"ghcr.io/acme/web:2.4.1\"    # {",
        "\nno change since last reconciliation\n",
    ] {
        assert_eq!(ended.output.matches(words).count(), 1, "{words:?} in {}", ended.output);
    }
    assert!(ended.output.lines().count() < 60, "no longer one screen: {}", ended.output);
    assert_eq!(ended.output.matches("\n$ tagboat run manifests --state state\n").count(), 2);
    let remote = BareRepository::existing(&sample.join("fleet.git"));
    let log = remote.log("main");
    let said: Vec<_> = log.iter().map(|commit| (commit.author.as_str(), commit.message.as_str())).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said.iter().any(|(_, message)| message.trim_end() == "Update from image update automation"),
        "{said:?}"
    );
    remote.assert_sound();
    let windows = remote.file("main", "apps/api/kustomization.yaml");
    let windows = String::from_utf8(windows).unwrap();
    assert!(windows.split_inclusive('\n').all(|line| line.ends_with("\r\n")), "{windows:?}");
    assert!(windows.contains("newTag: \"1.10\" # {"), "{windows:?}");
}

/// The reader is told to type them.
#[test]
fn its_commands_work_where_it_says() {
    let root = tempfile::tempdir().unwrap();
    let sample = root.path().join("a \"quoted\" name: x");
    run(&mut demo(&sample)).with_status(0);
    let mut again = tagboat();
    again.current_dir(&sample).args(["run", "manifests", "--state", "state"]);
    let ended = run(&mut again).with_status(0);
    assert_eq!(ended.output, "Automation: demo/fleet\nno change since last reconciliation\n");
}

#[test]
fn without_a_place_it_names_a_temporary_one_and_keeps_it() {
    let root = tempfile::tempdir().unwrap();
    let ended = run(tagboat().arg("demo").env("TMPDIR", root.path())).with_status(0);
    let place = ended.output.lines().find_map(|line| line.strip_prefix("$ cd ")).unwrap();
    assert!(Path::new(place).starts_with(root.path()), "{place}");
    let mut names: Vec<_> = fs::read_dir(place).unwrap().map(|item| item.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["fleet.git", "manifests", "state"]);
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
