//! Tags from a file or standard input.

use std::path::{Path, PathBuf};

use crate::cli::Failure;
use crate::cli::inputs::{input_name, is_standard_input, read_input};
use crate::cli::terminal::count;
use crate::reference::{Tag, TagList};

/// A file with a tag on each line, or standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TagFile<'a>(&'a Path);

impl<'a> TagFile<'a> {
    /// Parses `--tags`.
    pub(super) fn choose(path: &'a Path, policies: &[PathBuf]) -> Result<Self, Failure> {
        if is_standard_input(path) && policies.iter().any(|path| is_standard_input(path)) {
            return Err(Failure::Usage(
                "standard input cannot hold both the manifests (--policies -) and the tags (--tags -)"
                    .to_owned(),
            ));
        }
        Ok(Self(path))
    }

    /// Reads the tags.
    pub(super) fn read(self) -> Result<TagList, Failure> {
        let name = self.name();
        let bytes = read_input(self.0)
            .map_err(|error| Failure::new(format!("cannot read the tags from {name}: {error}")))?;
        lines(&bytes).map_err(|line| Failure::new(format!("{name}:{line}: the tag there is not UTF-8")))
    }

    /// Returns the name of the file in messages.
    pub(super) fn name(self) -> String {
        input_name(self.0)
    }

    /// Returns a note about lines that cannot be tags.
    pub(super) fn note(self, tags: &TagList) -> Option<String> {
        let name = self.name();
        let mut others = tags.iter().filter(|tag| !Tag::is_well_formed(tag));
        let first = others.next()?;
        let number = count(1 + others.count(), "line");
        Some(format!("{number} of {name} cannot be a tag, such as {first:?}: write only one tag per line"))
    }
}

/// Returns the tags, one per line, without surrounding blanks and empty lines.
///
/// # Errors
///
/// The number of a line that is not UTF-8.
fn lines(bytes: &[u8]) -> Result<TagList, usize> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let lines = bytes.split(|&byte| byte == b'\n').enumerate();
    let texts = lines.map(|(index, line)| std::str::from_utf8(line).map(str::trim).map_err(|_| index + 1));
    texts.filter(|text| *text != Ok("")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_input_is_a_tag() {
        let tags = lines(b"\xef\xbb\xbf1.0\r\n\n  v2 \n1.0\nlatest").unwrap();
        assert_eq!(tags.iter().collect::<Vec<_>>(), ["v2", "latest", "1.0"]);
        let note = |bytes: &[u8]| TagFile(Path::new("-")).note(&lines(bytes).unwrap());
        assert_eq!(note(b"1.0\nv2\n1.0.0_b"), None);
        assert_eq!(note(b" \n\n"), None);
        assert_eq!(
            note(b"1.0\n\"1.1\",\n\"1.0\",\n").as_deref(),
            Some(
                "2 lines of standard input cannot be a tag, such as \"\\\"1.1\\\",\": write only one tag per line"
            )
        );
        assert_eq!(lines(b"1\n2\n\xff\n"), Err(3));
    }
}
