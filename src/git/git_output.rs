//! The output of git and ssh: in full to classify errors, redacted for all else.
//!
//! A user may be called `git`, or like a part of the path, and then the redacted text means something else: so errors
//! are always classified by the full text.

use std::fmt;

use zeroize::Zeroizing;

/// Output of git or ssh. It prints on one line and redacted.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct GitOutput {
    full: Zeroizing<String>,
    /// The redacted text, line by line.
    redacted: Vec<String>,
}

impl GitOutput {
    /// Creates an output; `redact` redacts a line.
    pub(super) fn new(full: impl Into<String>, redact: impl Fn(&str) -> String) -> Self {
        let full = Zeroizing::new(full.into());
        let redacted = full.lines().map(redact).collect();
        Self { full, redacted }
    }

    /// Returns the full text, which must not be shown.
    pub(super) fn full(&self) -> &str {
        &self.full
    }

    /// Returns each line in full and redacted.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.full.lines().zip(self.redacted.iter().map(String::as_str))
    }

    /// Returns the lines for which `is_wanted` is true, redacted and on one line.
    /// `is_wanted` gets each line in full and without git's prefixes.
    pub(super) fn choose(&self, is_wanted: impl Fn(&str) -> bool) -> String {
        let wanted =
            self.lines().filter(|(full, _)| is_wanted(bare(full))).map(|(_, redacted)| bare(redacted));
        wanted.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// Returns a line without git's prefixes.
fn bare(line: &str) -> &str {
    let line = line.trim();
    line.strip_prefix("fatal: ").or(line.strip_prefix("error: ")).unwrap_or(line)
}

/// Prints the output on one line and redacted.
impl fmt::Display for GitOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.choose(|_| true))
    }
}

/// Prints the output on one line and redacted.
impl fmt::Debug for GitOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_output_prints_on_one_line_and_without_secrets() {
        let output = GitOutput::new("fatal: no hunter2 here\n\n  error: hunter2\n", |line| {
            line.replace("hunter2", "•")
        });
        assert_eq!(format!("{output} {output:?}"), "no • here; • \"no • here; •\"");
        assert_eq!(output.choose(|line| line == "hunter2"), "•");
        assert!(output.full().contains("no hunter2 here\n"));
    }
}
