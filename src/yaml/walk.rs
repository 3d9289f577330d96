//! Walks a YAML file value by value, with the comments attached to their values.

use std::borrow::Cow;
use std::collections::VecDeque;

use granit_parser::{Event, Span, StructureStyle};

use super::attachment::{self, Attachment, PendingComment, Position, ScalarContext};
use super::fingerprint::tag_name;
use super::path::{Collection, PathTracker, Step};
use super::position::{self, CommentContext, LastNode, NodeKind};
use super::reader::Reader;
use super::scalar::{Scalar, Style, Tag, TagMeaning};
use super::{Comment, Fingerprint, Limits, YamlError, YamlErrorKind, lines};

/// An item of the walk.
#[derive(Debug, PartialEq, Eq)]
pub enum Visit<'s> {
    /// A scalar value with its attached comment; its path is [`Walk::path`].
    Value(Scalar<'s>, Option<Comment>),
    /// A comment that belongs to no scalar value.
    Stray(Comment),
    /// The end of a document.
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
    /// The pending comments, which precede the next node.
    pending: Vec<PendingComment>,
    /// The maximum number of pending comments.
    comment_run: usize,
    queue: VecDeque<Visit<'s>>,
}

impl<'s> Walk<'s> {
    /// Starts a walk over `source`, which may contain several documents.
    pub fn new(source: &'s str, limits: &Limits) -> Self {
        Self {
            source,
            reader: Reader::new(source, limits),
            fingerprint: Fingerprint::default(),
            tracker: PathTracker::default(),
            last: None,
            pending: Vec::new(),
            comment_run: limits.comment_run,
            queue: VecDeque::new(),
        }
    }

    /// The path to the current value.
    pub fn path(&self) -> &[Step<'s>] {
        self.tracker.path()
    }

    /// The fingerprint of the stream so far.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Returns the next item, or `None` at the end of the file.
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
            Event::Comment(..) => self.add_pending(comment(span))?,
            Event::Scalar(value, style, anchor, tag) => {
                let style = Style::of(style, span);
                let value = if style == Style::Absent { Cow::Borrowed("") } else { value };
                if self.tracker.begin_node(Step::Key(value.clone())) {
                    self.detach();
                    self.set_last_node(NodeKind::Key, span);
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
                self.detach();
                self.set_last_node(NodeKind::Other, span);
            }
            Event::SequenceStart(style, ..) => self.begin(style, false, span),
            Event::MappingStart(style, ..) => self.begin(style, true, span),
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::DocumentEnd => {
                self.detach();
                self.tracker.end_document();
                self.last = None;
                self.queue.push_back(Visit::DocumentEnd);
            }
            // Comments may precede a document that begins without `---`, and still belong to it.
            Event::DocumentStart(true, _) | Event::StreamEnd => self.detach(),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, style: StructureStyle, is_mapping: bool, span: &Span) {
        let is_flow = style == StructureStyle::Flow;
        let is_block_sequence = !is_mapping && !is_flow;
        if is_block_sequence {
            self.detach_before_dash(span);
        } else {
            self.detach();
        }
        let column = if is_block_sequence { self.dash_column(span) } else { span.start.col() };
        self.tracker.begin(Collection { is_mapping, is_flow, column });
        if is_flow {
            self.set_last_node(NodeKind::Other, span);
        }
    }

    fn end(&mut self, span: &Span) {
        let Some(collection) = self.tracker.end() else { return };
        if collection.is_flow {
            self.detach();
            if !span.is_empty() {
                self.set_last_node(NodeKind::Other, span);
            }
        }
    }

    fn value(&mut self, mut scalar: Scalar<'s>, span: &Span) -> Result<(), YamlError> {
        let last_column = self.last.map_or(0, |last| last.block_column);
        let below = self.take_comments_below(&scalar);
        self.set_last_node(NodeKind::Value, span);
        let following = self.comment_after(&scalar)?;
        if scalar.style.is_block() {
            self.find_header(&mut scalar, following.as_ref());
        }
        let Attachment { attached, unattached } = attachment::attach(ScalarContext {
            source: self.source,
            is_absent: scalar.style == Style::Absent,
            following,
            pending: std::mem::take(&mut self.pending),
            last_column,
            column: self.tracker.block_column(),
        });
        for comment in below {
            self.add_pending(comment)?;
        }
        self.queue.extend(unattached.into_iter().map(Visit::Stray));
        self.queue.push_back(Visit::Value(scalar, attached));
        Ok(())
    }

    /// Takes the comments below an absent scalar out of the pending ones.
    ///
    /// The parser yields them before the scalar; they become pending again for the next node, as below a scalar that is
    /// present.
    fn take_comments_below(&mut self, scalar: &Scalar<'_>) -> Vec<Comment> {
        if scalar.style != Style::Absent {
            return Vec::new();
        }
        let is_below = |pending: &mut PendingComment| {
            pending.position == Position::OwnLine && pending.comment.span.start >= scalar.span.start
        };
        self.pending.extract_if(.., is_below).map(|pending| pending.comment).collect()
    }

