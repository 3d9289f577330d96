//! Skips directories without markers, by their git tree ids.
//!
//! A git tree id identifies all that is below a directory. If nothing in its files was worth a report, the directory
//! stays so for as long as it has this id, and need not be listed again. This does not cover its files whose names are
//! not those of YAML files: a link from elsewhere to such a file is still followed.

use super::marker_index::MarkerIndex;
use super::tree::{ContentId, WalkDecision};

/// The directories from `update.path` down to the current file.
#[derive(Debug, Default)]
pub(super) struct OpenDirectories {
    open: Vec<OpenDirectory>,
}

/// A directory that the walk has entered and not left.
#[derive(Debug)]
struct OpenDirectory {
    id: Option<ContentId>,
    /// The number of files in scope in it so far, including those of skipped directories.
    files: usize,
    /// True if something to report was found in it.
    has_findings: bool,
}

impl OpenDirectories {
    /// Enters a directory unless the index has it as markerless.
    ///
    /// Returns the number of files in scope that are skipped then.
    pub(super) fn enter(&mut self, id: Option<ContentId>, index: &MarkerIndex) -> (WalkDecision, usize) {
        if let Some(files) = id.and_then(|id| index.markerless_files(&id)) {
            self.add_files(files);
            return (WalkDecision::Skip, files);
        }
        self.open.push(OpenDirectory { id, files: 0, has_findings: false });
        (WalkDecision::Enter, 0)
    }

    /// Adds files to the count of the innermost directory.
    pub(super) fn add_files(&mut self, files: usize) {
        if let Some(directory) = self.open.last_mut() {
            directory.files += files;
        }
    }

    /// Records that there is something to report in the innermost directory.
    pub(super) fn add_finding(&mut self) {
        if let Some(directory) = self.open.last_mut() {
            directory.has_findings = true;
        }
    }

