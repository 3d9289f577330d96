//! Git: so far the one place where the program is started.

mod command;

pub use command::{Git, GitError};
