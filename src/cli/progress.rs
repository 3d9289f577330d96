//! A line that tells a waiting person how far the work has come.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::printable::printable;
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
        if progress.files.is_multiple_of(64) {
            let update::Progress { files, edits } = progress;
            self.say(|| format!("{files} files read, {edits} edits"));
        }
    }

    /// Shows these words, if it is time for others.
    pub(super) fn say(&mut self, words: impl FnOnce() -> String) {
        if self.next.is_none() {
            return;
        }
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = Some(now + PACE);
            self.is_shown = true;
            let _ = write!(io::stderr().lock(), "\r{}\u{1b}[K", printable(&words()));
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
