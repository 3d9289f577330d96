//! Tests of import cycles inside rooms.
//! Files that import each other in a circle can only be read and changed together.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use super::graph::{Circle, Graph};
use crate::support::sources::rust_files;

/// The maximum number of files in an import cycle.
/// It admits a parent with its two halves, or a type with its error and its reader.
const MOST: usize = 3;

/// Circles that may have more, each by one of its files.
const EXCEPTIONS: [(&str, &str); 2] = [
    (
        "crates/go-template/src/functions/mod.rs",
        "the table of functions holds those that take it as an argument",
    ),
    (
        "crates/go-template/src/value/mod.rs",
        "values, their types and the budget that measures them are recursive",
    ),
];

/// The crates besides the program's own; each is one room.
const CRATES: [&str; 5] =
    ["api/src", "crates/fuzzing/src", "crates/go-template/src", "crates/go-text/src", "crates/versions/src"];

/// The files of the program.
static SRC: LazyLock<Graph> = LazyLock::new(|| graph("src"));

/// Reads the sources of a crate, by their paths below its root.
fn graph(root: &str) -> Graph {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
    let files: Vec<(String, String)> = rust_files(&root)
        .iter()
        .filter(|path| !path.ends_with("main.rs"))
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    Graph::new(files.iter().map(|(name, text)| (name.as_str(), text.as_str())))
}

/// Returns the folder of `src` that a module is in.
fn folder(module: &[String]) -> Option<&str> {
    module.first().map(String::as_str)
}

/// Returns one room for all files.
fn crate_itself(_: &[String]) -> Option<&str> {
    Some("")
}

/// Returns the imports that make a circle, one line per file and target.
fn explain(root: &str, circle: &Circle) -> String {
    let mut text = format!("a circle of {} files:\n", circle.len());
    for (file, imports) in circle {
        for (other, items) in imports {
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            writeln!(text, "  {root}/{file} imports {} of {other}", items.join(", ")).unwrap();
        }
    }
    text
}

#[test]
fn no_import_cycle_inside_a_room_has_more_than_three_files() {
    let mut circles = vec![("src", SRC.circles(folder))];
    circles.extend(CRATES.map(|root| (root, graph(root).circles(crate_itself))));
    let mut wrong = Vec::new();
    let mut unused: Vec<&str> = EXCEPTIONS.iter().map(|(file, _)| *file).collect();
    for (root, circles) in &circles {
        for circle in circles.iter().filter(|circle| circle.len() > MOST) {
            let has = |file: &&str| circle.keys().any(|member| format!("{root}/{member}") == **file);
            match unused.iter().position(has) {
                Some(index) => drop(unused.remove(index)),
                None => wrong.push(explain(root, circle)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(unused.is_empty(), "no circle needs these exceptions any more: {unused:?}");
}

/// The kinds of `reconcile` import each other in one direction.
/// A policy does not depend on the use of its selection, and a repository does not depend on policies.
#[test]
fn the_kinds_of_reconcile_import_in_one_direction() {
    for (from, to) in [("policy", "automation"), ("repository", "automation"), ("repository", "policy")] {
        let files = SRC.naming(&["reconcile", from], &["reconcile", to]);
        assert!(files.is_empty(), "reconcile/{from} imports reconcile/{to}: {files:?}");
    }
}

#[test]
fn import_cycles_are_found_through_reexports_and_paths() {
    let graph = Graph::new([
        ("lib.rs", "pub mod room;\npub mod other;"),
        ("room/mod.rs", "mod a;\nmod b;\nmod c;\npub mod d;\npub use a::{A, d as e};\npub(crate) use b::B;"),
        (
            "room/a.rs",
            "use super::{B, c::{self, C}};\npub(in crate::room) struct A(C);\nuse crate::other::O;",
        ),
        (
            "room/b.rs",
            "pub struct B;\nfn f() { super::c::f(); }\n#[cfg(test)] mod tests { use super::super::d::D; }",
        ),
        ("room/c.rs", "use crate::room::A;\npub struct C;"),
        ("room/d.rs", "use std::fmt;\npub struct D;\nfn f() { g!(super::B, fmt::x); }"),
        ("other.rs", "use crate::room::A;\npub struct O;"),
    ]);
    let circles = graph.circles(folder);
    let files: Vec<Vec<&String>> = circles.iter().map(|circle| circle.keys().collect()).collect();
    assert_eq!(files, [["room/a.rs", "room/b.rs", "room/c.rs"]]);
    let words = explain("src", &circles[0]);
    assert!(words.contains("src/room/b.rs imports f of room/c.rs"), "{words}");
    assert_eq!(graph.naming(&["room"], &["other"]), ["room/a.rs"]);
    assert_eq!(graph.naming(&["other"], &["room"]), ["other.rs"]);
}
