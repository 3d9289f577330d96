//! Attaches comments to scalars as go-yaml does.
//!
//! Flux's markers count where Go's YAML library attaches a comment to a scalar *value*: as its line comment or as its
//! head comment, the line comment first (`docs/flux-behaviour.md`, Markers). That attachment is a by-product of its
//! scanner rather than a rule of YAML, so the rules here were derived from its results for a few thousand small
//! documents, which are in `testdata/comments/attachment.json`.

use super::Comment;
use super::lines;

/// The position of a comment relative to the scalar that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// On a line of its own.
    OwnLine,
    /// After an entry's indicators (`- # comment`), or the key of a flow mapping.
    Opening,
    /// After the node's anchor or tag: `key: &a # comment`.
    Property,
    /// After something that takes the comment itself: a block mapping's key, a collection, an alias.
    Other,
}

/// A comment that is pending until the next node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingComment {
    pub(crate) comment: Comment,
    pub(crate) position: Position,
    /// The line above a comment on its own line.
    pub(crate) above: Above,
    /// True if a sequence entry's dash is between the last node and the comment.
    pub(crate) follows_dash: bool,
}

/// The content of the line above a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Above {
    /// Nothing, or another comment.
    Blank,
    /// A key without a value on its line: the comment belongs to its value.
    Key,
    /// Other content.
    Content,
}

/// The context of a scalar whose comment is to be determined.
pub(crate) struct ScalarContext<'a> {
    pub(crate) source: &'a str,
    /// True if the scalar is not written at all.
    pub(crate) is_absent: bool,
    /// The comment after the scalar, on its last line.
    ///
    /// For a block scalar, it is on the line of the indicator.
    pub(crate) following: Option<Comment>,
    /// The pending comments between the last node and the scalar.
    pub(crate) pending: Vec<PendingComment>,
    /// The column of the block collection that contains the last node.
    ///
    /// The collection may have ended since.
    pub(crate) last_column: usize,
    /// The column of the block collection that contains the scalar.
    pub(crate) column: usize,
}

/// The comment that belongs to a scalar, and the comments that do not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) attached: Option<Comment>,
    pub(crate) unattached: Vec<Comment>,
}

/// Selects the comment that belongs to a scalar.
///
/// A line comment hides the head comment. Two comments in one role form a text that is no marker, so neither of them
/// counts.
pub(crate) fn attach(context: ScalarContext<'_>) -> Attachment {
    let mut attachment = Attachment::default();
    let (mut line_comments, mut head_comments) = (Vec::new(), Vec::new());
    let foot_comments = count_foot_comments(&context);
    let mut own_lines = 0;
    for pending in context.pending {
        match pending.position {
            Position::Property => line_comments.push(pending.comment),
            Position::Opening if context.is_absent => line_comments.push(pending.comment),
            Position::Opening => head_comments.push(pending.comment),
            Position::OwnLine => {
                own_lines += 1;
                if context.is_absent || own_lines <= foot_comments {
                    attachment.unattached.push(pending.comment);
                } else {
                    head_comments.push(pending.comment);
                }
            }
            Position::Other => attachment.unattached.push(pending.comment),
        }
    }
    line_comments.extend(context.following);
    let attached = if line_comments.is_empty() { &mut head_comments } else { &mut line_comments };
    if attached.len() == 1 {
        attachment.attached = attached.pop();
    }
    attachment.unattached.append(&mut line_comments);
    attachment.unattached.append(&mut head_comments);
    attachment.unattached.sort_by_key(|comment| comment.span.start);
    attachment
}

/// Counts the comments on own lines that are foot comments of the content above them.
///
/// The comments form groups. A line (a comment's, a dash's or the entry's own) that is less indented than the last
/// collection, and not aligned with a group's first comment, makes the group above it a foot comment. The first blank
/// line does so too, if the group begins right below content or is itself less indented than the last collection.
fn count_foot_comments(context: &ScalarContext<'_>) -> usize {
    let own: Vec<&PendingComment> =
        context.pending.iter().filter(|pending| pending.position == Position::OwnLine).collect();
    let Some(mut above) = own.first().map(|first| first.above) else { return 0 };
    let is_less = |first: &PendingComment, column| !first.follows_dash && column < context.last_column;
    let ends = |first: &PendingComment, column| is_less(first, column) && column != first.comment.column;
    let mut foot_comments = 0;
    for (number, pending) in own.iter().enumerate() {
        let column = if pending.follows_dash { context.column } else { pending.comment.column };
        if ends(own[foot_comments], column) {
            foot_comments = number;
        }
        let below = lines::next_line(context.source, pending.comment.span.end);
        if above != Above::Blank && lines::is_blank(lines::line_at(context.source, below)) {
            let first = own[foot_comments];
            if foot_comments == 0 && above == Above::Content || is_less(first, first.comment.column) {
                foot_comments = number + 1;
            }
            above = Above::Blank;
        }
    }
    if own.get(foot_comments).is_some_and(|first| ends(first, context.column)) {
        own.len()
    } else {
        foot_comments
    }
}
