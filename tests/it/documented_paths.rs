//! The pages name only files and folders of this repository that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The names of the folders in a directory, without those that git does not track.
fn folders(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let names = folders.map(|folder| folder.file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('.') && name != "target").collect()
}

/// The pages of a directory and of its folders.
fn pages(directory: &Path) -> Vec<PathBuf> {
    let own = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        own.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.extend(folders(directory).iter().flat_map(|folder| self::pages(&directory.join(folder))));
    pages
}

/// Returns the paths that a page quotes, such as `docs/run.md`.
/// A file of a room is quoted as `git/writer.rs` or `git/writer`.
fn quoted_paths<'p>(page: &'p str, folders: &'p BTreeSet<String>) -> impl Iterator<Item = &'p str> {
    let outside_blocks = page.split("```").step_by(2);
    let quoted = outside_blocks.flat_map(|text| text.split('`').skip(1).step_by(2));
    quoted.filter(|quoted| {
        let is_path = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
        let is_known = quoted.split_once('/').is_some_and(|(first, _)| folders.contains(first));
        is_known && quoted.chars().all(is_path) && !has_placeholder(quoted)
    })
}

/// Returns whether a part of the path stands for any name, as in `testdata/lint/NAME/in/`.
fn has_placeholder(path: &str) -> bool {
    path.split(['/', '-']).any(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase()))
}

/// Returns whether the repository has the path, or the room path.
fn exists(root: &Path, path: &str) -> bool {
    [path.to_owned(), format!("src/{path}"), format!("src/{path}.rs")]
        .iter()
        .any(|path| root.join(path).exists())
}

#[test]
fn pages_name_paths_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = &folders(root) | &folders(&root.join("src"));
    let own = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"].map(|page| root.join(page));
    let (mut count, mut dead) = (0, Vec::new());
    for page in own.into_iter().chain(pages(&root.join("docs"))) {
        let text = fs::read_to_string(&page).unwrap();
        for path in quoted_paths(&text, &folders) {
            count += 1;
            if !exists(root, path) {
                dead.push(format!("{}: {path}", page.strip_prefix(root).unwrap().display()));
            }
        }
    }
    assert!(count > 100, "{count}");
    assert!(dead.is_empty(), "these paths do not exist: {dead:#?}");
}

#[test]
fn paths_of_the_repository_are_found_in_a_page() {
    let folders = BTreeSet::from(["docs".to_owned(), "git".to_owned()]);
    let page = "`docs/run.md`, `git/writer`, `mod.rs`, `git push`, `apps/web`,\n```\n`git/block`\n```\n\
                `docs/CASE/`";
    let found: Vec<&str> = quoted_paths(page, &folders).collect();
    assert_eq!(found, ["docs/run.md", "git/writer"]);
}
