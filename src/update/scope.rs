//! Which files of a tree an update looks into.
//!
//! Flux's rules (spec §3.2): every file below `update.path` whose name ends in `.yaml` or `.yml` or is
//! `Kustomization`. A link is read through and its target edited once, under the target's own path; a link
//! that leaves the tree, dangles or turns in a circle is listed and left alone.

use tagboat_api::Reason;

use super::barren::Directories;
use super::index::MarkerIndex;
use super::tree::{Entry, EntryKind, FileTree, TreeError, TreePath};
use crate::failing::Failing;

/// How many links may follow one another, as on Linux.
const LINKS_IN_A_ROW: usize = 40;

/// A link's target is a path, and a path has at most this many bytes.
const LINK_TARGET: usize = 4096;

/// The files to look into.
#[derive(Debug, Default)]
pub struct Scope {
    /// Each file once, in rising order of paths.
    pub files: Vec<ScopedFile>,
    /// The links and directories that were left alone, in rising order.
    pub skipped: Vec<Skipped>,
    /// The links that have the name of a file to look into, whatever became of them.
    pub(super) links: Vec<TreePath>,
    /// The directories that were met.
    pub(super) directories: Directories,
    /// The directory that results name files from.
    base: TreePath,
}

/// A file to look into.
#[derive(Debug)]
pub struct ScopedFile {
    /// The file itself, never a link.
    pub entry: Entry,
    /// The link that led to it, where the listing did not.
    pub(super) link: Option<TreePath>,
}

/// A link or directory that was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its path, relative to `update.path`.
    pub file: String,
    /// Why.
    pub cause: SkipCause,
}

/// Why a link or directory was left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SkipCause {
    /// Its target is outside the tree.
    #[error("the link leads out of the directory")]
    Leaves,
    /// Its target does not exist.
    #[error("the link's target does not exist")]
    Dangles,
    /// Too many links in a row.
    #[error("the link leads back to itself")]
    Loops,
    /// It, or something on the way, cannot be read.
    #[error("it cannot be read")]
    Closed,
    /// `update.path` is a file whose name is not that of a YAML file.
    #[error("its name is not that of a YAML file: .yaml, .yml or Kustomization")]
    NotYaml,
    /// It leads into `.git`.
    #[error("it leads into .git")]
    IntoGit,
    /// Its target is a directory, which is looked into at its own place if at all.
    #[error("the link's target is a directory")]
    ToDirectory,
}

/// Why a scope could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    /// `update.path` climbs above the root.
    #[error("the path {path:?} leads out of the directory")]
    Escapes {
        /// The path as given.
        path: String,
    },
    /// `update.path` is, or leads through, a link that cannot be followed.
    #[error("the path {path:?} cannot be followed")]
    Link {
        /// The path as given.
        path: String,
        /// Why.
        #[source]
        cause: SkipCause,
    },
    /// There is nothing at `update.path`.
    #[error("there is no file or directory {path:?}")]
    NotFound {
        /// The path as given.
        path: String,
    },
    /// The tree could not be listed.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// Reasons are Flux's (spec §2.8). The next commit may bring a missing path or mend a link, but no commit makes a
/// path lead back into the repository.
impl Failing for ScopeError {
    fn reason(&self) -> Reason {
        Reason::UpdateFailed
    }

    fn is_retryable(&self) -> bool {
        !matches!(self, Self::Escapes { .. })
    }
}

/// Lists the files at or below `path` (`None`: the whole tree).
///
/// # Errors
///
/// When `path` does not exist or leads out of the tree, or when the tree cannot be listed.
pub fn scope(tree: &dyn FileTree, path: Option<&str>) -> Result<Scope, ScopeError> {
    named_scope(tree, path, &MarkerIndex::default(), is_yaml_name)
}

/// Lists the files of the whole tree that may be manifests: also those in JSON, which kubectl takes too, and in which
/// nothing is ever updated, for they have no comments.
///
/// # Errors
///
/// When the tree cannot be listed.
pub fn manifest_scope(tree: &dyn FileTree) -> Result<Scope, ScopeError> {
    named_scope(tree, None, &MarkerIndex::default(), |name| is_yaml_name(name) || name.ends_with(b".json"))
}

