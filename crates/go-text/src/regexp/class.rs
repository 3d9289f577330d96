//! Character classes.

use super::RegexpError;
use super::translate::{Translator, wrong};

/// The size of a Unicode class in pieces: it becomes many ranges.
const CLASS_PIECES: usize = 20;

/// The names between `[:` and `:]`.
const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// Translates `\d` and its variants, which are ASCII only.
pub(super) fn perl_class(c: char) -> &'static str {
    match c {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\x0C\r ]",
        'S' => r"[^\t\n\x0C\r ]",
        'w' => "[0-9A-Za-z_]",
        _ => "[^0-9A-Za-z_]",
    }
}

/// Translates `\pL`, `\p{Greek}` and their negations at the start of the remaining text.
pub(super) fn unicode_class(translator: &mut Translator<'_>) -> Result<String, RegexpError> {
    let start = translator.rest;
    let mut is_negative = start.starts_with(r"\P");
    let rest = &start[2..];
    let (sequence, mut name) = if rest.starts_with('{') {
        let Some(end) = rest.find('}') else { return wrong("invalid character class range", start) };
        (&start[..end + 3], &rest[1..end])
    } else {
        let width = rest.chars().next().map_or(0, char::len_utf8);
        (&start[..2 + width], &rest[..width])
    };
    if let Some(positive) = name.strip_prefix('^') {
        is_negative = !is_negative;
        name = positive;
    }
    let class = format!(r"\{}{{{name}}}", if is_negative { 'P' } else { 'p' });
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' '));
    if name.is_empty() || !is_plain || !translator.knows_class(name) {
        return wrong("invalid character class range", sequence);
    }
    translator.rest = &start[sequence.len()..];
    translator.add_pieces(CLASS_PIECES);
    Ok(class)
}

/// Translates a bracketed character class at the start of the remaining text.
pub(super) fn translate(translator: &mut Translator<'_>) -> Result<(), RegexpError> {
    let whole = translator.rest;
    translator.rest = &translator.rest[1..];
    let mut class = String::from("[");
    if let Some(rest) = translator.rest.strip_prefix('^') {
        translator.rest = rest;
        class.push('^');
    }
    let mut is_first = true;
    while is_first || !translator.rest.starts_with(']') {
        is_first = false;
        translator.add_pieces(1);
        if let Some(named) = named_class(translator)? {
            class.push_str(named);
            continue;
        }
        let mut chars = translator.rest.chars();
        match (chars.next(), chars.next()) {
            (Some('\\'), Some('p' | 'P')) => {
                let inner = unicode_class(translator)?;
                class.push_str(&inner);
                continue;
            }
            (Some('\\'), Some(c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W'))) => {
                class.push_str(perl_class(c));
                translator.rest = &translator.rest[2..];
                continue;
            }
            _ => {}
        }
        range(translator, whole, &mut class)?;
    }
    translator.rest = &translator.rest[1..];
    class.push(']');
    translator.out.push_str(&class);
    Ok(())
}

/// Translates `[:alpha:]` and its variants.
fn named_class<'e>(translator: &mut Translator<'e>) -> Result<Option<&'e str>, RegexpError> {
    let rest = translator.rest;
    if rest.len() < 3 || !rest.starts_with("[:") {
        return Ok(None);
    }
    let Some(end) = rest[2..].find(":]") else { return Ok(None) };
    let (class, after) = rest.split_at(end + 4);
    let name = &rest[2..end + 2];
    if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return wrong("invalid character class range", class);
    }
    translator.rest = after;
    Ok(Some(class))
}

/// Translates one character, or two with a dash between them.
fn range(translator: &mut Translator<'_>, whole: &str, class: &mut String) -> Result<(), RegexpError> {
    let start = translator.rest;
    let first = character(translator, whole)?;
    let mut last = first;
    if translator.rest.len() >= 2 && translator.rest.starts_with('-') && !translator.rest.starts_with("-]") {
        translator.rest = &translator.rest[1..];
        last = character(translator, whole)?;
        if last < first {
            let part = &start[..start.len() - translator.rest.len()];
            return wrong("invalid character class range", part);
        }
    }
    class.push_str(&format!("\\x{{{:x}}}-\\x{{{:x}}}", u32::from(first), u32::from(last)));
    Ok(())
}

fn character(translator: &mut Translator<'_>, whole: &str) -> Result<char, RegexpError> {
    let Some(c) = translator.rest.chars().next() else { return wrong("missing closing ]", whole) };
    if c == '\\' {
        return translator.escaped();
    }
    translator.rest = &translator.rest[c.len_utf8()..];
    Ok(c)
}
