//! Translates Go's regular expression syntax to that of the `regex` crate.
//!
//! In Go, classes are ASCII (in Rust, Unicode), groups may share a name, a lone brace is a literal, and there are
//! `\Q…\E` and octal numbers. Syntax that differs is rewritten; the rest is copied. Invalid expressions give Go's
//! error.

use std::collections::HashMap;

use super::{RegexpError, class};

/// The maximum nesting depth of groups.
const MAX_DEPTH: usize = 100;

/// The maximum number of repetitions of a piece, nested repetitions multiplied.
const MAX_REPEATS: usize = 1_000;

/// A translated expression.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) pattern: String,
    /// The names of the groups; index 0 is the whole match.
    pub(super) names: Vec<Option<String>>,
    /// The number of pieces, with repetitions expanded.
    pub(super) size: usize,
}

/// Translates an expression.
pub(super) fn translate(expression: &str) -> Result<Translated, RegexpError> {
    let mut translator = Translator {
        whole: expression,
        rest: expression,
        out: String::with_capacity(expression.len()),
        names: vec![None],
        groups: Vec::new(),
        can_repeat: false,
        count: Count::ONE,
        last: Count::ONE,
        flags_at: None,
        classes: HashMap::new(),
    };
    translator.run()?;
    Ok(Translated { pattern: translator.out, names: translator.names, size: translator.count.pieces })
}

pub(super) struct Translator<'e> {
    whole: &'e str,
    pub(super) rest: &'e str,
    pub(super) out: String,
    names: Vec<Option<String>>,
    /// The counts at the start of each open group.
    groups: Vec<Count>,
    /// True if the previous piece can be repeated.
    can_repeat: bool,
    /// The counts so far: pieces in total, repetitions of the open group.
    count: Count,
    /// The counts of the previous piece.
    last: Count,
    /// The position of flags behind the last piece.
    ///
    /// In Go flags are not a piece, and a repetition behind them applies to the piece before them.
    flags_at: Option<usize>,
    /// The Unicode class names that were looked up, and whether they exist.
    classes: HashMap<String, bool>,
}

/// The pieces of a part, with repetitions expanded, and the nested repetitions.
///
/// `repeats` is the product of nested repetitions.
#[derive(Debug, Clone, Copy)]
struct Count {
    pieces: usize,
    repeats: usize,
}

impl Count {
    const ONE: Self = Self { pieces: 1, repeats: 1 };
}

/// A repetition operator.
struct Repetition {
    length: usize,
    /// The number of copies of the piece that the repetition expands to at most.
    times: usize,
}

/// Returns Go's error for a part of an expression.
pub(super) fn wrong<T>(what: &'static str, part: &str) -> Result<T, RegexpError> {
    Err(RegexpError { what, part: part.to_owned() })
}

impl<'e> Translator<'e> {
    fn run(&mut self) -> Result<(), RegexpError> {
        let mut last_repetition = None;
        while let Some(c) = self.rest.chars().next() {
            let before = self.rest;
            let repetition = match c {
                '*' | '+' | '?' => Some(Repetition { length: 1, times: 1 }),
                '{' => self.counted()?,
                _ => None,
            };
            if let Some(repetition) = repetition {
                self.repetition(&repetition, last_repetition)?;
                last_repetition = Some(before);
                continue;
            }
            last_repetition = None;
            if !before.starts_with("(?") {
                self.flags_at = None;
            }
            self.count.repeats = self.count.repeats.max(self.last.repeats);
            self.last = Count::ONE;
            self.count.pieces = self.count.pieces.saturating_add(1);
            self.piece(c)?;
        }
        if self.groups.is_empty() { Ok(()) } else { wrong("missing closing )", self.whole) }
    }

