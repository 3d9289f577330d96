//! The async runtime of a command.

use std::io;

use tokio::runtime::{Builder, Runtime};

use super::failure::Failure;

/// Creates a runtime that does its work on the calling thread.
///
/// # Errors
///
/// If the system gives it no resources.
pub(super) fn single_threaded() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(|error| failure(&error))
}

/// Creates a runtime with two worker threads.
///
/// # Errors
///
/// If the system gives it no resources.
pub(super) fn multi_threaded() -> Result<Runtime, Failure> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(|error| failure(&error))
}

fn failure(error: &io::Error) -> Failure {
    Failure::new(format!("cannot start the async runtime: {error}"))
}
