//! The sources of the project, for tests that hold rules about them.

use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files below a directory, sorted.
pub(crate) fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for item in fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the code of a source without comments and without its test module.
///
/// The test module is at the end. A single item with `#[cfg(test)]` stays.
pub(crate) fn code_of(text: &str) -> String {
    let next_lines = text.lines().skip(1).chain([""]);
    let lines = text.lines().zip(next_lines);
    let code = lines.take_while(|(line, next)| *line != "#[cfg(test)]" || !next.ends_with("mod tests {"));
    let code = code.map(|(line, _)| line).filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}
