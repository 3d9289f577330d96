//! Formats edits as a unified diff.
//!
//! An edit states its changes, so no search for differences is needed: the lines that contain splices are removed, and
//! the same lines with the splices applied are added.

use std::ops::Range;

use super::edit::FileEdit;
use super::interrupt::{Checkpoint, Interrupt, Progress};
use super::tree::{FileTree, TreeError, TreePath};
use crate::yaml::{self, Splice};

/// The number of unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// The maximum length of a diff in bytes.
pub const MAX_DIFF_LENGTH: usize = 64 * 1024 * 1024;

/// The error of changes that cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// A file can no longer be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The diff is too long: one value may be in a line of many megabytes.
    #[error("the diff has more than {} MiB, the limit; set update.path to a smaller directory", limit >> 20)]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The caller interrupted it.
    #[error(transparent)]
    Interrupted(#[from] Interrupt),
}

/// Formats some edits of a tree as a unified diff for `git apply`.
///
/// `checkpoint` is called between files.
///
/// # Errors
///
/// Returns an error if a file can no longer be read, if the diff is too long, or if `checkpoint` returns one.
pub fn unified(
    tree: &dyn FileTree,
    edits: &[FileEdit],
    checkpoint: &mut Checkpoint<'_>,
) -> Result<String, DiffError> {
    let mut diff = String::new();
    let mut content = Vec::new();
    for edit in edits {
        checkpoint(Progress::default())?;
        tree.read(&edit.entry, usize::MAX, &mut content)?;
        write_file(edit, &content, &mut diff);
        if diff.len() > MAX_DIFF_LENGTH {
            return Err(DiffError::TooLong { limit: MAX_DIFF_LENGTH });
        }
    }
    Ok(diff)
}

/// Appends the edit of a file with this content to a diff.
///
/// A file that changed since the edit was planned has no diff, since an update would leave it unchanged.
pub fn write_file(edit: &FileEdit, content: &[u8], diff: &mut String) {
    if let Some((text, splices)) = edit.splices_for(content) {
        let path = &edit.entry.path;
        diff.push_str(&format!("--- {}\n+++ {}\n", quoted_path(b"a/", path), quoted_path(b"b/", path)));
        write_hunks(text, splices, diff);
    }
}

/// A range of whole lines with its replacement.
struct LineChange<'t> {
    /// The numbers of the removed lines, counted from 0.
    lines: Range<usize>,
    /// The added lines.
    new: Vec<String>,
    old: &'t [&'t str],
}

fn write_hunks(text: &str, splices: &[Splice], diff: &mut String) {
    // Only LF ends a line, as in git; a lone CR is part of its line.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let line_changes = line_changes(text, &lines, splices);
    let mut shift = 0_isize;
    for hunk in line_changes.chunk_by(|left, right| right.lines.start <= left.lines.end + 2 * CONTEXT_LINES) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let start = first.lines.start.saturating_sub(CONTEXT_LINES);
        let end = (last.lines.end + CONTEXT_LINES).min(lines.len());
        let growth: isize =
            hunk.iter().map(|change| signed(change.new.len()) - signed(change.old.len())).sum();
        let (old_length, new_length) = (end - start, (signed(end - start) + growth).unsigned_abs());
        let new_start = (signed(start) + shift).unsigned_abs();
        diff.push_str(&format!("@@ -{} +{} @@\n", span(start, old_length), span(new_start, new_length)));
        shift += growth;
        let mut at = start;
        for change in hunk {
            write_lines(' ', &lines[at..change.lines.start], diff);
            write_lines('-', change.old, diff);
            write_lines('+', &change.new, diff);
            at = change.lines.end;
        }
        write_lines(' ', &lines[at..end], diff);
    }
}

