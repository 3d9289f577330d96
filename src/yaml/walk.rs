//! A walk through a YAML file, value by value, with the comments where they belong.

use std::borrow::Cow;
use std::collections::VecDeque;

use granit_parser::{Event, Span, StructureStyle};

use super::attachment::{self, Above, Attachment, Place, Surroundings, Waiting};
use super::fingerprint::tag_name;
use super::reader::Reader;
use super::scalar::{Scalar, Style, Tag, TagMeaning};
use super::{Comment, Fingerprint, Limits, YamlError, lines};

/// What the walk meets.
#[derive(Debug, PartialEq, Eq)]
pub enum Visit<'s> {
    /// A document begins.
    DocumentStart,
    /// A document ends.
    DocumentEnd,
    /// A mapping or a sequence begins; [`Walk::path`] names it.
    Enter,
    /// The mapping or sequence that [`Walk::path`] names has ended.
    Leave,
    /// A scalar value, and the comment that decides about it.
    Value(Scalar<'s>, Option<Comment>),
    /// A comment that belongs to no scalar value.
    Stray(Comment),
}

/// One step of the way from a document's root to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<'s> {
    /// Into a mapping, by a scalar key.
    Key(Cow<'s, str>),
    /// Into a sequence, by the entry's number, counted from 0.
    Index(usize),
    /// Into a mapping, as a key or by a key that is no scalar.
    NoName,
}

/// A collection that is open.
struct Frame<'s> {
    is_mapping: bool,
    is_flow: bool,
    /// The column where a block collection began.
    column: usize,
    /// Whether a mapping expects a key next.
    expects_key: bool,
    /// How many entries of a sequence have begun.
    entries: usize,
    /// Whether everything in it is part of some mapping's key.
    in_key: bool,
    path_length: usize,
    step: Option<Step<'s>>,
}

/// What the last node was, for the comment behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastNode {
    None,
    Value,
    Key,
    /// An alias, or the start or the end of a collection.
    Other,
}

/// An iterator over the values and comments of one file.
pub struct Walk<'s> {
    source: &'s str,
    reader: Reader<'s>,
    fingerprint: Fingerprint,
    frames: Vec<Frame<'s>>,
    path: Vec<Step<'s>>,
    waiting: Vec<Waiting>,
    ended_column: Option<usize>,
    last: LastNode,
    last_end: usize,
    last_column: usize,
    queue: VecDeque<Visit<'s>>,
}

impl<'s> Walk<'s> {
    /// A walk through `source`, which may hold several documents.
    pub fn new(source: &'s str, limits: &Limits) -> Self {
        Self {
            source,
            reader: Reader::new(source, limits),
            fingerprint: Fingerprint::default(),
            frames: Vec::new(),
            path: Vec::new(),
            waiting: Vec::new(),
            ended_column: None,
            last: LastNode::None,
            last_end: 0,
            last_column: 0,
            queue: VecDeque::new(),
        }
    }

    /// The way to the node of the visit at hand.
    pub fn path(&self) -> &[Step<'s>] {
        &self.path
    }

