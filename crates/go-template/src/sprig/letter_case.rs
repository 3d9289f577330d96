//! Functions that change the case of letters.

use crate::functions::Function;
use crate::text::{first_rune, push_rune, runes};
use crate::unicode::{
    is_digit, is_letter, is_lower, is_number, is_punctuation, is_title, is_upper, to_lower, to_title,
    to_upper,
};
use crate::value::Type;

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("title", &[TEXT], |a, _| Ok(title(a.bytes(0)).into())),
    Function::new("untitle", &[TEXT], |a, _| Ok(untitled(a.bytes(0)).into())),
    Function::new("swapcase", &[TEXT], |a, _| Ok(swapped(a.bytes(0)).into())),
    Function::new("snakecase", &[TEXT], |a, _| Ok(with_connectors(a.bytes(0), '_').into())),
    Function::new("kebabcase", &[TEXT], |a, _| Ok(with_connectors(a.bytes(0), '-').into())),
    Function::new("camelcase", &[TEXT], |a, _| Ok(camel(a.bytes(0)).into())),
];

fn title(text: &[u8]) -> Vec<u8> {
    let mut before = ' ';
    let mut out = Vec::with_capacity(text.len());
    for (_, c, _) in runes(text) {
        push_rune(&mut out, if is_separator(before) { to_title(c) } else { c });
        before = c;
    }
    out
}

/// Returns whether a word can begin behind a character.
fn is_separator(c: char) -> bool {
    if c.is_ascii() {
        return !(c.is_ascii_alphanumeric() || c == '_');
    }
    !is_letter(c) && !is_digit(c) && c.is_whitespace()
}

fn untitled(text: &[u8]) -> Vec<u8> {
    let mut is_first = true;
    let mut out = Vec::with_capacity(text.len());
    for (_, c, _) in runes(text) {
        let changes = is_first && !c.is_whitespace();
        is_first = c.is_whitespace();
        push_rune(&mut out, if changes { to_lower(c) } else { c });
    }
    out
}

fn swapped(text: &[u8]) -> Vec<u8> {
    let mut after_blank = true;
    let mut out = Vec::with_capacity(text.len());
    for (_, c, _) in runes(text) {
        let changed = if is_upper(c) || is_title(c) {
            after_blank = false;
            to_lower(c)
        } else if is_lower(c) {
            if std::mem::take(&mut after_blank) { to_title(c) } else { to_upper(c) }
        } else {
            after_blank = c.is_whitespace();
            c
        };
        push_rune(&mut out, changed);
    }
    out
}

fn is_connector(c: char) -> bool {
    matches!(c, '-' | '_') || c.is_whitespace()
}

/// Implements `xstrings.ToPascalCase`.
fn camel(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut current = '\0';
    let mut is_upper_run = false;
    // Connectors at the very beginning stay.
    while let Some((c, width)) = first_rune(rest) {
        rest = &rest[width..];
        current = c;
        if !is_connector(c) {
            is_upper_run = is_upper(c);
            current = to_upper(c);
            break;
        }
        push_rune(&mut out, c);
    }
    if rest.is_empty() {
        if !text.is_empty() {
            push_rune(&mut out, current);
        }
        return out;
    }
    for (_, c, _) in runes(rest) {
        let before = std::mem::replace(&mut current, c);
        if is_connector(c) && is_connector(before) {
            push_rune(&mut out, before);
            continue;
        }
        if is_connector(before) {
            is_upper_run = is_upper(c);
            current = to_upper(c);
        } else {
            if is_upper_run {
                if is_upper(c) {
                    current = to_lower(c);
                } else {
                    is_upper_run = false;
                }
            }
            push_rune(&mut out, before);
        }
    }
    push_rune(&mut out, current);
    out
}

/// The class of a run of characters in `xstrings`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Invalid,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

