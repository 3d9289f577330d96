//! Errors that can end a reconcile: what the condition says of them, and whether to try again.
//!
//! Every error that leaves a room has an answer, however deep the room is: what becomes of a run is decided far from
//! where the error was made, and nobody should have to know there what it meant. Only an error that is always the
//! cause of another one has none.

use std::error::Error;
use std::fmt;

use tagboat_api::Reason;
use tagboat_api::settings::SettingErrors;

/// An error that can end a reconcile.
pub trait ReconcileError: Error {
    /// The reason that the condition Ready gives.
    fn reason(&self) -> Reason;

    /// Whether trying again can help while the objects stay as they are.
    ///
    /// So it can where something outside the objects is at fault: a file, a repository, a server. What is wrong in
    /// an object itself stalls until somebody changes the object.
    fn is_retryable(&self) -> bool;
}

/// A wrong annotation is wrong until somebody changes it.
impl ReconcileError for SettingErrors {
    fn reason(&self) -> Reason {
        Reason::InvalidSettings
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

/// Writes an error and its causes in one line, parted by colons.
///
/// # Errors
///
/// When the formatter fails.
pub fn write_chain(formatter: &mut impl fmt::Write, error: &(dyn Error + 'static)) -> fmt::Result {
    write!(formatter, "{error}")?;
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(formatter, ": {error}")?;
        cause = error.source();
    }
    Ok(())
}

/// An error and its causes in one line, parted by colons.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    write_chain(&mut text, error).expect("writing to a string cannot fail");
    text
}