/// As [`scope`], without the files in directories that the index knows to be barren.
pub(super) fn fertile_scope(
    tree: &dyn FileTree,
    path: Option<&str>,
    index: &MarkerIndex,
) -> Result<Scope, ScopeError> {
    named_scope(tree, path, index, is_yaml_name)
}

/// The same of the files whose names are wanted.
fn named_scope(
    tree: &dyn FileTree,
    path: Option<&str>,
    index: &MarkerIndex,
    is_wanted: fn(&[u8]) -> bool,
) -> Result<Scope, ScopeError> {
    let text = path.unwrap_or_default();
    let start = match follow(tree, &TreePath::root(), text.as_bytes()) {
        Ok(start) => start,
        Err(SkipCause::Leaves) => return Err(ScopeError::Escapes { path: text.to_owned() }),
        Err(SkipCause::Dangles) => return Err(ScopeError::NotFound { path: text.to_owned() }),
        Err(cause) => return Err(ScopeError::Link { path: text.to_owned(), cause }),
    };
    let mut directories = Directories::default();
    let entries = tree.entries_except(&start, &mut |path, id| directories.meet(path, id, index))?;
    let is_file = entries.first().is_some_and(|entry| entry.path == start);
    let base = if is_file { start.parent() } else { start };
    let files = Vec::with_capacity(entries.len());
    let mut scope = Scope { files, skipped: Vec::new(), links: Vec::new(), directories, base };
    for entry in entries {
        if entry.kind == EntryKind::ClosedDirectory {
            scope.skipped.push(Skipped { file: scope.name(&entry.path), cause: SkipCause::Closed });
            continue;
        }
        if !is_wanted(entry.path.file_name()) {
            if is_file {
                scope.skipped.push(Skipped { file: scope.name(&entry.path), cause: SkipCause::NotYaml });
            }
            continue;
        }
        if entry.kind == EntryKind::File {
            scope.files.push(ScopedFile { entry, link: None });
            continue;
        }
        let link = entry.path.clone();
        scope.links.push(entry.path);
        let target = follow(tree, &link.parent(), link.file_name());
        let cause =
            match target.and_then(|path| Ok((tree.kind(&path).map_err(|error| cause_of(&error))?, path))) {
                // It stands in a directory that is known by the names of its own; what a link alone leads to is not.
                Ok((EntryKind::File, path))
                    if is_wanted(path.file_name()) && scope.directories.have_left_out(&path) =>
                {
                    continue;
                }
                Ok((EntryKind::File, path)) => {
                    let entry = Entry { path, kind: EntryKind::File, content: None };
                    scope.files.push(ScopedFile { entry, link: Some(link) });
                    continue;
                }
                Ok(_) => SkipCause::ToDirectory,
                Err(cause) => cause,
            };
        scope.skipped.push(Skipped { file: scope.name(&link), cause });
    }
    if !scope.links.is_empty() {
        // A file that is in scope itself comes before the links that lead to it, and they before one another.
        scope
            .files
            .sort_by(|left, right| (&left.entry.path, &left.link).cmp(&(&right.entry.path, &right.link)));
        scope.files.dedup_by(|right, left| right.entry.path == left.entry.path);
    }
    Ok(scope)
}

impl Scope {
    /// A file's name in results: relative to `update.path`, or the base name where that is a file. A file
    /// outside `update.path` goes by the link that led to it.
    pub fn key(&self, file: &ScopedFile) -> String {
        let path = &file.entry.path;
        match &file.link {
            Some(link) if path.relative_to(&self.base).is_none() => self.name(link),
            _ => self.name(path),
        }
    }

    fn name(&self, path: &TreePath) -> String {
        path.relative_to(&self.base).unwrap_or_else(|| path.clone()).to_string()
    }
}

/// Whether a file of this name is looked into.
fn is_yaml_name(name: &[u8]) -> bool {
    let has_extension = |extension: &[u8]| name.ends_with(extension);
    has_extension(b".yaml") || has_extension(b".yml") || name == b"Kustomization"
}

