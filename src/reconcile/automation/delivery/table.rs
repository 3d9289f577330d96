//! The table of changes in the body of a pull request.

use std::collections::BTreeMap;
use std::fmt::Write;

use tagboat_api::ObjectName;

use crate::message::MessageData;
use crate::update::Marker;

/// The maximum number of rows.
const MAX_ROWS: usize = 500;

/// The maximum number of files that a row names.
const MAX_FILES: usize = 3;

/// The maximum number of characters of a value in a cell.
const MAX_VALUE: usize = 200;

/// The change of a value, and the files in which it is made.
#[derive(Default)]
struct Row {
    files: Vec<String>,
    more: usize,
}

/// Writes a table of the changes of automations, by policies and values.
///
/// Each comes with `spec.update.path`, to which the names of its files are relative. The table has paths from the root.
pub(super) fn table(all: &[(&MessageData, Option<&str>)]) -> String {
    let mut rows: BTreeMap<(ObjectName, &str, &str), Row> = BTreeMap::new();
    let mut left_out = 0;
    let files = all.iter().flat_map(|(data, path)| data.files().iter().map(move |of| (*path, of)));
    for (path, (file, objects)) in files {
        let file = &from_root(path, file);
        for change in objects.values().flat_map(|update| &update.changes) {
            let policy = Marker::of_setter(&change.setter).policy;
            let key = (policy, change.old_value.as_str(), change.new_value.as_str());
            if rows.len() == MAX_ROWS && !rows.contains_key(&key) {
                left_out += 1;
                continue;
            }
            rows.entry(key).or_default().add(file);
        }
    }
    let mut table = "| policy | from | to | files |\n|---|---|---|---|\n".to_owned();
    for ((policy, old, new), row) in &rows {
        let mut files: Vec<String> = row.files.iter().map(|file| cell(file)).collect();
        if row.more > 0 {
            files.push(format!("and {} more", row.more));
        }
        let (policy, old, new) = (cell(&policy.to_string()), cell(old), cell(new));
        writeln!(table, "| {policy} | {old} | {new} | {} |", files.join(", "))
            .expect("writing to a string cannot fail");
    }
    if left_out > 0 {
        write!(table, "\nand {left_out} more changes\n").expect("writing to a string cannot fail");
    }
    table
}

impl Row {
    fn add(&mut self, file: &str) {
        if self.files.last().is_some_and(|last| last == file) {
            return;
        }
        if self.files.len() < MAX_FILES { self.files.push(file.to_owned()) } else { self.more += 1 }
    }
}

/// Returns the path from the root of a file that is named relative to `spec.update.path`.
///
/// Of a path that is a file itself, the file's name is the last part.
fn from_root(path: Option<&str>, file: &str) -> String {
    let parts = path.unwrap_or_default().split('/').filter(|part| !matches!(*part, "" | "."));
    let mut parts: Vec<&str> = parts.collect();
    if parts.last() != Some(&file) {
        parts.push(file);
    }
    parts.join("/")
}