    /// The fingerprint of what has been walked so far.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// The next visit, or `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// When the file is not YAML or exceeds the limits; the walk is over then.
    pub fn next_visit(&mut self) -> Result<Option<Visit<'s>>, YamlError> {
        loop {
            if let Some(visit) = self.queue.pop_front() {
                return Ok(Some(visit));
            }
            let Some((event, span)) = self.reader.next()? else { return Ok(None) };
            self.step(event, span)?;
        }
    }

    fn step(&mut self, event: Event<'s>, span: Span) -> Result<(), YamlError> {
        let node = self.fingerprint.nodes();
        self.fingerprint.add(&event, &span);
        match event {
            Event::Comment(..) => self.hold(comment(&span)),
            Event::Scalar(value, style, anchor, tag) => {
                let style = Style::of(style, &span);
                let is_key = self.enter_node(|| match style {
                    Style::Absent => Cow::Borrowed(""),
                    _ => value.clone(),
                });
                if is_key {
                    self.strand();
                    self.remember(LastNode::Key, &span);
                } else {
                    let tag = tag.as_deref().and_then(|tag| explicit_tag(tag, &span));
                    let value = if style == Style::Absent { Cow::Borrowed("") } else { value };
                    let line = span.start.line();
                    let span_bytes = bytes(&span);
                    let scalar = Scalar { value, style, span: span_bytes, line, tag, node, anchor };
                    self.value(scalar, &span)?;
                }
            }
            Event::Alias(_) => {
                self.enter_node(|| Cow::Borrowed(""));
                self.strand();
                self.remember(LastNode::Other, &span);
            }
            Event::SequenceStart(style, ..) => self.open(style, false, &span),
            Event::MappingStart(style, ..) => self.open(style, true, &span),
            Event::SequenceEnd | Event::MappingEnd => self.close(&span),
            Event::DocumentStart(..) => {
                self.strand();
                self.last = LastNode::None;
                self.queue.push_back(Visit::DocumentStart);
            }
            Event::DocumentEnd => {
                self.strand();
                self.last = LastNode::None;
                self.queue.push_back(Visit::DocumentEnd);
            }
            Event::StreamEnd => self.strand(),
            _ => {}
        }
        Ok(())
    }

    /// Moves the path to the node that begins; true if that node is a mapping's key (or within one).
    fn enter_node(&mut self, name: impl FnOnce() -> Cow<'s, str>) -> bool {
        let Some(frame) = self.frames.last_mut() else {
            self.path.clear();
            return false;
        };
        self.path.truncate(frame.path_length);
        let is_key = frame.is_mapping && frame.expects_key;
        if frame.is_mapping {
            if is_key {
                frame.step = Some(Step::Key(name()));
                self.path.push(Step::NoName);
            } else {
                self.path.push(frame.step.take().unwrap_or(Step::NoName));
            }
            frame.expects_key = !frame.expects_key;
        } else {
            self.path.push(Step::Index(frame.entries));
            frame.entries += 1;
        }
        is_key || frame.in_key
    }

    fn open(&mut self, style: StructureStyle, is_mapping: bool, span: &Span) {
        let in_key = self.enter_node(|| Cow::Borrowed(""));
        if let Some(frame) = self.frames.last_mut()
            && frame.is_mapping
            && !frame.expects_key
        {
            // The collection is a key: what it names has no name.
            frame.step = Some(Step::NoName);
        }
        let is_flow = style == StructureStyle::Flow;
        if is_mapping || is_flow {
            self.strand();
        } else {
            self.strand_before_dash(span);
        }
        self.frames.push(Frame {
            is_mapping,
            is_flow,
            column: if is_mapping || is_flow { span.start.col() } else { self.dash_column(span) },
            expects_key: is_mapping,
            entries: 0,
            in_key,
            path_length: self.path.len(),
            step: None,
        });
        if is_flow {
            self.remember(LastNode::Other, span);
        }
        self.queue.push_back(Visit::Enter);
    }

    /// The column of a block sequence's dashes.
    ///
    /// The parser lets a sequence begin behind its first dash when it is indented like its mapping's key.
    fn dash_column(&self, span: &Span) -> usize {
        let start = bytes(span).start;
        if self.source.as_bytes().get(start) == Some(&b'-') {
            return span.start.col();
        }
        let before = lines::text_before(self.source, start).trim_end_matches([' ', '\t']);
        before.strip_suffix('-').map_or(0, |before| before.chars().count())
    }

    fn close(&mut self, span: &Span) {
        if let Some(frame) = self.frames.pop() {
            self.path.truncate(frame.path_length);
            if frame.is_flow {
                self.strand();
                self.remember(LastNode::Other, span);
            } else {
                let column = self.ended_column.map_or(frame.column, |column| column.min(frame.column));
                self.ended_column = Some(column);
            }
        }
        self.queue.push_back(Visit::Leave);
    }

    fn value(&mut self, mut scalar: Scalar<'s>, span: &Span) -> Result<(), YamlError> {
        let ended_column = self.ended_column.take();
        let own_column = self.frames.last().map_or(0, |frame| frame.column);
        self.remember(LastNode::Value, span);
        if scalar.style.is_block() {
            self.remember_block();
        }
        let behind = self.comment_behind(&mut scalar)?;
        let Attachment { deciding, strays } = attachment::attach(Surroundings {
            source: self.source,
            is_absent: scalar.style == Style::Absent,
            behind,
            waiting: std::mem::take(&mut self.waiting),
            ended_column,
            own_column,
        });
        self.queue.extend(strays.into_iter().map(Visit::Stray));
        self.queue.push_back(Visit::Value(scalar, deciding));
        Ok(())
    }

    /// Takes the comment that stands behind the scalar just met.
    fn comment_behind(&mut self, scalar: &mut Scalar<'_>) -> Result<Option<Comment>, YamlError> {
        let Some((Event::Comment(..), span)) = self.reader.peek()? else { return Ok(None) };
        let comment = comment(span);
        let is_behind = if scalar.style.is_block() {
            comment.span.start < scalar.span.start && comment.line < scalar.line.max(comment.line + 1)
        } else {
            self.stands_behind_value(&comment)
        };
        if !is_behind {
            return Ok(None);
        }
        if scalar.style.is_block() {
            scalar.line = comment.line;
        }
        self.reader.next()?;
        Ok(Some(comment))
    }

    /// Whether nothing but blanks and a comma is between the last node and a comment on the same line.
    fn stands_behind_value(&self, comment: &Comment) -> bool {
        let Some(between) = self.source.get(self.last_end..comment.span.start) else { return false };
        let between = between.trim_matches([' ', '\t']);
        // An absent value's place is given before its colon.
        let between = between.strip_prefix(':').unwrap_or(between).trim_matches([' ', '\t']);
        between.is_empty() || between == ","
    }

    /// Keeps a comment until the node behind it is known.
    fn hold(&mut self, comment: Comment) {
        let before = lines::text_before(self.source, comment.span.start);
        let after_dash = self.follows_dash(&comment);
        let (place, above) = if lines::is_blank(before) {
            (Place::OwnLine, self.what_is_above(&comment, after_dash))
        } else {
            (self.place_behind(&comment, before), Above::Blank)
        };
        self.waiting.push(Waiting { comment, place, above, after_dash });
    }

    fn follows_dash(&self, comment: &Comment) -> bool {
        let (from, known) = match self.waiting.last() {
            Some(last) => (last.comment.span.end, last.after_dash),
            None => (self.last_end, false),
        };
        known || dashes_between(self.source, from, comment.span.start) > 0
    }

    fn place_behind(&self, comment: &Comment, before: &str) -> Place {
        let line_start = comment.span.start - before.len();
        if self.last == LastNode::None || self.last_end <= line_start {
            return opening_place(before);
        }
        let between = self.source[self.last_end..comment.span.start].trim_matches([' ', '\t']);
        let is_flow = self.frames.last().is_some_and(|frame| frame.is_flow);
        match self.last {
            LastNode::Key => match between.strip_prefix(':').map(|rest| rest.trim_matches([' ', '\t'])) {
                Some("") if is_flow => Place::Opening,
                Some(rest) if rest.starts_with(['&', '!']) => Place::Property,
                _ => Place::Elsewhere,
            },
            _ if between.ends_with(|c: char| !",]}[{:?".contains(c)) && has_property(between) => {
                Place::Property
            }
            _ => Place::Elsewhere,
        }
    }

    fn what_is_above(&self, comment: &Comment, after_dash: bool) -> Above {
        let Some(line) = lines::line_above(self.source, comment.span.start) else { return Above::Blank };
        if lines::is_blank(line) || line.trim_start_matches([' ', '\t']).starts_with('#') {
            return Above::Blank;
        }
        let ends_before = comment.line - 1;
        let opens = |last: &Waiting| last.place == Place::Opening && last.comment.line == ends_before;
        if self.waiting.last().is_some_and(opens) {
            return Above::Blank;
        }
        let is_inside = comment.column >= self.last_column;
        if self.last == LastNode::Key && is_inside && !after_dash { Above::Key } else { Above::Content }
    }

    /// Gives up the waiting comments: no scalar value follows them.
    fn strand(&mut self) {
        self.ended_column = None;
        self.queue.extend(self.waiting.drain(..).map(|waiting| Visit::Stray(waiting.comment)));
    }

    /// Gives up the comments that belong to a sequence as a whole rather than to its first entry: those with
    /// the dash of an outer sequence between them and the sequence that begins.
    fn strand_before_dash(&mut self, span: &Span) {
        let start = bytes(span).start;
        // The sequence begins at its own dash, or behind it when it is indented like its mapping's key.
        let own_dash = usize::from(self.source.as_bytes().get(start) != Some(&b'-'));
        let (mut dashes, mut end, mut kept) = (0, start, self.waiting.len());
        for waiting in self.waiting.iter().rev() {
            dashes += dashes_between(self.source, waiting.comment.span.end, end);
            if dashes > own_dash {
                break;
            }
            end = waiting.comment.span.start;
            kept -= 1;
        }
        let strays = self.waiting.drain(..kept).map(|waiting| Visit::Stray(waiting.comment));
        self.queue.extend(strays);
    }

    fn remember(&mut self, node: LastNode, span: &Span) {
        self.last = node;
        self.last_end = bytes(span).end;
        self.last_column = span.start.col();
    }

    /// A block scalar ends where the next line's text begins; what counts is the end of the line before.
    fn remember_block(&mut self) {
        let before = lines::text_before(self.source, self.last_end);
        if lines::is_blank(before) {
            self.last_end -= before.len();
        }
    }
}

