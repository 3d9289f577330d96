//! `docs/glossary.md` names types that exist, in the files that it gives for them.

use std::fs;
use std::path::Path;

/// The heading of the tables of terms.
const HEADING: &str = "| term | meaning | implemented by |\n|---|---|---|\n";

/// A row of a table.
#[derive(Debug, PartialEq, Eq)]
struct Term<'a> {
    name: &'a str,
    implementation: &'a str,
    file: &'a str,
}

/// The terms of a page, in its order.
fn terms(page: &str) -> Vec<Term<'_>> {
    let rows =
        page.split(HEADING).skip(1).flat_map(|table| table.lines().take_while(|line| line.starts_with("| ")));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, meaning, place] = cells[..] else { panic!("not three cells: {row}") };
        assert!(meaning.ends_with('.') && meaning.len() > 30, "not a sentence: {row}");
        let quoted: Vec<&str> = place.split('`').collect();
        let ["", implementation, " in ", file, ""] = quoted[..] else { panic!("no type in a file: {row}") };
        Term { name, implementation, file }
    })
    .collect()
}

/// Returns whether a source declares a type of this name.
fn declares(source: &str, name: &str) -> bool {
    let mut words = source.split(|letter: char| !letter.is_alphanumeric() && letter != '_').peekable();
    while let Some(word) = words.next() {
        if ["struct", "enum", "trait", "type"].contains(&word) && words.peek() == Some(&name) {
            return true;
        }
    }
    false
}

#[test]
fn each_term_names_a_type_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/glossary.md")).unwrap();
    let terms = terms(&page);
    assert!(terms.len() >= 40, "{terms:?}");
    let missing: Vec<&Term<'_>> = terms
        .iter()
        .filter(|term| {
            let source = fs::read_to_string(root.join(term.file)).unwrap_or_default();
            !declares(&source, term.implementation)
        })
        .collect();
    assert!(missing.is_empty(), "rename them in docs/glossary.md too: {missing:#?}");
}

#[test]
fn no_term_is_explained_twice() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/glossary.md")).unwrap();
    let mut names: Vec<&str> = terms(&page).iter().map(|term| term.name).collect();
    let number = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), number);
}

#[test]
fn a_declaration_is_found_and_a_use_is_not() {
    let source = "pub(super) struct Mirror<T> {\n    slots: TransactionSlots,\n}\nenum Mirrored {}";
    for (name, is_declared) in
        [("Mirror", true), ("Mirrored", true), ("TransactionSlots", false), ("Mir", false), ("slots", false)]
    {
        assert_eq!(declares(source, name), is_declared, "{name}");
    }
    let page =
        format!("{HEADING}| mirror | A bare repository that caches a remote. | `Mirror` in `src/git.rs` |\n");
    assert_eq!(terms(&page), [Term { name: "mirror", implementation: "Mirror", file: "src/git.rs" }]);
}
