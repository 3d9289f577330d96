//! The lexer: splits a template into tokens as the parser asks for them.

use std::borrow::Cow;

use super::token::{Token, TokenKind};
use crate::format::{quote, unicode_point};
use crate::unicode::{is_digit, is_letter};

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
const LEFT_COMMENT: &str = "/*";
const RIGHT_COMMENT: &str = "*/";
/// A trim marker and the space beside it.
const MARKER: usize = 2;

/// A lexer at a position of a template.
pub(super) struct Lexer<'t> {
    input: &'t str,
    at: usize,
    start: usize,
    line: usize,
    start_line: usize,
    parentheses: usize,
    is_inside: bool,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(input: &'t str) -> Self {
        Self { input, at: 0, start: 0, line: 1, start_line: 1, parentheses: 0, is_inside: false }
    }

    /// Returns the next token.
    /// At the end and after an error it repeats the end token.
    pub(super) fn next_token(&mut self) -> Token<'t> {
        if self.is_inside { self.inside() } else { self.text() }
    }

    fn rest(&self) -> &'t str {
        &self.input[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn back(&mut self, c: char) {
        self.at -= c.len_utf8();
        self.line -= usize::from(c == '\n');
    }

    fn accept(&mut self, wanted: &str) -> bool {
        let is_wanted = self.peek().is_some_and(|c| wanted.contains(c));
        if is_wanted {
            self.next();
        }
        is_wanted
    }

    fn accept_run(&mut self, wanted: &str) {
        while self.accept(wanted) {}
    }

    fn piece(&self) -> &'t str {
        &self.input[self.start..self.at]
    }

    fn token(&mut self, kind: TokenKind) -> Token<'t> {
        let token = Token { kind, at: self.start, text: Cow::Borrowed(self.piece()), line: self.start_line };
        self.start = self.at;
        self.start_line = self.line;
        token
    }

    fn ignore(&mut self) {
        self.line += line_breaks(self.piece());
        self.start = self.at;
        self.start_line = self.line;
    }

    fn error(&mut self, message: impl Into<Cow<'t, str>>) -> Token<'t> {
        let token =
            Token { kind: TokenKind::Error, at: self.start, text: message.into(), line: self.start_line };
        self.start = 0;
        self.at = 0;
        self.input = "";
        self.is_inside = false;
        token
    }

    /// Reads the text up to an action; without text, the left delimiter.
    fn text(&mut self) -> Token<'t> {
        loop {
            let Some(distance) = self.rest().find(LEFT) else {
                self.at = self.input.len();
                self.line += line_breaks(self.piece());
                return if self.at > self.start { self.token(TokenKind::Text) } else { self.end() };
            };
            if distance > 0 {
                self.at += distance;
                let after = &self.rest()[LEFT.len()..];
                let text = self.piece();
                let kept = if begins_with_marker(after) { text.trim_end_matches(is_space) } else { text };
                let trimmed = text.len() - kept.len();
                self.at -= trimmed;
                self.line += line_breaks(kept);
                let token = self.token(TokenKind::Text);
                self.at += trimmed;
                self.ignore();
                if !token.text.is_empty() {
                    return token;
                }
            }
            if let Some(token) = self.left_delimiter() {
                return token;
            }
        }
    }

    fn end(&mut self) -> Token<'t> {
        let mut token = self.token(TokenKind::Eof);
        token.text = Cow::Borrowed("EOF");
        token
    }

    /// Reads the left delimiter; returns `None` if it begins a comment, which is skipped.
    fn left_delimiter(&mut self) -> Option<Token<'t>> {
        self.at += LEFT.len();
        let marker = if begins_with_marker(self.rest()) { MARKER } else { 0 };
        if self.rest()[marker..].starts_with(LEFT_COMMENT) {
            self.at += marker;
            self.ignore();
            return self.comment();
        }
        let token = self.token(TokenKind::LeftDelimiter);
        self.is_inside = true;
        self.at += marker;
        self.ignore();
        self.parentheses = 0;
        Some(token)
    }

    fn comment(&mut self) -> Option<Token<'t>> {
        self.at += LEFT_COMMENT.len();
        let Some(distance) = self.rest().find(RIGHT_COMMENT) else {
            return Some(self.error("unclosed comment"));
        };
        self.at += distance + RIGHT_COMMENT.len();
        let Some(trims) = self.at_right_delimiter() else {
            return Some(self.error("comment ends before closing delimiter"));
        };
        self.line += line_breaks(self.piece());
        // This is only for the line numbers: the parser ignores comments.
        self.token(TokenKind::Space);
        self.at += RIGHT.len();
        if trims {
            self.at += MARKER;
            self.skip_space();
        }
        self.ignore();
        None
    }

    /// Returns `None` unless a right delimiter follows; the value tells whether it trims.
    fn at_right_delimiter(&self) -> Option<bool> {
        let rest = self.rest();
        if ends_with_marker(rest) && rest[MARKER..].starts_with(RIGHT) {
            return Some(true);
        }
        rest.starts_with(RIGHT).then_some(false)
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(is_space).len();
    }

    fn right_delimiter(&mut self, trims: bool) -> Token<'t> {
        if trims {
            self.at += MARKER;
            self.ignore();
        }
        self.at += RIGHT.len();
        let token = self.token(TokenKind::RightDelimiter);
        if trims {
            self.skip_space();
            self.ignore();
        }
        self.is_inside = false;
        token
    }

    fn inside(&mut self) -> Token<'t> {
        if let Some(trims) = self.at_right_delimiter() {
            return if self.parentheses == 0 {
                self.right_delimiter(trims)
            } else {
                self.error("unclosed left paren")
            };
        }
        let Some(c) = self.next() else { return self.error("unclosed action") };
        match c {
            c if is_space(c) => self.space(c),
            '=' => self.token(TokenKind::Assign),
            ':' if self.next() == Some('=') => self.token(TokenKind::Declare),
            ':' => self.error("expected :="),
            '|' => self.token(TokenKind::Pipe),
            '"' => self.quoted('"', TokenKind::String, "unterminated quoted string"),
            '`' => self.raw_quoted(),
            '$' if self.is_at_end_of_word() => self.token(TokenKind::Variable),
            '$' => self.word_of(TokenKind::Variable),
            '\'' => self.quoted('\'', TokenKind::CharConstant, "unterminated character constant"),
            '.' if self.peek().is_some_and(|c| !c.is_ascii_digit()) => self.field(),
            '.' | '+' | '-' | '0'..='9' => {
                self.back(c);
                self.number()
            }
            c if is_alphanumeric(c) => {
                self.back(c);
                self.identifier()
            }
            '(' => {
                self.parentheses += 1;
                self.token(TokenKind::LeftParenthesis)
            }
            ')' if self.parentheses == 0 => self.error("unexpected right paren"),
            ')' => {
                self.parentheses -= 1;
                self.token(TokenKind::RightParenthesis)
            }
            ' '..='~' => self.token(TokenKind::Char),
            c => self.error(format!("unrecognized character in action: {}", unicode_point(c))),
        }
    }

    fn space(&mut self, first: char) -> Token<'t> {
        let (mut last, mut count) = (first, 1);
        while let Some(c) = self.peek().filter(|&c| is_space(c)) {
            self.next();
            last = c;
            count += 1;
        }
        let from_last = &self.input[self.at - last.len_utf8()..];
        if ends_with_marker(from_last) && from_last[MARKER..].starts_with(RIGHT) {
            self.back(last);
            if count == 1 {
                return self.right_delimiter(true);
            }
        }
        self.token(TokenKind::Space)
    }

    fn identifier(&mut self) -> Token<'t> {
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        if !self.is_at_end_of_word() {
            return self.bad_character();
        }
        let word = self.piece();
        let kind = TokenKind::of_keyword(word).unwrap_or(if matches!(word, "true" | "false") {
            TokenKind::Bool
        } else {
            TokenKind::Identifier
        });
        self.token(kind)
    }

    fn field(&mut self) -> Token<'t> {
        if self.is_at_end_of_word() { self.token(TokenKind::Dot) } else { self.word_of(TokenKind::Field) }
    }

    fn word_of(&mut self, kind: TokenKind) -> Token<'t> {
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        if self.is_at_end_of_word() { self.token(kind) } else { self.bad_character() }
    }

    fn bad_character(&mut self) -> Token<'t> {
        let c = self.peek().unwrap_or_default();
        self.error(format!("bad character {}", unicode_point(c)))
    }

    fn is_at_end_of_word(&self) -> bool {
        self.peek().is_none_or(|c| is_space(c) || matches!(c, '.' | ',' | '|' | ':' | ')' | '('))
            || self.rest().starts_with(RIGHT)
    }

    fn quoted(&mut self, mark: char, kind: TokenKind, unterminated: &'static str) -> Token<'t> {
        loop {
            let mut c = self.next();
            if c == Some('\\') {
                c = self.next();
                if c.is_some_and(|c| c != '\n') {
                    continue;
                }
            }
            match c {
                None | Some('\n') => return self.error(unterminated),
                Some(c) if c == mark => return self.token(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_quoted(&mut self) -> Token<'t> {
        loop {
            match self.next() {
                None => return self.error("unterminated raw quoted string"),
                Some('`') => return self.token(TokenKind::RawString),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Token<'t> {
        if !self.scan_number() {
            return self.bad_number();
        }
        if matches!(self.peek(), Some('+' | '-')) {
            if !self.scan_number() || !self.piece().ends_with('i') {
                return self.bad_number();
            }
            return self.token(TokenKind::Complex);
        }
        self.token(TokenKind::Number)
    }

    fn bad_number(&mut self) -> Token<'t> {
        let message = format!("bad number syntax: {}", quote(self.piece()));
        self.error(message)
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        self.accept("+-");
        let mut digits = DECIMAL;
        let mut exponent = "eE";
        if self.accept("0") {
            if self.accept("xX") {
                (digits, exponent) = ("0123456789abcdefABCDEF_", "pP");
            } else if self.accept("oO") {
                (digits, exponent) = ("01234567_", "");
            } else if self.accept("bB") {
                (digits, exponent) = ("01_", "");
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_run(DECIMAL);
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}

fn line_breaks(text: &str) -> usize {
    text.bytes().filter(|&b| b == b'\n').count()
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || is_letter(c) || is_digit(c)
}

/// Returns whether a text begins with the trim marker of a left delimiter.
fn begins_with_marker(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('-') && chars.next().is_some_and(is_space)
}

/// Returns whether a text begins with the trim marker of a right delimiter.
fn ends_with_marker(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(is_space) && chars.next() == Some('-')
}
