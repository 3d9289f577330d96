//! Tests of the import rules between the rooms, which are the folders of `src/`.
//!
//! The rooms are in an order, and no room uses one below it. There are no import cycles, and the pure rooms
//! use no file system, clock, process, network or async runtime.
//!
//! The rule is read from the sources as text: every `crate::ROOM`, and every `super::` that climbs out of a room.

mod circles;
mod engine;
mod graph;

use std::fs;
use std::path::Path;

use crate::support::sources::{code_of, rust_files};

/// The rooms from top to bottom; a room may use those above it.
const ORDER: [&str; 32] = [
    "error",
    "secrets",
    "backoff",
    "cancel",
    "printable",
    "schedule",
    "metrics",
    "tenancy",
    "telemetry",
    "permissions",
    "net",
    "reference",
    "yaml",
    "policy",
    "polling",
    "update",
    "message",
    "rollout",
    "nodes",
    "host",
    "directory",
    "cloud",
    "git",
    "registry",
    "forge",
    "objects",
    "reconcile",
    "lint",
    "controller",
    "agent",
    "web",
    "cli",
];

/// Rooms that take values and give values.
const PURE: [&str; 15] = [
    "error",
    "secrets",
    "backoff",
    "printable",
    "permissions",
    "reference",
    "yaml",
    "policy",
    "polling",
    "schedule",
    "update",
    "message",
    "rollout",
    "nodes",
    "lint",
];

/// Paths that no pure room may name.
const IMPURE: [&str; 16] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "std::os",
    "std::time::Instant",
    "Instant::now",
    "SystemTime",
    "std::io::stdin",
    "std::io::stdout",
    "tokio",
    "reqwest",
    "kube::Client",
    "kube::Api",
    "git2",
];

/// Returns a source's room, its depth, and its code.
/// The depth is counted from the room's own module. The code is without comments and tests.
fn parse(root: &Path, path: &Path) -> (String, usize, String) {
    let relative = path.strip_prefix(root).unwrap();
    let mut parts: Vec<String> = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    let last = parts.pop().unwrap();
    if last != "mod.rs" {
        parts.push(last.trim_end_matches(".rs").to_owned());
    }
    (parts[0].clone(), parts.len() - 1, code_of(&fs::read_to_string(path).unwrap()))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The rooms that a piece of code names.
fn named_rooms(code: &str, depth: usize) -> Vec<String> {
    let mut rooms = Vec::new();
    let climb = "super::".repeat(depth + 1);
    for prefix in ["crate::", climb.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            if code[..at].ends_with(|c: char| is_word(c) || c == ':') {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            if let Some(group) = rest.strip_prefix('{') {
                // `use crate::{a::b, c}`: the names at the group's own level.
                let mut level = 0;
                let mut name = String::new();
                for c in group.chars() {
                    match c {
                        '{' => level += 1,
                        '}' if level == 0 => break,
                        '}' => level -= 1,
                        ',' if level == 0 => rooms.push(std::mem::take(&mut name)),
                        c if level == 0 => name.push(c),
                        _ => {}
                    }
                }
                rooms.push(name);
            } else {
                rooms.push(rest.to_owned());
            }
        }
    }
    let first_word =
        |name: &String| name.trim_start().chars().take_while(|&c| is_word(c)).collect::<String>();
    rooms.iter().map(first_word).filter(|room| !room.is_empty()).collect()
}

#[test]
fn no_room_uses_one_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for path in rust_files(&root) {
        let (room, depth, code) = parse(&root, &path);
        if ["lib", "main"].contains(&room.as_str()) {
            continue;
        }
        let place = |name: &str| ORDER.iter().position(|room| *room == name);
        let Some(own) = place(&room) else {
            wrong.push(format!("{}: the room {room} has no place in the order", path.display()));
            continue;
        };
        for used in named_rooms(&code, depth) {
            match place(&used) {
                None => {
                    wrong.push(format!("{} uses {used}, which has no place in the order", path.display()));
                }
                Some(other) if other > own => wrong.push(format!("{} uses {used} below it", path.display())),
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_rooms_touch_nothing_outside() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for path in rust_files(&root) {
        let (room, _, code) = parse(&root, &path);
        if PURE.contains(&room.as_str()) {
            let named = IMPURE.iter().filter(|name| code.contains(**name));
            wrong.extend(named.map(|name| format!("{} names {name}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Timeouts, proxies and the SSRF guard are in one place.
#[test]
fn clients_for_http_are_made_in_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let made = ["reqwest::Client::builder", "reqwest::Client::new", "ClientBuilder::new", "reqwest::get"];
    let mut found = Vec::new();
    for path in rust_files(&root) {
        let (room, _, code) = parse(&root, &path);
        let imports = code.contains("use reqwest::{") && code.contains("Client::builder()");
        if imports || made.iter().any(|made| code.contains(made)) {
            found.push(room);
        }
    }
    assert_eq!(found, ["net"]);
}

/// The builders set the environment of a process, and its limits.
#[test]
fn processes_are_made_by_two_builders() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let makes = |code: &str| code.contains("process::") && code.contains("Command::new(");
    let found =
        rust_files(&root).into_iter().filter(|path| makes(&code_of(&fs::read_to_string(path).unwrap())));
    // The builder of git processes has its limit of memory in a file of its own.
    let builders = ["git/command.rs", "git/process_memory.rs", "host/command.rs"];
    assert_eq!(found.collect::<Vec<_>>(), builders.map(|path| root.join(path)));
}

/// A client of kube panics at some tokens, which are refused there.
#[test]
fn clients_of_clusters_are_made_in_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let made = ["Client::try_from", "Client::try_default", "Client::new(", "ClientBuilder::try_from"];
    let of_kube = |code: &str| code.contains("kube::") && made.iter().any(|made| code.contains(made));
    let found =
        rust_files(&root).into_iter().filter(|path| of_kube(&code_of(&fs::read_to_string(path).unwrap())));
    assert_eq!(found.collect::<Vec<_>>(), [root.join("objects/cluster/client.rs")]);
}

#[test]
fn all_forms_of_imports_are_found() {
    let code =
        "use crate::{cli::x, update::{plan, tree}};\nlet a = crate::yaml::b;\nuse super::super::git::Git;";
    let mut rooms = named_rooms(code, 1);
    rooms.sort();
    assert_eq!(rooms, ["cli", "git", "update", "yaml"]);
    assert_eq!(named_rooms("use super::git::Git;", 0), ["git"]);
    assert_eq!(named_rooms("mycrate::cli::x; tagboat_api::crds::y", 0), Vec::<String>::new());
}

#[test]
fn code_is_read_up_to_the_test_module_and_beyond_single_test_items() {
    let test_item = "struct A {\n    #[cfg(test)]\n    count: usize,\n}\n// No code.\nfn f() {}\n";
    let code = code_of(&format!("{test_item}\n#[cfg(test)]\nmod tests {{\n    use super::*;\n}}\n"));
    assert_eq!(code.trim_end(), test_item.replace("// No code.\n", "").trim_end());
}
