//! The marked values of blobs.
//!
//! A blob that differs from a known one in marked values only is not parsed, and no blob is read twice while it is a
//! version of a file at the current commit.

use std::collections::HashMap;
use std::rc::Rc;

use git2::{Odb, Oid};

use crate::update::history::MarkedContent;
use crate::update::{ReadError, TreeError, TreePath};
use crate::yaml::Limits;

/// The maximum size of the cache in bytes; a larger one is emptied.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The marked values of a blob, or the error of reading it.
pub(super) type Reading = Result<Rc<MarkedContent>, ReadError>;

/// Reads blobs, and caches their marked values.
pub(super) struct MarkedContents {
    limits: Limits,
    cache: HashMap<Oid, Reading>,
    bytes: usize,
}

impl MarkedContents {
    pub(super) fn new() -> Self {
        Self { limits: Limits::default(), cache: HashMap::new(), bytes: 0 }
    }

    /// Returns the marked values of a blob.
    ///
    /// `beside` is the next version of the same file, and `path` its name in errors.
    pub(super) fn read(
        &mut self,
        objects: &Odb<'_>,
        path: &TreePath,
        id: Oid,
        beside: Option<&Reading>,
    ) -> Reading {
        if let Some(known) = self.cache.get(&id) {
            return known.clone();
        }
        let reading = self.parse(objects, path, id, beside);
        let size = size_of::<(Oid, Reading)>() + reading.as_ref().map_or(0, |content| content.size());
        if self.bytes + size > MAX_BYTES {
            self.cache.clear();
            self.bytes = 0;
        }
        self.bytes += size;
        self.cache.insert(id, reading.clone());
        reading
    }

    /// Removes a blob that is no longer the current version of its file.
    pub(super) fn remove(&mut self, id: Oid) {
        if let Some(reading) = self.cache.remove(&id) {
            let size = size_of::<(Oid, Reading)>() + reading.as_ref().map_or(0, |content| content.size());
            self.bytes = self.bytes.saturating_sub(size);
        }
    }

    fn parse(&self, objects: &Odb<'_>, path: &TreePath, id: Oid, beside: Option<&Reading>) -> Reading {
        let unreadable =
            |cause: git2::Error| ReadError::from(TreeError::Read { path: path.clone(), cause: cause.into() });
        // The size comes first: a large blob never gets into memory.
        let (size, _) = objects.read_header(id).map_err(unreadable)?;
        if size > self.limits.file_size {
            let size = u64::try_from(size).unwrap_or(u64::MAX);
            return Err(ReadError::too_large(size, self.limits.file_size));
        }
        let object = objects.read(id).map_err(unreadable)?;
        let known = beside.and_then(|reading| reading.as_ref().ok());
        match known.and_then(|content| content.with_other_values(object.data())) {
            Some(content) => Ok(Rc::new(content)),
            None => MarkedContent::parse(object.data().to_vec(), &self.limits).map(Rc::new),
        }
    }
}