/// Writes a text as a code span of a table.
///
/// A cell ends at a bar even inside of a code span.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Writes a text as a code span.
///
/// No user is mentioned there, and no markup has an effect.
pub(super) fn code(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_VALUE).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    if shown.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let fence = "`".repeat(longest + 1);
    // The blanks keep a backtick at an end apart from the fence.
    let blank = if shown.starts_with('`') || shown.ends_with('`') { " " } else { "" };
    format!("{fence}{blank}{shown}{blank}{fence}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::message::PolicyImages;
    use crate::update::{Change, ObjectIdentifier, ResultV2};

    /// The data of changes, each as file, setter, old and new value.
    fn data(changes: &[(&str, &str, &str, &str)]) -> MessageData {
        let mut files: BTreeMap<&str, Vec<(ObjectIdentifier, Change)>> = BTreeMap::new();
        for (file, setter, old, new) in changes {
            let [setter, old_value, new_value] = [setter, old, new].map(|text| (*text).to_owned());
            let change = Change { old_value, new_value, setter, line: 1 };
            files.entry(file).or_default().push((ObjectIdentifier::default(), change));
        }
        let mut result = ResultV2::default();
        for (file, changes) in files {
            result.file_changes.insert(file.into(), Arc::new(changes.into_iter().collect()));
        }
        let automation = ObjectName { namespace: "apps".to_owned(), name: "fleet".to_owned() };
        MessageData::new(&automation, BTreeMap::new(), &result, &PolicyImages::new())
    }

    #[test]
    fn equal_changes_share_a_row() {
        let changes = [
            ("a.yaml", "apps:web:tag", "1", "2"),
            ("b.yaml", "apps:web:tag", "1", "2"),
            ("b.yaml", "apps:web:tag", "1", "2"),
            ("c.yaml", "apps:web:tag", "1", "2"),
            ("d.yaml", "apps:web:tag", "1", "2"),
            ("e.yaml", "apps:web", "ghcr.io/acme/web:1", "ghcr.io/acme/web:2"),
            ("a.yaml", "apps:api:tag", "", "7"),
        ];
        assert_eq!(
            table(&[(&data(&changes), None)]),
            "| policy | from | to | files |\n|---|---|---|---|\n\
             | `apps/api` | (empty) | `7` | `a.yaml` |\n\
             | `apps/web` | `1` | `2` | `a.yaml`, `b.yaml`, `c.yaml`, and 1 more |\n\
             | `apps/web` | `ghcr.io/acme/web:1` | `ghcr.io/acme/web:2` | `e.yaml` |\n"
        );
    }

    /// Files of two automations had the names that they have in their directories.
    #[test]
    fn files_have_their_paths_from_the_root() {
        for (path, file, expected) in [
            (None, "web.yaml", "web.yaml"),
            (Some("./"), "web.yaml", "web.yaml"),
            (Some("./a/"), "web.yaml", "a/web.yaml"),
            (Some("a//b"), "c/web.yaml", "a/b/c/web.yaml"),
            (Some("a/web.yaml"), "web.yaml", "a/web.yaml"),
        ] {
            assert_eq!(from_root(path, file), expected, "{path:?}");
        }
        let change = |file| data(&[(file, "apps:web:tag", "1", "2")]);
        let (one, other) = (change("web.yaml"), change("web.yaml"));
        let table = table(&[(&one, Some("./a")), (&other, Some("b"))]);
        assert!(table.ends_with("| `apps/web` | `1` | `2` | `a/web.yaml`, `b/web.yaml` |\n"), "{table}");
    }

    #[test]
    fn foreign_text_stays_in_its_cell() {
        for (text, expected) in [
            ("@acme/web", "`@acme/web`"),
            ("a|b", "`a|b`"),
            ("a`b", "``a`b``"),
            ("`a``", "``` `a`` ```"),
            (" ", "(empty)"),
            ("<script>", "`<script>`"),
        ] {
            assert_eq!(code(text), expected, "{text}");
        }
        assert_eq!(cell("a|b`c"), "``a\\|b`c``");
        assert_eq!(code(&"ä".repeat(300)), format!("`{}…`", "ä".repeat(200)));
        let table = table(&[(&data(&[("a\nb.yaml", "apps:web:tag", "1\n| x", "@ann")]), None)]);
        assert!(table.ends_with("| `apps/web` | `1\\n\\| x` | `@ann` | `a\\nb.yaml` |\n"), "{table}");
    }

    #[test]
    fn a_table_has_a_bounded_number_of_rows() {
        let values: Vec<String> = (0..700).map(|number| format!("{number:03}")).collect();
        let changes: Vec<(&str, &str, &str, &str)> =
            values.iter().map(|value| ("a.yaml", "apps:web:tag", value.as_str(), "x")).collect();
        let table = table(&[(&data(&changes), None)]);
        assert_eq!(table.lines().filter(|line| line.starts_with("| `apps/web`")).count(), 500);
        assert!(table.ends_with("\nand 200 more changes\n"), "{table}");
    }
}
