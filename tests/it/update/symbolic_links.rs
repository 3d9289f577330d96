//! Tests of symbolic links.
//! A target inside the tree is edited once, in its own place; all other links are left alone.

use serde_json::{Value, json};

use crate::support::fleet::{Fleet, podinfo, tag_line};
use crate::support::manifests::automation;
use crate::support::program::Run;
use crate::support::trees::{self, Node, Tree};

/// A tree of marked files and links.
fn tree(files: &[&str], links: &[(&str, &str)]) -> Tree {
    let file = |path: &&str| ((*path).into(), Node::File(tag_line("4.0.6").into_bytes()));
    let link = |(path, target): &(&str, &str)| ((*path).into(), Node::Link((*target).into()));
    files.iter().map(file).chain(links.iter().map(link)).collect()
}

/// The same tree with the files at `changed` updated.
fn updated(mut tree: Tree, changed: &[&str]) -> Tree {
    for path in changed {
        *tree.get_mut(std::path::Path::new(path)).unwrap() = Node::File(tag_line("5.0.3").into_bytes());
    }
    tree
}

/// Updates a tree, and asserts that exactly the files at `changed` have changed.
/// Links must still be links.
#[track_caller]
fn changes(before: &Tree, path: Option<&str>, changed: &[&str]) -> (Run, Value) {
    let fields = path.map(|path| format!("  update: {{path: {path:?}}}\n")).unwrap_or_default();
    let fleet = Fleet::of_tree(before, &format!("{}{}", podinfo(), automation("default", "fleet", &fields)));
    std::fs::create_dir(fleet.root().join("outside")).unwrap();
    std::fs::write(fleet.root().join("outside/app.yaml"), tag_line("4.0.6")).unwrap();
    let run = fleet.update(["--output", "json"]).with_status(0);
    assert_eq!(trees::differences(&updated(before.clone(), changed), &fleet.tree()), "");
    assert_eq!(fleet.text("../outside/app.yaml"), tag_line("4.0.6"), "the outside was written to");
    let outcome = run.json();
    (run, outcome)
}

fn files(outcome: &Value) -> Vec<&str> {
    outcome["changes"].as_object().unwrap().keys().map(String::as_str).collect()
}

fn skipped(outcome: &Value) -> Vec<&str> {
    outcome["skipped"].as_array().unwrap().iter().map(|link| link["file"].as_str().unwrap()).collect()
}

#[test]
fn a_link_to_a_file_inside_is_edited_once_at_its_target() {
    let before = tree(
        &["app.yaml", "deep/b.yaml"],
        &[
            ("a-link.yaml", "app.yaml"),
            ("deep/link.yaml", "../app.yaml"),
            ("to-deep.yml", "./deep/../deep/b.yaml"),
        ],
    );
    let (_, outcome) = changes(&before, None, &["app.yaml", "deep/b.yaml"]);
    assert_eq!(files(&outcome), ["app.yaml", "deep/b.yaml"]);
    assert_eq!(outcome["markers"].as_array().unwrap().len(), 2);
    assert_eq!(outcome["skipped"], json!([]));
}

#[test]
fn a_file_is_read_by_the_extension_of_a_link_to_it() {
    let before = tree(&["app.txt", "other.txt"], &[("app.yaml", "app.txt")]);
    let (_, outcome) = changes(&before, None, &["app.txt"]);
    assert_eq!(files(&outcome), ["app.txt"]);
}

#[test]
fn a_link_through_links_is_followed() {
    let before = tree(&["real/app.txt"], &[("one.yaml", "two"), ("two", "dir/app.txt"), ("dir", "real")]);
    changes(&before, None, &["real/app.txt"]);
}

#[test]
fn links_that_leave_dangle_loop_or_lead_to_a_directory_are_listed() {
    let links = [
        ("a-out.yaml", "../outside/app.yaml"),
        ("b-absolute.yaml", "/etc/hostname"),
        ("c-climbs-and-returns.yaml", "../fleet/app.yaml"),
        ("d-dangles.yaml", "nowhere.yaml"),
        ("e-loop.yaml", "f-loop.yaml"),
        ("f-loop.yaml", "e-loop.yaml"),
        ("g-self.yaml", "g-self.yaml"),
        ("h-directory.yaml", "directory"),
        ("i-through.yaml", "way-out/app.yaml"),
        ("not-yaml", "../outside/app.yaml"),
        ("way-out", "../outside"),
    ];
    let before = tree(&["app.yaml", "directory/app.yaml"], &links);
    let (run, outcome) = changes(&before, None, &["app.yaml", "directory/app.yaml"]);
    let wanted: Vec<&str> = links.iter().map(|(path, _)| *path).take(9).collect();
    assert_eq!(skipped(&outcome), wanted, "{run:?}");
    assert!(
        outcome["skipped"].as_array().unwrap().iter().all(|link| link["cause"].as_str().unwrap().len() > 10)
    );
}

/// Directories are walked in their own place, so no file is found twice.
#[test]
fn links_to_directories_are_not_entered() {
    let before = tree(&["real/app.yaml"], &[("link", "real"), ("real/up", "..")]);
    let (_, outcome) = changes(&before, None, &["real/app.yaml"]);
    assert_eq!(outcome["markers"].as_array().unwrap().len(), 1);
}

#[test]
fn an_update_path_may_lead_through_links_inside() {
    let before = tree(
        &["real/apps/app.yaml", "real/other.yaml"],
        &[("link", "real"), ("file.yaml", "real/other.yaml")],
    );
    for path in ["link/apps", "./link/apps/", "real/apps", "link/apps/app.yaml"] {
        let (_, outcome) = changes(&before, Some(path), &["real/apps/app.yaml"]);
        assert_eq!(files(&outcome), ["app.yaml"], "{path}");
    }
    changes(&before, Some("file.yaml"), &["real/other.yaml"]);
}

#[test]
fn an_update_path_may_not_lead_out_through_a_link() {
    for (path, links) in [
        ("way-out", [("way-out", "../outside")]),
        ("way-out/app.yaml", [("way-out", "../outside")]),
        ("link.yaml", [("link.yaml", "../outside/app.yaml")]),
        ("absolute", [("absolute", "/")]),
        ("loop", [("loop", "loop")]),
    ] {
        let manifests = format!(
            "{}{}",
            podinfo(),
            automation("default", "fleet", &format!("  update: {{path: {path}}}\n"))
        );
        let fleet = Fleet::of_tree(&tree(&["app.yaml"], &links), &manifests);
        std::fs::create_dir(fleet.root().join("outside")).unwrap();
        std::fs::write(fleet.root().join("outside/app.yaml"), tag_line("4.0.6")).unwrap();
        let run = fleet.update([""; 0]).with_status(1);
        assert!(run.only_error().starts_with("default/fleet: failed to apply policies: "), "{run:?}");
        assert!(run.only_error().contains(path), "{run:?}");
        assert_eq!(fleet.text("../outside/app.yaml"), tag_line("4.0.6"));
    }
}

#[test]
fn git_s_own_directory_is_never_entered() {
    let files = ["app.yaml", ".git/app.yaml", "deep/.git/hooks/app.yaml", ".gitx/app.yaml"];
    let before = tree(
        &files,
        &[("link.yaml", ".git/app.yaml"), ("through.yaml", "inner/app.yaml"), ("inner", ".git")],
    );
    let (_, outcome) = changes(&before, None, &["app.yaml", ".gitx/app.yaml"]);
    assert_eq!(skipped(&outcome), ["link.yaml", "through.yaml"]);
}
