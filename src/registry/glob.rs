//! Glob patterns for one part of a host's name: `*`, `?`, `[a-z]`.

/// Returns `true` if a text matches a pattern, by the rules of Go's `filepath.Match`.
///
/// A malformed pattern matches nothing.
pub(super) fn matches_glob(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut position) = (0, 0);
    // The position after the last star, and the end of the text that it matches so far.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if at < pattern.len() && pattern[at] == '*' {
            star = Some((at + 1, position));
            at += 1;
            continue;
        }
        if at == pattern.len() && position == text.len() {
            return true;
        }
        let next = text.get(position).and_then(|&character| step(&pattern[at..], character));
        match (next, star) {
            (Some(length), _) => {
                at += length;
                position += 1;
            }
            (None, Some((behind, reach))) if reach < text.len() => {
                star = Some((behind, reach + 1));
                (at, position) = (behind, reach + 1);
            }
            (None, _) => return false,
        }
    }
}

/// Returns the length of the pattern's first element, if that matches a character.
fn step(pattern: &[char], character: char) -> Option<usize> {
    match *pattern.first()? {
        '?' => Some(1),
        '[' => class(pattern, character),
        '\\' => (*pattern.get(1)? == character).then_some(2),
        plain => (plain == character).then_some(1),
    }
}

/// Returns the length of a character class, if that matches a character.
fn class(pattern: &[char], character: char) -> Option<usize> {
    let is_negated = pattern.get(1) == Some(&'^');
    let first = if is_negated { 2 } else { 1 };
    let mut at = first;
    let mut is_in = false;
    loop {
        if pattern.get(at)? == &']' && at > first {
            return (is_in != is_negated).then_some(at + 1);
        }
        let (low, behind) = member(pattern, at)?;
        let (high, behind) =
            if pattern.get(behind) == Some(&'-') { member(pattern, behind + 1)? } else { (low, behind) };
        is_in |= (low..=high).contains(&character);
        at = behind;
    }
}

/// Parses a character of a class, and returns the position after it.
fn member(pattern: &[char], at: usize) -> Option<(char, usize)> {
    match *pattern.get(at)? {
        '-' | ']' => None,
        '\\' => Some((*pattern.get(at + 1)?, at + 2)),
        plain => Some((plain, at + 1)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_describe_texts() {
        for (pattern, text, fits) in [
            ("abc", "abc", true),
            ("abc", "abd", false),
            ("*", "", true),
            ("*", "abc", true),
            ("*c", "abc", true),
            ("a*", "a", true),
            ("a*b*c", "axxbyybzc", true),
            ("a*b*c", "axxbyyb", false),
            ("a?c", "abc", true),
            ("a?", "a", false),
            ("ab[c]", "abc", true),
            ("ab[b-d]", "abc", true),
            ("ab[e-g]", "abc", false),
            ("ab[^c]", "abc", false),
            ("ab[^e-g]", "abc", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "ab", false),
            ("[]a]", "]", false),
            ("[-]", "-", false),
            ("[\\-x]", "-", true),
            ("[x-]", "x", false),
            ("[", "a", false),
            ("[^", "a", false),
            ("a[", "a", false),
            ("*x", "xxx", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches_glob(pattern, text), fits, "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn any_pattern_comes_to_an_end(pattern in "[a-c*?\\[\\]\\\\^-]{0,12}", text in "[a-c]{0,12}") {
            let _ = matches_glob(&pattern, &text);
            prop_assert!(matches_glob(&text, &text));
            prop_assert!(matches_glob("*", &text));
        }
    }
}
