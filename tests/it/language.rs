//! The language of comments, by two measures that may only fall.
//!
//! A doc comment says what an item is or does, with the standard term first. A beginning with a question word
//! leaves that to the reader, and pronouns for persons describe no program.

use std::fs;
use std::path::Path;

use crate::support::sources::rust_files;

/// The sources that are read.
const ROOTS: [&str; 5] = ["src", "api", "crates", "tests", "benches"];

/// Words that should not begin a doc comment.
const OPENINGS: [&str; 13] = [
    "what", "who", "whom", "whose", "whoever", "whether", "how", "where", "why", "which", "when", "that",
    "whatever",
];

/// Pronouns for persons, and for anything at all.
const PRONOUNS: [&str; 8] =
    ["nobody", "somebody", "anybody", "whoever", "whom", "whomever", "wherever", "whatever"];

/// The maximum number of words in the first line of a doc comment.
const FIRST_LINE: usize = 15;

/// The number of doc comments with a longer first line.
/// Most are texts of `--help` and schemas.
const MOST_LONG_LINES: usize = 25;

/// The number of [`PRONOUNS`] in 100,000 words of comments. Lower it when it has fallen.
const MOST_PRONOUNS: usize = 1;

/// The comments of some sources, counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    doc_comments: usize,
    openings: usize,
    long_lines: usize,
    words: usize,
    pronouns: usize,
}

impl Count {
    /// Counts the comments of a source, without comments behind code on the same line.
    fn add(&mut self, source: &str) {
        let mut is_in_doc = false;
        for line in source.lines() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                is_in_doc = false;
                continue;
            };
            let is_doc = comment.starts_with('/') || comment.starts_with('!');
            let words = || {
                let words = comment.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
                words.filter(|word| !word.is_empty()).map(str::to_lowercase)
            };
            if is_doc && !is_in_doc {
                self.doc_comments += 1;
                self.openings += usize::from(words().next().is_some_and(|word| OPENINGS.contains(&&*word)));
                let line = comment[1..].split_whitespace().count();
                self.long_lines += usize::from(line > FIRST_LINE);
            }
            is_in_doc = is_doc;
            self.words += words().count();
            self.pronouns += words().filter(|word| PRONOUNS.contains(&&**word)).count();
        }
    }
}

#[test]
fn vague_comments_do_not_increase() {
    let mut count = Count::default();
    for root in ROOTS {
        for file in rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(root)) {
            count.add(&fs::read_to_string(file).unwrap());
        }
    }
    assert!(count.doc_comments > 1_000, "{count:?}");
    let openings = count.openings * 1_000 / count.doc_comments;
    assert_eq!(openings, 0, "{openings} of 1,000 doc comments begin with a question word: {count:?}");
    assert!(count.long_lines <= MOST_LONG_LINES, "first lines of more than {FIRST_LINE} words: {count:?}");
    let pronouns = count.pronouns * 100_000 / count.words;
    assert!(pronouns <= MOST_PRONOUNS, "{pronouns} pronouns in 100,000 words of comments: {count:?}");
}

#[test]
fn the_counter_counts_openings_of_doc_comments_and_words_of_all_comments() {
    let source = "\
//! What a module is.
//! Whether it is more.

//! A first line that has more words than a reader takes in at a glance, sixteen.

/// Returns true if nobody waits.
///
/// How it is done.
fn of(name: &str) {
    // Whoever reads this.
    let text = \"// nobody\";
}

/// Whether it is late.
const LATE: bool = true;
";
    let mut count = Count::default();
    count.add(source);
    assert_eq!(count, Count { doc_comments: 4, openings: 2, long_lines: 1, words: 40, pronouns: 2 });
}
