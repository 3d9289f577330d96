//! Selects the files of a tree that an update reads.
//!
//! The rules are Flux's (`docs/flux-behaviour.md`, Files of an update): every file below `update.path` whose name ends
//! in `.yaml` or `.yml` or is `Kustomization`. A link is resolved, and its target edited once, under the target's own
//! path. A link that leaves the tree, dangles or loops is reported and skipped.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::error::ScopeError;
use super::links::{SkipReason, Skipped, resolve, skip_reason};
use super::tree::{ContentId, Entry, EntryKind, FileTree, TreePath, TreeVisitor, WalkDecision};

/// Receives the files in scope one by one.
///
/// A method that returns [`ControlFlow::Break`] ends the walk.
pub(super) trait ScopeVisitor {
    /// Visits a file.
    ///
    /// Files that are in scope by their own names come in ascending order of paths, then files that only a link leads
    /// to, in the same order.
    fn file(&mut self, file: ScopedFile<'_>) -> ControlFlow<()>;

    /// Visits a link or directory that is skipped, in ascending order of paths.
    fn skipped(&mut self, _skipped: Skipped) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Visits a link in the innermost directory; it is followed after the walk.
    fn link(&mut self, _path: &TreePath) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Decides whether to continue, between two links that are followed.
    fn follow(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Like [`TreeVisitor::enter`].
    fn enter(&mut self, _content: Option<ContentId>) -> ControlFlow<(), WalkDecision> {
        ControlFlow::Continue(WalkDecision::Enter)
    }

    /// Like [`TreeVisitor::leave`].
    fn leave(&mut self) {}
}

/// A file in scope.
#[derive(Debug)]
pub(super) struct ScopedFile<'s> {
    /// The file itself, never a symbolic link.
    pub(super) entry: Entry,
    /// The link that leads to it, if the file was not listed.
    link: Option<&'s TreePath>,
    /// The directory to which file names in results are relative.
    base: &'s TreePath,
}

impl ScopedFile<'_> {
    /// Returns true if only a link leads to the file.
    pub(super) fn is_linked(&self) -> bool {
        self.link.is_some()
    }

    /// The file's name in results.
    ///
    /// It is relative to `update.path`, or the base name if that is a file. A file outside `update.path` has the name
    /// of the link that leads to it.
    pub(super) fn key(&self) -> String {
        let path = &self.entry.path;
        match self.link {
            Some(link) if path.relative_to(self.base).is_none() => name(link, self.base),
            _ => name(path, self.base),
        }
    }
}

/// Visits the files at or below `path` (`None`: the whole tree) that an update reads.
///
/// # Errors
///
/// Returns an error if `path` does not exist or leads out of the tree, or if the tree cannot be listed.
pub(super) fn walk_scope(
    tree: &dyn FileTree,
    path: Option<&str>,
    visitor: &mut dyn ScopeVisitor,
) -> Result<(), ScopeError> {
    walk(tree, path, is_yaml_name, visitor)
}

/// Visits the files at or below `path` that `is_wanted` accepts by name.
pub(super) fn walk(
    tree: &dyn FileTree,
    path: Option<&str>,
    is_wanted: fn(&[u8]) -> bool,
    visitor: &mut dyn ScopeVisitor,
) -> Result<(), ScopeError> {
    let text = path.unwrap_or_default();
    let start = match resolve(tree, &TreePath::root(), text.as_bytes()) {
        Ok(start) => start,
        Err(SkipReason::OutsideTree) => return Err(ScopeError::Escapes { path: text.to_owned() }),
        Err(SkipReason::Dangling) => return Err(ScopeError::NotFound { path: text.to_owned() }),
        Err(cause) => return Err(ScopeError::Link { path: text.to_owned(), cause }),
    };
    let base = start.clone();
    let mut filter = Filter { visitor, is_wanted, start, base, deferred: Vec::new(), is_stopped: false };
    let start = filter.start.clone();
    tree.walk(&start, &mut filter)?;
    if !filter.is_stopped {
        // A break ends the walk here as well, and nothing follows it.
        let _ = filter.visit_links(tree);
    }
    Ok(())
}

