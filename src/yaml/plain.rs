//! Decides whether a text can be written without quotes.
//!
//! The readers of one file follow different versions of YAML: Kubernetes' Go library keeps most types of YAML 1.1,
//! PyYAML and Ruby implement 1.1, newer parsers 1.2. So a text is written plain only if *each* of them would read it as
//! that string (YAML 1.1 type repository; YAML 1.2.2 §10.3 core schema; go-yaml's resolver).

/// Returns true if unquoted `text` reads as the same string under YAML 1.1 and 1.2.
pub fn reads_as_string(text: &str) -> bool {
    is_plain_syntax(text) && !reads_as_other_type(text)
}

/// Returns true if `text` is a plain scalar in both block and flow context.
///
/// This is stricter than the grammar in rare cases (a comma in block context, for example): a needless quote does no
/// harm.
pub fn is_plain_syntax(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    if "-?:,[]{}#&*!|>'\"%@`=".contains(first) || text.starts_with("...") {
        return false;
    }
    if text.ends_with(':') || text.contains(": ") || text.contains(" #") || text.starts_with("<<") {
        return false;
    }
    if text.starts_with(' ') || text.ends_with(' ') {
        return false;
    }
    text.chars().all(|c| c == ' ' || (is_visible(c) && !",[]{}".contains(c)))
        && !text.contains(":,")
        && !text.contains("  ")
}

fn is_visible(c: char) -> bool {
    !c.is_control() && !c.is_whitespace() && !matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Returns true if some reader takes plain `text` as null, boolean, number or date.
pub fn reads_as_other_type(text: &str) -> bool {
    is_null_or_bool(text)
        || is_special_float(text)
        || is_number(text)
        || is_sexagesimal(text)
        || is_date(text)
}

fn is_null_or_bool(text: &str) -> bool {
    const WORDS: [&str; 29] = [
        "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", "y", "Y", "yes",
        "Yes", "YES", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF", "<<", "=",
    ];
    WORDS.contains(&text)
}

fn is_special_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// Integers and floats of 1.1 and 1.2 in all bases.
///
/// Underscores are allowed at any position where one of the readers allows them.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let digits: String = unsigned.chars().filter(|&c| c != '_').collect();
    // YAML 1.1 allows underscores among the digits, even without digits: `0x_` is a number.
    let in_base = |prefixes: [&str; 2], base: u32| {
        let is_digit = |c: char| c == '_' || c.is_digit(base);
        let fits = |rest: &str| !rest.is_empty() && rest.chars().all(is_digit);
        // Go removes underscores first, so `0_x1F` is a number as well.
        let texts = [unsigned, digits.as_str()];
        prefixes.iter().any(|prefix| texts.iter().any(|text| text.strip_prefix(prefix).is_some_and(fits)))
    };
    in_base(["0x", "0X"], 16) || in_base(["0o", "0O"], 8) || in_base(["0b", "0B"], 2) || is_decimal(&digits)
}

/// `[0-9]*(\.[0-9]*)?([eE][-+]?[0-9]+)?` with at least one digit in the mantissa.
fn is_decimal(digits: &str) -> bool {
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && all_digits(exponent)
    });
    all_digits(whole) && all_digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_fits
}

/// Sexagesimal numbers of YAML 1.1: `190:20:30`, `190:20:30.15`.
fn is_sexagesimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    if !first.starts_with(|c: char| c.is_ascii_digit())
        || !first.bytes().all(|b| b.is_ascii_digit() || b == b'_')
    {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let is_sixtieth = |part: &str| {
        matches!(part.len(), 1 | 2)
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part.len() == 1 || part.as_bytes()[0] <= b'5')
    };
    let (last_whole, last_fraction) = last.split_once('.').unwrap_or((last, ""));
    middle.iter().all(|part| is_sixtieth(part))
        && is_sixtieth(last_whole)
        && last_fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

/// Dates such as `2001-12-14`, with or without a time (YAML 1.1 timestamp).
fn is_date(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let is_digits = |part: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_digits(year, 4..=4)
        && is_digits(month, 1..=2)
        && is_digits(day, 1..=2)
        && time.is_none_or(|time| time.trim_start().starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_other_readers_take_for_other_types_are_quoted() {
        for text in [
            "",
            "1",
            "01",
            "08",
            "0777",
            "0o17",
            "0x1F",
            "0X1F",
            "0b101",
            "1_000",
            "1.0",
            "1.",
            ".5",
            "1.10",
            "1e3",
            "12e4567",
            "1E+3",
            "1.5e-3",
            "-1",
            "+1",
            "-.5",
            "1_0.5",
            "190:20:30",
            "1:30",
            "12:30.5",
            "y",
            "N",
            "on",
            "Off",
            "TRUE",
            "no",
            "null",
            "Null",
            "~",
            "2024-01-31",
            "2024-1-3",
            "2024-01-31T10:00:00Z",
            "2024-01-31 10:00:00",
            ".inf",
            "-.Inf",
            ".nan",
            "=",
            "<<",
            "685_230.15",
            "0_1",
            "0x_",
            "0b_",
            "0_x1F",
            "1__0",
        ] {
            assert!(!reads_as_string(text), "{text:?} must be quoted");
        }
    }

    #[test]
    fn tags_that_every_reader_takes_for_strings_are_plain() {
        for text in [
            "v1.0",
            "1.2.3",
            "5.0.3",
            "1.2.3-rc.1",
            "main",
            "main-abc1234-1700000000",
            "latest",
            "yEs",
            "nO",
            "1.2.3_4",
            "0x",
            "0xg",
            "e3",
            "1e",
            "1e3x",
            "sha-0a1b2c",
            "2024-01-31-1",
            "2024.01.31",
            "20240131T",
            "ghcr.io/stefanprodan/podinfo:5.0.3",
            "localhost:5000/app:1",
            "10.0.0.1:5000/a/b",
            "app@sha256:0000",
            "1:60x",
            "1:99",
            "v1 beta",
            "_1",
            "infinity",
            "nan",
            "Inf",
            "0b2",
            "a_b",
        ] {
            assert!(reads_as_string(text), "{text:?} may stay plain");
        }
    }

    #[test]
    fn texts_that_are_not_plain_scalars_are_recognized() {
        for text in [
            "- a", "-", "?", "a: b", "a #b", "#a", "&a", "*a", "!a", "|", ">", "'a", "\"a", "%a", "@a", "`a",
            "a:", "[a", "{a", "a,b", "a]b", " a", "a ", "a\nb", "a\tb", "...", "---", "a\u{7f}", "-x",
        ] {
            assert!(!is_plain_syntax(text), "{text:?} is not plain");
        }
    }
}