/// The fingerprint of a whole file.
///
/// # Errors
///
/// When the file is not YAML or exceeds the limits.
pub fn fingerprint_of(source: &str, limits: &Limits) -> Result<Fingerprint, YamlError> {
    let mut reader = Reader::without_comments(source, limits);
    let mut fingerprint = Fingerprint::default();
    while let Some((event, span)) = reader.next()? {
        fingerprint.add(&event, &span);
    }
    Ok(fingerprint)
}

/// The place of a comment on a line that begins with indicators and holds no node before it.
fn opening_place(before: &str) -> Place {
    let before = before.trim_matches([' ', '\t']);
    if has_property(before) {
        Place::Property
    } else if before.split([' ', '\t']).all(|word| word == "-" || word.is_empty()) {
        Place::Opening
    } else {
        Place::Elsewhere
    }
}

/// How many sequence entries the lines between two places open.
fn dashes_between(source: &str, from: usize, to: usize) -> usize {
    source.get(from..to).unwrap_or_default().split(['\n', '\r']).map(leading_dashes).sum()
}

/// How many sequence entries a line opens before anything else stands on it.
fn leading_dashes(line: &str) -> usize {
    line.split([' ', '\t']).filter(|word| !word.is_empty()).take_while(|word| *word == "-").count()
}