    fn take(&mut self, length: usize) -> &'e str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn copy(&mut self, length: usize) {
        let taken = self.take(length);
        self.out.push_str(taken);
        self.can_repeat = true;
    }

    fn piece(&mut self, c: char) -> Result<(), RegexpError> {
        match c {
            '(' => self.open()?,
            ')' => {
                let Some(before) = self.groups.pop() else {
                    return wrong("unexpected )", self.whole);
                };
                self.last = Count { pieces: self.count.pieces.saturating_sub(before.pieces), ..self.count };
                self.count.repeats = before.repeats;
                self.copy(1);
            }
            '|' => {
                self.copy(1);
                self.can_repeat = false;
            }
            '^' | '$' | '.' => self.copy(1),
            '[' => {
                class::translate(self)?;
                self.can_repeat = true;
            }
            '\\' => self.escape()?,
            c => {
                self.take(c.len_utf8());
                self.literal(c);
            }
        }
        Ok(())
    }

    fn open_group(&mut self) {
        self.groups.push(self.count);
        self.count.repeats = 1;
        self.can_repeat = false;
        self.flags_at = None;
    }

    /// Adds pieces to the piece that is being read.
    pub(super) fn add_pieces(&mut self, pieces: usize) {
        self.count.pieces = self.count.pieces.saturating_add(pieces);
        self.last.pieces = self.last.pieces.saturating_add(pieces);
    }

    /// Returns whether a Unicode category or script exists; each name is looked up once.
    pub(super) fn knows_class(&mut self, name: &str) -> bool {
        if let Some(known) = self.classes.get(name) {
            return *known;
        }
        let is_known =
            ["gc", "sc"].iter().any(|of| regex::bytes::Regex::new(&format!(r"\p{{{of}={name}}}")).is_ok());
        self.classes.insert(name.to_owned(), is_known);
        is_known
    }

    pub(super) fn literal(&mut self, c: char) {
        push_literal(&mut self.out, c);
        self.can_repeat = true;
    }

    /// Parses a counted repetition; `None` if the brace is a literal.
    fn counted(&self) -> Result<Option<Repetition>, RegexpError> {
        let Some(end) = self.rest.find('}') else { return Ok(None) };
        let inner = &self.rest[1..end];
        let (least, most) = inner.split_once(',').map_or((inner, Some(inner)), |(least, most)| {
            (least, Some(most).filter(|most| !most.is_empty()))
        });
        let is_number = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_digit())
                && (text.len() == 1 || !text.starts_with('0'))
        };
        if !is_number(least) || !most.is_none_or(is_number) {
            return Ok(None);
        }
        let number = |text: &str| text.parse().unwrap_or(usize::MAX);
        let least = number(least);
        // Without an upper bound it is expanded to the lower bound, at least once.
        let most = most.map_or(least.max(1), number);
        if least > MAX_REPEATS || most > MAX_REPEATS || least > most {
            return wrong("invalid repeat count", &self.rest[..=end]);
        }
        Ok(Some(Repetition { length: end + 1, times: most }))
    }

    fn repetition(&mut self, repetition: &Repetition, last: Option<&str>) -> Result<(), RegexpError> {
        let before = self.rest;
        let is_lazy = self.rest[repetition.length..].starts_with('?');
        let length = repetition.length + usize::from(is_lazy);
        if let Some(last) = last {
            return wrong(
                "invalid nested repetition operator",
                &last[..last.len() - (before.len() - length)],
            );
        }
        if !self.can_repeat {
            return wrong("missing argument to repetition operator", &before[..length]);
        }
        let operator = self.take(length);
        self.out.insert_str(self.flags_at.unwrap_or(self.out.len()), operator);
        let repeats = self.last.repeats * repetition.times;
        if repetition.times > 1 && repeats > MAX_REPEATS {
            return wrong("invalid repeat count", &before[..length]);
        }
        self.last.repeats = repeats.max(1);
        let others = self.count.pieces.saturating_sub(self.last.pieces);
        self.count.pieces = others.saturating_add(self.last.pieces.saturating_mul(repetition.times));
        Ok(())
    }

    fn open(&mut self) -> Result<(), RegexpError> {
        if self.groups.len() == MAX_DEPTH {
            return wrong("expression nests too deeply", self.whole);
        }
        if !self.rest.starts_with("(?") {
            self.copy(1);
            self.names.push(None);
            self.open_group();
            return Ok(());
        }
        let name_at = if self.rest.starts_with("(?P<") && self.rest.len() > 4 {
            4
        } else if self.rest.starts_with("(?<") && self.rest.len() > 3 {
            3
        } else {
            return self.flags();
        };
        let Some(end) = self.rest.find('>') else { return wrong("invalid named capture", self.rest) };
        let name = self.rest.get(name_at..end).unwrap_or("");
        if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
            return wrong("invalid named capture", &self.rest[..=end]);
        }
        self.names.push(Some(name.to_owned()));
        self.take(end + 1);
        self.out.push('(');
        self.open_group();
        Ok(())
    }

    /// Translates `(?flags)` or `(?flags:`.
    fn flags(&mut self) -> Result<(), RegexpError> {
        let (mut is_negative, mut has_flag) = (false, false);
        // Go accepts a repeated flag and uses the last one; the `regex` crate does not.
        let mut flags: Vec<(char, bool)> = Vec::new();
        for (at, c) in self.rest.char_indices().skip(2) {
            match c {
                'i' | 'm' | 's' | 'U' => {
                    has_flag = true;
                    flags.retain(|(flag, _)| *flag != c);
                    flags.push((c, !is_negative));
                }
                '-' if !is_negative => (is_negative, has_flag) = (true, false),
                ':' | ')' if has_flag || !is_negative => {
                    self.take(at + 1);
                    let begin = self.out.len();
                    self.push_flags(&flags);
                    if c == ':' {
                        self.out.push(':');
                        self.open_group();
                    } else {
                        // The crate requires a flag in a group without a colon.
                        self.out.push_str(if flags.is_empty() { ":)" } else { ")" });
                        self.flags_at = self.flags_at.or(Some(begin));
                    }
                    return Ok(());
                }
                c => {
                    return wrong("invalid or unsupported Perl syntax", &self.rest[..at + c.len_utf8()]);
                }
            }
        }
        wrong("invalid or unsupported Perl syntax", self.rest)
    }

    fn push_flags(&mut self, flags: &[(char, bool)]) {
        self.out.push_str("(?");
        self.out.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| *flag));
        if flags.iter().any(|(_, is_set)| !is_set) {
            self.out.push('-');
            self.out.extend(flags.iter().filter(|(_, is_set)| !is_set).map(|(flag, _)| *flag));
        }
    }

    fn escape(&mut self) -> Result<(), RegexpError> {
        let rest = self.rest;
        match rest.chars().nth(1) {
            Some('A' | 'z') => self.copy(2),
            Some('b' | 'B') => {
                let boundary = self.take(2);
                self.out.push_str("(?-u:");
                self.out.push_str(boundary);
                self.out.push(')');
                self.can_repeat = true;
            }
            Some('C') => return wrong("invalid escape sequence", r"\C"),
            Some('Q') => {
                self.take(2);
                let (text, after) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
                self.rest = after;
                text.chars().for_each(|c| self.literal(c));
            }
            Some('p' | 'P') => {
                let class = class::unicode_class(self)?;
                self.out.push_str(&class);
                self.can_repeat = true;
            }
            Some(c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) => {
                self.take(2);
                self.out.push_str(class::perl_class(c));
                self.can_repeat = true;
            }
            _ => {
                let c = self.escaped()?;
                self.literal(c);
            }
        }
        Ok(())
    }

    /// Returns the character that an escape denotes.
    pub(super) fn escaped(&mut self) -> Result<char, RegexpError> {
        let start = self.rest;
        self.take(1);
        let Some(c) = self.rest.chars().next() else {
            return wrong("trailing backslash at end of expression", "");
        };
        self.take(c.len_utf8());
        let digit = |text: &str| text.chars().next().and_then(|c| c.to_digit(8));
        let code = match c {
            '1'..='7' if digit(self.rest).is_none() => None,
            '0'..='7' => {
                let mut code = c.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(next) = digit(self.rest) else { break };
                    code = code * 8 + next;
                    self.take(1);
                }
                Some(code)
            }
            'x' => self.hexadecimal(),
            'a' => Some(7),
            'f' => Some(12),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            'v' => Some(11),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c.into()),
            _ => None,
        };
        match code.and_then(char::from_u32) {
            Some(c) => Ok(c),
            None => wrong("invalid escape sequence", &start[..start.len() - self.rest.len()]),
        }
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        let next = |translator: &mut Self| {
            let c = translator.rest.chars().next()?;
            translator.take(c.len_utf8());
            Some(c)
        };
        let first = next(self)?;
        if first != '{' {
            let second = next(self)?;
            return Some(first.to_digit(16)? * 16 + second.to_digit(16)?);
        }
        let mut code = None;
        loop {
            let c = next(self)?;
            if c == '}' {
                return code;
            }
            code = Some(code.unwrap_or(0) * 16 + c.to_digit(16)?);
            if code > Some(0x10_ffff) {
                return None;
            }
        }
    }
}

/// Appends a literal character, escaped if necessary.
pub(super) fn push_literal(out: &mut String, c: char) {
    if c.is_alphanumeric() || c == '_' {
        out.push(c);
    } else {
        out.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_count_as_often_as_they_are_written_out() {
        for (expression, expected) in [
            ("", 1),
            ("a", 2),
            ("ab*", 3),
            ("a{5}", 6),
            ("ba{2,7}c", 10),
            ("(ab){10}", 32),
            ("((a{10}){10}){10}", 1_122),
            ("x(a|b){0}", 3),
        ] {
            assert_eq!(translate(expression).map(|translated| translated.size), Ok(expected), "{expression}");
        }
    }
}
