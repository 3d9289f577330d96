//! Replaces scalars by splices of the source bytes.

use std::ops::Range;

use super::comment::Comment;
use super::lines;
use super::plain;
use super::scalar::{Scalar, Style, Tag, TagMeaning};

/// The resolved tag `!!str`.
const STRING_TAG: &str = "tag:yaml.org,2002:str";

/// The replacement of one range of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The replaced bytes.
    pub range: Range<usize>,
    /// The new text.
    pub text: String,
}

/// The edit that gives a scalar a desired text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The splices, in ascending order, without overlap or contact.
    pub splices: Vec<Splice>,
    /// The style of the new scalar.
    pub style: Style,
    /// Its resolved tag, if any.
    pub tag: Option<String>,
}

/// Applies splices to a text; they must be in ascending order and must not overlap.
pub fn apply(source: &str, splices: &[Splice]) -> String {
    let added: usize = splices.iter().map(|splice| splice.text.len()).sum();
    let mut result = String::with_capacity(source.len() + added);
    let mut from = 0;
    for splice in splices {
        result.push_str(&source[from..splice.range.start]);
        result.push_str(&splice.text);
        from = splice.range.end;
    }
    result.push_str(&source[from..]);
    result
}

/// Computes the splices that make `scalar` read as `value`.
///
/// Returns `None` if it cannot have a value.
///
/// Quotes are kept. A plain scalar stays plain if `value` reads as the same string without quotes (see [`plain`]),
/// otherwise it becomes double-quoted. A block keeps its `|` or `>`, with the indicator `-`, so that it reads as
/// `value` without a line break at its end. `comment` is the comment after the scalar; it determines the position of an
/// absent scalar.
///
/// An explicit tag under which the text would not be a string (`!!float 1.0`) is removed with the old value; `!!str`
/// and the application's own tags are kept. A comment between such a tag and the scalar is attached to the scalar by
/// the tag alone, so in that case `!!str` replaces the tag.
pub fn replace(source: &str, scalar: &Scalar<'_>, comment: &Comment, value: &str) -> Option<Replacement> {
    let (tag_splice, tag) = new_tag(source, scalar, comment);
    let is_text = tag.as_deref() == Some(STRING_TAG);
    let plain_or_quoted = || {
        let stays_plain = if is_text { plain::is_plain_syntax(value) } else { plain::reads_as_string(value) };
        if stays_plain {
            (value.to_owned(), Style::Plain)
        } else {
            (double_quoted(value), Style::DoubleQuoted)
        }
    };
    let mut splices: Vec<Splice> = tag_splice.into_iter().collect();
    let style = match scalar.style {
        Style::SingleQuoted if fits_single_quotes(value) => {
            splices.push(Splice {
                range: scalar.span.clone(),
                text: format!("'{}'", value.replace('\'', "''")),
            });
            Style::SingleQuoted
        }
        Style::SingleQuoted | Style::DoubleQuoted => {
            splices.push(Splice { range: scalar.span.clone(), text: double_quoted(value) });
            Style::DoubleQuoted
        }
        Style::Plain => {
            let (text, style) = plain_or_quoted();
            splices.push(Splice { range: scalar.span.clone(), text });
            style
        }
        Style::Absent => {
            let (text, style) = plain_or_quoted();
            let at = absent_position(source, comment)?;
            match splices.pop_if(|tag| tag.range.end >= at) {
                // The tag is the last token before the comment: the value replaces it.
                Some(tag) => splices.push(Splice { range: tag.range.start..at, text }),
                None => splices.push(Splice { range: at..at, text: format!(" {text}") }),
            }
            style
        }
        Style::Literal | Style::Folded => {
            let block = Block::find(source, scalar)?;
            if value.is_empty() || block.content.is_empty() || value.contains(['\n', '\r']) {
                let (text, style) = plain_or_quoted();
                splices.push(Splice { range: block.header, text });
                if !block.lines.is_empty() {
                    splices.push(Splice { range: block.lines, text: String::new() });
                }
                style
            } else {
                splices.extend(strip_line_break(source, block.header));
                let text = format!("{}{value}", block.indentation);
                splices.push(Splice { range: block.content, text });
                scalar.style
            }
        }
    };
    Some(Replacement { splices, style, tag })
}

/// The source ranges of a block scalar.
struct Block {
    /// The `|` or `>` with its indicators.
    header: Range<usize>,
    /// The lines from the one after the header to the last that is not blank.
    ///
    /// The line break of the last one is excluded.
    content: Range<usize>,
    /// The same range including that line break.
    lines: Range<usize>,
    /// The indentation of the text.
    indentation: String,
}

