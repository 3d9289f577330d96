//! Determines the position of a comment from the lines around it.

use super::attachment::{Above, Place, Waiting};
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
pub(crate) struct Context<'a> {
    pub(crate) source: &'a str,
    /// The last node of the document, if any.
    pub(crate) last: Option<LastNode>,
    /// True if the innermost open collection is a flow collection.
    pub(crate) is_flow: bool,
    /// The pending comment before it.
    pub(crate) previous: Option<&'a Waiting>,
}

/// Determines the position of `comment`.
pub(crate) fn locate(context: &Context<'_>, comment: Comment) -> Waiting {
    let before = lines::text_before(context.source, comment.span.start);
    let after_dash = context.follows_dash(&comment);
    let (place, above) = if lines::is_blank(before) {
        (Place::OwnLine, context.what_is_above(&comment, after_dash))
    } else {
        (context.place_behind(&comment, before), Above::Blank)
    };
    Waiting { comment, place, above, after_dash }
}

/// Returns true if only blanks and a comma separate a value from a comment.
pub(crate) fn stands_behind_value(source: &str, end: usize, comment: &Comment) -> bool {
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

impl Context<'_> {
    fn follows_dash(&self, comment: &Comment) -> bool {
        let (from, known) = match (self.previous, self.last) {
            (Some(previous), _) => (previous.comment.span.end, previous.after_dash),
            (None, Some(last)) => (last.end, false),
            (None, None) => (0, false),
        };
        known || dashes_between(self.source, from, comment.span.start) > 0
    }

    fn place_behind(&self, comment: &Comment, before: &str) -> Place {
        let line_start = comment.span.start - before.len();
        let Some(last) = self.last.filter(|last| last.end > line_start) else { return opening_place(before) };
        let between = trim(self.source.get(last.end..comment.span.start).unwrap_or_default());
        match last.kind {
            NodeKind::Key => match between.strip_prefix(':').map(trim) {
                Some("") if self.is_flow => Place::Opening,
                Some(rest) if rest.starts_with(['&', '!']) => Place::Property,
                _ => Place::Elsewhere,
            },
            _ if ends_with_property(between) => Place::Property,
            _ => Place::Elsewhere,
        }
    }

    fn what_is_above(&self, comment: &Comment, after_dash: bool) -> Above {
        let own_start = lines::line_start(self.source, comment.span.start);
        let Some(start) = lines::start_of_line_above(self.source, own_start) else { return Above::Blank };
        let line = lines::line_at(self.source, start);
        // Block text and quoted text may look like a comment.
        let is_comment = trim(line).starts_with('#') && self.last.is_none_or(|last| last.end <= start);
        let is_opening = |previous: &Waiting| {
            previous.place == Place::Opening && previous.comment.line + 1 == comment.line
        };
        if lines::is_blank(line) || is_comment || self.previous.is_some_and(is_opening) {
            return Above::Blank;
        }
        let is_in_value = |last: LastNode| last.kind == NodeKind::Key && comment.column >= last.column;
        if self.last.is_some_and(is_in_value) && !after_dash { Above::Key } else { Above::Content }
    }
}

/// The position of a comment on a line that has only indicators before it.
fn opening_place(before: &str) -> Place {
    if ends_with_property(before) {
        Place::Property
    } else if before.split([' ', '\t']).all(|word| word == "-" || word.is_empty()) {
        Place::Opening
    } else {
        Place::Elsewhere
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
