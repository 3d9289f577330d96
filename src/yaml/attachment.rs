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
pub(crate) enum Place {
    /// On a line of its own.
    OwnLine,
    /// After an entry's indicators (`- # comment`), or the key of a flow mapping.
    Opening,
    /// After the node's anchor or tag: `key: &a # comment`.
    Property,
    /// After something that takes the comment itself: a block mapping's key, a collection, an alias.
    Elsewhere,
}

/// A comment that is pending until the next node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) comment: Comment,
    pub(crate) place: Place,
    /// The line above a comment on its own line.
    pub(crate) above: Above,
    /// True if a sequence entry's dash is between the last node and the comment.
    pub(crate) after_dash: bool,
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
pub(crate) struct Surroundings<'a> {
    pub(crate) source: &'a str,
    /// True if the scalar is not written at all.
    pub(crate) is_absent: bool,
    /// The comment after the scalar, on its last line; for a block scalar, on the line of its indicator.
    pub(crate) behind: Option<Comment>,
    /// The pending comments between the last node and the scalar.
    pub(crate) waiting: Vec<Waiting>,
    /// The column of the block collection that contains the last node; it may have ended since.
    pub(crate) last_column: usize,
    /// The column of the block collection that contains the scalar.
    pub(crate) own_column: usize,
}

/// The comment that belongs to a scalar, and the comments that do not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) deciding: Option<Comment>,
    pub(crate) strays: Vec<Comment>,
}

/// Selects the comment that belongs to a scalar.
///
/// A line comment hides the head comment. Two comments in one role form a text that is no marker, so neither of them
/// counts.
pub(crate) fn attach(around: Surroundings<'_>) -> Attachment {
    let mut attachment = Attachment::default();
    let (mut line_comments, mut head_comments) = (Vec::new(), Vec::new());
    let feet = count_feet(&around);
    let mut own_lines = 0;
    for waiting in around.waiting {
        match waiting.place {
            Place::Property => line_comments.push(waiting.comment),
            Place::Opening if around.is_absent => line_comments.push(waiting.comment),
            Place::Opening => head_comments.push(waiting.comment),
            Place::OwnLine => {
                own_lines += 1;
                if around.is_absent || own_lines <= feet {
                    attachment.strays.push(waiting.comment);
                } else {
                    head_comments.push(waiting.comment);
                }
            }
            Place::Elsewhere => attachment.strays.push(waiting.comment),
        }
    }
    line_comments.extend(around.behind);
    let deciding = if line_comments.is_empty() { &mut head_comments } else { &mut line_comments };
    if deciding.len() == 1 {
        attachment.deciding = deciding.pop();
    }
    attachment.strays.append(&mut line_comments);
    attachment.strays.append(&mut head_comments);
    attachment.strays.sort_by_key(|comment| comment.span.start);
    attachment
}

/// Counts the comments on own lines that are foot comments of the content above them.
///
/// The comments form groups. A line (a comment's, a dash's or the entry's own) that is less indented than the last
/// collection, and not aligned with a group's first comment, makes the group above it a foot comment. The first blank
/// line does so too, if the group begins right below content or is itself less indented than the last collection.
fn count_feet(around: &Surroundings<'_>) -> usize {
    let own: Vec<&Waiting> =
        around.waiting.iter().filter(|waiting| waiting.place == Place::OwnLine).collect();
    let Some(mut above) = own.first().map(|first| first.above) else { return 0 };
    let is_less = |first: &Waiting, column| !first.after_dash && column < around.last_column;
    let ends = |first: &Waiting, column| is_less(first, column) && column != first.comment.column;
    let mut feet = 0;
    for (number, waiting) in own.iter().enumerate() {
        let column = if waiting.after_dash { around.own_column } else { waiting.comment.column };
        if ends(own[feet], column) {
            feet = number;
        }
        let below = lines::next_line(around.source, waiting.comment.span.end);
        if above != Above::Blank && lines::is_blank(lines::line_at(around.source, below)) {
            let first = own[feet];
            if feet == 0 && above == Above::Content || is_less(first, first.comment.column) {
                feet = number + 1;
            }
            above = Above::Blank;
        }
    }
    if own.get(feet).is_some_and(|first| ends(first, around.own_column)) { own.len() } else { feet }
}
