//! Golden cases: a tree of files, the manifests, and the expected result, byte for byte.
//!
//! `testdata/update/CASE/` holds `in` (the tree), `manifests`, `out` (the whole tree afterwards) and
//! `outcome.json`; `arguments` (one per line) and `stderr.txt` are optional. The files in `out` were written
//! by hand together with `in`, not taken from the program. `TAGBOAT_REGENERATE=1` rewrites `out`, `outcome.json`
//! and `stderr.txt`; a person reviews every byte of the difference then.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::patches;
use crate::support::program::{Run, run, tagboat};
use crate::support::trees::{self, Tree};

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/update");
    let mut cases: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|item| item.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

fn name(case: &Path) -> String {
    case.file_name().unwrap().to_string_lossy().into_owned()
}

fn update(case: &Path, directory: &Path, more: &[&str]) -> Run {
    let arguments = fs::read_to_string(case.join("arguments")).unwrap_or_default();
    let mut command = tagboat();
    command.current_dir(case).arg("update").arg(directory).args(["--policies", "manifests"]);
    run(command.args(["--output", "json"]).args(arguments.lines()).args(more))
}

/// Runs a case twice in a fresh copy of its tree.
/// The second run must not change anything.
fn run_case(case: &Path) -> (Tree, Run, Tree) {
    let copy = tempfile::tempdir().unwrap();
    trees::write(copy.path(), &trees::read(&case.join("in")));
    let run = update(case, copy.path(), &[]);
    let tree = trees::read(copy.path());
    update(case, copy.path(), &[]);
    (tree, run, trees::read(copy.path()))
}

fn read_or_empty(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn regenerate(case: &Path, tree: &Tree, run: &Run) {
    let _ = fs::remove_dir_all(case.join("out"));
    trees::write(&case.join("out"), tree);
    fs::write(case.join("outcome.json"), &run.output).unwrap();
    if !run.errors.is_empty() {
        fs::write(case.join("stderr.txt"), &run.errors).unwrap();
    }
}

#[test]
fn every_case_has_its_golden_output() {
    let mut wrong = Vec::new();
    for case in cases() {
        let (tree, run, tree_of_second_run) = run_case(&case);
        if std::env::var_os("TAGBOAT_REGENERATE").is_some() {
            regenerate(&case, &tree, &run);
        }
        let name = name(&case);
        if run.status != Some(0) {
            wrong.push(format!("{name}: {run:?}"));
            continue;
        }
        let differences = trees::differences(&trees::read(&case.join("out")), &tree);
        if !differences.is_empty() {
            wrong.push(format!("{name}:\n{differences}"));
        }
        if tree_of_second_run != tree {
            wrong.push(format!("{name}: the second run changed something"));
        }
        let wanted: Value =
            serde_json::from_str(&read_or_empty(&case.join("outcome.json"))).unwrap_or_default();
        if wanted != run.json() {
            wrong.push(format!("{name}: the outcome is not outcome.json but\n{}", run.output));
        }
        let wanted = read_or_empty(&case.join("stderr.txt"));
        if wanted != run.errors {
            wrong.push(format!("{name}: wanted on standard error {wanted:?}, found {:?}", run.errors));
        }
    }
    assert!(wrong.is_empty(), "{} things wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// The diff of a dry run leads to the same tree as the update.
/// The diff must be one that git can apply, and it checks each change in a second way.
#[test]
fn the_diff_of_a_dry_run_leads_to_the_same_tree() {
    let mut wrong = Vec::new();
    for case in cases() {
        let copy = tempfile::tempdir().unwrap();
        let before = trees::read(&case.join("in"));
        trees::write(copy.path(), &before);
        let dry = update(&case, copy.path(), &["--dry-run"]);
        let name = name(&case);
        if dry.status != Some(0) {
            wrong.push(format!("{name}: {dry:?}"));
            continue;
        }
        if trees::read(copy.path()) != before {
            wrong.push(format!("{name}: the dry run wrote something"));
        }
        let found = dry.json();
        let diff = found["diff"].as_str().unwrap_or_default();
        let changes = found["changes"].as_object().unwrap();
        assert_eq!(diff.is_empty(), changes.is_empty(), "{name}: {diff}");
        if !diff.is_empty() {
            let applied = patches::apply(copy.path(), diff);
            if applied.status != Some(0) {
                wrong.push(format!("{name}: git does not take the diff: {}\n{diff}", applied.errors));
                continue;
            }
        }
        let differences = trees::differences(&trees::read(&case.join("out")), &trees::read(copy.path()));
        if !differences.is_empty() {
            wrong.push(format!("{name}: the diff leads elsewhere\n{differences}"));
        }
    }
    assert!(wrong.is_empty(), "{} things wrong\n{}", wrong.len(), wrong.join("\n"));
}
