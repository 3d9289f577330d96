//! How far a listing reaches.
//!
//! Few objects of git can stand for a tree without end: one directory that is entered ten times by each of ten others,
//! and these again by ten. So a listing counts what it meets, and ends where that is more than any tree that people
//! work with.

use super::tree::{TreeError, TreePath};

/// The parts that a path may have.
const DEPTH: usize = 200;

/// The files and directories that a listing may meet.
const ENTRIES: usize = 1_000_000;

/// The bytes that the paths of all of them may have.
const PATHS: usize = 256 * 1024 * 1024;

/// What a listing has met so far.
#[derive(Debug)]
pub struct Reach {
    under: TreePath,
    entries: usize,
    bytes: usize,
}

impl Reach {
    /// The beginning of a listing of what is below `under`.
    pub fn of(under: &TreePath) -> Self {
        Self { under: under.clone(), entries: 0, bytes: 0 }
    }

    /// Counts a file, directory or whatever else was met.
    ///
    /// # Errors
    ///
    /// When it is one too many, or stands too deep.
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

/// Whether something can be looked at where it stands.
///
/// # Errors
///
/// When it stands too deep.
pub fn check_depth(path: &TreePath) -> Result<(), TreeError> {
    // A part has a byte at least, and a slash comes before each but the first.
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
