//! What git and ssh said: in full for those who look for a meaning in it, and without secrets for everybody else.
//!
//! A user may be called `git`, or like a part of the path, and then what is left without secrets means something else:
//! so a meaning is always looked for in full.

use std::fmt;

use zeroize::Zeroizing;

/// Words of git's or ssh's. They print on one line and without secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Words {
    full: Zeroizing<String>,
    /// The same, line by line, without secrets.
    shown: Vec<String>,
}

impl Words {
    /// Takes words into keeping; `redact` takes the secrets out of a line.
    pub(super) fn new(full: impl Into<String>, redact: impl Fn(&str) -> String) -> Self {
        let full = Zeroizing::new(full.into());
        let shown = full.lines().map(redact).collect();
        Self { full, shown }
    }

    /// The words in full, which nobody may see.
    pub(super) fn full(&self) -> &str {
        &self.full
    }

    /// Each line in full, and as it may be shown.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.full.lines().zip(self.shown.iter().map(String::as_str))
    }

    /// Those lines that `is_wanted` when seen in full and without what git puts in front, to be shown on one line.
    pub(super) fn choose(&self, is_wanted: impl Fn(&str) -> bool) -> String {
        let wanted = self.lines().filter(|(full, _)| is_wanted(bare(full))).map(|(_, shown)| bare(shown));
        wanted.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// A line without the words that git puts in front.
fn bare(line: &str) -> &str {
    let line = line.trim();
    line.strip_prefix("fatal: ").or(line.strip_prefix("error: ")).unwrap_or(line)
}

/// Prints them on one line and without secrets.
impl fmt::Display for Words {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.choose(|_| true))
    }
}

/// Prints them on one line and without secrets.
impl fmt::Debug for Words {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_print_on_one_line_and_without_secrets() {
        let words =
            Words::new("fatal: no hunter2 here\n\n  error: hunter2\n", |line| line.replace("hunter2", "•"));
        assert_eq!(format!("{words} {words:?}"), "no • here; • \"no • here; •\"");
        assert_eq!(words.choose(|line| line == "hunter2"), "•");
        assert!(words.full().contains("no hunter2 here\n"));
    }
}