fn has_property(text: &str) -> bool {
    text.rsplit([' ', '\t']).next().is_some_and(|word| word.starts_with(['&', '!']))
}

fn bytes(span: &Span) -> std::ops::Range<usize> {
    span.byte_range().expect("a parser over a string knows its byte offsets")
}

fn comment(span: &Span) -> Comment {
    Comment { span: bytes(span), line: span.start.line(), column: span.start.col() }
}

fn explicit_tag(tag: &granit_parser::Tag, span: &Span) -> Option<Tag> {
    let meaning = match tag.core_suffix() {
        Some("str") => TagMeaning::Text,
        Some(_) => TagMeaning::OtherCoreType,
        None if tag_name(tag) == "!" => TagMeaning::Text,
        None => TagMeaning::Custom,
    };
    let name = tag_name(tag);
    span.tag_span().map(|span| Tag { span: bytes(&span), name, meaning })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn path_text(path: &[Step<'_>]) -> String {
        path.iter()
            .map(|step| match step {
                Step::Key(key) => format!(".{key}"),
                Step::Index(index) => format!("[{index}]"),
                Step::NoName => ".?".to_owned(),
            })
            .collect()
    }

    fn attached(source: &str) -> BTreeMap<String, String> {
        let mut walk = Walk::new(source, &Limits::default());
        let mut found = BTreeMap::new();
        while let Some(visit) = walk.next_visit().unwrap() {
            if let Visit::Value(_, Some(comment)) = visit {
                found.insert(path_text(walk.path()), comment.text(source).to_owned());
            }
        }
        found
    }

    #[derive(serde::Deserialize)]
    struct Case {
        source: String,
        comments: BTreeMap<String, String>,
    }

    /// The table is made by `hack/oracle/comments` with the library that Flux uses.
    #[test]
    fn comments_belong_where_the_library_of_flux_attaches_them() {
        let table = include_str!("../../testdata/comments/attachment.json");
        let cases: Vec<Case> = serde_json::from_str(table).unwrap();
        let mut wrong = Vec::new();
        for case in &cases {
            let found = attached(&case.source);
            if found != case.comments {
                wrong.push(format!(
                    "{}--- expected {:?}\n--- found    {:?}\n",
                    case.source, case.comments, found
                ));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} of {} differ, such as\n{}",
            wrong.len(),
            cases.len(),
            wrong[..wrong.len().min(6)].join("\n==========\n")
        );
    }
}
