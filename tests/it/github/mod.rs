//! Tests at a test server of GitHub: commits that it signs.

mod branches;
mod faults;
mod scene;
pub(crate) mod server;
mod signing;
