//! Determines the position of a comment from the lines around it.

use super::attachment::{Above, PendingComment, Position};
use super::{Comment, lines};

/// The type of the last node, for the comments after and below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// A scalar value.
    Value,
    /// A mapping's key that is a scalar.
    Key,
    /// An alias, or the start or end of a flow collection.
    Other,
}

/// The last node before a comment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastNode {
    pub(crate) kind: NodeKind,
    /// The offset of its end.
    pub(crate) end: usize,
    /// The column of its first character.
    pub(crate) column: usize,
    /// The column of the block collection that contains it.
    pub(crate) block_column: usize,
}

/// The context of a comment that does not follow a scalar value on its line.
pub(crate) struct CommentContext<'a> {
    pub(crate) source: &'a str,
    /// The last node of the document, if any.
    pub(crate) last: Option<LastNode>,
    /// True if the innermost open collection is a flow collection.
    pub(crate) is_flow: bool,
    /// The pending comment before it.
    pub(crate) previous: Option<&'a PendingComment>,
}

/// Determines the position of `comment`.
pub(crate) fn locate(context: &CommentContext<'_>, comment: Comment) -> PendingComment {
    let before = lines::text_before(context.source, comment.span.start);
    let follows_dash = context.is_after_dash(&comment);
    let (position, above) = if lines::is_blank(before) {
        (Position::OwnLine, context.line_above(&comment, follows_dash))
    } else {
        (context.position_after(&comment, before), Above::Blank)
    };
    PendingComment { comment, position, above, follows_dash }
}

/// Returns true if only blanks and a comma separate a value from a comment.
pub(crate) fn follows_value(source: &str, end: usize, comment: &Comment) -> bool {
    let Some(between) = source.get(end..comment.span.start) else { return false };
    let between = trim(between);
    // The position of an absent value is before its colon.
    let between = trim(between.strip_prefix(':').unwrap_or(between));
    between.is_empty() || between == ","
}

/// Counts the sequence entries that the lines between two offsets open.
pub(crate) fn dashes_between(source: &str, from: usize, to: usize) -> usize {
    source.get(from..to).unwrap_or_default().split(['\n', '\r']).map(leading_dashes).sum()
}

impl CommentContext<'_> {
    fn is_after_dash(&self, comment: &Comment) -> bool {
        let (from, known) = match (self.previous, self.last) {
            (Some(previous), _) => (previous.comment.span.end, previous.follows_dash),
            (None, Some(last)) => (last.end, false),
            (None, None) => (0, false),
        };
        known || dashes_between(self.source, from, comment.span.start) > 0
    }

    fn position_after(&self, comment: &Comment, before: &str) -> Position {
        let line_start = comment.span.start - before.len();
        let Some(last) = self.last.filter(|last| last.end > line_start) else {
            return opening_position(before);
        };
        let between = trim(self.source.get(last.end..comment.span.start).unwrap_or_default());
        match last.kind {
            NodeKind::Key => match between.strip_prefix(':').map(trim) {
                Some("") if self.is_flow => Position::Opening,
                Some(rest) if rest.starts_with(['&', '!']) => Position::Property,
                _ => Position::Other,
            },
            _ if ends_with_property(between) => Position::Property,
            _ => Position::Other,
        }
    }

    fn line_above(&self, comment: &Comment, follows_dash: bool) -> Above {
        let own_start = lines::line_start(self.source, comment.span.start);
        let Some(start) = lines::start_of_line_above(self.source, own_start) else { return Above::Blank };
        let line = lines::line_at(self.source, start);
        // Block text and quoted text may look like a comment.
        let is_comment = trim(line).starts_with('#') && self.last.is_none_or(|last| last.end <= start);
        let is_opening = |previous: &PendingComment| {
            previous.position == Position::Opening && previous.comment.line + 1 == comment.line
        };
        if lines::is_blank(line) || is_comment || self.previous.is_some_and(is_opening) {
            return Above::Blank;
        }
        let is_in_value = |last: LastNode| last.kind == NodeKind::Key && comment.column >= last.column;
        if self.last.is_some_and(is_in_value) && !follows_dash { Above::Key } else { Above::Content }
    }
}

/// The position of a comment on a line that has only indicators before it.
fn opening_position(before: &str) -> Position {
    if ends_with_property(before) {
        Position::Property
    } else if before.split([' ', '\t']).all(|word| word == "-" || word.is_empty()) {
        Position::Opening
    } else {
        Position::Other
    }
}

/// Counts the sequence entries that a line opens at its beginning.
fn leading_dashes(line: &str) -> usize {
    line.split([' ', '\t']).filter(|word| !word.is_empty()).take_while(|word| *word == "-").count()
}

/// Returns true if the last word is an anchor or a tag.
fn ends_with_property(text: &str) -> bool {
    trim(text).rsplit([' ', '\t']).next().is_some_and(|word| word.starts_with(['&', '!']))
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}
