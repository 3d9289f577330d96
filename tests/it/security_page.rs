//! The tests that `docs/security.md` names for its promises exist.

use std::fs;
use std::path::{Path, PathBuf};

/// The heading of the table with promises and tests.
const HEADING: &str = "| promise | held by |\n|---|---|\n";

/// The rows of the tables of promises: the promise, and the tests that it names.
fn promises(page: &str) -> Vec<(String, Vec<String>)> {
    let tables = page.split(HEADING).skip(1);
    let rows = tables.flat_map(|table| table.lines().take_while(|line| line.starts_with("| ")));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [promise, tests] = cells[..] else { panic!("not two cells: {row}") };
        (promise.trim().to_owned(), tests.split('`').skip(1).step_by(2).map(str::to_owned).collect())
    })
    .collect()
}

/// Returns whether a test is in the sources.
/// It is named `MODULE::…::NAME`, in the integration tests or in the library.
fn exists(root: &Path, test: &str) -> bool {
    let Some((modules, name)) = test.rsplit_once("::") else { return false };
    let path = modules.strip_suffix("::tests").unwrap_or(modules).replace("::", "/");
    let places = ["tests/it", "src"].into_iter().flat_map(|room| {
        [format!("{room}/{path}.rs"), format!("{room}/{path}/mod.rs"), format!("{room}/{path}/tests.rs")]
    });
    let mut files = places.map(|place: String| -> PathBuf { root.join(place) });
    files.any(|file| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let declaration = format!("fn {name}(");
        text.match_indices(&declaration).any(|(at, _)| {
            let before: Vec<&str> = text[..at].lines().rev().take(4).collect();
            before.iter().any(|line| line.trim_start().starts_with("#[") && line.contains("test"))
        })
    })
}

#[test]
fn each_promise_of_the_security_page_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let promises = promises(&fs::read_to_string(root.join("docs/security.md")).unwrap());
    assert!(promises.len() > 10, "the tables of promises are found");
    let mut wrong = Vec::new();
    for (promise, tests) in &promises {
        if tests.is_empty() {
            wrong.push(format!("no test: {promise}"));
        }
        wrong
            .extend(tests.iter().filter(|test| !exists(root, test)).map(|test| format!("not found: {test}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_test_is_found_by_its_path_and_nothing_else_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(exists(root, "security_page::a_test_is_found_by_its_path_and_nothing_else_is"));
    assert!(exists(
        root,
        "objects::manifests::state::lock::tests::a_lock_file_of_a_killed_run_does_not_lock_the_state"
    ));
    for wrong in [
        "security_page::exists",
        "security_page::each_promise",
        "each_promise_of_the_security_page_names_tests_that_exist",
        "nowhere::a_test_is_found_by_its_path_and_nothing_else_is",
    ] {
        assert!(!exists(root, wrong), "{wrong}");
    }
}
