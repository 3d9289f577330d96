//! The contents of directories, each of which is read once.
//!
//! A walk goes from the newest commit to the oldest, so the older version of a directory in one comparison is the newer
//! one in a later comparison.

use std::collections::HashMap;
use std::rc::Rc;

use git2::{Odb, Oid};

use crate::error::chain;
use crate::git::object::read_tree;

/// The maximum size of the cache in bytes; a larger one is emptied.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Reads directories, and caches those that will be compared again.
pub(super) struct Directories<'r> {
    objects: Odb<'r>,
    cache: HashMap<Oid, Rc<[u8]>>,
    bytes: usize,
}

impl<'r> Directories<'r> {
    pub(super) fn new(objects: Odb<'r>) -> Self {
        Self { objects, cache: HashMap::new(), bytes: 0 }
    }

    /// Returns the objects of the repository.
    pub(super) fn objects(&self) -> &Odb<'r> {
        &self.objects
    }

    /// Returns a directory that will not be compared again; an empty one without an id.
    pub(super) fn take(&mut self, id: Option<Oid>) -> Result<Rc<[u8]>, String> {
        let Some(id) = id else { return Ok(Rc::default()) };
        match self.cache.remove(&id) {
            Some(content) => {
                self.bytes -= size(&content);
                Ok(content)
            }
            None => self.read(id),
        }
    }

    /// Returns a directory and keeps it for a later comparison.
    ///
    /// It is empty without an id.
    pub(super) fn keep(&mut self, id: Option<Oid>) -> Result<Rc<[u8]>, String> {
        let Some(id) = id else { return Ok(Rc::default()) };
        if let Some(content) = self.cache.get(&id) {
            return Ok(content.clone());
        }
        let content = self.read(id)?;
        if self.bytes + size(&content) > MAX_BYTES {
            self.cache.clear();
            self.bytes = 0;
        }
        self.bytes += size(&content);
        self.cache.insert(id, content.clone());
        Ok(content)
    }

    fn read(&self, id: Oid) -> Result<Rc<[u8]>, String> {
        read_tree(&self.objects, id).map(|tree| tree.data().into()).map_err(|error| chain(&error))
    }
}

fn size(content: &Rc<[u8]>) -> usize {
    size_of::<(Oid, Rc<[u8]>)>() + content.len()
}
