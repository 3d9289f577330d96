//! Writes new tree objects for edits.
//!
//! The edits are grouped by directory, so each directory on the way to an edit is read once and written once, for any
//! number of entries and edits. Only the ids of changed entries are replaced in its bytes: all other entries, unusual
//! modes and names included, stay as they are.

use std::collections::{BTreeMap, HashMap};

use git2::{ObjectType, Oid};

use super::commit_error::CommitError;
use super::object;
use super::pack::NewObjects;
use super::tree::oid;
use super::tree_entries::{TreeEntries, TreeEntryKind, encode_entry};
use crate::update::{Checkpoint, FileEdit, Progress};

/// The maximum size in bytes of all edited files in one commit.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// Writes the objects of an edited tree.
pub(super) struct TreeWriter<'w, 'o, 'c> {
    objects: &'w mut NewObjects<'o>,
    checkpoint: &'w mut Checkpoint<'c>,
    /// New contents by the old ones, which may have many names.
    contents: HashMap<Oid, (&'w FileEdit, Oid)>,
    /// The number of bytes of the files that were written.
    bytes: usize,
    /// The number of tree objects that were read.
    trees_read: usize,
}

/// The edits in one entry of a directory.
struct Group<'g, 'e> {
    edits: &'g [&'e FileEdit],
    is_done: bool,
}

impl<'w, 'o, 'c> TreeWriter<'w, 'o, 'c> {
    /// Creates a writer that calls `checkpoint` between edits.
    pub(super) fn new(objects: &'w mut NewObjects<'o>, checkpoint: &'w mut Checkpoint<'c>) -> Self {
        Self { objects, checkpoint, contents: HashMap::new(), bytes: 0, trees_read: 0 }
    }

    /// Applies edits to the tree `root`, and returns the new tree.
    ///
    /// # Errors
    ///
    /// If an edit does not fit, or an object cannot be read or written.
    pub(super) fn apply(&mut self, root: Oid, edits: &'w [FileEdit]) -> Result<Oid, CommitError> {
        let mut edits: Vec<&FileEdit> = edits.iter().collect();
        edits.sort_by(|left, right| left.entry.path.cmp(&right.entry.path));
        if edits.is_empty() { Ok(root) } else { self.apply_to_directory(root, 0, &edits) }
    }

