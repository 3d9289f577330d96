//! A plain directory as a tree of files: lists, reads and writes it.
//!
//! | module | contents |
//! |---|---|
//! | `tree` | the directory as a `FileTree` |
//! | `open` | opens files of unknown type without blocking |
//! | `write` | writes edits atomically |
//! | `lock` | the lock for one writer at a time |

mod lock;
mod open;
mod tree;
mod write;

pub use lock::{Lock, LockError};
pub use open::{open, open_with, read};
pub use tree::Directory;
pub use write::{WriteError, WriteFailure, write_all};
