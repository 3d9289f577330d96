//! Which files of a tree an update looks into.
//!
//! Flux's rules (spec §3.2): every file below `update.path` whose name ends in `.yaml` or `.yml` or is
//! `Kustomization`. A link is read through and its target edited once, under the target's own path; a link
//! that leaves the tree, dangles or turns in a circle is listed and left alone.

use super::tree::{Entry, EntryKind, FileTree, TreeError, TreePath};

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
    /// The directory that results name files from.
    base: TreePath,
}

/// A file to look into.
#[derive(Debug)]
pub struct ScopedFile {
    /// The file itself, never a link.
    pub entry: Entry,
    /// The link that led to it.
    link: Option<TreePath>,
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
    /// A directory that cannot be listed.
    #[error("the directory cannot be listed")]
    Closed,
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

impl ScopeError {
    /// The condition reason that stands for the error (spec §2.8).
    pub fn reason(&self) -> &'static str {
        "UpdateFailed"
    }

    /// Whether trying again can help: the next commit may bring the missing path.
    pub fn is_retryable(&self) -> bool {
        true
    }
}

/// Lists the files at or below `path` (`None`: the whole tree).
///
/// # Errors
///
/// When `path` does not exist or leads out of the tree, or when the tree cannot be listed.
pub fn scope(tree: &dyn FileTree, path: Option<&str>) -> Result<Scope, ScopeError> {
    let text = path.unwrap_or_default();
    let start = TreePath::root()
        .resolve(text.as_bytes())
        .ok_or_else(|| ScopeError::Escapes { path: text.to_owned() })?;
    let (base, entries) = match follow(tree, start)? {
        Ok(Found::File(entry)) => (entry.path.parent(), vec![entry]),
        Ok(Found::Directory(directory, entries)) => (directory, entries),
        Err(SkipCause::Dangles) => return Err(ScopeError::NotFound { path: text.to_owned() }),
        Err(cause) => return Err(ScopeError::Link { path: text.to_owned(), cause }),
    };
    let mut scope = Scope { files: Vec::with_capacity(entries.len()), skipped: Vec::new(), base };
    let mut has_links = false;
    for entry in entries {
        if entry.kind == EntryKind::ClosedDirectory {
            scope.skipped.push(Skipped { file: scope.name(&entry.path), cause: SkipCause::Closed });
            continue;
        }
        if !is_yaml_name(entry.path.file_name()) {
            continue;
        }
        if entry.kind == EntryKind::File {
            scope.files.push(ScopedFile { entry, link: None });
            continue;
        }
        has_links = true;
        let link = entry.path.clone();
        let cause = match follow(tree, entry.path)? {
            Ok(Found::File(entry)) => {
                scope.files.push(ScopedFile { entry, link: Some(link) });
                continue;
            }
            Ok(Found::Directory(..)) => SkipCause::ToDirectory,
            Err(cause) => cause,
        };
        scope.skipped.push(Skipped { file: scope.name(&link), cause });
    }
    if has_links {
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

enum Found {
    File(Entry),
    Directory(TreePath, Vec<Entry>),
}

/// Follows all links on the way to `path` and at its end.
fn follow(tree: &dyn FileTree, mut path: TreePath) -> Result<Result<Found, SkipCause>, TreeError> {
    for _ in 0..=LINKS_IN_A_ROW {
        if path.parts().any(|part| part == b".git") {
            return Ok(Err(SkipCause::IntoGit));
        }
        let link = match tree.entries(&path) {
            Err(TreeError::NotFound { .. }) => return Ok(Err(SkipCause::Dangles)),
            Err(TreeError::ThroughLink { at }) => Entry { path: at, kind: EntryKind::Link, content: None },
            Err(error) => return Err(error),
            Ok(mut entries) => match entries.pop() {
                Some(entry) if entry.path == path && entry.kind == EntryKind::File => {
                    return Ok(Ok(Found::File(entry)));
                }
                Some(entry) if entry.path == path => entry,
                last => {
                    entries.extend(last);
                    return Ok(Ok(Found::Directory(path, entries)));
                }
            },
        };
        let mut target = Vec::new();
        tree.read(&link, LINK_TARGET, &mut target)?;
        if target.starts_with(b"/") {
            return Ok(Err(SkipCause::Leaves));
        }
        let Some(mut next) = link.path.parent().resolve(&target) else {
            return Ok(Err(SkipCause::Leaves));
        };
        if let Some(rest) = path.relative_to(&link.path) {
            let Some(whole) = next.resolve(rest.as_bytes()) else { return Ok(Err(SkipCause::Leaves)) };
            next = whole;
        }
        path = next;
    }
    Ok(Err(SkipCause::Loops))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A tree in memory: files have the content `file`, links their target.
    struct Tree(BTreeMap<TreePath, Option<&'static str>>);

    fn path(text: &str) -> TreePath {
        TreePath::from_bytes(text)
    }

    fn tree(entries: &[(&str, Option<&'static str>)]) -> Tree {
        Tree(entries.iter().map(|(name, target)| (path(name), *target)).collect())
    }

    impl FileTree for Tree {
        fn entries(&self, under: &TreePath) -> Result<Vec<Entry>, TreeError> {
            let is_link = |path: &TreePath| self.0.get(path).is_some_and(Option::is_some);
            let mut at = under.parent();
            while !at.is_root() {
                if is_link(&at) {
                    return Err(TreeError::ThroughLink { at });
                }
                at = at.parent();
            }
            let found = self.0.iter().filter(|(path, _)| *path == under || path.relative_to(under).is_some());
            let entries: Vec<Entry> = found
                .map(|(path, target)| {
                    let kind = if target.is_some() { EntryKind::Link } else { EntryKind::File };
                    Entry { path: path.clone(), kind, content: None }
                })
                .collect();
            if entries.is_empty() { Err(TreeError::NotFound { path: under.clone() }) } else { Ok(entries) }
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
