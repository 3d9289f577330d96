//! The YAML parser with limits on nesting, aliases and comments.

use std::collections::VecDeque;

use granit_parser::{ErrorKind, Event, Parser, ScanError, Span, StrInput};

use super::{Limits, SyntaxError, YamlError, YamlErrorKind};

/// One event of the parser with its span.
pub(crate) type Spanned<'s> = (Event<'s>, Span);

/// A stream of YAML events that ends with an error beyond the limits.
pub(crate) struct Reader<'s> {
    parser: Parser<'s, StrInput<'s>>,
    limits: Limits,
    ahead: VecDeque<Spanned<'s>>,
    /// The open collections, each with its anchor's number and its number of nodes.
    ///
    /// Without an anchor, its number is 0. The nodes are those so far, with aliases expanded.
    open: Vec<(usize, u64)>,
    /// The number of nodes of each anchor, by the anchor's number.
    ///
    /// It is 0 while the node is still open.
    anchors: Vec<u64>,
    alias_nodes: u64,
}

impl<'s> Reader<'s> {
    pub(crate) fn new(source: &'s str, limits: &Limits) -> Self {
        let options = granit_parser::options! {
            max_buffered_comment_events: limits.comment_run,
            flow_nesting_limit: limits.depth + 1,
            block_nesting_limit: limits.depth + 1,
        };
        Self {
            parser: Parser::new_from_str_with_options(source, options),
            limits: limits.clone(),
            ahead: VecDeque::new(),
            open: Vec::new(),
            anchors: Vec::new(),
            alias_nodes: 0,
        }
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Result<Option<Spanned<'s>>, YamlError> {
        match self.ahead.pop_front() {
            Some(event) => Ok(Some(event)),
            None => self.parse_next(),
        }
    }

    /// Returns the event `ahead` positions after the next one, without consuming it.
    pub(crate) fn peek(&mut self, ahead: usize) -> Result<Option<&Spanned<'s>>, YamlError> {
        while self.ahead.len() <= ahead {
            match self.parse_next()? {
                Some(event) => self.ahead.push_back(event),
                None => return Ok(None),
            }
        }
        Ok(self.ahead.get(ahead))
    }

    /// Consumes the event that [`peek`](Self::peek) returned for `ahead`.
    pub(crate) fn take(&mut self, ahead: usize) -> Option<Spanned<'s>> {
        self.ahead.remove(ahead)
    }

    fn parse_next(&mut self) -> Result<Option<Spanned<'s>>, YamlError> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Err(error)) => Err(self.syntax_error(error)),
            Some(Ok((event, span))) => {
                self.check(&event, &span)?;
                Ok(Some((event, span)))
            }
        }
    }

    fn syntax_error(&self, error: ScanError) -> YamlError {
        let (line, column) = (error.marker().line(), error.marker().col() + 1);
        let cause = match error.kind() {
            // The scanner runs ahead of the events counted here.
            ErrorKind::RecursionLimitExceeded => YamlErrorKind::TooDeep { limit: self.limits.depth },
            _ => SyntaxError(error).into(),
        };
        YamlError { line, column, cause }
    }

    fn check(&mut self, event: &Event<'_>, span: &Span) -> Result<(), YamlError> {
        match event {
            Event::DocumentStart(..) => {
                self.open.clear();
                self.alias_nodes = 0;
            }
            Event::Scalar(_, _, anchor, _) => self.finish(*anchor, 1),
            Event::SequenceStart(_, anchor, _) | Event::MappingStart(_, anchor, _) => {
                if self.open.len() >= self.limits.depth {
                    return Err(error_at(span, YamlErrorKind::TooDeep { limit: self.limits.depth }));
                }
                self.set_anchor_nodes(*anchor, 0);
                self.open.push((*anchor, 1));
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, nodes)) = self.open.pop() {
                    self.finish(anchor, nodes);
                }
            }
            Event::Alias(anchor) => self.expand(*anchor, span)?,
            Event::Comment(text, _) if text.len() >= self.limits.comment_length => {
                return Err(error_at(
                    span,
                    YamlErrorKind::CommentTooLong { limit: self.limits.comment_length },
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn expand(&mut self, anchor: usize, span: &Span) -> Result<(), YamlError> {
        let nodes = self.anchors.get(anchor).copied().unwrap_or(0);
        if nodes == 0 {
            return Err(error_at(span, YamlErrorKind::AliasLoop));
        }
        self.alias_nodes = self.alias_nodes.saturating_add(nodes);
        if self.alias_nodes > self.limits.alias_nodes {
            return Err(error_at(span, YamlErrorKind::TooManyAliases { limit: self.limits.alias_nodes }));
        }
        self.add(nodes);
        Ok(())
    }

    fn finish(&mut self, anchor: usize, nodes: u64) {
        self.set_anchor_nodes(anchor, nodes);
        self.add(nodes);
    }

    fn add(&mut self, nodes: u64) {
        if let Some((_, count)) = self.open.last_mut() {
            *count = count.saturating_add(nodes);
        }
    }

    fn set_anchor_nodes(&mut self, anchor: usize, nodes: u64) {
        if anchor != 0 {
            if self.anchors.len() <= anchor {
                self.anchors.resize(anchor + 1, 0);
            }
            self.anchors[anchor] = nodes;
        }
    }
}

fn error_at(span: &Span, cause: YamlErrorKind) -> YamlError {
    YamlError { line: span.start.line(), column: span.start.col() + 1, cause }
}
