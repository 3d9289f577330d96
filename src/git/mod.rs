//! Git: names, the one builder of git processes, the ways to remote repositories, and what is kept of them.

pub mod checkout;
mod command;
pub mod name;
pub mod outcome;
mod percent;
pub mod refspec;
mod url;

pub use command::{Git, GitError};
pub use name::{BranchName, CommitId, RefName};
pub use url::{LocalPaths, RemoteUrl, RemoteUrlError, Transport};
