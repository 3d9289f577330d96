//! `tagboat demo`, which a newcomer runs first.

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
fn pushed_images_are_committed_once() {
    let root = tempfile::tempdir().unwrap();
    let sample = root.path().join("new/sample");
    let ended = run(&mut demo(&sample)).with_status(0);
    assert_eq!(ended.errors, "");
    let registry = registry(&ended.output);
    let web = |tag: &str| format!("image: \"{registry}/acme/web:{tag}\"    # {{");
    for (words, times) in [
        ("\n$ cd ".to_owned(), 1),
        ("\n- File: shop/values.yaml\n".to_owned(), 1),
        ("\nWarnings:\n- charts/template.yaml:".to_owned(), 1),
        (format!("    - {registry}/acme/web:2.3.0 -> {registry}/acme/web:2.4.1\n"), 1),
        (format!("\n-        {}", web("2.3.0")), 1),
        (format!("\n+        {}", web("2.4.1")), 1),
        ("\n    - stable@sha256:".to_owned(), 2),
        ("\npushed commit '".to_owned(), 2),
        ("\nno change since last reconciliation\n".to_owned(), 1),
        ("\n$ tagboat run manifests --state state".to_owned(), 3),
    ] {
        assert_eq!(ended.output.matches(&words).count(), times, "{words:?} in {}", ended.output);
    }
    assert!(ended.output.lines().count() < 60, "no longer one screen: {}", ended.output);
    let remote = BareRepository::existing(&sample.join("fleet.git"));
    let log = remote.log("main");
    let messages: Vec<_> = log.iter().map(|commit| commit.message.trim_end()).collect();
    let update = "Update from image update automation";
    assert_eq!(messages, [update, update, "A sample fleet"]);
    remote.assert_sound();
    let text = |path: &str| String::from_utf8(remote.file("main", path)).unwrap();
    let windows = text("apps/api/kustomization.yaml");
    assert!(windows.split_inclusive('\n').all(|line| line.ends_with("\r\n")), "{windows:?}");
    assert!(windows.contains("newTag: \"1.10\" # {"), "{windows:?}");
    // The commit has the digest of the image that was pushed last.
    let shown = ended.output.lines().filter_map(|line| line.split_once(" -> stable@")).next_back().unwrap().1;
    assert!(text("apps/shop/values.yaml").contains(&format!("tag: stable@{shown} # ")), "{shown}");
}

/// Host and port of the registry that the output names.
fn registry(output: &str) -> &str {
    let rest = output.strip_prefix("A registry is at ").unwrap();
    rest.split_once(',').unwrap().0
}

/// The commands that the demo prints change nothing after its registry has ended.
/// The reader may type them then. The run reports the missing registry.
#[test]
fn the_demos_commands_change_nothing_without_its_registry() {
    let root = tempfile::tempdir().unwrap();
    let sample = root.path().join("a \"quoted\" name: x");
    let shown = run(&mut demo(&sample)).with_status(0);
    let mut again = tagboat();
    again.current_dir(&sample).args(["run", "manifests", "--state", "state"]);
    let ended = run(&mut again).with_status(1);
    assert_eq!(ended.output, "Automation: demo/fleet\nno change since last reconciliation\n");
    let lines: Vec<&str> = ended.errors.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for (line, name) in lines.iter().zip(["api", "shop", "web"]) {
        let begin =
            format!("ImageRepository demo/{name}: scan failed: GET https://{}/v2/", registry(&shown.output));
        assert!(line.starts_with(&begin) && line.ends_with("keep the images that they have"), "{line}");
    }
}

/// Loopback needs no proxy, even if the machine has one.
#[test]
fn the_demo_ignores_a_proxy_of_the_environment() {
    let root = tempfile::tempdir().unwrap();
    let mut command = demo(&root.path().join("sample"));
    command
        .env("HTTP_PROXY", "http://127.0.0.1:1")
        .env("http_proxy", "http://127.0.0.1:1")
        .env_remove("NO_PROXY");
    run(command.env_remove("no_proxy")).with_status(0);
}

#[test]
fn without_a_directory_the_demo_names_a_temporary_one_and_keeps_it() {
    let root = tempfile::tempdir().unwrap();
    let ended = run(tagboat().arg("demo").env("TMPDIR", root.path())).with_status(0);
    let place = ended.output.lines().find_map(|line| line.strip_prefix("$ cd ")).unwrap();
    assert!(Path::new(place).starts_with(root.path()), "{place}");
    let mut names: Vec<_> = fs::read_dir(place).unwrap().map(|item| item.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["fleet.git", "manifests", "state"]);
}

#[test]
fn the_demo_does_not_unpack_into_a_directory_with_files() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("mine"), "x").unwrap();
    let ended = run(&mut demo(root.path())).with_status(1);
    assert!(ended.only_error().contains("is not empty; name a directory that is"), "{ended:?}");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn a_file_in_the_place_of_the_directory_is_named() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "x").unwrap();
    let sentence =
        format!("error: {} is not a directory; name one that is empty or does not exist", file.display());
    assert_eq!(run(&mut demo(&file)).with_status(1).only_error(), sentence);
    assert_eq!(fs::read(&file).unwrap(), b"x");
}

/// A directory's name could move the cursor of a terminal.
#[test]
fn control_characters_in_the_name_of_the_directory_are_escapes() {
    let root = tempfile::tempdir().unwrap();
    // Git's URLs have no control characters, so the demo ends with the first run.
    let ended = run(&mut demo(&root.path().join("a\u{1b}[2Jb"))).with_status(1);
    assert!(!ended.output.contains('\u{1b}'), "{}", ended.output);
    assert_eq!(ended.output.matches("a\\u{1b}[2Jb\n").count(), 1, "{}", ended.output);
}

/// Once git is installed, the same command must work in the same directory.
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
