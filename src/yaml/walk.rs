//! A walk through a YAML file, value by value, with the comments where they belong.

use std::borrow::Cow;
use std::collections::VecDeque;

use granit_parser::{Event, Span, StructureStyle};

use super::attachment::{self, Attachment, Place, Surroundings, Waiting};
use super::fingerprint::tag_name;
use super::path::{Collection, PathTracker, Step};
use super::place::{self, Context, LastNode, NodeKind};
use super::reader::Reader;
use super::scalar::{Scalar, Style, Tag, TagMeaning};
use super::{Cause, Comment, Fingerprint, Limits, YamlError, lines};

/// What the walk meets.
#[derive(Debug, PartialEq, Eq)]
pub enum Visit<'s> {
    /// A scalar value, and the comment that decides about it; [`Walk::path`] leads to it.
    Value(Scalar<'s>, Option<Comment>),
    /// A comment that belongs to no scalar value.
    Stray(Comment),
    /// A document ends.
    DocumentEnd,
}

/// A walk over the values and comments of one file.
pub struct Walk<'s> {
    source: &'s str,
    reader: Reader<'s>,
    fingerprint: Fingerprint,
    tracker: PathTracker<'s>,
    /// The last node of the document.
    last: Option<LastNode>,
    /// The comments that wait for the next node.
    waiting: Vec<Waiting>,
    /// How many may wait.
    comment_run: usize,
    queue: VecDeque<Visit<'s>>,
}

impl<'s> Walk<'s> {
    /// A walk through `source`, which may hold several documents.
    pub fn new(source: &'s str, limits: &Limits) -> Self {
        Self {
            source,
            reader: Reader::new(source, limits),
            fingerprint: Fingerprint::default(),
            tracker: PathTracker::default(),
            last: None,
            waiting: Vec::new(),
            comment_run: limits.comment_run,
            queue: VecDeque::new(),
        }
    }

    /// The way to the value of the visit at hand.
    pub fn path(&self) -> &[Step<'s>] {
        self.tracker.path()
    }

