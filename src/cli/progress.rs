//! Progress line on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::printable::printable;
use crate::update;

/// Delay before the first line; shorter work shows nothing.
const SHOW_AFTER: Duration = Duration::from_millis(300);

/// Minimum time between two changes of the line.
const INTERVAL: Duration = Duration::from_millis(100);

/// The progress line; it shows nothing if standard error is not a terminal.
pub(super) struct ProgressLine {
    next: Option<Instant>,
    is_shown: bool,
}

impl ProgressLine {
    pub(super) fn new() -> Self {
        let next = io::stderr().is_terminal().then(|| Instant::now() + SHOW_AFTER);
        Self { next, is_shown: false }
    }

    pub(super) fn show(&mut self, progress: update::Progress) {
        // Reading the clock costs more than reading a small file.
        if progress.files.is_multiple_of(64) {
            let update::Progress { files, edits } = progress;
            self.show_text(|| format!("{files} files read, {edits} edits"));
        }
    }

    /// Shows a text, unless the line has just changed.
    pub(super) fn show_text(&mut self, text: impl FnOnce() -> String) {
        if self.next.is_none() {
            return;
        }
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = Some(now + INTERVAL);
            self.is_shown = true;
            let _ = write!(io::stderr().lock(), "\r{}\u{1b}[K", printable(&text()));
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
