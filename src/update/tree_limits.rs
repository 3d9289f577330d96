//! Limits the depth and size of a listed tree.
//!
//! A few git objects can describe a practically endless tree: a directory that ten others contain ten times each, which
//! again ten others contain. So a listing counts its entries, and ends beyond the size of any real repository.

use super::tree::{TreeError, TreePath};

/// The maximum number of components in a path.
const MAX_DEPTH: usize = 200;

/// The maximum number of files and directories in a listing.
const MAX_ENTRIES: usize = 1_000_000;

/// The maximum length of all their paths together, in bytes.
const MAX_PATH_BYTES: usize = 256 * 1024 * 1024;

/// Counts the entries of one listing.
#[derive(Debug)]
pub struct TreeLimits {
    under: TreePath,
    entries: usize,
    bytes: usize,
}

impl TreeLimits {
    /// Starts the count of a listing of the tree below `under`.
    pub fn new(under: &TreePath) -> Self {
        Self { under: under.clone(), entries: 0, bytes: 0 }
    }

    /// Counts an entry: a file, a directory or anything else.
    ///
    /// # Errors
    ///
    /// Returns an error if there are too many entries, or if this one is too deep.
    pub fn count(&mut self, path: &TreePath) -> Result<(), TreeError> {
        check_depth(path)?;
        self.entries += 1;
        self.bytes += path.as_bytes().len();
        if self.entries > MAX_ENTRIES {
            return Err(TreeError::TooMany { directory: self.under.clone(), limit: MAX_ENTRIES });
        }
        if self.bytes > MAX_PATH_BYTES {
            return Err(TreeError::TooLong { directory: self.under.clone(), limit: MAX_PATH_BYTES });
        }
        Ok(())
    }
}

/// Checks the depth of a path.
///
/// # Errors
///
/// Returns an error if the path has too many components.
pub fn check_depth(path: &TreePath) -> Result<(), TreeError> {
    // A component has at least one byte, and all but the first have a slash before them.
    let may_be_deep = path.as_bytes().len() >= 2 * MAX_DEPTH;
    if may_be_deep && path.parts().count() > MAX_DEPTH {
        return Err(TreeError::TooDeep { path: path.clone(), limit: MAX_DEPTH });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_has_bounds() {
        let path = |parts: usize| TreePath::from_bytes(vec!["a"; parts].join("/"));
        check_depth(&path(MAX_DEPTH)).unwrap();
        let sentence = check_depth(&path(MAX_DEPTH + 1)).unwrap_err().to_string();
        assert!(sentence.starts_with("a path has more than 200 parts, the limit: a/a/a/"), "{sentence}");
        assert!(sentence.len() < 250, "{sentence}");

        let mut limits =
            TreeLimits { entries: MAX_ENTRIES - 1, ..TreeLimits::new(&TreePath::from_bytes("apps")) };
        limits.count(&path(1)).unwrap();
        assert_eq!(
            limits.count(&path(1)).unwrap_err().to_string(),
            "there are more than 1000000 files and directories in apps, the limit; set update.path to a smaller \
             directory"
        );
        let mut limits = TreeLimits { bytes: MAX_PATH_BYTES - 1, ..TreeLimits::new(&TreePath::root()) };
        limits.count(&path(1)).unwrap();
        assert_eq!(
            limits.count(&path(1)).unwrap_err().to_string(),
            "the paths of all files in the root have more than 268435456 bytes, the limit; set update.path to a \
             smaller directory"
        );
    }
}
