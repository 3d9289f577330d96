//! The body of a pull request: text and last line, within the forge's limit.

use super::memory::{ClosedReason, Memory, TextHash};
use super::table::code;
use super::text::TextError;
use crate::forge::{PullRequest, PullRequestEdit};

/// The maximum length of a body at forges without a known limit.
const MAX_BODY: usize = 60_000;

/// The note below a body that was cut.
const CUT: &str = "(The rest is left out.)";

/// The mark of a line that was cut.
const MORE: &str = "…";

/// Returns a body without the mark that labels, reviewers and assignees are still to be added.
///
/// There is none without a last line, or without room for it.
pub(super) fn completed(body: &str, limit: Option<usize>) -> Option<String> {
    let (text, memory) = Memory::split(body);
    joined(&text, &Memory { is_incomplete: false, ..memory? }, limit)
}

/// Returns the change of an open pull request without its labels, reviewers and assignees.
///
/// The last line says that they are still to be added, if there is room for that.
pub fn without_parts(edit: &PullRequestEdit, current: &PullRequest, limit: Option<usize>) -> PullRequestEdit {
    let body = edit.body.as_ref().unwrap_or(&current.body);
    let (text, memory) = Memory::split(body);
    let marked = memory.and_then(|memory| joined(&text, &Memory { is_incomplete: true, ..memory }, limit));
    let is_new = |body: &String| TextHash::of(body) != TextHash::of(&current.body);
    PullRequestEdit {
        body: Some(marked.unwrap_or_else(|| body.clone())).filter(is_new),
        added_labels: Vec::new(),
        added_reviewers: Vec::new(),
        added_assignees: Vec::new(),
        ..edit.clone()
    }
}

/// Returns the body of a pull request that is closed for a reason.
///
/// The sentence says why; `by` are the branches that supersede it, or the address of the pull request that does.
pub(super) fn closed_body(
    current: &PullRequest,
    memory: &Memory,
    reason: ClosedReason,
    by: &[&str],
    limit: Option<usize>,
) -> Result<String, TextError> {
    let (text, _) = Memory::split(&current.body);
    let sentence = match reason {
        ClosedReason::NothingLeft => {
            format!("Closed by Tagboat: nothing is left to change on {}.", code(current.base.as_str()))
        }
        ClosedReason::Superseded => {
            let names: Vec<String> = by.iter().map(|branch| code(branch)).collect();
            format!("Closed by Tagboat: superseded by {}.", names.join(", "))
        }
        ClosedReason::Duplicate => {
            format!("Closed by Tagboat: superseded by {}, which has the same branch.", by.join(", "))
        }
    };
    let is_ours = memory.body == Some(TextHash::of(&text));
    let with_sentence =
        if text.starts_with(&sentence) { text.clone() } else { format!("{sentence}\n\n{text}") };
    let memory = Memory { closed: Some(reason), is_incomplete: false, ..memory.clone() };
    if is_ours {
        return with_line(&with_sentence, memory, limit);
    }
    let body = joined(&with_sentence, &memory, limit).or_else(|| joined(&text, &memory, limit));
    // Without the last line, it would seem to be closed by a person.
    let no_room =
        || TextError::TooManyPolicies { policies: memory.policies().len(), limit: limit.unwrap_or_default() };
    body.ok_or_else(no_room)
}

/// Joins a text of ours with a last line that has its hash.
pub(super) fn with_line(text: &str, memory: Memory, limit: Option<usize>) -> Result<String, TextError> {
    // A hash has one length, so that of any text tells the room.
    let placeholder = Memory { body: Some(TextHash::of("")), ..memory };
    let text = cut(text, &placeholder, limit)?;
    let memory = Memory { body: Some(TextHash::of(&text)), ..placeholder };
    Ok(body_of(&text, &memory))
}

/// Joins a text of people with the last line, if there is room.
pub(super) fn joined(text: &str, memory: &Memory, limit: Option<usize>) -> Option<String> {
    let body = body_of(text.trim_end(), memory);
    limit.is_none_or(|limit| length(&body) <= limit).then_some(body)
}