    /// Leaves the innermost directory.
    ///
    /// The index stores it as markerless if there is nothing to report in it.
    pub(super) fn leave(&mut self, index: &mut MarkerIndex) {
        let Some(OpenDirectory { id, files, has_findings }) = self.open.pop() else { return };
        if let Some(id) = id.filter(|_| !has_findings) {
            index.insert_markerless(id, files);
        }
        self.add_files(files);
        if has_findings {
            self.add_finding();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::{BTreeMap, HashSet};
    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::ops::ControlFlow;

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::*;
    use crate::update::tree::TreeVisitor;
    use crate::update::{Entry, EntryKind, FileTree, TreeError, TreePath, UpdatePlan, UpdateRequest, plan};

    /// An in-memory tree whose directories have ids.
    ///
    /// A content that begins with `->` is a link.
    #[derive(Default)]
    struct Tree {
        files: BTreeMap<TreePath, String>,
        /// The directories that were listed.
        listed: RefCell<Vec<String>>,
    }

    fn path(text: &str) -> TreePath {
        TreePath::from_bytes(text)
    }

    fn id_of(content: &impl Hash) -> ContentId {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        let mut id = [0; 20];
        id[..8].copy_from_slice(&hasher.finish().to_le_bytes());
        ContentId(id)
    }

    impl Tree {
        fn of(files: &[(&str, &str)]) -> Self {
            let files = files.iter().map(|(name, content)| (path(name), (*content).to_owned()));
            Self { files: files.collect(), ..Self::default() }
        }

        fn below(&self, directory: &TreePath) -> impl Iterator<Item = (TreePath, &String)> {
            self.files.iter().filter_map(|(path, content)| Some((path.relative_to(directory)?, content)))
        }

        fn list(&self, under: &TreePath, visitor: &mut dyn TreeVisitor) -> ControlFlow<()> {
            self.listed.borrow_mut().push(under.to_string());
            let mut directories = HashSet::new();
            for (inside, content) in self.below(under) {
                let first = inside.parts().next().unwrap_or_default();
                let path = under.join(first);
                if inside.parts().count() == 1 {
                    let kind = if content.starts_with("->") { EntryKind::Link } else { EntryKind::File };
                    visitor.entry(Entry { path, kind, content: Some(id_of(content)) })?;
                } else if directories.insert(path.clone()) {
                    let id = id_of(&self.below(&path).collect::<Vec<_>>());
                    if visitor.enter(&path, Some(id))? == WalkDecision::Enter {
                        self.list(&path, visitor)?;
                        visitor.leave();
                    }
                }
            }
            ControlFlow::Continue(())
        }

        /// Makes a plan, and returns it with the directories that were listed for it.
        fn plan(&self, index: &mut MarkerIndex) -> (UpdatePlan, Vec<String>) {
            let plan = plan(self, &UpdateRequest::default(), index, &mut |_| Ok(())).unwrap();
            (plan, self.listed.take())
        }
    }

    impl FileTree for Tree {
        fn walk(&self, under: &TreePath, visitor: &mut dyn TreeVisitor) -> Result<(), TreeError> {
            let _ = self.list(under, visitor);
            Ok(())
        }

        fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError> {
            match self.files.get(path) {
                Some(content) if content.starts_with("->") => Ok(EntryKind::Link),
                Some(_) => Ok(EntryKind::File),
                None if path.is_root() || self.below(path).next().is_some() => Ok(EntryKind::Directory),
                None => Err(TreeError::NotFound { path: path.clone() }),
            }
        }

        fn read(&self, entry: &Entry, _: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
            *content = self.files[&entry.path].trim_start_matches("->").as_bytes().to_vec();
            Ok(())
        }

        fn contains(&self, _: &Entry, _: &[u8]) -> Result<bool, TreeError> {
            Ok(true)
        }
    }

    const MARKED: &str = "a: b # {\"$imagepolicy\": \"n:p\"}\n";

    const FLEET: [(&str, &str); 9] = [
        ("apps/marked/a.yaml", MARKED),
        ("apps/plain/a.yaml", "a: 1\n"),
        ("apps/plain/deep/b.yaml", "b: 1\n"),
        ("apps/plain/notes.txt", MARKED),
        ("apps/near/a.yaml", "a: b # {$imagepolicy: n:p}\n"),
        ("apps/broken/a.yaml", "a: [ # {\"$imagepolicy\": \"n:p\"}\n"),
        ("links/to/plain.yaml", "->../../apps/plain/a.yaml"),
        ("links/to/nothing.yaml", "->nothing"),
        ("rest/c.yaml", "c: 1\n"),
    ];

    #[test]
    fn plans_from_markerless_directories_are_complete() {
        let tree = Tree::of(&FLEET);
        let mut index = MarkerIndex::default();
        let (first, all) = tree.plan(&mut index);
        assert_eq!((first.files, first.markers.len(), first.near_misses.len()), (6, 1, 1));
        assert_eq!((first.unparsable.len(), first.skipped.len(), all.len()), (1, 1, 10));
        let mut bytes = Vec::new();
        index.write_to(&mut bytes).unwrap();
        let mut kept = MarkerIndex::read_from(bytes.as_slice());
        for index in [&mut index, &mut kept] {
            let (second, listed) = tree.plan(index);
            assert_eq!(listed, ["", "apps", "apps/broken", "apps/marked", "apps/near", "links", "links/to"]);
            assert_eq!(format!("{second:?}"), format!("{first:?}"));
        }
        assert!(!kept.is_modified());
    }

    #[test]
    fn a_changed_directory_is_searched() {
        let mut index = MarkerIndex::default();
        Tree::of(&FLEET).plan(&mut index);
        let mut changed = Tree::of(&FLEET);
        changed.files.insert(path("apps/plain/deep/new.yaml"), MARKED.to_owned());
        let (plan, listed) = changed.plan(&mut index);
        assert_eq!((plan.files, plan.markers.len()), (7, 2));
        assert!(listed.contains(&"apps/plain/deep".to_owned()) && !listed.contains(&"rest".to_owned()));

        let mut grown = Tree::of(&FLEET);
        grown.files.insert(path("apps/plain/more.yaml"), "d: 1\n".to_owned());
        let mut index = MarkerIndex::default();
        Tree::of(&FLEET).plan(&mut index);
        grown.plan(&mut index);
        let (plan, listed) = grown.plan(&mut index);
        assert_eq!(plan.files, 7, "a file in a directory within a markerless one counts as well");
        assert!(!listed.contains(&"apps/plain".to_owned()));
    }

    /// Contains a marker, but has not the name of a YAML file.
    const HIDDEN: (&str, &str) = ("base/values.txt", MARKED);

    #[test]
    fn a_new_link_into_a_markerless_directory_is_followed() {
        let mut index = MarkerIndex::default();
        let before = Tree::of(&[HIDDEN, ("base/plain.yaml", "a: 1\n")]);
        before.plan(&mut index);
        let (plan, listed) = before.plan(&mut index);
        assert_eq!((plan.files, plan.markers.len(), listed), (1, 0, vec![String::new()]));

        let after = [HIDDEN, ("base/plain.yaml", "a: 1\n"), ("a.yaml", "->base/values.txt")];
        assert_warm_is_cold(&Tree::of(&after), None, &mut index);
        let (plan, _) = Tree::of(&after).plan(&mut index);
        assert_eq!((plan.files, plan.markers.len()), (2, 1));
    }

    #[test]
    fn an_automation_of_another_path_does_not_hide_what_a_link_leads_to() {
        let tree = Tree::of(&[
            ("base/deep/values.txt", MARKED),
            ("base/deep/notes.txt", "a: 1\n"),
            ("base/deep/plain.yaml", "a: 1\n"),
            ("apps/a.yaml", "->../base/deep/values.txt"),
            ("apps/b.yaml", "->../base/deep/notes.txt"),
            ("apps/c.yaml", "->../base/deep/plain.yaml"),
        ]);
        for paths in [["base", ""], ["apps", "base"], ["", "apps"], ["base", "apps"], ["apps", ""]] {
            let mut index = MarkerIndex::default();
            for path in paths.into_iter().chain(paths) {
                assert_warm_is_cold(&tree, Some(path), &mut index);
            }
        }
    }

    #[track_caller]
    fn assert_warm_is_cold(tree: &Tree, path: Option<&str>, index: &mut MarkerIndex) {
        let request = UpdateRequest { path: path.map(str::to_owned), ..UpdateRequest::default() };
        let planned = |index: &mut MarkerIndex| {
            let plan = plan(tree, &request, index, &mut |_| Ok(()));
            plan.map_or_else(|error| error.to_string(), |plan| format!("{plan:?}"))
        };
        assert_eq!(planned(index), planned(&mut MarkerIndex::default()), "{path:?} {:?}", tree.files);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_warm_index_gives_the_plan_of_a_cold_one(
            trees in vec(btree_map(paths(), contents(), 0..8), 1..4),
            runs in vec((any::<Index>(), select(vec!["", "a", "b", "a/b", "b/a"])), 1..8),
        ) {
            let mut index = MarkerIndex::default();
            for (number, path) in runs {
                assert_warm_is_cold(&Tree { files: number.get(&trees).clone(), ..Tree::default() }, Some(path), &mut index);
            }
        }
    }

    /// File names differ from directory names, so that no path leads through a file.
    fn paths() -> impl Strategy<Value = TreePath> {
        let directories = select(vec!["", "a/", "b/", "a/b/", "b/a/"]);
        let names = select(vec!["one.yaml", "two.yaml", "plain.txt", "way"]);
        (directories, names).prop_map(|(directory, name)| path(&format!("{directory}{name}")))
    }

    fn contents() -> impl Strategy<Value = String> {
        let files = vec![MARKED, "a: 1\n", "a: b # {$imagepolicy: n:p}\n"];
        let links = vec![
            "->plain.txt",
            "->a/plain.txt",
            "->../b/plain.txt",
            "->../a/b/plain.txt",
            "->a/b/one.yaml",
            "->../two.yaml",
            "->way",
            "->../way",
            "->../a/way",
            "->b",
            "->nothing",
        ];
        prop_oneof![2 => select(files), 1 => select(links)].prop_map(str::to_owned)
    }
}