impl Block {
    fn find(source: &str, scalar: &Scalar<'_>) -> Option<Self> {
        let before = source[..scalar.header_end].trim_end_matches([' ', '\t']);
        let header_end = before.len();
        let header_start = before.trim_end_matches(|c: char| c.is_ascii_digit() || "+-".contains(c)).len();
        let header_start = header_start.checked_sub(1)?;
        if !matches!(source.as_bytes()[header_start], b'|' | b'>') {
            return None;
        }
        let first = lines::next_line(source, header_end);
        let mut end = first;
        let mut lines_end = first;
        let mut indentation = None;
        let mut at = first;
        let end_of_lines = end_of_block_lines(source, scalar.span.end);
        while at < end_of_lines {
            let line = lines::line_at(source, at);
            let next = lines::next_line(source, at);
            if !lines::is_blank(line) {
                if indentation.is_none() {
                    let width = line.len() - line.trim_start_matches(' ').len();
                    let value_line =
                        scalar.value.split('\n').find(|line| !lines::is_blank(line)).unwrap_or("");
                    let own = value_line.len() - value_line.trim_start_matches(' ').len();
                    indentation = Some(line[..width.saturating_sub(own)].to_owned());
                }
                end = at + line.len();
                lines_end = next;
            }
            at = next;
        }
        Some(Self {
            header: header_start..header_end,
            content: first..end,
            lines: first..lines_end,
            indentation: indentation.unwrap_or_default(),
        })
    }
}

/// Sets the indicator `-` in a block's header, replacing `+`.
fn strip_line_break(source: &str, header: Range<usize>) -> Option<Splice> {
    let indicators = &source[header.clone()];
    let splice = |range| Some(Splice { range, text: "-".to_owned() });
    match indicators.find(['-', '+']) {
        Some(at) if indicators[at..].starts_with('-') => None,
        Some(at) => splice(header.start + at..header.start + at + 1),
        None => splice(header.end..header.end),
    }
}

/// Returns the end of a block's lines.
///
/// The parser counts the indentation of the next line as part of the block.
fn end_of_block_lines(source: &str, end: usize) -> usize {
    let before = lines::text_before(source, end);
    if lines::is_blank(before) { end - before.len() } else { end }
}

/// Returns the position of an absent value.
///
/// It is after the last token before the comment; a comma is ignored.
fn absent_position(source: &str, comment: &Comment) -> Option<usize> {
    let before = lines::text_before(source, comment.span.start);
    let line_start = comment.span.start - before.len();
    let trimmed = before.trim_end_matches([' ', '\t']);
    let trimmed = trimmed.strip_suffix(',').map_or(trimmed, |rest| rest.trim_end_matches([' ', '\t']));
    if trimmed.is_empty() {
        return None;
    }
    // The value follows an indicator or a property of the node (`&anchor`, `!tag`). Otherwise the comment follows
    // something that is no value, such as a lone key in a flow mapping.
    let last_word = trimmed.rsplit([' ', '\t']).next().unwrap_or(trimmed);
    let fits = trimmed.ends_with(':') || last_word == "-" || last_word.starts_with(['&', '!']);
    fits.then(|| line_start + trimmed.len())
}

/// Determines the splice of a scalar's tag and the resolved tag after it.
fn new_tag(source: &str, scalar: &Scalar<'_>, comment: &Comment) -> (Option<Splice>, Option<String>) {
    let Some(tag) = &scalar.tag else { return (None, None) };
    if tag.meaning != TagMeaning::OtherYamlType {
        return (None, Some(tag.name.clone()));
    }
    let begins_before = if scalar.style.is_block() { scalar.header_end } else { scalar.span.start };
    let is_attached_by_tag = tag.span.end <= comment.span.start && comment.span.end <= begins_before;
    if is_attached_by_tag && scalar.style != Style::Absent {
        let splice = Splice { range: tag.span.clone(), text: "!!str".to_owned() };
        return (Some(splice), Some(STRING_TAG.to_owned()));
    }
    (Some(removed_tag(source, tag)), None)
}

/// Removes a tag under which no text is a string.
///
/// The blanks after it are removed too; at the end of a line, those before it.
fn removed_tag(source: &str, tag: &Tag) -> Splice {
    let rest = &source[tag.span.end..];
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    if rest[blanks..].starts_with(['\n', '\r']) {
        let start = source[..tag.span.start].trim_end_matches([' ', '\t']).len();
        return Splice { range: start..tag.span.end, text: String::new() };
    }
    Splice { range: tag.span.start..tag.span.end + blanks, text: String::new() }
}

fn fits_single_quotes(value: &str) -> bool {
    value.chars().all(|c| !c.is_control() && !matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{85}'))
}

/// `value` in double quotes, escaped according to YAML 1.2.2 §5.7.
fn double_quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                text.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c if c.is_control() => text.push_str(&format!("\\x{:02X}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}