/// Resolves `path`, as seen from the directory `from`, to a path without links, `.` and `..`.
///
/// Part by part, as the kernel does it: `..` behind a link leads to the parent of the link's target.
fn follow(tree: &dyn FileTree, from: &TreePath, path: &[u8]) -> Result<TreePath, SkipCause> {
    let split = |path: &[u8]| -> Vec<Vec<u8>> {
        path.split(|&byte| byte == b'/').rev().map(<[u8]>::to_vec).collect()
    };
    let mut links = 0;
    let mut at = from.clone();
    let mut rest = split(path);
    while let Some(part) = rest.pop() {
        match part.as_slice() {
            b"" | b"." => continue,
            b".." if at.is_root() => return Err(SkipCause::Leaves),
            b".." => {
                at = at.parent();
                continue;
            }
            b".git" => return Err(SkipCause::IntoGit),
            _ => {}
        }
        let next = at.join(&part);
        match tree.kind(&next).map_err(|error| cause_of(&error))? {
            EntryKind::Link => {
                links += 1;
                if links > LINKS_IN_A_ROW {
                    return Err(SkipCause::Loops);
                }
                let mut target = Vec::new();
                let entry = Entry { path: next, kind: EntryKind::Link, content: None };
                tree.read(&entry, LINK_TARGET, &mut target).map_err(|error| cause_of(&error))?;
                if target.starts_with(b"/") {
                    return Err(SkipCause::Leaves);
                }
                rest.extend(split(&target));
            }
            EntryKind::File if rest.iter().any(|part| !part.is_empty() && part != b".") => {
                return Err(SkipCause::Dangles);
            }
            _ => at = next,
        }
    }
    Ok(at)
}

