//! Reads git objects after a check of their sizes.
//! A large object never gets into memory.

use git2::{Commit, ErrorClass, ErrorCode, ObjectType, Odb, OdbObject, Oid, Repository};

use super::name::CommitId;

/// The largest commit or tag in bytes: its message, signatures and parents together.
pub(super) const MAX_COMMIT: usize = 1024 * 1024;

/// The largest tree object in bytes: the entries of one directory.
const MAX_TREE: usize = 32 * 1024 * 1024;

/// The maximum number of tags in front of one commit.
const MAX_TAGS: usize = 100;

/// The error of an object that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// It is missing or broken.
    #[error(transparent)]
    Git(#[from] git2::Error),
    /// It is too large.
    #[error(transparent)]
    TooLarge(#[from] ObjectTooLarge),
}

/// The error of an object that is too large to be read.
/// A fetch cannot bring a smaller one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {id} has {size} bytes, more than the limit of {limit}; {}", advice(*kind))]
pub struct ObjectTooLarge {
    /// The kind of object.
    pub kind: ObjectType,
    /// Its id.
    pub id: CommitId,
    /// Its size in bytes.
    pub size: usize,
    /// The limit in bytes.
    pub limit: usize,
}

fn advice(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::Tree => "move files of this directory to several others",
        ObjectType::Tag => "replace it with a tag that has a shorter message",
        _ => "replace it with a commit that has a shorter message",
    }
}

/// Returns the kind of an object that may be read.
///
/// # Errors
///
/// If there is no such object, or it is larger than objects of its kind may be. Blobs have no limit here.
fn readable_kind(objects: &Odb<'_>, id: Oid) -> Result<ObjectType, ObjectError> {
    let (size, kind) = objects.read_header(id)?;
    let limit = match kind {
        ObjectType::Commit | ObjectType::Tag => MAX_COMMIT,
        ObjectType::Tree => MAX_TREE,
        _ => return Ok(kind),
    };
    if size > limit {
        return Err(ObjectTooLarge { kind, id: id.into(), size, limit }.into());
    }
    Ok(kind)
}

/// Checks that an object is of a kind and may be read.
fn require(objects: &Odb<'_>, id: Oid, expected: ObjectType) -> Result<(), ObjectError> {
    match readable_kind(objects, id)? {
        kind if kind == expected => Ok(()),
        kind => Err(wrong_kind(id, kind, expected).into()),
    }
}

/// Returns the error of an object of another kind than the wanted one.
/// The reference to the object was written like this, and no fetch changes that.
fn wrong_kind(id: Oid, kind: ObjectType, expected: ObjectType) -> git2::Error {
    let message = format!("object {id} is a {kind}, not a {expected}");
    git2::Error::new(ErrorCode::GenericError, ErrorClass::Tree, message)
}

/// Reads a tree object.
///
/// # Errors
///
/// If there is no such tree, or it is too large.
pub(super) fn read_tree<'o>(objects: &'o Odb<'_>, id: Oid) -> Result<OdbObject<'o>, ObjectError> {
    require(objects, id, ObjectType::Tree)?;
    Ok(objects.read(id)?)
}

/// Reads a commit as git stores it.
///
/// # Errors
///
/// If there is no such commit, or it is too large.
pub(super) fn read_commit<'o>(objects: &'o Odb<'_>, id: CommitId) -> Result<OdbObject<'o>, ObjectError> {
    require(objects, id.oid(), ObjectType::Commit)?;
    Ok(objects.read(id.oid())?)
}

/// Finds a commit.
///
/// # Errors
///
/// If there is no such commit, or it is too large.
pub(super) fn find_commit(repository: &Repository, id: CommitId) -> Result<Commit<'_>, ObjectError> {
    require(&repository.odb()?, id.oid(), ObjectType::Commit)?;
    Ok(repository.find_commit(id.oid())?)
}

/// Returns true if a commit and its tree exist, too large or not.
pub(super) fn has_commit(repository: &Repository, id: CommitId) -> bool {
    match find_commit(repository, id) {
        Ok(commit) => repository.odb().is_ok_and(|objects| objects.read_header(commit.tree_id()).is_ok()),
        Err(error) => matches!(error, ObjectError::TooLarge(_)),
    }
}

