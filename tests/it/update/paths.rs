//! Tests of file names and update paths of every kind.
//! Golden cases in git cannot have some of these names.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde_json::json;

use crate::support::fleet::{Fleet, podinfo, tag_line};
use crate::support::manifests::automation;
use crate::support::patches;
use crate::support::trees::{Node, Tree};

fn marked(path: impl Into<PathBuf>) -> (PathBuf, Node) {
    (path.into(), Node::File(tag_line("4.0.6").into_bytes()))
}

#[test]
fn names_that_are_not_utf_8_are_files_like_others() {
    let name = OsString::from_vec(b"caf\xe9 \xff.yaml".to_vec());
    let directory = OsString::from_vec(b"d\xfe".to_vec());
    let nested = PathBuf::from(&directory).join("app.yaml");
    let fleet = Fleet::of_tree(&[marked(&name), marked(&nested)].into_iter().collect(), &podinfo());
    let outcome = fleet.update(["--output", "json"]).with_status(0).json();
    let files: Vec<_> = outcome["changes"].as_object().unwrap().keys().collect();
    assert_eq!(files, ["caf\\xe9 \\xff.yaml", "d\\xfe/app.yaml"]);
    for (path, node) in fleet.tree() {
        assert_eq!(node, Node::File(tag_line("5.0.3").into_bytes()), "{}", path.display());
    }
    assert_eq!(fleet.tree().len(), 2);
}

#[test]
fn names_with_line_breaks_stay_on_one_line_of_the_report() {
    let fleet = Fleet::of_tree(&[marked("a\nb.yaml")].into_iter().collect(), &podinfo());
    let run = fleet.update([""; 0]).with_status(0);
    assert!(run.output.contains("- File: a\\nb.yaml\n"), "{}", run.output);
    assert_eq!(fleet.text("a\nb.yaml"), tag_line("5.0.3"));
}

#[test]
fn an_update_path_is_a_directory_or_a_file_in_any_spelling() {
    for (path, key) in [
        ("apps", "a.yaml"),
        ("./apps", "a.yaml"),
        ("apps/", "a.yaml"),
        ("./apps/", "a.yaml"),
        ("/apps", "a.yaml"),
        ("apps/.", "a.yaml"),
        ("other/../apps", "a.yaml"),
        ("apps/a.yaml", "a.yaml"),
        ("./apps/a.yaml", "a.yaml"),
    ] {
        let fields = format!("  update: {{path: {path:?}}}\n");
        let manifests = format!("{}{}", podinfo(), automation("default", "fleet", &fields));
        let tree: Tree = ["apps/a.yaml", "other/b.yaml", "c.yaml"].map(marked).into();
        let fleet = Fleet::of_tree(&tree, &manifests);
        let outcome = fleet.update(["--output", "json"]).with_status(0).json();
        let files: Vec<_> = outcome["changes"].as_object().unwrap().keys().collect();
        assert_eq!(files, [key], "{path}");
        assert_eq!(fleet.text("apps/a.yaml"), tag_line("5.0.3"), "{path}");
        assert_eq!(fleet.text("other/b.yaml"), tag_line("4.0.6"), "{path}");
        assert_eq!(fleet.text("c.yaml"), tag_line("4.0.6"), "{path}");
    }
}

#[test]
fn an_update_path_of_the_whole_tree_keeps_whole_paths() {
    for path in ["", ".", "./", "/"] {
        let fields = format!("  update: {{path: {path:?}}}\n");
        let manifests = format!("{}{}", podinfo(), automation("default", "fleet", &fields));
        let fleet = Fleet::of_tree(&[marked("apps/a.yaml")].into_iter().collect(), &manifests);
        let outcome = fleet.update(["--output", "json"]).with_status(0).json();
        assert_eq!(outcome["markers"][0]["file"], json!("apps/a.yaml"), "{path:?}");
    }
}

#[test]
fn the_diff_of_a_dry_run_names_files_from_the_root() {
    let fields = "  update: {path: ./apps}\n";
    let manifests = format!("{}{}", podinfo(), automation("default", "fleet", fields));
    let fleet = Fleet::of_tree(&[marked("apps/a.yaml")].into_iter().collect(), &manifests);
    let run = fleet.update(["--dry-run"]).with_status(0);
    assert!(run.output.starts_with("--- a/apps/a.yaml\n+++ b/apps/a.yaml\n"), "{}", run.output);
}

/// Git quotes such names in its own diffs, and reads quoted names.
#[test]
fn the_diff_of_a_dry_run_can_be_applied_to_odd_names() {
    let names: [&[u8]; 6] = [
        b"caf\xe9.yaml",
        b"a\nb.yaml",
        b"quote\".yaml",
        b"back\\slash.yaml",
        "\u{e9}.yaml".as_bytes(),
        b"a b.yaml",
    ];
    let mut wrong = Vec::new();
    for name in names {
        let path = OsString::from_vec(name.to_vec());
        let fleet = Fleet::of_tree(&[marked(&path)].into_iter().collect(), &podinfo());
        let outcome = fleet.update(["--dry-run", "--output", "json"]).with_status(0).json();
        let applied = patches::apply(&fleet.directory(), outcome["diff"].as_str().unwrap());
        let is_new = fleet.tree()[&PathBuf::from(&path)] == Node::File(tag_line("5.0.3").into_bytes());
        if !is_new || applied.status != Some(0) {
            wrong.push(format!("{path:?}: {}", applied.errors.trim()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Pipes and sockets have no content to rewrite, and reading one would block for ever.
#[test]
fn only_files_are_read() {
    let fleet = Fleet::small();
    let fifo = fleet.directory().join("pipe.yaml");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(fleet.directory().join("socket.yaml")).unwrap();
    fleet.update([""; 0]).with_status(0);
    assert_eq!(fleet.text("app.yaml"), tag_line("5.0.3"));
}