fn body_of(text: &str, memory: &Memory) -> String {
    if text.is_empty() { memory.to_string() } else { format!("{text}\n\n{memory}") }
}

/// Cuts a text at a line break, with room for the last line.
///
/// A first line without room is cut itself, so that something of the text remains.
fn cut(text: &str, memory: &Memory, limit: Option<usize>) -> Result<String, TextError> {
    let limit = limit.unwrap_or(MAX_BODY);
    let text = text.trim_end();
    let line = length(&memory.to_string());
    let Some(room) = limit.checked_sub(line) else {
        return Err(TextError::TooManyPolicies { policies: memory.images.len(), limit });
    };
    if text.is_empty() || length(text) + 2 <= room {
        return Ok(text.to_owned());
    }
    let Some(room) = room.checked_sub(2 + length(CUT) + 2) else { return Ok(String::new()) };
    let (mut kept, mut used) = (String::new(), 0);
    for line in text.split_inclusive('\n') {
        used += length(line);
        if used > room {
            break;
        }
        kept.push_str(line);
    }
    if kept.trim().is_empty() {
        kept = beginning(text.trim_start(), room.saturating_sub(length(MORE)));
    }
    Ok(format!("{}\n\n{CUT}", kept.trim_end()).trim_start().to_owned())
}

/// Returns the beginning of a text's first line, with the mark of a cut.
fn beginning(text: &str, room: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut used = 0;
    let fits = |one: &char| {
        used += one.len_utf16();
        used <= room
    };
    let kept: String = line.chars().take_while(fits).collect();
    if kept.is_empty() { kept } else { kept + MORE }
}

