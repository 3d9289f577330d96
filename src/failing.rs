//! Errors that can end a reconcile: what the condition says of them, and whether to try again.
//!
//! Every error that leaves a room has an answer, however deep the room is: what becomes of a run is decided far from
//! where the error was made, and nobody should have to know there what it meant. Only an error that is always the
//! cause of another one has none.

use std::error::Error;

use tagboat_api::Reason;
use tagboat_api::settings::SettingErrors;

/// An error that can end a reconcile.
pub trait Failing: Error {
    /// The reason that the condition Ready gives.
    fn reason(&self) -> Reason;

    /// Whether trying again can help while the objects stay as they are.
    ///
    /// So it can where something outside the objects is at fault: a file, a repository, a server. What is wrong in
    /// an object itself stalls until somebody changes the object.
    fn is_retryable(&self) -> bool;
}

/// A wrong annotation is wrong until somebody changes it.
impl Failing for SettingErrors {
    fn reason(&self) -> Reason {
        Reason::InvalidSettings
    }

    fn is_retryable(&self) -> bool {
        false
    }
}