/// Merges splices of the same lines.
fn line_changes<'t>(text: &str, lines: &'t [&'t str], splices: &[Splice]) -> Vec<LineChange<'t>> {
    let mut starts: Vec<usize> = Vec::with_capacity(lines.len() + 1);
    let mut offset = 0;
    for line in lines {
        starts.push(offset);
        offset += line.len();
    }
    starts.push(offset);
    // The line that contains an offset; the end of the text belongs to the last line.
    let line_of =
        |offset: usize| starts.partition_point(|&start| start <= offset).min(lines.len()).saturating_sub(1);
    let lines_of = |splice: &Splice| {
        let last = if splice.range.is_empty() { splice.range.start } else { splice.range.end - 1 };
        line_of(splice.range.start)..line_of(last) + 1
    };
    let mut line_changes: Vec<LineChange<'t>> = Vec::new();
    let mut rest = splices;
    while let Some(first) = rest.first() {
        let mut range = lines_of(first);
        let count = rest
            .iter()
            .take_while(|splice| {
                let own = lines_of(splice);
                let touches = own.start <= range.end;
                range.end = if touches { range.end.max(own.end) } else { range.end };
                touches
            })
            .count();
        let (here, later) = rest.split_at(count);
        let base = starts[range.start];
        let moved: Vec<Splice> = here
            .iter()
            .map(|splice| Splice {
                range: splice.range.start - base..splice.range.end - base,
                text: splice.text.clone(),
            })
            .collect();
        let new = yaml::apply(&text[base..starts[range.end]], &moved);
        let new = new.split_inclusive('\n').map(str::to_owned).collect();
        line_changes.push(LineChange { old: &lines[range.clone()], lines: range, new });
        rest = later;
    }
    line_changes
}

fn write_lines<T: AsRef<str>>(sign: char, lines: &[T], diff: &mut String) {
    for line in lines.iter().map(AsRef::as_ref) {
        diff.push(sign);
        diff.push_str(line);
        if !line.ends_with('\n') {
            diff.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Formats the range of a hunk.
///
/// Lines count from 1, the length 1 is omitted, and an empty range names the line before it.
fn span(start: usize, length: usize) -> String {
    match length {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        length => format!("{},{length}", start + 1),
    }
}

fn signed(length: usize) -> isize {
    isize::try_from(length).expect("no text has more lines than isize can count")
}

/// Quotes a path as git does in diffs.
///
/// Paths with control characters, quotes, backslashes or bytes that are not UTF-8 are written in double quotes with
/// escapes.
fn quoted_path(prefix: &[u8], path: &TreePath) -> String {
    let is_plain = |text: &str| !text.chars().any(|c| c.is_control() || c == '"' || c == '\\');
    let bytes = [prefix, path.as_bytes()].concat();
    if let Ok(text) = std::str::from_utf8(&bytes)
        && is_plain(text)
    {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            byte => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::edit::ContentHash;
    use crate::update::tree::{Entry, EntryKind, TreeVisitor};

    /// Work that is quadratic in this number would take more than a day.
    const MANY: usize = 200_000;

    /// The number of lines in a diff by their first character: removed, added, context, hunks.
    fn counts(text: &str, splices: &[Splice]) -> [usize; 4] {
        let mut diff = String::new();
        write_hunks(text, splices, &mut diff);
        ['-', '+', ' ', '@'].map(|sign| diff.lines().filter(|line| line.starts_with(sign)).count())
    }

    /// Text of lines `v`, and splices that replace every `step`-th line by `new`.
    fn lines(step: usize) -> (String, Vec<Splice>) {
        let at = (0..MANY).step_by(step).map(|line| 2 * line);
        let splices = at.map(|at| Splice { range: at..at + 1, text: "new".to_owned() }).collect();
        ("v\n".repeat(MANY), splices)
    }

    #[test]
    fn a_diff_of_very_many_lines_takes_linear_time() {
        let (text, every_line) = lines(1);
        assert_eq!(counts(&text, &every_line), [MANY, MANY, 0, 1]);
        // Changes with overlapping context form one hunk.
        let (text, near) = lines(7);
        let changed = MANY.div_ceil(7);
        assert_eq!(counts(&text, &near), [changed, changed, MANY - changed, 1]);
        let (text, far) = lines(10);
        let changed = MANY / 10;
        assert_eq!(counts(&text, &far), [changed, changed, 6 * changed - 3, changed]);
    }

    /// A tree in which every file has the same content.
    struct Uniform(Vec<u8>);

    impl FileTree for Uniform {
        fn walk(&self, _: &TreePath, _: &mut dyn TreeVisitor) -> Result<(), TreeError> {
            unreachable!("a diff reads files only")
        }

        fn kind(&self, _: &TreePath) -> Result<EntryKind, TreeError> {
            unreachable!("a diff reads files only")
        }

        fn read(&self, _: &Entry, _: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
            content.clone_from(&self.0);
            Ok(())
        }

        fn contains(&self, _: &Entry, _: &[u8]) -> Result<bool, TreeError> {
            unreachable!("a diff reads files only")
        }
    }

    #[test]
    fn a_diff_of_long_lines_in_many_files_is_bounded_and_can_be_ended() {
        let content = [vec![b'v'; 1024 * 1024], b"\n".to_vec()].concat();
        let splices: std::sync::Arc<[Splice]> = [Splice { range: 0..1, text: "w".to_owned() }].into();
        let edits: Vec<FileEdit> = (0..40)
            .map(|number| {
                let path = TreePath::from_bytes(format!("{number}.yaml"));
                let entry = Entry { path, kind: EntryKind::File, content: None };
                FileEdit::new(entry, number.to_string().into(), ContentHash::of(&content), splices.clone())
            })
            .collect();
        let tree = Uniform(content);
        let error = unified(&tree, &edits, &mut |_| Ok(())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the diff has more than 64 MiB, the limit; set update.path to a smaller directory"
        );
        assert!(unified(&tree, &edits[..20], &mut |_| Ok(())).unwrap().len() > 40 * 1024 * 1024);
        let error = unified(&tree, &edits, &mut |_| Err(Interrupt::Cancelled)).unwrap_err();
        assert!(matches!(error, DiffError::Interrupted(Interrupt::Cancelled)));
    }

    #[test]
    fn very_many_changes_of_one_line_are_one_line() {
        let text = "v ".repeat(MANY);
        let splices: Vec<Splice> =
            (0..MANY).map(|at| Splice { range: 2 * at..2 * at + 1, text: "new".to_owned() }).collect();
        // A missing newline at the end of the file is stated after both lines.
        assert_eq!(counts(&text, &splices), [1, 1, 0, 1]);
    }

    #[test]
    fn very_many_lines_that_become_one_are_one_hunk() {
        let text = format!("a\n{}b\n", "v\n".repeat(MANY));
        let splice = Splice { range: 2..2 + 2 * MANY, text: "new\n".to_owned() };
        assert_eq!(counts(&text, &[splice]), [MANY, 1, 2, 1]);
    }
}