    /// Applies edits to a directory and, recursively, to those below it.
    ///
    /// `depth` is the length in bytes of the directory's path, a slash included. Paths are not deep, so
    /// neither is the recursion.
    fn apply_to_directory(
        &mut self,
        directory: Oid,
        depth: usize,
        edits: &[&'w FileEdit],
    ) -> Result<Oid, CommitError> {
        self.trees_read += 1;
        let tree = object::read_tree(self.objects.database(), directory)?;
        let mut groups: BTreeMap<&[u8], Group<'_, '_>> = BTreeMap::new();
        for edits in edits.chunk_by(|left, right| name_at(left, depth) == name_at(right, depth)) {
            // Only a malformed tree has a file and a directory of the same name.
            if groups.insert(name_at(edits[0], depth), Group { edits, is_done: false }).is_some() {
                return Err(does_not_fit(edits[0]));
            }
        }
        let mut replaced = Vec::new();
        for entry in TreeEntries::new(tree.data()) {
            let entry = entry?;
            let Some(Group { edits, is_done }) = groups.get_mut(entry.name) else { continue };
            let below = depth + entry.name.len() + 1;
            let is_directory = edits[0].entry.path.as_bytes().len() >= below;
            let (mode, id) = match (entry.kind, is_directory, *edits) {
                (TreeEntryKind::Directory, true, edits) => {
                    (entry.mode, self.apply_to_directory(oid(&entry.id), below, edits)?)
                }
                (TreeEntryKind::File, false, [edit]) => {
                    (b"100644".as_slice(), self.edit(oid(&entry.id), edit)?)
                }
                (TreeEntryKind::Executable, false, [edit]) => {
                    (b"100755".as_slice(), self.edit(oid(&entry.id), edit)?)
                }
                _ => continue,
            };
            if std::mem::replace(is_done, true) {
                return Err(does_not_fit(edits[0]));
            }
            replaced.push((entry, mode, id));
        }
        if let Some(group) = groups.values().find(|group| !group.is_done) {
            return Err(does_not_fit(group.edits[0]));
        }
        let (mut bytes, mut copied) = (Vec::with_capacity(tree.len()), 0);
        for (entry, mode, id) in replaced {
            bytes.extend_from_slice(&tree.data()[copied..entry.start]);
            encode_entry(mode, entry.name, id.as_bytes(), &mut bytes);
            copied = entry.end;
        }
        bytes.extend_from_slice(&tree.data()[copied..]);
        if bytes == tree.data() {
            return Ok(directory);
        }
        drop(tree);
        self.objects.write(ObjectType::Tree, bytes, self.checkpoint)
    }

    /// Applies an edit to a file, and returns its new content.
    fn edit(&mut self, file: Oid, edit: &'w FileEdit) -> Result<Oid, CommitError> {
        (self.checkpoint)(Progress::default())?;
        if let Some((_, after)) = self.contents.get(&file).filter(|(other, _)| other.has_same_effect(edit)) {
            return Ok(*after);
        }
        if self.objects.database().read_header(file)? != (edit.content_length(), ObjectType::Blob) {
            return Err(does_not_fit(edit));
        }
        let before = self.objects.database().read(file)?;
        let after = edit.apply(before.data()).ok_or_else(|| does_not_fit(edit))?;
        drop(before);
        self.bytes += after.len();
        if self.bytes > MAX_BYTES {
            return Err(CommitError::TooMuch { limit: MAX_BYTES });
        }
        let after = self.objects.write(ObjectType::Blob, after, self.checkpoint)?;
        self.contents.insert(file, (edit, after));
        Ok(after)
    }
}

/// Returns the part of an edit's path that begins at an offset.
fn name_at(edit: &FileEdit, offset: usize) -> &[u8] {
    let rest = &edit.entry.path.as_bytes()[offset..];
    &rest[..memchr::memchr(b'/', rest).unwrap_or(rest.len())]
}

fn does_not_fit(edit: &FileEdit) -> CommitError {
    CommitError::DoesNotFit { file: edit.entry.path.to_string() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use git2::Repository;
    use tagboat_api::ObjectName;
    use tempfile::TempDir;

    use super::*;
    use crate::reference::ImageReference;
    use crate::update::{Interrupt, MarkerIndex, PolicyState, Setters, UpdateRequest, plan};

    const OLD: &str = "tag: v1 # {\"$imagepolicy\": \"n:p:tag\"}\n";
    const NEW: &str = "tag: v2 # {\"$imagepolicy\": \"n:p:tag\"}\n";

    fn repository() -> (TempDir, Repository) {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        (directory, repository)
    }

    /// Writes a tree with these entries as they are.
    fn tree(repository: &Repository, entries: &[(&str, &str, Oid)]) -> Oid {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            encode_entry(mode.as_bytes(), name.as_bytes(), id.as_bytes(), &mut bytes);
        }
        repository.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap()
    }

    /// Returns the edits that a plan makes in a tree.
    fn edits(repository: &Repository, root: Oid) -> Vec<FileEdit> {
        let author = git2::Signature::now("a", "b").unwrap();
        let root = repository.find_tree(root).unwrap();
        let commit = repository.commit(None, &author, &author, "", &root, &[]).unwrap();
        let tree = crate::git::GitTree::of(repository, commit.into()).unwrap();
        let name = ObjectName { namespace: "n".to_owned(), name: "p".to_owned() };
        let image = PolicyState::Image(ImageReference::parse("app:v2").unwrap());
        let setters = Setters::new(BTreeMap::from([(name, image)]));
        let request = UpdateRequest { setters, ..UpdateRequest::default() };
        plan(&tree, &request, &mut MarkerIndex::default(), &mut |_| Ok(())).unwrap().edits
    }

    #[test]
    fn each_directory_is_read_once_for_all_its_edits() {
        let (_place, repository) = repository();
        let file = repository.blob(OLD.as_bytes()).unwrap();
        for count in [10, 300] {
            let names: Vec<String> = (0..count).map(|number| format!("f{number:04}.yaml")).collect();
            let files: Vec<_> = names.iter().map(|name| ("100644", name.as_str(), file)).collect();
            let flat = tree(&repository, &files);
            let inner = tree(&repository, &[("40000", "flat", flat), ("100644", "g.yaml", file)]);
            let idle = tree(&repository, &[("100644", "readme.md", file)]);
            let entries = [("40000", "apps", inner), ("40000", "docs", idle), ("40000", "more", flat)];
            let root = tree(&repository, &entries);
            let edits = edits(&repository, root);
            assert_eq!(edits.len(), 2 * count + 1);
            let database = repository.odb().unwrap();
            let mut objects = NewObjects::new(&repository, &database).unwrap();
            let mut proceed = |_| Ok(());
            let mut writer = TreeWriter::new(&mut objects, &mut proceed);
            let edited = writer.apply(root, &edits).unwrap();
            // The root, apps, apps/flat and more.
            assert_eq!(writer.trees_read, 4);
            // One content for all names, the same tree twice, and two trees above.
            assert_eq!(objects.count, 5);
            let edited = repository.find_tree(edited).unwrap();
            for path in ["apps/flat/f0000.yaml", "apps/g.yaml", "more/f0009.yaml"] {
                let entry = edited.get_path(std::path::Path::new(path)).unwrap();
                assert_eq!(repository.find_blob(entry.id()).unwrap().content(), NEW.as_bytes());
            }
            assert_eq!(edited.get_name("docs").unwrap().id(), idle);
        }
    }

    #[test]
    fn other_entries_stay_unchanged_in_mode_name_and_order() {
        let (_place, repository) = repository();
        let [old, new] = [OLD, NEW].map(|text| repository.blob(text.as_bytes()).unwrap());
        let commit = Oid::from_bytes(&[7; 20]).unwrap();
        let directory = |file| tree(&repository, &[("100644", "z.md", old), ("100755", "a.yaml", file)]);
        let root = |app, edited, executable| {
            let entries = [
                ("160000", "module", commit),
                ("0100644", "zeros.txt", old),
                ("100666", "writable.txt", old),
                ("100666", "app.yaml", app),
                ("120000", "link.txt", old),
                ("040000", "dir", directory(edited)),
                ("100644", "../x", old),
                ("100644", "x/y.yaml", old),
                ("644", "odd.yaml", old),
                ("100777", "run.yaml", executable),
            ];
            let entries = entries.map(|(mode, name, id)| match (mode, name, id == new) {
                // An edited file has one of the two modes that git gives files.
                ("100666", "app.yaml", true) => ("100644", name, id),
                ("100777", _, true) => ("100755", name, id),
                _ => (mode, name, id),
            });
            tree(&repository, &entries)
        };
        let before = root(old, old, old);
        let edits = edits(&repository, before);
        assert_eq!(edits.len(), 3);
        let database = repository.odb().unwrap();
        let mut objects = NewObjects::new(&repository, &database).unwrap();
        let mut proceed = |_| Ok(());
        let edited = TreeWriter::new(&mut objects, &mut proceed).apply(before, &edits).unwrap();
        assert_eq!(edited, root(new, new, new));
        assert_eq!(TreeWriter::new(&mut objects, &mut proceed).apply(before, &[]).unwrap(), before);
    }

    #[test]
    fn edits_that_do_not_fit_the_tree_are_refused() {
        let (_place, repository) = repository();
        let [old, new] = [OLD, NEW].map(|text| repository.blob(text.as_bytes()).unwrap());
        let below = tree(&repository, &[("100644", "b.yaml", old)]);
        let edits =
            edits(&repository, tree(&repository, &[("40000", "a", below), ("100644", "c.yaml", old)]));
        let database = repository.odb().unwrap();
        let mut objects = NewObjects::new(&repository, &database).unwrap();
        let mut proceed = |_| Ok(());
        for other in [
            tree(&repository, &[("40000", "a", below)]),
            tree(&repository, &[("100644", "a", old), ("100644", "c.yaml", old)]),
            tree(&repository, &[("40000", "a", below), ("100644", "c.yaml", new)]),
            tree(&repository, &[("40000", "a", below), ("40000", "c.yaml", below)]),
            tree(&repository, &[("40000", "a", below), ("100644", "c.yaml", old), ("100644", "c.yaml", old)]),
            tree(&repository, &[]),
        ] {
            let error = TreeWriter::new(&mut objects, &mut proceed).apply(other, &edits).unwrap_err();
            assert!(matches!(error, CommitError::DoesNotFit { .. }), "{error}");
        }
    }

    #[test]
    fn an_interrupt_ends_the_edits_between_two_files() {
        let (_place, repository) = repository();
        let names = ["a.yaml", "b.yaml", "c.yaml"];
        let files = names.map(|name| {
            let text = format!("# {name}\n{OLD}");
            ("100644", name, repository.blob(text.as_bytes()).unwrap())
        });
        let root = tree(&repository, &files);
        let edits = edits(&repository, root);
        let database = repository.odb().unwrap();
        let mut objects = NewObjects::new(&repository, &database).unwrap();
        let mut calls = 0;
        let mut checkpoint = |_| {
            calls += 1;
            if calls > 2 { Err(Interrupt::Cancelled) } else { Ok(()) }
        };
        let mut writer = TreeWriter::new(&mut objects, &mut checkpoint);
        let error = writer.apply(root, &edits).unwrap_err();
        assert!(matches!(error, CommitError::Interrupted(Interrupt::Cancelled)), "{error}");
        assert_eq!(objects.count, 2);
    }
}
