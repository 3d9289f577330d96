//! Messages from a cluster, made safe and short.
//!
//! Conditions and container states have text that any workload can choose. It is shown in statuses, events and
//! pages.

use super::bounds::{cut, cut_middle};
use crate::printable::printable;

/// The maximum length of a message, in characters.
pub const MAX_LENGTH: usize = 300;

/// Returns a text from a cluster as a message of one line.
///
/// White space becomes single spaces, control characters become visible escapes, the user part of URLs is removed,
/// and a text of more than [`MAX_LENGTH`] characters is shortened.
#[must_use]
pub fn message(text: &str) -> String {
    cut(safe_beginning(text, MAX_LENGTH), MAX_LENGTH)
}

/// Returns a text as [`message`] does, but shortens it in its middle.
///
/// It has at most `max` characters. It is for errors that end with the output of a program, whose last words say why it failed.
#[must_use]
pub fn message_with_end(text: &str, max: usize) -> String {
    let mut words = text.split_whitespace();
    let mut kept = safe_words(&mut words, max);
    let end = safe_words(&mut words.rev(), max);
    kept.extend(end.into_iter().rev());
    cut_middle(printable(&kept.join(" ")).into(), max)
}

/// Takes words without users, until they have a length or there is none left.
///
/// A long word loses its middle.
fn safe_words<'w>(words: &mut impl Iterator<Item = &'w str>, length: usize) -> Vec<String> {
    let (mut kept, mut bytes) = (Vec::new(), 0);
    // A character has at most four bytes.
    while bytes <= 4 * length
        && let Some(word) = words.next()
    {
        // A cut before this could leave a part of a user part.
        let word = cut_middle(without_user(word), 4 * length);
        bytes += word.len() + 1;
        kept.push(word);
    }
    kept
}

/// Returns the beginning of a text as one safe line.
///
/// It has at least `length` characters, if the text has them.
fn safe_beginning(text: &str, length: usize) -> String {
    let mut start = String::new();
    for word in text.split_whitespace() {
        // A character has at most four bytes.
        if start.len() > 4 * length {
            break;
        }
        if !start.is_empty() {
            start.push(' ');
        }
        // A cut before this could leave a part of a user part.
        start.extend(without_user(word).chars().take(length + 1));
    }
    printable(&start).into()
}

/// Removes the user part of each URL in a word.
fn without_user(word: &str) -> String {
    let mut result = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        result.push_str(before);
        let end = after.find(['/', '?', '#', '"', '\'', '\\']).unwrap_or(after.len());
        rest = after[..end].rfind('@').map_or(after, |user_end| &after[user_end + 1..]);
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_short_line_without_users_and_control_characters() {
        for (text, expected) in [
            ("", ""),
            ("Back-off pulling image \"ghcr.io/a/b:1\"", "Back-off pulling image \"ghcr.io/a/b:1\""),
            ("  two\n\tlines \r\n", "two lines"),
            ("a\u{1b}[2Jb\u{202e}c", r"a\u{1b}[2Jb\u{202e}c"),
            ("clone 'https://bob:pw@git.example/x.git': denied", "clone 'https://git.example/x.git': denied"),
            ("https://a@b:c@host/p@q", "https://host/p@q"),
            ("via=http://u@p,http://v@q/", "via=http://p,http://q/"),
            ("mail bob@example.com", "mail bob@example.com"),
        ] {
            assert_eq!(message(text), expected, "{text:?}");
        }
    }

    /// White space or a long word puts the cut into the user part.
    #[test]
    fn no_cut_leaves_a_part_of_a_user() {
        let url = "https://bob:secret@git.example/x";
        for filler in [" ", "\n", "x", "ä ", "é"] {
            for length in (0..MAX_LENGTH + 50).chain(4 * MAX_LENGTH - 50..4 * MAX_LENGTH + 50) {
                let filler = filler.repeat(length);
                let end = format!("{filler} {url}");
                for text in [&end, &format!("{url} {filler}"), &format!("{end} {filler}")] {
                    for found in [message(text), message_with_end(text, MAX_LENGTH)] {
                        assert!(!found.contains("bob"), "{length} times {filler:?}: {found}");
                    }
                }
            }
        }
        assert_eq!(message(&(" ".repeat(5000) + url)), "https://git.example/x");
    }

    #[test]
    fn the_end_of_a_long_error_is_kept() {
        let error =
            format!("`bootc switch` failed: {} https://bob:pw@host/x: no space left", "layer ".repeat(500));
        let found = message_with_end(&error, MAX_LENGTH);
        assert_eq!(found.chars().count(), MAX_LENGTH);
        assert!(found.starts_with("`bootc switch` failed: layer "), "{found}");
        assert!(found.ends_with("layer https://host/x: no space left") && found.contains('…'), "{found}");
        assert_eq!(message_with_end(" no\tspace ", MAX_LENGTH), "no space");
        assert!(message_with_end(&"ä".repeat(1_000_000), MAX_LENGTH).chars().count() <= MAX_LENGTH);
    }

    /// The end of a text of more than 32 KiB was lost.
    #[test]
    fn only_the_words_that_may_be_kept_are_made_safe() {
        for middle in ["layer ".repeat(100_000), "x".repeat(600_000) + " "] {
            let text = format!("it failed: {middle}no space left");
            let mut words = text.split_whitespace();
            let beginning = safe_words(&mut words, MAX_LENGTH).concat();
            let end = safe_words(&mut words.rev(), MAX_LENGTH).concat();
            assert!(beginning.len() + end.len() < 10 * MAX_LENGTH);
            let found = message_with_end(&text, MAX_LENGTH);
            assert_eq!((found.chars().count(), found.matches('…').count()), (MAX_LENGTH, 1), "{found}");
            assert!(found.starts_with("it failed: ") && found.ends_with(" no space left"), "{found}");
        }
        // All words are kept, however many spaces are between them.
        let spaced = ["one", "two", "three"].join(&" ".repeat(5_000));
        assert_eq!(message_with_end(&spaced, MAX_LENGTH), "one two three");
    }

    #[test]
    fn a_long_message_is_cut_at_300_characters() {
        let long = "ä".repeat(MAX_LENGTH);
        assert_eq!(message(&long), long);
        let cut = message(&(long + "b"));
        assert_eq!(cut.chars().count(), MAX_LENGTH);
        assert!(cut.ends_with("ä…"));
    }
}
