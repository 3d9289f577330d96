//! Files in memory, for tests.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sha2::{Digest, Sha256};

use crate::update::{ContentId, Entry, EntryKind, FileTree, TreeError, TreePath, TreeVisitor};

/// Files in memory, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryTree(pub(crate) BTreeMap<String, String>);

impl MemoryTree {
    fn text(&self, path: &TreePath) -> Result<&String, TreeError> {
        self.0.get(&path.to_string()).ok_or_else(|| TreeError::NotFound { path: path.clone() })
    }
}

impl FileTree for MemoryTree {
    fn walk(&self, _: &TreePath, visitor: &mut dyn TreeVisitor) -> Result<(), TreeError> {
        for (path, text) in &self.0 {
            let mut id = [0; 20];
            id.copy_from_slice(&Sha256::digest(text)[..20]);
            let path = TreePath::from_bytes(path.as_bytes());
            let entry = Entry { path, kind: EntryKind::File, content: Some(ContentId(id)) };
            if visitor.entry(entry) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError> {
        match path.is_root() {
            true => Ok(EntryKind::Directory),
            false => self.text(path).map(|_| EntryKind::File),
        }
    }

    fn read(&self, entry: &Entry, _: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
        let text = self.text(&entry.path)?;
        content.clear();
        content.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn contains(&self, entry: &Entry, token: &[u8]) -> Result<bool, TreeError> {
        Ok(memchr::memmem::find(self.text(&entry.path)?.as_bytes(), token).is_some())
    }
}
