//! Redaction of secrets in the output of git and ssh and in responses of servers.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::secret::Secret;
use serde_json::Value;

/// The replacement of a secret.
const DOTS: &str = "••••";

/// The length in bytes below which a secret is replaced only as a whole word.
/// A password `a` would otherwise make every message unreadable, and so show itself.
const MIN_LENGTH: usize = 4;

/// The length in bytes from which a secret may be a token.
const TOKEN_LENGTH: usize = 16;

/// The bytes that a URL escapes in a user or a password.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Replaces secrets by dots, in the forms that they may take in a text.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// The longest first, so that none hides a part of another.
    forms: Vec<Secret>,
}

impl Redactor {
    /// Adds a secret in every form that a URL, header or file may contain.
    pub fn add_secret(&mut self, secret: &[u8]) {
        let encoded = percent_encode(secret, RESERVED).to_string();
        for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
            self.add(engine.encode(secret).as_bytes());
        }
        self.add(lower_escapes(&encoded).as_bytes());
        self.add(encoded.as_bytes());
        let json = serde_json::Value::from(String::from_utf8_lossy(secret)).to_string();
        self.add(&json.as_bytes()[1..json.len() - 1]);
        self.add(secret);
        // A program that quotes from a file does so by the line. A short line of a long secret reveals nothing.
        let lines = secret.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        for line in lines.filter(|line| line.len() >= MIN_LENGTH && !line.starts_with(b"-----")) {
            self.add(line);
        }
    }

    fn add(&mut self, form: &[u8]) {
        // Texts are made from bytes in the same way.
        let form = String::from_utf8_lossy(form).into_owned();
        if !form.is_empty() && !self.forms.iter().any(|known| known.expose() == form.as_bytes()) {
            let index = self.forms.partition_point(|known| known.expose().len() >= form.len());
            self.forms.insert(index, Secret::new(form));
        }
    }

    /// Returns a redactor of the secrets of two.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        other.forms.iter().for_each(|form| self.add(form.expose()));
        self
    }

    /// Returns a redactor of the forms that look like tokens.
    ///
    /// No text has one by chance. A password may be a word of a text or of a name, which would be changed.
    #[must_use]
    pub fn of_tokens(&self) -> Self {
        let is_token = |form: &&Secret| {
            let has = |is_wanted: fn(&u8) -> bool| form.expose().iter().any(is_wanted);
            form.expose().len() >= TOKEN_LENGTH && has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit)
        };
        Self { forms: self.forms.iter().filter(is_token).cloned().collect() }
    }

    /// Redacts every text within a JSON value, except the names of members.
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::String(text) if self.may_be_in(text) => *text = self.redact(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.redact_json(value)),
            Value::Object(members) => members.values_mut().for_each(|value| self.redact_json(value)),
            _ => {}
        }
    }

    /// Returns false if a text has no form of a secret.
    pub fn may_be_in(&self, text: &str) -> bool {
        let form = |form: &Secret| str::from_utf8(form.expose()).is_ok_and(|form| text.contains(form));
        self.forms.last().is_some_and(|shortest| shortest.expose().len() <= text.len())
            && self.forms.iter().any(form)
    }

    /// Returns the text with dots in place of every secret.
    pub fn redact(&self, text: &str) -> String {
        let mut pieces = vec![(text.to_owned(), false)];
        for form in &self.forms {
            let form = std::str::from_utf8(form.expose()).expect("forms are made of text");
            let mut next = Vec::with_capacity(pieces.len());
            for (piece, is_dots) in pieces {
                if is_dots {
                    next.push((piece, true));
                } else {
                    split(&piece, form, &mut next);
                }
            }
            pieces = next;
        }
        pieces.into_iter().map(|(piece, _)| piece).collect()
    }
}

fn split(text: &str, form: &str, pieces: &mut Vec<(String, bool)>) {
    let is_word = |c: char| c.is_alphanumeric();
    let mut start = 0;
    for (at, _) in text.match_indices(form) {
        let end = at + form.len();
        let stands_alone = !text[..at].ends_with(is_word) && !text[end..].starts_with(is_word);
        if form.len() >= MIN_LENGTH || stands_alone {
            pieces.push((text[start..at].to_owned(), false));
            pieces.push((DOTS.to_owned(), true));
            start = end;
        }
    }
    pieces.push((text[start..].to_owned(), false));
}

