//! The edit of one file, small enough to hold thousands of edits in memory.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::quality::FixedState;
use sha2::Digest;

use super::tree::Entry;
use crate::yaml::{self, Splice};

/// The planned edit of one file.
///
/// It holds the replaced bytes and identifies the content that it is planned for, so a file that changed meanwhile is
/// left unchanged.
#[derive(Debug, Clone)]
pub struct FileEdit {
    /// The file, never a symbolic link.
    pub entry: Entry,
    /// Its name in results, relative to `update.path`.
    pub key: Arc<str>,
    splices: Arc<[Splice]>,
    content: ContentHash,
}

/// The length and hash that identify a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentHash {
    length: usize,
    hash: u64,
}

impl ContentHash {
    pub(super) fn of(content: &[u8]) -> Self {
        let mut hasher = FixedState::default().build_hasher();
        hasher.write(content);
        Self { length: content.len(), hash: hasher.finish() }
    }
}

impl FileEdit {
    /// Creates the edit of a file with this content.
    ///
    /// The splices must be in ascending order; files of the same content share them.
    pub(super) fn new(entry: Entry, key: Arc<str>, content: ContentHash, splices: Arc<[Splice]>) -> Self {
        Self { entry, key, splices, content }
    }

    /// Copies the edit for another file with the same content.
    pub(super) fn of_file(&self, entry: Entry, key: Arc<str>) -> Self {
        Self { entry, key, splices: Arc::clone(&self.splices), content: self.content }
    }

    /// Returns true if both edits turn the same old content into the same new one.
    pub fn has_same_effect(&self, other: &Self) -> bool {
        self.content == other.content && self.splices == other.splices
    }

    /// Adds the path, the old content and the replaced bytes to a hash.
    ///
    /// Edits that add the same make the same change of the same file.
    pub fn add_to(&self, hash: &mut sha2::Sha256) {
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        add(self.entry.path.as_bytes());
        match &self.entry.content {
            Some(id) => add(&id.0),
            None => add(&self.content.hash.to_le_bytes()),
        }
        for splice in self.splices.iter() {
            add(&splice.range.start.to_le_bytes());
            add(&splice.range.end.to_le_bytes());
            add(splice.text.as_bytes());
        }
    }

    /// The length in bytes of the content that the edit is planned for.
    pub fn content_length(&self) -> usize {
        self.content.length
    }

    /// Returns the file's new content, or `None` if the edit was planned for another content.
    pub fn apply(&self, content: &[u8]) -> Option<Vec<u8>> {
        let (text, splices) = self.splices_for(content)?;
        Some(yaml::apply(text, splices).into_bytes())
    }

    /// Returns the content as text with its splices.
    ///
    /// `None` if the edit was planned for another content.
    pub fn splices_for<'c>(&self, content: &'c [u8]) -> Option<(&'c str, &[Splice])> {
        let fits = ContentHash::of(content) == self.content;
        let text = fits.then(|| std::str::from_utf8(content).ok()).flatten()?;
        Some((text, &self.splices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::tree::{EntryKind, TreePath};

    #[test]
    fn an_edit_applies_only_to_its_original_content() {
        let entry = Entry { path: TreePath::from_bytes("a.yaml"), kind: EntryKind::File, content: None };
        let splices = vec![Splice { range: 3..4, text: "22".to_owned() }];
        let edit = FileEdit::new(entry, "a.yaml".into(), ContentHash::of(b"a: 1\n"), splices.into());
        assert_eq!(edit.apply(b"a: 1\n"), Some(b"a: 22\n".to_vec()));
        assert_eq!(edit.apply(b"a: 2\n"), None);
    }
}