/// Returns the commit behind an object that may be a tag.
///
/// # Errors
///
/// If it leads to no commit, or to objects that are missing or too large.
pub(super) fn peel(repository: &Repository, object: CommitId) -> Result<CommitId, ObjectError> {
    let objects = repository.odb()?;
    let mut id = object.oid();
    for _ in 0..MAX_TAGS {
        match readable_kind(&objects, id)? {
            ObjectType::Commit => return Ok(id.into()),
            ObjectType::Tag => id = repository.find_tag(id)?.target_id(),
            kind => return Err(wrong_kind(id, kind, ObjectType::Commit).into()),
        }
    }
    let message = format!("more than {MAX_TAGS} tags precede the commit of {object}");
    Err(git2::Error::new(ErrorCode::GenericError, ErrorClass::Tree, message).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::tree_entries::encode_entry;

    /// Writes an object of at least that many bytes.
    fn large(objects: &Odb<'_>, kind: ObjectType, head: &str, size: usize) -> CommitId {
        let content = [head.as_bytes(), &vec![b'x'; size]].concat();
        objects.write(kind, &content).unwrap().into()
    }

    #[track_caller]
    fn sentence<T>(result: Result<T, ObjectError>) -> String {
        match result {
            Err(ObjectError::TooLarge(error)) => error.to_string(),
            Err(ObjectError::Git(error)) => panic!("{error}"),
            Ok(_) => panic!("it was read"),
        }
    }

    #[test]
    fn commits_and_tags_are_read_up_to_their_limit() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        let objects = repository.odb().unwrap();
        let tree = objects.write(ObjectType::Tree, b"").unwrap();
        let person = "A <a@b> 1 +0000";
        let head = format!("tree {tree}\nauthor {person}\ncommitter {person}\n\n");
        let small = large(&objects, ObjectType::Commit, &head, MAX_COMMIT - head.len());
        let commit = large(&objects, ObjectType::Commit, &head, MAX_COMMIT - head.len() + 1);
        let tag_of = |object: CommitId, size| {
            let head = format!("object {object}\ntype commit\ntag v1\ntagger {person}\n\n");
            large(&objects, ObjectType::Tag, &head, size)
        };
        let tag = tag_of(small, 10);
        assert_eq!(find_commit(&repository, small).unwrap().tree_id(), tree);
        assert_eq!(peel(&repository, tag).unwrap(), small);
        assert!(has_commit(&repository, small) && has_commit(&repository, commit));
        let expected = format!(
            "commit {commit} has 1048577 bytes, more than the limit of 1048576; replace it with a commit that has a \
             shorter message"
        );
        assert_eq!(sentence(find_commit(&repository, commit)), expected);
        assert_eq!(sentence(read_commit(&objects, commit)), expected);
        assert_eq!(sentence(peel(&repository, commit)), expected);
        assert_eq!(sentence(peel(&repository, tag_of(commit, 1))), expected);
        let tag = tag_of(small, MAX_COMMIT);
        assert!(sentence(peel(&repository, tag)).starts_with(&format!("tag {tag} has ")));
        // An object of another kind is no damage that a fetch could repair.
        for error in
            [peel(&repository, tree.into()).unwrap_err(), read_tree(&objects, small.oid()).err().unwrap()]
        {
            assert!(matches!(error, ObjectError::Git(error) if !crate::git::tree::is_damage(&error)));
        }
    }

    #[test]
    fn a_large_directory_is_refused_by_its_header() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        let objects = repository.odb().unwrap();
        let mut content = Vec::new();
        let name = [b'n'; 60_000];
        while content.len() <= MAX_TREE {
            encode_entry(b"100644", &name, &[1; 20], &mut content);
        }
        let tree = objects.write(ObjectType::Tree, &content).unwrap();
        let sentence = sentence(read_tree(&objects, tree));
        let end = " bytes, more than the limit of 33554432; move files of this directory to several others";
        assert!(sentence.starts_with(&format!("tree {tree} has ")) && sentence.ends_with(end), "{sentence}");
    }
}
