//! A line that tells a waiting person how far the work has come.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::update;

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(300);

/// How often the line changes.
const PACE: Duration = Duration::from_millis(100);

/// The line on standard error; nothing where that is no terminal.
pub(super) struct ProgressLine {
    next: Option<Instant>,
    is_shown: bool,
}

impl ProgressLine {
    pub(super) fn new() -> Self {
        let next = io::stderr().is_terminal().then(|| Instant::now() + PATIENCE);
        Self { next, is_shown: false }
    }

    pub(super) fn show(&mut self, progress: update::Progress) {
        // Looking at the clock costs more than looking into a small file.
        if self.next.is_none() || !progress.files.is_multiple_of(64) {
            return;
        }
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = Some(now + PACE);
            self.is_shown = true;
            let update::Progress { files, of, edits } = progress;
            let _ = write!(io::stderr().lock(), "\r{files} of {of} files read, {edits} edits\u{1b}[K");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}
