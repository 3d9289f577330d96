//! Commits of edits, without a work tree.

use git2::{ObjectType, Oid};
use memchr::memmem;

use super::author::Author;
use super::commit_error::CommitError;
use super::commit_time::CommitTime;
use super::edited_tree::TreeWriter;
use super::name::CommitId;
use super::object::{self, MAX_COMMIT};
use super::pack::NewObjects;
use super::signature::SigningKey;
use crate::update::{Checkpoint, FileEdit};

/// A commit to be made on top of a tree.
#[derive(Debug)]
pub struct CommitDraft {
    /// The edits.
    pub edits: Vec<FileEdit>,
    /// The message, taken as it is; it need not be UTF-8.
    pub message: Vec<u8>,
    /// The author, who is also the committer.
    pub author: Author,
    /// The time.
    pub time: CommitTime,
    /// The signing key.
    pub signer: Option<SigningKey>,
}

/// Makes a commit on top of `parent`, unless the edits change nothing.
///
/// `checkpoint` is called between edits, and between objects that are packed.
///
/// # Errors
///
/// If an object is missing or cannot be written, or `checkpoint` returns an error.
pub(super) fn write_commit(
    objects: &mut NewObjects<'_>,
    parent: CommitId,
    draft: &CommitDraft,
    checkpoint: &mut Checkpoint<'_>,
) -> Result<Option<CommitId>, CommitError> {
    let base = object::find_commit(objects.repository(), parent)?.tree_id();
    let tree = TreeWriter::new(objects, checkpoint).apply(base, &draft.edits)?;
    if tree == base {
        return Ok(None);
    }
    write_commit_of(objects, tree, parent, draft, checkpoint).map(Some)
}

/// Makes a commit of a tree on top of `parent`, described by a draft.
///
/// # Errors
///
/// As [`write_commit`].
pub(super) fn write_commit_of(
    objects: &mut NewObjects<'_>,
    tree: Oid,
    parent: CommitId,
    draft: &CommitDraft,
    checkpoint: &mut Checkpoint<'_>,
) -> Result<CommitId, CommitError> {
    if draft.message.contains(&0) {
        return Err(CommitError::Message);
    }
    let headers = headers(tree, parent, draft);
    let mut content = encode(&headers, &draft.message);
    if let Some(signer) = &draft.signer {
        let signature = signer.sign(&content, draft.time)?;
        content = encode(&with_signature(&headers, &signature), &draft.message);
    }
    if content.len() > MAX_COMMIT {
        return Err(CommitError::TooLong { size: content.len(), limit: MAX_COMMIT });
    }
    Ok(objects.write(ObjectType::Commit, content, checkpoint)?.into())
}

/// Writes a commit again on top of another parent, signed anew.
///
/// # Errors
///
/// If the commit cannot be read, or the new one cannot be written.
pub(super) fn rewrite_commit(
    objects: &mut NewObjects<'_>,
    commit: CommitId,
    parent: CommitId,
    signing: (Option<&SigningKey>, CommitTime),
    checkpoint: &mut Checkpoint<'_>,
) -> Result<CommitId, CommitError> {
    let raw = object::read_commit(objects.database(), commit)?.data().to_vec();
    let (headers, message) = split(&raw);
    let mut kept: Vec<String> = Vec::new();
    let mut is_signature = false;
    for line in String::from_utf8_lossy(headers).lines() {
        is_signature = line.starts_with("gpgsig ") || is_signature && line.starts_with(' ');
        match line.starts_with("parent ") {
            true => kept.push(format!("parent {parent}")),
            false if is_signature => {}
            false => kept.push(line.to_owned()),
        }
    }
    let headers = kept.join("\n");
    let mut content = encode(&headers, message);
    if let (Some(signer), time) = signing {
        let signature = signer.sign(&content, time)?;
        content = encode(&with_signature(&headers, &signature), message);
    }
    Ok(objects.write(ObjectType::Commit, content, checkpoint)?.into())
}

/// Assembles a signed commit, as git stores it, from the signed bytes and the signature.
///
/// Some signers end the signature with a line break that becomes a line of its own; the id tells whether it is there.
pub(super) fn assemble(payload: &str, signature: &str, id: CommitId) -> Option<Vec<u8>> {
    let (headers, message) = payload.split_once("\n\n")?;
    let folded = signature.replace('\n', "\n ");
    let trimmed = signature.trim_end_matches('\n').replace('\n', "\n ");
    [trimmed, folded].into_iter().find_map(|signature| {
        let content = encode(&format!("{headers}\ngpgsig {signature}"), message.as_bytes());
        let hash = Oid::hash_object(ObjectType::Commit, &content).ok()?;
        (hash == id.oid()).then_some(content)
    })
}

