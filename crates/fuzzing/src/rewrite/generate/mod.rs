//! Generates YAML from an input's bytes.
//!
//! A small grammar keeps to the indentation, so that most outputs parse, and puts markers at all positions of
//! comments.

use super::setup::Setup;
use crate::choices::Choices;

mod words;

/// The maximum nesting depth of collections.
const DEPTH: usize = 7;
/// The length in bytes behind which no new collection or document begins.
const LENGTH: usize = 3000;

/// Generates the file that `bytes` encode.
pub(crate) fn file(bytes: &[u8], setup: &Setup) -> String {
    let mut choices = Choices::new(bytes);
    let line_break = choices.one_of(&["\n", "\n", "\n", "\r\n", "\r"]);
    let own = ["a:b", "a:b:tag", "a:b:name", "a:b:digest", "a:b:tag@digest"];
    let wanted = own.iter().filter_map(|setter| setup.wanted(setter)).collect();
    let mut generator = Generator { choices, line_break, wanted, text: String::new() };
    generator.stream();
    generator.text
}

struct Generator<'a> {
    choices: Choices<'a>,
    line_break: &'static str,
    /// Values that already equal the target of a marker.
    wanted: Vec<String>,
    text: String,
}

impl Generator<'_> {
    fn stream(&mut self) {
        if self.choices.one_in(16) {
            self.text.push('\u{feff}');
        }
        loop {
            let start =
                self.choices.one_of(&["", "---", "%YAML 1.1\n---", "%TAG !e! tag:e,2000:\n---", "--- "]);
            self.text.push_str(&start.replace('\n', self.line_break));
            match start {
                "" => self.block(0, 0),
                "--- " => self.value(0, 0),
                _ => {
                    self.line_end();
                    self.block(0, 0);
                }
            }
            let end = self.choices.one_of(&["", "", "..."]);
            if !end.is_empty() {
                self.text.push_str(end);
                self.line_end();
            }
            if self.choices.is_used_up() || self.text.len() > LENGTH || self.choices.one_in(2) {
                break;
            }
        }
        if self.choices.one_in(8) {
            let end = self.text.trim_end_matches(['\n', '\r']).len();
            self.text.truncate(end);
        }
    }

    /// Writes a collection on lines of its own.
    fn block(&mut self, indentation: usize, depth: usize) {
        if self.choices.below(3) == 2 {
            self.sequence(indentation, depth, false);
        } else {
            self.mapping(indentation, depth, false);
        }
    }

    fn mapping(&mut self, indentation: usize, depth: usize, mut goes_on: bool) {
        for number in 0..1 + self.choices.below(4) {
            self.begin_line(indentation, goes_on);
            goes_on = false;
            let before = self.choices.one_of(&words::BEFORE_KEYS);
            self.text.push_str(before);
            self.word(&words::KEYS);
            if !self.text.ends_with(['\'', '"']) {
                self.text.push_str(&number.to_string());
            }
            if self.choices.one_in(24) {
                self.line_end();
                self.indent(indentation);
            }
            self.text.push(':');
            self.value(indentation, depth);
        }
    }

    fn sequence(&mut self, indentation: usize, depth: usize, mut goes_on: bool) {
        for _ in 0..1 + self.choices.below(4) {
            self.begin_line(indentation, goes_on);
            goes_on = false;
            self.text.push('-');
            let may_nest = depth < DEPTH && self.text.len() < LENGTH;
            match self.choices.below(8) {
                6 if may_nest => {
                    self.text.push(' ');
                    self.mapping(indentation + 2, depth + 1, true);
                }
                7 if may_nest => {
                    self.text.push(' ');
                    self.sequence(indentation + 2, depth + 1, true);
                }
                _ => self.value(indentation, depth),
            }
        }
    }

    /// Writes the text behind `key:` or `-`, to the end of its last line.
    fn value(&mut self, indentation: usize, depth: usize) {
        let may_nest = depth < DEPTH && self.text.len() < LENGTH;
        match self.choices.below(16) {
            0..=5 => self.flow_value(indentation),
            6 => self.line_end(),
            7 | 8 => self.block_scalar(indentation),
            9 => self.scalar_below(indentation),
            10 => {
                self.text.push_str(" *a");
                self.line_end();
            }
            11 => {
                self.text.push(' ');
                self.properties();
                self.flow_collection(indentation + 2, 0);
                self.line_end();
            }
            12 if may_nest => {
                self.properties_behind_blank();
                self.line_end();
                self.sequence(indentation, depth + 1, false);
            }
            13..=15 if may_nest => {
                self.properties_behind_blank();
                self.line_end();
                let width = self.choices.one_of(&[2, 2, 1, 4]);
                self.block(indentation + width, depth + 1);
            }
            _ => {
                self.properties_behind_blank();
                self.line_end();
            }
        }
    }

    fn flow_value(&mut self, indentation: usize) {
        self.text.push(' ');
        self.properties();
        self.scalar(indentation + 2);
        self.line_end();
    }

    /// Writes a value that begins on the line below its key, perhaps with comments between.
    fn scalar_below(&mut self, indentation: usize) {
        self.properties_behind_blank();
        self.line_end();
        self.own_lines(indentation + 2);
        self.indent(indentation + 2);
        self.properties();
        if self.choices.one_in(4) {
            self.block_scalar(indentation + 2);
        } else {
            self.scalar(indentation + 2);
            self.line_end();
        }
    }

    fn block_scalar(&mut self, indentation: usize) {
        self.text.push(' ');
        self.properties();
        let header = self.choices.one_of(&["|", "|-", "|+", ">", ">-", ">+", "|2", ">2-", "|+1", "|1"]);
        self.text.push_str(header);
        self.line_end();
        for _ in 0..self.choices.below(4) {
            let line = self.choices.one_of(&words::BLOCK_LINES);
            if !line.is_empty() || self.choices.one_in(2) {
                self.indent(indentation + 2);
            }
            self.text.push_str(line);
            self.wanted_or("");
            self.text.push_str(self.line_break);
        }
    }

    fn scalar(&mut self, indentation: usize) {
        match self.choices.below(12) {
            0..=3 => self.word(&words::PLAIN),
            4..=6 => self.word(&words::QUOTED),
            7 | 8 => self.wanted_or("v"),
            9 => {
                let quote = self.choices.one_of(&["'", "\"", ""]);
                self.text.push_str(quote);
                self.wanted_or("v");
                self.text.push_str(quote);
            }
            10 => {
                let (start, end) =
                    self.choices.one_of(&[("\"a", "b\""), ("'a", "b'"), ("a", "b"), ("'", "'")]);
                self.text.push_str(start);
                for _ in 0..1 + self.choices.below(2) {
                    self.text.push_str(self.line_break);
                }
                self.indent(indentation);
                self.text.push_str(end);
            }
            _ => self.flow_collection(indentation, 0),
        }
    }

    fn flow_collection(&mut self, indentation: usize, depth: usize) {
        let is_mapping = self.choices.one_in(2);
        self.text.push_str(if is_mapping { "{" } else { "[" });
        for _ in 0..self.choices.below(4) {
            self.flow_break(indentation);
            if is_mapping || self.choices.one_in(8) {
                self.word(&words::FLOW_KEYS);
                self.flow_break(indentation);
            }
            match self.choices.below(8) {
                0 | 1 => {}
                2 if depth < 3 => self.flow_collection(indentation + 2, depth + 1),
                3 => self.wanted_or("v"),
                _ => {
                    self.properties();
                    self.word(&words::QUOTED);
                }
            }
            self.flow_break(indentation);
            self.text.push_str(self.choices.one_of(&[",", ", ", " ,"]));
        }
        self.flow_break(indentation);
        self.text.push_str(if is_mapping { "}" } else { "]" });
    }

    /// Writes an optional line break within a flow collection.
    fn flow_break(&mut self, indentation: usize) {
        if self.choices.below(3) == 1 {
            self.line_end();
            self.indent(indentation);
        }
    }

    fn properties_behind_blank(&mut self) {
        if self.choices.one_in(4) {
            self.text.push(' ');
            self.properties();
        }
    }

    fn properties(&mut self) {
        let properties = self.choices.one_of(&words::PROPERTIES);
        self.text.push_str(properties);
    }

    fn word(&mut self, words: &[&'static str]) {
        let word = self.choices.one_of(words);
        self.text.push_str(word);
    }

    fn wanted_or(&mut self, other: &str) {
        let number = self.choices.below(self.wanted.len() + 2);
        self.text.push_str(self.wanted.get(number).map_or(other, String::as_str));
    }

    /// Writes the comments above an entry and its indentation.
    ///
    /// Writes nothing if the entry continues the line of an outer dash.
    fn begin_line(&mut self, indentation: usize, goes_on: bool) {
        if !goes_on {
            self.own_lines(indentation);
            self.indent(indentation);
        }
    }

    /// Writes blank lines and comments between entries.
    fn own_lines(&mut self, indentation: usize) {
        for _ in 0..self.choices.below(8).saturating_sub(5) {
            if self.choices.one_in(3) {
                let blanks = self.choices.one_of(&["", "", "  ", "\t"]);
                self.text.push_str(blanks);
            } else {
                let width = self.choices.one_of(&[indentation, indentation, indentation + 2, 0, 1]);
                self.indent(width);
                let comment = self.choices.one_of(&words::COMMENTS);
                self.text.push_str(comment);
            }
            self.text.push_str(self.line_break);
        }
    }

    /// Writes optional spaces and a comment, then the line break.
    fn line_end(&mut self) {
        let blanks = self.choices.one_of(&[" ", " ", " ", "  ", "\t", " \t ", ""]);
        self.text.push_str(blanks);
        if !blanks.is_empty() && !self.choices.one_in(4) {
            let comment = self.choices.one_of(&words::COMMENTS);
            self.text.push_str(comment);
        }
        self.text.push_str(self.line_break);
    }

    fn indent(&mut self, width: usize) {
        self.text.extend(std::iter::repeat_n(' ', width));
    }
}
