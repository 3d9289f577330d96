//! Quotes of a server's text in messages, without the token that it got.

use std::collections::HashSet;

use crate::printable::printable;
use crate::secrets::{Redactor, Secret};

/// The maximum number of characters of a quote.
const MAX_QUOTE: usize = 300;

/// The length of a part of the token, in letters and digits.
const PART: usize = 8;

/// Quotes texts of a server, which may contain the token or a part of it.
#[derive(Default)]
pub(super) struct Quoting {
    secrets: Redactor,
    /// The letters and digits of the token.
    letters: Option<Secret>,
}

impl Quoting {
    /// Keeps a token out of all quotes.
    pub(super) fn forbid(&mut self, token: &Secret) {
        self.secrets.add_secret(token.expose());
        self.letters = Some(Secret::new(letters(token.expose())));
    }

    /// Returns a foreign text on one line, without secrets and not too long.
    ///
    /// The whole token becomes dots. A text with a part of it is replaced by a note.
    pub(super) fn quote(&self, text: &str) -> String {
        let text = self.secrets.redact(text);
        if self.has_part(&text) {
            return "(not shown, because it contains a part of the token)".to_owned();
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        printable(&words.join(" ")).chars().take(MAX_QUOTE).collect()
    }

    /// Returns true if a text contains a part of the token.
    ///
    /// Other characters may be in between.
    fn has_part(&self, text: &str) -> bool {
        let Some(token) = &self.letters else { return false };
        let parts: HashSet<&[u8]> = token.expose().windows(PART).collect();
        letters(text.as_bytes()).windows(PART).any(|part| parts.contains(part))
    }
}

/// Returns the letters and digits of a text.
fn letters(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(u8::is_ascii_alphanumeric).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "eyJhbGciOi.JIUzI1NiIs-InR5cCI6IkpXVCJ9";

    fn quoting() -> Quoting {
        let mut quoting = Quoting::default();
        quoting.forbid(&Secret::new(TOKEN.as_bytes().to_vec()));
        quoting
    }

    #[test]
    fn quoted_text_is_one_short_line_without_the_token() {
        let quoting = quoting();
        assert_eq!(quoting.quote(&format!("a\n\tb \u{1b}[31m {TOKEN}")), "a b \\u{1b}[31m ••••");
        assert_eq!(quoting.quote(&"é".repeat(5000)).chars().count(), MAX_QUOTE);
        assert_eq!(Quoting::default().quote("unknown deployment"), "unknown deployment");
    }

    #[test]
    fn a_text_with_a_part_of_the_token_is_not_quoted() {
        let quoting = quoting();
        let spaced: String = TOKEN.chars().flat_map(|letter| [letter, ' ']).collect();
        for text in [&TOKEN[..9], &TOKEN[10..24], &TOKEN[TOKEN.len() - 12..], &spaced] {
            let quoted = quoting.quote(&format!("no {text} here"));
            assert_eq!(quoted, "(not shown, because it contains a part of the token)", "{text}");
        }
        assert_eq!(quoting.quote("no eyJhbGc here"), "no eyJhbGc here");
    }
}