/// Divides a stored commit into its headers and its message.
pub(super) fn split(commit: &[u8]) -> (&[u8], &[u8]) {
    match memmem::find(commit, b"\n\n") {
        Some(end) => (&commit[..end], &commit[end + 2..]),
        None => (commit, b""),
    }
}

/// Returns the parents that a stored commit states.
/// Libgit2 leaves out parents that the mirror does not have.
pub(super) fn stated_parents(commit: &[u8]) -> Vec<CommitId> {
    let lines = commit.split(|&byte| byte == b'\n').take_while(|line| !line.is_empty());
    let ids = lines.filter_map(|line| std::str::from_utf8(line.strip_prefix(b"parent ")?).ok()?.parse().ok());
    ids.collect()
}

/// Encodes a commit as git stores it.
fn encode(headers: &str, message: &[u8]) -> Vec<u8> {
    [headers.as_bytes(), b"\n\n", message].concat()
}

/// Returns the headers above the message.
fn headers(tree: Oid, parent: CommitId, draft: &CommitDraft) -> String {
    let (name, email) = (draft.author.name(), draft.author.email());
    let CommitTime { seconds, offset } = draft.time;
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes) = (offset.abs() / 60, offset.abs() % 60);
    let person = format!("{name} <{email}> {seconds} {sign}{hours:02}{minutes:02}");
    format!("tree {tree}\nparent {parent}\nauthor {person}\ncommitter {person}")
}

/// Adds a signature to a commit's headers, as the last one.
/// Each line of the signature but the first begins with a space.
fn with_signature(headers: &str, signature: &str) -> String {
    let lines = signature.trim_end_matches('\n').replace('\n', "\n ");
    format!("{headers}\ngpgsig {lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_written_as_git_has_it() {
        let id: CommitId = "00112233445566778899aabbccddeeff00112233".parse().unwrap();
        for (name, offset, expected) in [
            ("Fl<u>x\n", 0, "Flux <a@b> 5 +0000"),
            ("x", -210, "x <a@b> 5 -0330"),
            ("", 120, " <a@b> 5 +0200"),
        ] {
            let draft = CommitDraft {
                edits: Vec::new(),
                message: b" as it is\xe9\n\n".to_vec(),
                author: Author::new(name, "a@b"),
                time: CommitTime { seconds: 5, offset },
                signer: None,
            };
            let content = encode(&headers(id.oid(), id, &draft), &draft.message);
            let headers = format!("tree {id}\nparent {id}\nauthor {expected}\ncommitter {expected}\n\n");
            assert_eq!(content, [headers.as_bytes(), b" as it is\xe9\n\n"].concat());
        }
    }

    #[test]
    fn a_signed_commit_is_assembled_in_the_form_that_has_its_id() {
        let payload = "tree 0\nparent 1\nauthor a\ncommitter c\n\nmessage\n\nmore\n";
        let signature = "-----BEGIN-----\n\nabc\n-----END-----\n";
        let stored = |end: &str| {
            format!(
                "tree 0\nparent 1\nauthor a\ncommitter c\ngpgsig -----BEGIN-----\n \n abc\n -----END-----{end}\n\n\
                 message\n\nmore\n"
            )
        };
        for end in ["", "\n "] {
            let content = stored(end).into_bytes();
            let id = Oid::hash_object(ObjectType::Commit, &content).unwrap().into();
            assert_eq!(assemble(payload, signature, id), Some(content));
        }
        let other = Oid::hash_object(ObjectType::Commit, b"other").unwrap().into();
        assert_eq!(assemble(payload, signature, other), None);
        assert_eq!(assemble("no message", signature, other), None);
    }

    #[test]
    fn a_signature_is_the_last_header_folded() {
        for (signature, expected) in [
            ("one\n", "a b\ngpgsig one"),
            ("one\n\ntwo\n", "a b\ngpgsig one\n \n two"),
            ("one\ntwo", "a b\ngpgsig one\n two"),
        ] {
            assert_eq!(with_signature("a b", signature), expected);
        }
    }
}
