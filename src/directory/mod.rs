//! A plain directory as a tree of files, and the writing of edits into it.

mod lock;
mod tree;
mod write;

pub use lock::{Lock, LockError};
pub use tree::Directory;
pub use write::{WriteError, WriteFailure, write_all};
