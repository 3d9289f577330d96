//! Git: names, the one builder of git processes, and what is kept of remote repositories.

pub mod author;
pub mod checkout;
mod command;
pub mod name;
pub mod outcome;
pub mod refspec;

pub use command::{Git, GitError};
pub use name::{BranchName, CommitId, RefName};