    /// The fingerprint of what has been walked so far.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// The next visit, or `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not YAML or exceeds the limits; the walk is over then.
    pub fn next_visit(&mut self) -> Result<Option<Visit<'s>>, YamlError> {
        loop {
            if let Some(visit) = self.queue.pop_front() {
                return Ok(Some(visit));
            }
            let Some((event, span)) = self.reader.next()? else { return Ok(None) };
            self.step(event, &span)?;
        }
    }

    fn step(&mut self, event: Event<'s>, span: &Span) -> Result<(), YamlError> {
        let node = self.fingerprint.nodes();
        self.fingerprint.add(&event, span);
        match event {
            Event::Comment(..) => self.hold(comment(span))?,
            Event::Scalar(value, style, anchor, tag) => {
                let style = Style::of(style, span);
                let value = if style == Style::Absent { Cow::Borrowed("") } else { value };
                if self.tracker.begin_node(Step::Key(value.clone())) {
                    self.strand();
                    self.remember(NodeKind::Key, span);
                } else {
                    let tag = tag.as_deref().and_then(|tag| explicit_tag(tag, span));
                    let (bytes, line) = (bytes(span), span.start.line());
                    let header_end = 0;
                    self.value(
                        Scalar { value, style, span: bytes, line, header_end, tag, node, anchor },
                        span,
                    )?;
                }
            }
            Event::Alias(_) => {
                self.tracker.begin_node(Step::NoName);
                self.strand();
                self.remember(NodeKind::Other, span);
            }
            Event::SequenceStart(style, ..) => self.begin(style, false, span),
            Event::MappingStart(style, ..) => self.begin(style, true, span),
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::DocumentEnd => {
                self.strand();
                self.tracker.end_document();
                self.last = None;
                self.queue.push_back(Visit::DocumentEnd);
            }
            // Comments may come before a document that begins without `---`, and belong to it all the same.
            Event::DocumentStart(true, _) | Event::StreamEnd => self.strand(),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, style: StructureStyle, is_mapping: bool, span: &Span) {
        let is_flow = style == StructureStyle::Flow;
        let is_block_sequence = !is_mapping && !is_flow;
        if is_block_sequence {
            self.strand_before_dash(span);
        } else {
            self.strand();
        }
        let column = if is_block_sequence { self.dash_column(span) } else { span.start.col() };
        self.tracker.begin(Collection { is_mapping, is_flow, column });
        if is_flow {
            self.remember(NodeKind::Other, span);
        }
    }

    fn end(&mut self, span: &Span) {
        let Some(collection) = self.tracker.end() else { return };
        if collection.is_flow {
            self.strand();
            if !span.is_empty() {
                self.remember(NodeKind::Other, span);
            }
        }
    }

    fn value(&mut self, mut scalar: Scalar<'s>, span: &Span) -> Result<(), YamlError> {
        let last_column = self.last.map_or(0, |last| last.block_column);
        let below = self.take_comments_below(&scalar);
        self.remember(NodeKind::Value, span);
        let behind = self.comment_behind(&scalar)?;
        if scalar.style.is_block() {
            self.find_header(&mut scalar, behind.as_ref());
        }
        let Attachment { deciding, strays } = attachment::attach(Surroundings {
            source: self.source,
            is_absent: scalar.style == Style::Absent,
            behind,
            waiting: std::mem::take(&mut self.waiting),
            last_column,
            own_column: self.tracker.block_column(),
        });
        for comment in below {
            self.hold(comment)?;
        }
        self.queue.extend(strays.into_iter().map(Visit::Stray));
        self.queue.push_back(Visit::Value(scalar, deciding));
        Ok(())
    }

    /// Takes out the comments below an absent scalar, which the parser gives before it, so that they can wait for
    /// the next node in the same way as below a scalar that is there.
    fn take_comments_below(&mut self, scalar: &Scalar<'_>) -> Vec<Comment> {
        if scalar.style != Style::Absent {
            return Vec::new();
        }
        let is_below = |waiting: &mut Waiting| {
            waiting.place == Place::OwnLine && waiting.comment.span.start >= scalar.span.start
        };
        self.waiting.extract_if(.., is_below).map(|waiting| waiting.comment).collect()
    }

    /// Takes the comment that stands behind the scalar just met; the parser gives it next.
    fn comment_behind(&mut self, scalar: &Scalar<'_>) -> Result<Option<Comment>, YamlError> {
        // Behind the value of `[key: value, # comment` the mapping ends before the comment comes.
        let is_single_pair = matches!(self.reader.peek(0)?, Some((Event::MappingEnd, span)) if span.is_empty())
            && self.tracker.innermost().is_some_and(|collection| collection.is_flow);
        let ahead = usize::from(is_single_pair);
        let Some((Event::Comment(..), span)) = self.reader.peek(ahead)? else { return Ok(None) };
        let comment = comment(span);
        if scalar.style.is_block() {
            // It stands behind the `|` or `>`, and what follows them is the scalar's own.
            if comment.span.start >= scalar.span.end {
                return Ok(None);
            }
        } else {
            let end = self.last.map_or(0, |last| last.end);
            if !place::stands_behind_value(self.source, end, &comment) {
                return Ok(None);
            }
        }
        if let Some((event, span)) = self.reader.take(ahead) {
            self.fingerprint.add(&event, &span);
        }
        Ok(Some(comment))
    }

    /// Finds the line of a block's `|` or `>`: the comment behind it tells, else it is the first line above the
    /// block's text that is not blank.
    fn find_header(&self, scalar: &mut Scalar<'_>, behind: Option<&Comment>) {
        if let Some(comment) = behind {
            (scalar.line, scalar.header_end) = (comment.line, comment.span.start);
            return;
        }
        let mut start = lines::line_start(self.source, scalar.span.start);
        // The parser lets a block without lines begin at its indicator.
        let begins_at_header =
            scalar.value.is_empty() && self.source[scalar.span.start..].starts_with(['|', '>']);
        while let Some(above) = lines::start_of_line_above(self.source, start).filter(|_| !begins_at_header) {
            start = above;
            scalar.line -= 1;
            if !lines::is_blank(lines::line_at(self.source, start)) {
                break;
            }
        }
        scalar.header_end = start + lines::line_at(self.source, start).len();
    }

    /// Keeps a comment until the node behind it is known.
    fn hold(&mut self, comment: Comment) -> Result<(), YamlError> {
        if self.waiting.len() >= self.comment_run {
            let cause = Cause::TooManyComments { limit: self.comment_run };
            return Err(YamlError { line: comment.line, column: comment.column + 1, cause });
        }
        let context = Context {
            source: self.source,
            last: self.last,
            is_flow: self.tracker.innermost().is_some_and(|collection| collection.is_flow),
            previous: self.waiting.last(),
        };
        let waiting = place::locate(&context, comment);
        self.waiting.push(waiting);
        Ok(())
    }

    /// Gives up the waiting comments: no scalar value follows them.
    fn strand(&mut self) {
        self.queue.extend(self.waiting.drain(..).map(|waiting| Visit::Stray(waiting.comment)));
    }

    /// Gives up the comments that belong to a sequence as a whole rather than to its first entry: those with
    /// the dash of an outer sequence between them and the sequence that begins.
    fn strand_before_dash(&mut self, span: &Span) {
        let start = bytes(span).start;
        let own_dash = usize::from(self.begins_behind_dash(span));
        let (mut dashes, mut end, mut kept) = (0, start, self.waiting.len());
        for waiting in self.waiting.iter().rev() {
            dashes += place::dashes_between(self.source, waiting.comment.span.end, end);
            if dashes > own_dash {
                break;
            }
            end = waiting.comment.span.start;
            kept -= 1;
        }
        let strays = self.waiting.drain(..kept).map(|waiting| Visit::Stray(waiting.comment));
        self.queue.extend(strays);
    }

    /// Whether the parser lets a block sequence begin behind its first dash rather than at it.
    ///
    /// It does so where the sequence is indented like its mapping's key; then that dash stands behind the key.
    fn begins_behind_dash(&self, span: &Span) -> bool {
        let is_in_mapping = self.tracker.innermost().is_some_and(|parent| parent.is_mapping);
        let key = self.last.map_or(0, |last| last.end);
        is_in_mapping && place::dashes_between(self.source, key, bytes(span).start) > 0
    }

    /// The column of a block sequence's dashes.
    fn dash_column(&self, span: &Span) -> usize {
        let parent = self.tracker.innermost().filter(|_| self.begins_behind_dash(span));
        parent.map_or(span.start.col(), |mapping| mapping.column)
    }

    fn remember(&mut self, kind: NodeKind, span: &Span) {
        let mut end = bytes(span).end;
        if kind == NodeKind::Value && (span.is_empty() || span.end.line() > span.start.line()) {
            // A block scalar ends where the next line's text begins; what counts is the end of the line before.
            let before = lines::text_before(self.source, end);
            end -= if lines::is_blank(before) { before.len() } else { 0 };
        }
        self.last =
            Some(LastNode { kind, end, column: span.start.col(), block_column: self.tracker.block_column() });
    }
}

/// The fingerprint of a whole file.
///
/// # Errors
///
/// Returns an error if the file is not YAML or exceeds the limits.
pub fn fingerprint_of(source: &str, limits: &Limits) -> Result<Fingerprint, YamlError> {
    let mut reader = Reader::new(source, limits);
    let mut fingerprint = Fingerprint::default();
    while let Some((event, span)) = reader.next()? {
        fingerprint.add(&event, &span);
    }
    Ok(fingerprint)
}

fn bytes(span: &Span) -> std::ops::Range<usize> {
    span.byte_range().expect("a parser over a string knows its byte offsets")
}

fn comment(span: &Span) -> Comment {
    Comment { span: bytes(span), line: span.start.line(), column: span.start.col() }
}

fn explicit_tag(tag: &granit_parser::Tag, span: &Span) -> Option<Tag> {
    let name = tag_name(tag);
    let meaning = match tag.core_suffix() {
        Some("str") => TagMeaning::Text,
        Some(_) => TagMeaning::OtherYamlType,
        None if name.starts_with("tag:yaml.org,2002:") => TagMeaning::OtherYamlType,
        None => TagMeaning::Custom,
    };
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
