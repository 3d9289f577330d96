//! Limits the depth and size of a listed tree.
//!
//! A few git objects can describe a practically endless tree: a directory that ten others contain ten times each, which
//! again ten others contain. So a listing counts its entries, and ends beyond the size of any real repository.

use super::tree::{TreeError, TreePath};

/// The maximum number of components in a path.
const DEPTH: usize = 200;

/// The maximum number of files and directories in a listing.
const ENTRIES: usize = 1_000_000;

/// The maximum length of all their paths together, in bytes.
const PATHS: usize = 256 * 1024 * 1024;

/// Counts the entries of one listing.
#[derive(Debug)]
pub struct Reach {
    under: TreePath,
    entries: usize,
    bytes: usize,
}

impl Reach {
    /// Starts the count of a listing of the tree below `under`.
    pub fn of(under: &TreePath) -> Self {
        Self { under: under.clone(), entries: 0, bytes: 0 }
    }

    /// Counts an entry: a file, a directory or anything else.
    ///
    /// # Errors
    ///
    /// Returns an error if there are too many entries, or if this one is too deep.
    pub fn meet(&mut self, path: &TreePath) -> Result<(), TreeError> {
        check_depth(path)?;
        self.entries += 1;
        self.bytes += path.as_bytes().len();
        if self.entries > ENTRIES {
            return Err(TreeError::TooMany { directory: self.under.clone(), limit: ENTRIES });
        }
        if self.bytes > PATHS {
            return Err(TreeError::TooLong { directory: self.under.clone(), limit: PATHS });
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
    let may_be_deep = path.as_bytes().len() >= 2 * DEPTH;
    if may_be_deep && path.parts().count() > DEPTH {
        return Err(TreeError::TooDeep { path: path.clone(), limit: DEPTH });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_has_bounds() {
        let path = |parts: usize| TreePath::from_bytes(vec!["a"; parts].join("/"));
        check_depth(&path(DEPTH)).unwrap();
        let sentence = check_depth(&path(DEPTH + 1)).unwrap_err().to_string();
        assert!(sentence.starts_with("a path has more than 200 parts, the limit: a/a/a/"), "{sentence}");
        assert!(sentence.len() < 250, "{sentence}");

        let mut reach = Reach { entries: ENTRIES - 1, ..Reach::of(&TreePath::from_bytes("apps")) };
        reach.meet(&path(1)).unwrap();
        assert_eq!(
            reach.meet(&path(1)).unwrap_err().to_string(),
            "there are more than 1000000 files and directories in apps, the limit; let update.path lead to a smaller \
             directory"
        );
        let mut reach = Reach { bytes: PATHS - 1, ..Reach::of(&TreePath::root()) };
        reach.meet(&path(1)).unwrap();
        assert_eq!(
            reach.meet(&path(1)).unwrap_err().to_string(),
            "the paths of all files in the root have more than 268435456 bytes, the limit; let update.path lead to a \
             smaller directory"
        );
    }
}
