//! A plain directory as a tree of files: lists, reads and writes it.

mod lock;
mod open;
mod tree;
mod write;

pub use lock::{Lock, LockError};
pub use open::{open, open_with, read};
pub use tree::Directory;
pub use write::{WriteError, WriteFailure, write_all};