/// Implements `xstrings.ToSnakeCase` and its variants.
fn with_connectors(text: &[u8], connector: char) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    if text.is_empty() {
        return out;
    }
    let (mut word, mut part, mut rest) = next_word(text);
    while !rest.is_empty() {
        if word != Word::Connector {
            push_word(&mut out, word, part, connector);
        }
        let (before, part_before) = (word, part);
        (word, part, rest) = next_word(rest);
        match before {
            Word::Number => {
                while matches!(word, Word::Alphabet | Word::Number) {
                    push_word(&mut out, word, part, connector);
                    (word, part, rest) = next_word(rest);
                }
                if !matches!(word, Word::Invalid | Word::Punctuation | Word::Connector) {
                    push_rune(&mut out, connector);
                }
            }
            Word::Connector => push_word(&mut out, before, part_before, connector),
            Word::Punctuation => {}
            _ if word != Word::Number => {
                if !matches!(word, Word::Connector | Word::Punctuation) {
                    push_rune(&mut out, connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = part;
                (word, part, rest) = next_word(rest);
                if word == Word::Alphabet {
                    push_rune(&mut out, connector);
                    push_word(&mut out, Word::Number, number, connector);
                    while matches!(word, Word::Alphabet | Word::Number) {
                        push_word(&mut out, word, part, connector);
                        (word, part, rest) = next_word(rest);
                    }
                    if !matches!(word, Word::Invalid | Word::Connector | Word::Punctuation) {
                        push_rune(&mut out, connector);
                    }
                } else {
                    push_word(&mut out, Word::Number, number, connector);
                    if !matches!(word, Word::Connector | Word::Punctuation) {
                        push_rune(&mut out, connector);
                    }
                }
            }
        }
    }
    push_word(&mut out, word, part, connector);
    out
}

fn push_word(out: &mut Vec<u8>, word: Word, part: &[u8], connector: char) {
    if matches!(word, Word::Upper | Word::Connector) {
        for (_, c, _) in runes(part) {
            push_rune(
                out,
                if is_connector(c) {
                    connector
                } else if is_upper(c) {
                    to_lower(c)
                } else {
                    c
                },
            );
        }
    } else {
        out.extend_from_slice(part);
    }
}

/// Returns the first valid character, and the width up to its end.
///
/// Without a valid character it returns `before`.
fn next_valid(text: &[u8], before: char) -> (char, usize) {
    let found = runes(text).find(|&(_, c, _)| c != char::REPLACEMENT_CHARACTER);
    found.map_or((before, text.len()), |(at, c, width)| (c, at + width))
}

/// Returns the length of the run of wanted characters, and the character behind it.
fn run(text: &[u8], start: usize, first: char, is_wanted: impl Fn(char, usize) -> bool) -> usize {
    let (mut end, mut c) = (start, first);
    while end < text.len() {
        let (next, width) = next_valid(&text[end..], c);
        if !is_wanted(next, width) {
            break;
        }
        c = next;
        end += width;
    }
    end
}

/// Returns whether a character is a letter of an alphabet.
///
/// Chinese characters do not count.
fn is_alphabet(c: char) -> bool {
    is_letter(c)
        && !matches!(c, '\u{4e00}'..='\u{9fcc}' | '\u{3400}'..='\u{4d85}' | '\u{20000}'..='\u{2b81d}')
}

fn next_word(text: &[u8]) -> (Word, &[u8], &[u8]) {
    if text.is_empty() {
        return (Word::Invalid, text, text);
    }
    let (c, width) = next_valid(text, char::REPLACEMENT_CHARACTER);
    let (word, end) = if c == char::REPLACEMENT_CHARACTER {
        (Word::Invalid, width)
    } else if is_connector(c) {
        (Word::Connector, run(text, width, c, |c, _| is_connector(c)))
    } else if is_punctuation(c) {
        (Word::Punctuation, run(text, width, c, |c, _| is_punctuation(c)))
    } else if is_upper(c) {
        (Word::Upper, upper_word(text, width, c))
    } else if is_alphabet(c) {
        (Word::Alphabet, run(text, width, c, |c, _| is_alphabet(c) && !is_upper(c)))
    } else if is_number(c) {
        (Word::Number, run(text, width, c, |c, _| is_number(c)))
    } else {
        let is_other = |c: char, width| {
            width > 0 && !(is_connector(c) || is_alphabet(c) || is_number(c) || is_punctuation(c))
        };
        (Word::Other, run(text, width, c, is_other))
    };
    (word, &text[..end], &text[end..])
}

/// Returns the end of a word that begins with a capital letter.
///
/// The word is a run of capitals, or one capital and small letters.
fn upper_word(text: &[u8], start: usize, first: char) -> usize {
    if start == text.len() {
        return start;
    }
    let (second, width) = next_valid(&text[start..], first);
    if !is_upper(second) {
        return if is_alphabet(second) {
            run(text, start + width, second, |c, _| is_alphabet(c) && !is_upper(c))
        } else {
            start
        };
    }
    let (mut end, mut last, mut c) = (start + width, width, second);
    while end < text.len() {
        let (next, width) = next_valid(&text[end..], c);
        c = next;
        if !is_upper(c) {
            break;
        }
        last = width;
        end += width;
    }
    // The last capital belongs to the next word.
    if end < text.len() && is_alphabet(c) { end - last } else { end }
}