fn cause_of(error: &TreeError) -> SkipCause {
    match error {
        TreeError::NotFound { .. } => SkipCause::Dangles,
        _ => SkipCause::Closed,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::update::ContentId;

    /// A tree in memory: files have the content `file`, links their target.
    struct Tree(BTreeMap<TreePath, Option<&'static str>>);

    fn path(text: &str) -> TreePath {
        TreePath::from_bytes(text)
    }

    fn tree(entries: &[(&str, Option<&'static str>)]) -> Tree {
        Tree(entries.iter().map(|(name, target)| (path(name), *target)).collect())
    }

    impl FileTree for Tree {
        // Nothing here has an id to be left out by.
        fn entries_except(
            &self,
            under: &TreePath,
            _: &mut dyn FnMut(&TreePath, ContentId) -> bool,
        ) -> Result<Vec<Entry>, TreeError> {
            let found = self.0.iter().filter(|(path, _)| *path == under || path.relative_to(under).is_some());
            let entries: Vec<Entry> = found
                .map(|(path, target)| {
                    let kind = if target.is_some() { EntryKind::Link } else { EntryKind::File };
                    Entry { path: path.clone(), kind, content: None }
                })
                .collect();
            if entries.is_empty() { Err(TreeError::NotFound { path: under.clone() }) } else { Ok(entries) }
        }

        fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError> {
            match self.0.get(path) {
                Some(Some(_)) => Ok(EntryKind::Link),
                Some(None) => Ok(EntryKind::File),
                None if self.0.keys().any(|key| key.relative_to(path).is_some()) => Ok(EntryKind::Directory),
                None => Err(TreeError::NotFound { path: path.clone() }),
            }
        }

        fn read(&self, entry: &Entry, _: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
            *content = self.0[&entry.path].unwrap_or("file").as_bytes().to_vec();
            Ok(())
        }

        fn contains(&self, _: &Entry, _: &[u8]) -> Result<bool, TreeError> {
            Ok(false)
        }
    }

    fn keys(tree: &Tree, under: Option<&str>) -> (Vec<String>, Vec<String>) {
        let scope = scope(tree, under).unwrap();
        let skipped = scope.skipped.iter().map(|skipped| format!("{}: {:?}", skipped.file, skipped.cause));
        (scope.files.iter().map(|file| scope.key(file)).collect(), skipped.collect())
    }

    #[test]
    fn files_are_named_from_the_path_on() {
        let tree = tree(&[
            ("a/b.yaml", None),
            ("a/c.yml", None),
            ("a/d.YAML", None),
            ("a/e/Kustomization", None),
            ("a/kustomization", None),
            ("z..y.yaml", None),
        ]);
        assert_eq!(keys(&tree, None).0, ["a/b.yaml", "a/c.yml", "a/e/Kustomization", "z..y.yaml"]);
        for under in ["a", "./a/", "/a", "a/e/.."] {
            assert_eq!(keys(&tree, Some(under)).0, ["b.yaml", "c.yml", "e/Kustomization"], "{under}");
        }
        assert_eq!(keys(&tree, Some("a/b.yaml")).0, ["b.yaml"]);
        assert!(matches!(scope(&tree, Some("nope")), Err(ScopeError::NotFound { .. })));
        assert!(matches!(scope(&tree, Some("a/../..")), Err(ScopeError::Escapes { .. })));
    }

    #[test]
    fn manifests_may_be_json_and_what_is_updated_may_not() {
        let tree =
            tree(&[("a.json", None), ("b/c.yaml", None), ("d.jsonl", None), ("e.json", Some("a.json"))]);
        let files = manifest_scope(&tree).unwrap().files;
        let names: Vec<String> = files.iter().map(|file| file.entry.path.to_string()).collect();
        assert_eq!(names, ["a.json", "b/c.yaml"]);
        assert_eq!(keys(&tree, None).0, ["b/c.yaml"]);
    }

    #[test]
    fn only_a_path_that_leads_out_is_not_tried_again() {
        let tree = tree(&[("a.yaml", None), ("loop", Some("loop"))]);
        for (under, is_retryable) in [("..", false), ("nope", true), ("loop", true)] {
            let error = scope(&tree, Some(under)).unwrap_err();
            assert_eq!(
                (error.reason(), error.is_retryable()),
                (Reason::UpdateFailed, is_retryable),
                "{under}"
            );
        }
    }

    #[test]
    fn a_link_is_followed_within_the_tree_and_its_target_taken_once() {
        let tree = tree(&[
            ("a/one.yaml", Some("../b/real.yaml")),
            ("a/two.yaml", Some("one.yaml")),
            ("a/three.yaml", Some("../ways/real.yaml")),
            ("b/real.yaml", None),
            ("ways", Some("b")),
        ]);
        assert_eq!(keys(&tree, None), (vec!["b/real.yaml".to_owned()], vec![]));
        assert_eq!(keys(&tree, Some("a")), (vec!["one.yaml".to_owned()], vec![]));
        assert_eq!(keys(&tree, Some("ways")).0, ["real.yaml"]);
    }

    #[test]
    fn a_step_up_behind_a_link_starts_from_its_target() {
        let tree = tree(&[
            ("w", Some("deep/inner")),
            ("deep/inner/a.yaml", None),
            ("deep/x.yaml", None),
            ("x.yaml", None),
            ("apps/l.yaml", Some("../w/../x.yaml")),
        ]);
        assert_eq!(keys(&tree, Some("w/..")).0, ["inner/a.yaml", "x.yaml"]);
        let scope = scope(&tree, Some("apps")).unwrap();
        assert_eq!(scope.files[0].entry.path, path("deep/x.yaml"));
    }

    #[test]
    fn a_file_of_another_name_is_not_looked_into() {
        assert_eq!(keys(&tree(&[("notes.txt", None)]), Some("notes.txt")).1, ["notes.txt: NotYaml"]);
    }

    #[test]
    fn links_that_lead_nowhere_are_listed() {
        let tree = tree(&[
            ("a.yaml", Some("../outside.yaml")),
            ("b.yaml", Some("/etc/b.yaml")),
            ("c.yaml", Some("missing.yaml")),
            ("d.yaml", Some("e.yaml")),
            ("e.yaml", Some("d.yaml")),
            ("f.yaml", Some("dir")),
            ("g.yaml", Some(".git/config")),
            ("dir/x.txt", None),
        ]);
        let (files, skipped) = keys(&tree, None);
        assert_eq!(files, Vec::<String>::new());
        let expected = [
            "a.yaml: Leaves",
            "b.yaml: Leaves",
            "c.yaml: Dangles",
            "d.yaml: Loops",
            "e.yaml: Loops",
            "f.yaml: ToDirectory",
            "g.yaml: IntoGit",
        ];
        assert_eq!(skipped, expected);
    }
}