/// Filters a walk for a [`ScopeVisitor`].
struct Filter<'v> {
    visitor: &'v mut dyn ScopeVisitor,
    is_wanted: fn(&[u8]) -> bool,
    /// The directory or file at which the walk starts.
    start: TreePath,
    /// The directory to which file names in results are relative.
    base: TreePath,
    /// Links, and directories that cannot be listed.
    deferred: Vec<(TreePath, EntryKind)>,
    is_stopped: bool,
}

impl Filter<'_> {
    fn visit(&mut self, entry: Entry) -> ControlFlow<()> {
        let is_start = entry.path == self.start;
        if is_start {
            self.base = self.start.parent();
        }
        if entry.kind == EntryKind::UnreadableDirectory {
            self.deferred.push((entry.path, entry.kind));
        } else if !(self.is_wanted)(entry.path.file_name()) {
            if is_start {
                let file = name(&entry.path, &self.base);
                return self.visitor.skipped(Skipped { file, cause: SkipReason::NotYaml });
            }
        } else if entry.kind == EntryKind::File {
            return self.visitor.file(ScopedFile { entry, link: None, base: &self.base });
        } else {
            self.visitor.link(&entry.path)?;
            self.deferred.push((entry.path, entry.kind));
        }
        ControlFlow::Continue(())
    }

    /// Follows the links of the walk, and visits the files that they lead to.
    fn visit_links(&mut self, tree: &dyn FileTree) -> ControlFlow<()> {
        let mut targets: BTreeMap<TreePath, TreePath> = BTreeMap::new();
        for (path, kind) in std::mem::take(&mut self.deferred) {
            self.visitor.follow()?;
            let target = match kind {
                EntryKind::UnreadableDirectory => Err(SkipReason::Unreadable),
                _ => self.target(tree, &path),
            };
            match target {
                Ok(None) => {}
                Ok(Some(target)) => {
                    targets.entry(target).or_insert(path);
                }
                Err(cause) => {
                    self.visitor.skipped(Skipped { file: name(&path, &self.base), cause })?;
                }
            }
        }
        for (path, link) in targets {
            let entry = Entry { path, kind: EntryKind::File, content: None };
            self.visitor.file(ScopedFile { entry, link: Some(&link), base: &self.base })?;
        }
        ControlFlow::Continue(())
    }

    /// Returns the target of a link.
    ///
    /// Returns `None` if the target is in scope by its own name.
    fn target(&self, tree: &dyn FileTree, link: &TreePath) -> Result<Option<TreePath>, SkipReason> {
        let target = resolve(tree, &link.parent(), link.file_name())?;
        if tree.kind(&target).map_err(|error| skip_reason(&error))? != EntryKind::File {
            return Err(SkipReason::Directory);
        }
        let is_listed = (self.is_wanted)(target.file_name()) && target.relative_to(&self.start).is_some();
        Ok((!is_listed).then_some(target))
    }
}

impl TreeVisitor for Filter<'_> {
    fn entry(&mut self, entry: Entry) -> ControlFlow<()> {
        let flow = self.visit(entry);
        self.is_stopped |= flow.is_break();
        flow
    }

    fn enter(&mut self, _: &TreePath, content: Option<ContentId>) -> ControlFlow<(), WalkDecision> {
        let flow = self.visitor.enter(content);
        self.is_stopped |= flow.is_break();
        flow
    }

    fn leave(&mut self) {
        self.visitor.leave();
    }
}

/// A path as a file name in results.
fn name(path: &TreePath, base: &TreePath) -> String {
    path.relative_to(base).unwrap_or_else(|| path.clone()).to_string()
}

