//! The time of a commit.

use git2::Signature;
use serde::{Deserialize, Serialize};

/// A point in time as a commit states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitTime {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Minutes that the local time is ahead of UTC.
    pub offset: i32,
}

impl CommitTime {
    /// Returns the current time with the offset of the local time zone.
    pub fn now() -> Self {
        // libgit2 asks the C library for the local offset; other ways read the rules of all time zones first.
        let signature = Signature::now("now", "now").expect("name and address can stand in a commit");
        let now = signature.when();
        Self { seconds: now.seconds(), offset: now.offset_minutes() }
    }
}