    /// Takes the comment after the current scalar; the parser yields it next.
    fn comment_after(&mut self, scalar: &Scalar<'_>) -> Result<Option<Comment>, YamlError> {
        // The mapping of a value in `[key: value, # comment` ends before its comment.
        let is_single_pair = matches!(self.reader.peek(0)?, Some((Event::MappingEnd, span)) if span.is_empty())
            && self.tracker.innermost().is_some_and(|collection| collection.is_flow);
        let ahead = usize::from(is_single_pair);
        let Some((Event::Comment(..), span)) = self.reader.peek(ahead)? else { return Ok(None) };
        let comment = comment(span);
        if scalar.style.is_block() {
            // It follows the `|` or `>`; everything after it belongs to the scalar itself.
            if comment.span.start >= scalar.span.end {
                return Ok(None);
            }
        } else {
            let end = self.last.map_or(0, |last| last.end);
            if !position::follows_value(self.source, end, &comment) {
                return Ok(None);
            }
        }
        if let Some((event, span)) = self.reader.take(ahead) {
            self.fingerprint.add(&event, &span);
        }
        Ok(Some(comment))
    }

    /// Finds the line of a block's `|` or `>`.
    ///
    /// It is the line of the comment after it, else the first line above the block's text that is not blank.
    fn find_header(&self, scalar: &mut Scalar<'_>, following: Option<&Comment>) {
        if let Some(comment) = following {
            (scalar.line, scalar.header_end) = (comment.line, comment.span.start);
            return;
        }
        let mut start = lines::line_start(self.source, scalar.span.start);
        // In the parser, a block without lines begins at its indicator.
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

    /// Makes a comment pending until the next node is known.
    fn add_pending(&mut self, comment: Comment) -> Result<(), YamlError> {
        if self.pending.len() >= self.comment_run {
            let cause = YamlErrorKind::TooManyComments { limit: self.comment_run };
            return Err(YamlError { line: comment.line, column: comment.column + 1, cause });
        }
        let context = CommentContext {
            source: self.source,
            last: self.last,
            is_flow: self.tracker.innermost().is_some_and(|collection| collection.is_flow),
            previous: self.pending.last(),
        };
        let pending = position::locate(&context, comment);
        self.pending.push(pending);
        Ok(())
    }

    /// Detaches the pending comments: no scalar value follows them.
    fn detach(&mut self) {
        self.queue.extend(self.pending.drain(..).map(|pending| Visit::Stray(pending.comment)));
    }

    /// Detaches comments of a sequence as a whole, which its first entry must not get.
    ///
    /// These are separated from the sequence by the dash of an outer sequence.
    fn detach_before_dash(&mut self, span: &Span) {
        let start = bytes(span).start;
        let own_dash = usize::from(self.begins_after_dash(span));
        let (mut dashes, mut end, mut kept) = (0, start, self.pending.len());
        for pending in self.pending.iter().rev() {
            dashes += position::dashes_between(self.source, pending.comment.span.end, end);
            if dashes > own_dash {
                break;
            }
            end = pending.comment.span.start;
            kept -= 1;
        }
        let unattached = self.pending.drain(..kept).map(|pending| Visit::Stray(pending.comment));
        self.queue.extend(unattached);
    }

    /// Returns true if the parser starts a block sequence after its first dash.
    ///
    /// This is so if the sequence is indented like the key of its mapping; its first dash follows the key then.
    fn begins_after_dash(&self, span: &Span) -> bool {
        let is_in_mapping = self.tracker.innermost().is_some_and(|parent| parent.is_mapping);
        let key = self.last.map_or(0, |last| last.end);
        is_in_mapping && position::dashes_between(self.source, key, bytes(span).start) > 0
    }

    /// The column of a block sequence's dashes.
    fn dash_column(&self, span: &Span) -> usize {
        let parent = self.tracker.innermost().filter(|_| self.begins_after_dash(span));
        parent.map_or(span.start.col(), |mapping| mapping.column)
    }

    fn set_last_node(&mut self, kind: NodeKind, span: &Span) {
        let mut end = bytes(span).end;
        if kind == NodeKind::Value && (span.is_empty() || span.end.line() > span.start.line()) {
            // A block scalar ends where the next line's text begins; the end of the line before it counts.
            let before = lines::text_before(self.source, end);
            end -= if lines::is_blank(before) { before.len() } else { 0 };
        }
        self.last =
            Some(LastNode { kind, end, column: span.start.col(), block_column: self.tracker.block_column() });
    }
}

/// Computes the fingerprint of a whole file.
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

    /// `hack/oracle/comments` makes the table with the library that Flux uses.
    #[test]
    fn comments_attach_to_nodes_as_in_the_library_of_flux() {
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
