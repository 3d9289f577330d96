//! The list of open pull requests in the message of the condition `Delivery`.
//!
//! By it the next process knows which ones were reported.

use std::collections::BTreeSet;

/// The maximum number of pull requests that a message names.
pub(super) const NAMED: usize = 1_000;

/// The word after the number of open pull requests.
const OPEN: &str = " open";

/// The text between the parts of a message.
pub const PART: &str = "; ";

/// The beginning of the part with the pull requests that people have refused.
pub(super) const REFUSED: &str = "refused by a person: ";

/// The beginning of the last part of the message of a failure.
pub(super) const RETRY: &str = "the next retry is at ";

/// Adds the list of open pull requests to the message of a problem.
///
/// By this list the next process knows which ones were reported.
pub fn with_open(message: &str, open: &BTreeSet<u64>) -> String {
    format!("{message}; {}", list(open))
}

/// Returns the open pull requests that the message of a condition without a problem names.
pub fn open_in(message: &str) -> BTreeSet<u64> {
    message.split(PART).next().and_then(read_list).unwrap_or_default()
}

/// Returns the open pull requests that the message of a problem names.
///
/// There are none if it has no list, as before the first answer of the forge.
pub fn open_beside_problem(message: &str) -> BTreeSet<u64> {
    message.rsplit(PART).find(|part| !part.starts_with(RETRY)).and_then(read_list).unwrap_or_default()
}

/// Returns a list of numbers, such as `2 open: #12, #14` or `0 open`.
pub(super) fn list(open: &BTreeSet<u64>) -> String {
    let numbers = if open.is_empty() { String::new() } else { format!(": {}", named(open)) };
    format!("{}{OPEN}{numbers}", open.len())
}

/// Returns the refused pull requests in the message of a condition without a problem.
pub fn refused_in(message: &str) -> BTreeSet<u64> {
    let refused = message.split(PART).find_map(|part| part.strip_prefix(REFUSED));
    refused.and_then(numbers).unwrap_or_default()
}

/// Returns numbers as a text; of very many, the first ones.
pub fn named(numbers: &BTreeSet<u64>) -> String {
    let named: Vec<String> = numbers.iter().take(NAMED).map(|number| format!("#{number}")).collect();
    named.join(", ")
}

/// Reads a list of open pull requests.
fn read_list(text: &str) -> Option<BTreeSet<u64>> {
    let (count, rest) = text.split_once(OPEN)?;
    let count: usize = count.parse().ok()?;
    if rest.is_empty() {
        return (count == 0).then(BTreeSet::new);
    }
    numbers(rest.strip_prefix(": ")?)
}

/// Reads numbers such as `#12, #14`.
fn numbers(text: &str) -> Option<BTreeSet<u64>> {
    text.split(", ").map(|number| number.strip_prefix('#')?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_a_message() {
        for (message, expected) in [
            ("2 open: #12, #14; refused by a person: #9", vec![12, 14]),
            ("1 open: #7", vec![7]),
            ("no pull request is open", vec![]),
            ("the file open: #7", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(open_in(message).into_iter().collect::<Vec<_>>(), expected, "{message}");
        }
        for (message, expected) in [
            ("2 open: #12, #14; refused by a person: #9, #10; a change waits", vec![9, 10]),
            ("refused by a person: #9", vec![9]),
            ("refused by a person: nobody", vec![]),
            ("no pull request is open", vec![]),
        ] {
            assert_eq!(refused_in(message).into_iter().collect::<Vec<_>>(), expected, "{message}");
        }
        for (message, expected) in [
            ("no rule; 2 open: #12, #14; the next retry is at 2026-01-01T00:00:05Z", vec![12, 14]),
            ("no rule; 0 open", vec![]),
            // Before the first answer of the forge.
            ("no rule; the next retry is at 2026-01-01T00:00:05Z", vec![]),
            ("no rule; and 2 open: windows", vec![]),
            ("", vec![]),
        ] {
            let found = open_beside_problem(message).into_iter().collect::<Vec<_>>();
            assert_eq!(found, expected, "{message}");
        }
    }
}
