//! Which comment belongs to a scalar.
//!
//! Flux's markers count where Go's YAML library attaches a comment to a scalar *value*: as its line comment or
//! as its head comment, the line comment first (spec §3.1). That attachment is a scanner's by-product rather
//! than a rule of YAML, so the rules here were found by asking that library about a few thousand small
//! documents; `testdata/comments/attachment.json` holds them with its answers.

use super::Comment;
use super::lines;

/// Where a comment stands in relation to the scalar that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a line of its own.
    OwnLine,
    /// Behind the indicators that open the entry, `- # comment`, or behind the key of a flow mapping.
    Opening,
    /// Behind the node's anchor or tag: `key: &a # comment`.
    Property,
    /// Behind something that takes the comment for itself: a block mapping's key, a collection, an alias.
    Elsewhere,
}

/// A comment that waits for the next node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) comment: Comment,
    pub(crate) place: Place,
    /// What stands on the line above a comment on its own line.
    pub(crate) above: Above,
    /// Whether the dash of a new sequence entry stands between the last node and the comment.
    pub(crate) after_dash: bool,
}

/// What stands on the line above a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Above {
    /// Nothing, or another comment.
    Blank,
    /// A key with nothing behind it on its line: what follows belongs to its value.
    Key,
    /// Other content.
    Content,
}

/// The surroundings of a scalar that is about to take its comment.
pub(crate) struct Surroundings<'a> {
    pub(crate) source: &'a str,
    /// The place of a scalar that is not written at all.
    pub(crate) absent_at: Option<usize>,
    /// The comment behind the scalar, on its last line (of a block: on the line of its indicator).
    pub(crate) behind: Option<Comment>,
    /// The comments since the last node.
    pub(crate) waiting: Vec<Waiting>,
    /// Whether block collections ended since the last node.
    pub(crate) has_ended: bool,
    /// The column of the collection that holds the scalar.
    pub(crate) own_column: usize,
}

/// The comment that decides about a scalar, and the comments that do not belong to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) deciding: Option<Comment>,
    pub(crate) strays: Vec<Comment>,
    /// The comments that go on waiting: they stand below an absent scalar.
    pub(crate) kept: Vec<Waiting>,
}

/// Decides which of the comments around a scalar is its own.
///
/// A line comment hides the head comment, and two comments in one role make a text that is no marker any
/// more, so then neither counts.
pub(crate) fn attach(around: Surroundings<'_>) -> Attachment {
    let mut attachment = Attachment::default();
    let (mut line_comments, mut head_comments) = (Vec::new(), Vec::new());
    let feet = count_feet(&around);
    let mut own_lines = 0;
    for waiting in around.waiting {
        match waiting.place {
            Place::Property => line_comments.push(waiting.comment),
            Place::Opening if around.absent_at.is_some() => line_comments.push(waiting.comment),
            Place::Opening => head_comments.push(waiting.comment),
            Place::OwnLine => {
                own_lines += 1;
                let column = waiting.comment.column;
                let ended = !waiting.after_dash && around.has_ended && column != around.own_column;
                if around.absent_at.is_some_and(|place| waiting.comment.span.start >= place) {
                    attachment.kept.push(waiting);
                } else if around.absent_at.is_some() || ended || own_lines <= feet {
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

/// How many of the comments on own lines are the foot of what stands above them: a group of comments right
/// below content, with a blank line behind it.
fn count_feet(around: &Surroundings<'_>) -> usize {
    let mut own = around.waiting.iter().filter(|waiting| waiting.place == Place::OwnLine);
    let Some(first) = own.next().filter(|first| first.above == Above::Content) else { return 0 };
    let mut last_of_group = &first.comment;
    let mut group = 1;
    for waiting in own {
        if waiting.comment.line != last_of_group.line + 1 {
            break;
        }
        last_of_group = &waiting.comment;
        group += 1;
    }
    let below = lines::next_line(around.source, last_of_group.span.end);
    if lines::is_blank(lines::line_at(around.source, below)) { group } else { 0 }
}