/// Returns the length of a text in UTF-16 units, at least its number of characters.
fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::memory::ImageHash;
    use super::super::memory::tests::{image, owner};
    use super::super::text::Content;
    use super::super::text::tests::{pull_request, text};
    use super::*;
    use crate::forge::PullRequestEdit;

    #[test]
    fn a_long_body_is_cut_at_a_line_break() {
        let owners = BTreeSet::from([owner("fleet")]);
        let images: BTreeSet<ImageHash> = (0..20).map(|number| image("web", &number.to_string())).collect();
        let body = "line of the body 🚢\n".repeat(1_000);
        for limit in [450, 600, 4_000, 65_536] {
            let content = Content { owners: &owners, images: &images, limit: Some(limit) };
            let opened = text("t", &body).opened(content, false).unwrap().body;
            assert!(length(&opened) <= limit, "{limit}: {}", length(&opened));
            assert!(Memory::of_body(&opened).is_some(), "{limit}");
            let (kept, _) = Memory::split(&opened);
            let is_whole = kept == body.trim_end();
            assert_eq!(is_whole, limit == 65_536, "{limit}");
            assert!(is_whole || kept.ends_with(CUT) || kept.is_empty(), "{limit}: {kept}");
            let is_begin = |line: &str| {
                line.strip_suffix(MORE).is_some_and(|begin| "line of the body 🚢".starts_with(begin))
            };
            let is_known = |line: &str| ["line of the body 🚢", "", CUT].contains(&line);
            // Without room for a whole line, the first one is cut.
            let is_cut = limit == 450 && kept.lines().next().is_some_and(is_begin);
            assert!(kept.lines().skip(usize::from(is_cut)).all(is_known), "{limit}: {kept}");
            // The cut text is still ours.
            let edit = text("t", &body).refreshed(&pull_request("t", &opened), content).unwrap();
            assert_eq!(edit, PullRequestEdit::default(), "{limit}");
        }
        let content = Content { owners: &owners, images: &images, limit: Some(300) };
        let error = text("t", &body).opened(content, false).unwrap_err();
        assert!(
            error.to_string().starts_with("the pull request changes the images of 20 policies"),
            "{error}"
        );
    }

    /// A body of one very long line was cut to nothing.
    #[test]
    fn a_long_first_line_is_cut_at_a_character() {
        let (owners, images) = (BTreeSet::from([owner("fleet")]), BTreeSet::from([image("web", "1")]));
        let long = "🚢é".repeat(100_000);
        for (body, begin) in [
            (long.clone(), "🚢é🚢é"),
            (format!("{long}\nsecond"), "🚢é🚢é"),
            (format!("\n\n{long}"), "🚢é🚢é"),
            (format!("first\n{long}"), "first\n\n(The rest"),
        ] {
            for limit in [Some(450), Some(4_000), None] {
                let content = Content { owners: &owners, images: &images, limit };
                let opened = text("t", &body).opened(content, false).unwrap().body;
                let most = limit.unwrap_or(MAX_BODY);
                assert!(length(&opened) <= most && Memory::of_body(&opened).is_some(), "{limit:?}");
                let (kept, _) = Memory::split(&opened);
                assert!(kept.starts_with(begin) && kept.ends_with(CUT), "{limit:?}: {kept}");
                let is_filled = begin.starts_with("first") || length(&opened) + 3 > most;
                assert!(is_filled, "{limit:?}: {}", length(&opened));
                // The cut text is still ours.
                let edit = text("t", &body).refreshed(&pull_request("t", &opened), content).unwrap();
                assert_eq!(edit, PullRequestEdit::default(), "{limit:?}");
            }
        }
    }

    /// The line has grown, and the forge has a limit.
    #[test]
    fn text_of_people_is_never_cut() {
        let owners = BTreeSet::from([owner("fleet")]);
        let images: BTreeSet<ImageHash> = (0..20).map(|number| image("web", &number.to_string())).collect();
        let one = BTreeSet::from([image("web", "1")]);
        let limit = Some(450);
        let opened =
            text("t", "words").opened(Content { owners: &owners, images: &one, limit }, false).unwrap();
        let edited = pull_request("t", &opened.body.replace("words", &"read by ann\n".repeat(15)));
        let many = Content { owners: &owners, images: &images, limit };
        assert_eq!(text("t", "x").refreshed(&edited, many).unwrap().body, None);
        let memory = Memory::of_body(&edited.body).unwrap();
        let closed =
            closed_body(&edited, &memory, ClosedReason::NothingLeft, &[], Some(length(&edited.body) + 25));
        let closed = closed.unwrap();
        assert!(
            Memory::of_body(&closed).unwrap().closed.is_some() && closed.starts_with("read by ann"),
            "{closed}"
        );
    }

    #[test]
    fn a_body_says_why_tagboat_closed_it() {
        let (owners, images) = (BTreeSet::from([owner("fleet")]), BTreeSet::from([image("web", "1")]));
        let content = Content { owners: &owners, images: &images, limit: None };
        let opened = text("t", "body").opened(content, false).unwrap().body;
        let current = pull_request("t", &opened);
        let memory = Memory::of_body(&opened).unwrap();
        for (reason, by, sentence) in [
            (ClosedReason::NothingLeft, vec![], "Closed by Tagboat: nothing is left to change on `main`."),
            (
                ClosedReason::Superseded,
                vec!["tagboat/web-2", "tagboat/x"],
                "Closed by Tagboat: superseded by `tagboat/web-2`, `tagboat/x`.",
            ),
            // A bar is escaped in tables alone.
            (ClosedReason::Superseded, vec!["o|te"], "Closed by Tagboat: superseded by `o|te`."),
            (
                ClosedReason::Duplicate,
                vec!["https://git.example/pulls/3"],
                "Closed by Tagboat: superseded by https://git.example/pulls/3, which has the same branch.",
            ),
        ] {
            let body = closed_body(&current, &memory, reason, &by, None).unwrap();
            assert!(body.starts_with(&format!("{sentence}\n\nbody\n\n[//]: #")), "{body}");
            let closed = Memory::of_body(&body).unwrap();
            assert_eq!(closed.closed, Some(reason));
            // A second attempt writes the same.
            let again = closed_body(&pull_request("t", &body), &closed, reason, &by, None).unwrap();
            assert_eq!(again, body);
            // After it is reopened, the text is ours as before.
            let edit = text("t", "next").refreshed(&pull_request("t", &body), content).unwrap();
            let reopened = edit.body.unwrap();
            assert!(
                reopened.starts_with("next\n\n[//]") && Memory::of_body(&reopened).unwrap().closed.is_none()
            );
        }
    }
}
