//! Natural order of tags.
//!
//! A tag is split into numbers and words. Numbers compare by value, with any number of digits, so `rc9` is before
//! `rc10` and `2024.9` before `2024.10`. A word for a pre-release stage (`alpha`, `rc`, `SNAPSHOT`) is before the end
//! of the tag, and anything else after it: `1.0-rc1`, `1.0`, `1.0-alpine`, `1.0-1`, `1.0.1`.

use std::cmp::Ordering;

/// The words for pre-release stages, from the earliest to the latest.
const STAGES: [&[&str]; 6] = [
    &["dev", "nightly", "snapshot", "canary", "edge", "unstable"],
    &["alpha"],
    &["beta"],
    &["milestone", "ea"],
    &["pre", "preview", "next"],
    &["rc", "cr"],
];

/// Letters for pre-release stages between two digits, as in `1.0a1`.
///
/// After a dash they may mean anything.
const LETTERS: [(&str, usize); 3] = [("a", 1), ("b", 2), ("c", 5)];

/// The stage of `M1`, at any position.
const MILESTONE: usize = 3;

/// A token of a tag, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Token<'t> {
    /// A pre-release stage, by its index in [`STAGES`].
    Stage(usize),
    /// The end of the tag.
    End,
    /// Any other word.
    Word(Word<'t>),
    /// A build number, separated by a dash or the like from the token before.
    Build(Number<'t>),
    /// A number after a dot, or directly after the token before it.
    Part(Number<'t>),
}

/// Digits without leading zeros, which compare by value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number<'t>(&'t str);

impl Ord for Number<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.cmp(other.0))
    }
}

impl PartialOrd for Number<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Letters, which compare without regard to case.
#[derive(Debug, Clone, Copy)]
struct Word<'t>(&'t str);

impl Ord for Word<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let lower = |text: &'_ str| text.bytes().map(|byte| byte.to_ascii_lowercase()).collect::<Vec<_>>();
        lower(self.0).cmp(&lower(other.0))
    }
}

impl PartialOrd for Word<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Word<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(other.0)
    }
}

impl Eq for Word<'_> {}

/// Compares two texts in natural order.
pub fn compare(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (Tokens::of(left), Tokens::of(right));
    loop {
        let (one, other) = (left.next(), right.next());
        match one.cmp(&other) {
            Ordering::Equal if one == Token::End => return Ordering::Equal,
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
}

struct Tokens<'t> {
    rest: &'t str,
    follows_digit: bool,
}

impl<'t> Tokens<'t> {
    fn of(text: &'t str) -> Self {
        Self { rest: text, follows_digit: false }
    }

    fn next(&mut self) -> Token<'t> {
        let is_mark = |c: char| !c.is_alphanumeric();
        let begin = self.rest.find(|c| !is_mark(c)).unwrap_or(self.rest.len());
        let (marks, rest) = self.rest.split_at(begin);
        self.rest = rest;
        let Some(first) = rest.chars().next() else { return Token::End };
        if first.is_ascii_digit() {
            let digits = self.take(|c| c.is_ascii_digit());
            self.follows_digit = true;
            let number = Number(digits.trim_start_matches('0'));
            let is_build = marks.contains(|c| c != '.');
            return if is_build { Token::Build(number) } else { Token::Part(number) };
        }
        let follows_digit = self.follows_digit && marks.is_empty();
        let word = self.take(|c| c.is_alphanumeric() && !c.is_ascii_digit());
        self.follows_digit = false;
        let precedes_digit = self.rest.starts_with(|c: char| c.is_ascii_digit());
        // The `v` of a version has no meaning.
        if precedes_digit && !follows_digit && word.eq_ignore_ascii_case("v") {
            return self.number_after(marks);
        }
        let letter = LETTERS.iter().find(|(letter, _)| word.eq_ignore_ascii_case(letter));
        if let Some((_, stage)) = letter.filter(|_| follows_digit && precedes_digit) {
            return Token::Stage(*stage);
        }
        if precedes_digit && word.eq_ignore_ascii_case("m") {
            return Token::Stage(MILESTONE);
        }
        let stage =
            STAGES.iter().position(|words| words.iter().any(|known| word.eq_ignore_ascii_case(known)));
        stage.map_or(Token::Word(Word(word)), Token::Stage)
    }

    /// Reads the number that follows, as if these marks were directly before it.
    fn number_after(&mut self, marks: &str) -> Token<'t> {
        match self.next() {
            Token::Part(number) if marks.contains(|c| c != '.') => Token::Build(number),
            piece => piece,
        }
    }

    fn take(&mut self, is_wanted: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !is_wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_sort_in_natural_order() {
        for ascending in [
            &["1.0.0-rc1", "1.0.0-rc2", "1.0.0-rc9", "1.0.0-rc10", "1.0.0", "1.0.1"][..],
            &["v1.2.3-alpha", "1.2.3-beta.2", "v1.2.3-beta.11", "1.2.3-RC1", "v1.2.3", "v1.2.10"],
            &["1.0-SNAPSHOT", "1.0-alpha1", "1.0-M1", "1.0-M2", "1.0-CR1", "1.0", "1.0.Final"],
            &["1.0.dev3", "1.0a1", "1.0a10", "1.0b2", "1.0rc1", "1.0", "1.0.post1"],
            &["2023.12.31", "2024.1.2", "2024.01.15", "2024.2.1", "2024.10.1"],
            &["2023-12-31", "2024-01-15", "2024-02-01", "2024-10-01"],
            &["16.04", "16.04.1", "16.10", "20.04"],
            &["1.2.3", "1.2.3.1", "1.2.3.9", "1.2.3.10", "1.2.4"],
            &["1.2.3", "1.2.3-alpine3.9", "1.2.3-alpine3.19", "1.2.3-1", "1.2.3-2", "1.2.3-10", "1.2.3.1"],
            &["5.0.3-debian-12-r5", "5.0.3-debian-12-r40", "5.0.4-debian-11-r1"],
            &["version-1.9-ls99", "version-1.10-ls9", "version-1.10-ls100"],
            &["1.0.2", "1.0.2a", "1.0.2k", "1.0.3"],
            &["8u292-b10", "8u302-b08", "11.0.1"],
            &["main-9-abc", "main-10-abc"],
            &["latest", "xenial", "1"],
            &["99999999999999999999998", "99999999999999999999999", "100000000000000000000000"],
        ] {
            for (i, left) in ascending.iter().enumerate() {
                for (k, right) in ascending.iter().enumerate() {
                    assert_eq!(compare(left, right), i.cmp(&k), "{left} and {right}");
                }
            }
        }
    }

    #[test]
    fn natural_order_ignores_case_leading_zeros_and_separators() {
        for (left, right) in
            [("1.2.3", "v1.2.3"), ("1.02", "1.2"), ("1.0-rc1", "1.0RC1"), ("a_b", "A-b"), ("", "-")]
        {
            assert_eq!(compare(left, right), Ordering::Equal, "{left} and {right}");
        }
    }

    fn tags() -> impl Strategy<Value = String> {
        "(v|a|b|rc|alpha|x|0|1|10|007|\\.|-|_|ä|SNAPSHOT){0,8}"
    }

    proptest! {
        #[test]
        fn natural_order_is_a_total_order(one in tags(), two in tags(), three in tags()) {
            prop_assert_eq!(compare(&one, &two), compare(&two, &one).reverse());
            if compare(&one, &two).is_le() && compare(&two, &three).is_le() {
                prop_assert!(compare(&one, &three).is_le());
            }
        }
    }
}