/// Returns true if the file name is that of a YAML file.
pub(super) fn is_yaml_name(name: &[u8]) -> bool {
    let has_extension = |extension: &[u8]| name.ends_with(extension);
    has_extension(b".yaml") || has_extension(b".yml") || name == b"Kustomization"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::manifest_files::{ManifestFiles, list_manifests};
    use crate::update::tree::TreeError;

    /// An in-memory tree: files have the content `file`, links their target.
    struct Tree(BTreeMap<TreePath, Option<&'static str>>);

    fn path(text: &str) -> TreePath {
        TreePath::from_bytes(text)
    }

    fn tree(entries: &[(&str, Option<&'static str>)]) -> Tree {
        Tree(entries.iter().map(|(name, target)| (path(name), *target)).collect())
    }

    impl FileTree for Tree {
        // Directories have no id here, so that the visitor need not decide about them.
        fn walk(&self, under: &TreePath, visitor: &mut dyn TreeVisitor) -> Result<(), TreeError> {
            let found = self.0.iter().filter(|(path, _)| *path == under || path.relative_to(under).is_some());
            let mut found = found.peekable();
            if found.peek().is_none() {
                return Err(TreeError::NotFound { path: under.clone() });
            }
            for (path, target) in found {
                let kind = if target.is_some() { EntryKind::Link } else { EntryKind::File };
                if visitor.entry(Entry { path: path.clone(), kind, content: None }).is_break() {
                    break;
                }
            }
            Ok(())
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

    /// The names and paths of the files in scope, and the skipped entries.
    #[derive(Default)]
    struct Found {
        keys: Vec<String>,
        paths: Vec<TreePath>,
        scope: ManifestFiles,
    }

    impl ScopeVisitor for Found {
        fn file(&mut self, file: ScopedFile<'_>) -> ControlFlow<()> {
            self.keys.push(file.key());
            self.paths.push(file.entry.path);
            ControlFlow::Continue(())
        }

        fn skipped(&mut self, skipped: Skipped) -> ControlFlow<()> {
            self.scope.skipped(skipped)
        }
    }

    fn scope(tree: &Tree, under: Option<&str>) -> Result<Found, ScopeError> {
        let mut found = Found::default();
        walk_scope(tree, under, &mut found)?;
        Ok(found)
    }

    fn keys(tree: &Tree, under: Option<&str>) -> (Vec<String>, Vec<String>) {
        let found = scope(tree, under).expect("the scope can be listed");
        let skipped = found.scope.skipped.iter();
        (found.keys, skipped.map(|skipped| format!("{}: {:?}", skipped.file, skipped.cause)).collect())
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
        assert!(matches!(scope(&tree, Some("nope")).err(), Some(ScopeError::NotFound { .. })));
        assert!(matches!(scope(&tree, Some("a/../..")).err(), Some(ScopeError::Escapes { .. })));
    }

    #[test]
    fn manifests_may_be_json_and_updated_files_may_not() {
        let tree =
            tree(&[("a.json", None), ("b/c.yaml", None), ("d.jsonl", None), ("e.json", Some("a.json"))]);
        let files = list_manifests(&tree).unwrap().files;
        let names: Vec<String> = files.iter().map(|entry| entry.path.to_string()).collect();
        assert_eq!(names, ["a.json", "b/c.yaml"]);
        assert_eq!(keys(&tree, None).0, ["b/c.yaml"]);
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
        assert_eq!(scope(&tree, Some("apps")).ok().unwrap().paths, [path("deep/x.yaml")]);
    }

    #[test]
    fn a_file_that_is_not_yaml_by_its_name_is_not_read() {
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
            "a.yaml: OutsideTree",
            "b.yaml: OutsideTree",
            "c.yaml: Dangling",
            "d.yaml: Loop",
            "e.yaml: Loop",
            "f.yaml: Directory",
            "g.yaml: InsideGit",
        ];
        assert_eq!(skipped, expected);
    }
}