/// Writes percent escapes in lower case, as some servers do.
fn lower_escapes(text: &str) -> String {
    let mut digits_left = 0;
    let lower = |c: char| {
        if c == '%' {
            digits_left = 2;
        } else if digits_left > 0 {
            digits_left -= 1;
            return c.to_ascii_lowercase();
        }
        c
    };
    text.chars().map(lower).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(secrets: &[&str], text: &str) -> String {
        let mut redactor = Redactor::default();
        for secret in secrets {
            redactor.add_secret(secret.as_bytes());
        }
        assert!(!format!("{redactor:?}").contains("hunter"));
        redactor.redact(text)
    }

    #[test]
    fn every_form_of_a_secret_becomes_dots() {
        let secret = "p\u{e4}ss/?>w@rd";
        for form in [
            secret,
            "cMOkc3MvPz53QHJk",
            &STANDARD.encode(secret),
            &URL_SAFE_NO_PAD.encode(secret),
            "p%C3%A4ss%2F%3F%3Ew%40rd",
            "p%c3%a4ss%2f%3f%3ew%40rd",
        ] {
            assert_eq!(redact(&[secret], &format!("a {form}{form}: b")), "a ••••••••: b", "{form}");
        }
    }

    #[test]
    fn the_longest_secret_is_redacted_first() {
        assert_eq!(redact(&["hunter", "hunter2"], "hunter2 hunter hunter22"), "•••• •••• ••••2");
        assert_eq!(redact(&["••", "hunter"], "hunter ••"), "•••• ••••");
    }

    #[test]
    fn two_redactors_together_redact_the_longest_secret_of_both_first() {
        let of = |secret: &str| {
            let mut redactor = Redactor::default();
            redactor.add_secret(secret.as_bytes());
            redactor
        };
        for both in [of("hunter").with(&of("hunter2")), of("hunter2").with(&of("hunter"))] {
            assert_eq!(both.redact("hunter2 hunter aHVudGVyMg=="), "•••• •••• ••••");
        }
        assert_eq!(of("hunter").with(&Redactor::default()).redact("hunter2"), "••••2");
    }

    #[test]
    fn every_text_of_a_document_is_redacted() {
        let mut redactor = Redactor::default();
        redactor.add_secret(b"hunter2");
        let mut value: Value =
            serde_json::from_str(r#"{"a":[{"b":"x \u0068unter2"},"hunter",7],"hunter2":"aHVudGVyMg=="}"#)
                .unwrap();
        redactor.redact_json(&mut value);
        assert_eq!(value.to_string(), r#"{"a":[{"b":"x ••••"},"hunter",7],"hunter2":"••••"}"#);
    }

    #[test]
    fn what_looks_like_a_token_is_no_word_of_a_text() {
        let mut redactor = Redactor::default();
        for secret in ["tagboat", "kubernetes-production", "glpat-x4kT9vQ2bWm7sLzR", "20261129203000000000"] {
            redactor.add_secret(secret.as_bytes());
        }
        let text = "tagboat kubernetes-production glpat-x4kT9vQ2bWm7sLzR 20261129203000000000";
        let expected = "tagboat kubernetes-production •••• 20261129203000000000";
        assert_eq!(redactor.of_tokens().redact(text), expected);
        assert_eq!(redactor.redact(text), "•••• •••• •••• ••••");
    }

    #[test]
    fn a_secret_is_known_in_json() {
        assert_eq!(redact(&["pass\"word\\"], r#"{"got":"pass\"word\\"}"#), "{\"got\":\"••••\"}");
        assert_eq!(redact(&["{\n\"key\": \"hunter2\"\n}"], "{\"got\": 1}"), "{\"got\": 1}");
    }

    #[test]
    fn short_secrets_are_redacted_only_as_whole_words() {
        assert_eq!(redact(&["a"], "fatal: a 'a' a: bad"), "fatal: •••• '••••' ••••: bad");
        assert_eq!(redact(&[""], "fatal"), "fatal");
    }

    #[test]
    fn a_key_is_redacted_line_by_line() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQ\nAgEAAo\n-----END PRIVATE KEY-----\n";
        assert_eq!(redact(&[key], &format!("{key}|bad line: AgEAAo")), "••••|bad line: ••••");
        assert_eq!(redact(&[key], "-----BEGIN PRIVATE KEY-----"), "-----BEGIN PRIVATE KEY-----");
    }
}
