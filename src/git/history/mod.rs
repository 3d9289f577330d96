//! The history of marked values in a local clone.
//!
//! It is the first-parent line of HEAD, from the newest commit to the oldest.
//!
//! | file | contents |
//! |---|---|
//! | `local_clone` | a repository of the user, found from a path |
//! | `history_walk` | the commits with their changes |
//! | `changed_files` | the files in which two trees differ |
//! | `directories` | the contents of directories, with a cache |
//! | `marked_contents` | the marked values of blobs, with a cache |
//! | `error` | errors that end a walk |

mod changed_files;
mod directories;
mod error;
mod history_walk;
mod local_clone;
mod marked_contents;

pub use error::HistoryError;
pub use history_walk::{CommitSummary, HistoryEnd, HistoryWalk, UnreadableVersion, WalkedCommit};
pub use local_clone::{LocalClone, disable_object_cache};
