//! The marker index saves reading, and never changes a plan.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tagboat::reference::ImageReference;
use tagboat::update::{
    ContentId, Entry, EntryKind, FileTree, Interrupt, MarkerIndex, PlanError, PolicyState, Setters,
    TreeError, TreePath, TreeVisitor, UpdateRequest, WalkDecision, plan,
};
use tagboat_api::ObjectName;

use super::plan_summary::outline;
use crate::support::manifests::marker;

/// Beginning of the content of a link; its target follows.
const LINK: &str = "-> ";

/// Files and links in memory.
/// Contents and directories have ids as in git, and reads of files are counted.
#[derive(Debug, Default)]
struct Memory {
    files: BTreeMap<TreePath, String>,
    reads: Cell<usize>,
}

fn id_of(bytes: &[u8]) -> ContentId {
    let id = git2::Oid::hash_object(git2::ObjectType::Blob, bytes).unwrap();
    ContentId(id.as_bytes().try_into().unwrap())
}

impl Memory {
    fn of(files: &BTreeMap<String, String>) -> Self {
        let files = files.iter();
        let files = files.map(|(path, text)| (TreePath::from_bytes(path.as_bytes()), text.clone())).collect();
        Self { files, reads: Cell::new(0) }
    }

    /// The files and links below a directory, with their paths relative to it.
    fn below(&self, directory: &TreePath) -> Vec<(TreePath, &String)> {
        let files = self.files.iter();
        files.filter_map(|(path, text)| Some((path.relative_to(directory)?, text))).collect()
    }

    fn list(&self, at: &TreePath, visitor: &mut dyn TreeVisitor) -> ControlFlow<()> {
        let firsts: BTreeSet<Vec<u8>> =
            self.below(at).iter().map(|(path, _)| path.parts().next().unwrap().to_vec()).collect();
        for name in firsts {
            let path = at.join(&name);
            if let Some(text) = self.files.get(&path) {
                let kind = if text.starts_with(LINK) { EntryKind::Link } else { EntryKind::File };
                visitor.entry(Entry { path, kind, content: Some(id_of(text.as_bytes())) })?;
            } else {
                let id = id_of(format!("{:?}", self.below(&path)).as_bytes());
                if visitor.enter(&path, Some(id))? == WalkDecision::Enter {
                    self.list(&path, visitor)?;
                    visitor.leave();
                }
            }
        }
        ControlFlow::Continue(())
    }
}

impl FileTree for Memory {
    fn walk(&self, under: &TreePath, visitor: &mut dyn TreeVisitor) -> Result<(), TreeError> {
        if let Some(text) = self.files.get(under) {
            let entry =
                Entry { path: under.clone(), kind: EntryKind::File, content: Some(id_of(text.as_bytes())) };
            let _ = visitor.entry(entry);
        } else {
            let _ = self.list(under, visitor);
        }
        Ok(())
    }

    fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError> {
        match self.files.get(path) {
            Some(text) if text.starts_with(LINK) => Ok(EntryKind::Link),
            Some(_) => Ok(EntryKind::File),
            None if path.is_root() || !self.below(path).is_empty() => Ok(EntryKind::Directory),
            None => Err(TreeError::NotFound { path: path.clone() }),
        }
    }

    fn read(&self, entry: &Entry, _: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
        let text = &self.files[&entry.path];
        let bytes = if let Some(target) = text.strip_prefix(LINK) {
            target
        } else {
            self.reads.set(self.reads.get() + 1);
            text
        };
        *content = bytes.as_bytes().to_vec();
        Ok(())
    }

    fn contains(&self, _: &Entry, _: &[u8]) -> Result<bool, TreeError> {
        unreachable!("no file is too large")
    }
}

/// An index in its stored form.
fn bytes_of(index: &MarkerIndex) -> Vec<u8> {
    let mut bytes = Vec::new();
    index.write_to(&mut bytes).unwrap();
    bytes
}

fn planned(tree: &Memory, request: &UpdateRequest, index: &mut MarkerIndex) -> String {
    match plan(tree, request, index, &mut |_| Ok(())) {
        Ok(plan) => {
            let reads = tree.reads.get();
            let outline = outline(&plan, tree);
            // Reads by the summary do not count.
            tree.reads.set(reads);
            outline
        }
        Err(error) => error.to_string(),
    }
}

fn request(setters: &Setters) -> UpdateRequest {
    UpdateRequest { setters: setters.clone(), ..UpdateRequest::default() }
}

/// Lines of files: `%` stands for a value.
fn lines() -> impl Strategy<Value = String> {
    let values = ["1.0", "'1.0'", "2.0", "on", "", "acme/p:1.0", "acme/p", "~", "|-\n    1.0"];
    let setters = [
        "default:p",
        "default:p:tag",
        "default:q:tag",
        "default:q:name",
        "default:q:digest",
        "default:p:tag@digest",
        "default:p:version",
        "other:p:tag",
        "default",
        "",
    ];
    let marked = (select(values.to_vec()), select(setters.to_vec())).prop_map(|(value, setter)| match value
        .split_once('\n')
    {
        Some((header, rest)) => format!("- k: {header} {}\n{rest}\n", marker(setter)),
        None => format!("- k: {value} {}\n", marker(setter)),
    });
    let long = format!("- k: {} {}\n", "x".repeat(2000), marker("default:p:tag"));
    let others = vec![
        "- a: b\n".to_owned(),
        format!("- {}\n  a: b\n", marker("default:p:tag")),
        format!("- a: [b] {}\n", marker("other:p:tag")),
        "- a: b # {$imagepolicy: default:p}\n".to_owned(),
        "- a: b # {\"$imagepolicy\": 1}\n".to_owned(),
        "- a: '\"$imagepolicy\"'\n".to_owned(),
        "- {a: b\n".to_owned(),
        "- kind: Pod\n  metadata: {name: x}\n  image: v # {\"$imagepolicy\": \"default:q:tag\"}\n".to_owned(),
        "- a: b # {\"$ref\": \"#/definitions/io.k8s.cli.setters.default:p:tag\"}\n".to_owned(),
        "---\n".to_owned(),
        long,
    ];
    prop_oneof![3 => marked, 1 => select(others)]
}

fn contents() -> impl Strategy<Value = String> {
    vec(lines(), 0..5).prop_map(|lines| lines.concat())
}

fn contents_and_links() -> impl Strategy<Value = String> {
    let targets =
        ["h.yaml", "../a.yaml", "../c/d.yaml", "../c/g/h.yaml", "g/h.yaml", "missing", "../../x", "g"];
    let link = select(targets.to_vec()).prop_map(|target| format!("{LINK}{target}"));
    // Files without markers, for directories without markers.
    prop_oneof![2 => contents(), 2 => Just("a: 1\n".to_owned()), 1 => link]
}

fn setters() -> impl Strategy<Value = Setters> {
    let image = |tag: &str, digest: Option<&str>| {
        PolicyState::Image(ImageReference::from_parts("acme/p", tag, digest).unwrap())
    };
    let digest = format!("sha256:{}", "0".repeat(64));
    let policy = select(vec![
        image("1.0", None),
        image("2.0", None),
        image("on", Some(&digest)),
        PolicyState::WithoutImage,
        PolicyState::NotSelected,
    ]);
    let name = select(vec![("default", "p"), ("default", "q"), ("other", "p")]);
    let name =
        name.prop_map(|(namespace, name)| ObjectName { namespace: namespace.into(), name: name.into() });
    let namespace = option::of(select(vec!["default", "other"]));
    (btree_map(name, policy, 0..4), namespace).prop_map(|(policies, namespace)| {
        let setters = Setters::new(policies);
        match namespace {
            Some(namespace) => setters.only_for(namespace.to_owned()),
            None => setters,
        }
    })
}

/// The changes between two runs.
#[derive(Debug, Clone)]
struct Step {
    changes: BTreeMap<String, Option<String>>,
    setters: Option<Setters>,
    path: Option<String>,
    is_kept_on_disk: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let paths = [
        "a.yaml",
        "c/d.yaml",
        "c/e.yml",
        "c/g/h.yaml",
        "c/g/i.yaml",
        "c/g/notes.txt",
        "k/l.yaml",
        "k/m.yaml",
    ];
    let path = select(paths.to_vec()).prop_map(str::to_owned);
    let changes = btree_map(path, option::weighted(0.9, contents_and_links()), 0..5);
    let path = select(vec![None, None, None, Some("c"), Some("c/g"), Some("k/l.yaml")]);
    let path = path.prop_map(|path| path.map(str::to_owned));
    let step = (changes, option::weighted(0.6, setters()), path, any::<bool>());
    let step = step.prop_map(|(changes, setters, path, is_kept_on_disk)| Step {
        changes,
        setters,
        path,
        is_kept_on_disk,
    });
    vec(step, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_with_an_index_is_the_plan_without(steps in steps()) {
        let (mut files, mut setters, mut index) = (BTreeMap::new(), Setters::default(), MarkerIndex::default());
        for step in steps {
            for (path, content) in step.changes {
                match content {
                    Some(content) => files.insert(path, content),
                    None => files.remove(&path),
                };
            }
            setters = step.setters.unwrap_or(setters);
            if step.is_kept_on_disk {
                index = MarkerIndex::read_from(bytes_of(&index).as_slice());
                prop_assert!(!index.is_modified());
            }
            let tree = Memory::of(&files);
            let request = UpdateRequest { path: step.path, ..request(&setters) };
            let expected = planned(&tree, &request, &mut MarkerIndex::default());
            let reads_without = tree.reads.take();
            prop_assert_eq!(planned(&tree, &request, &mut index), expected);
            prop_assert!(tree.reads.get() <= reads_without);
        }
    }

    #[test]
    fn an_index_is_the_same_when_it_is_read_again(files in vec(contents(), 0..8), setters in setters()) {
        let files = files.into_iter().enumerate().map(|(number, text)| (format!("{number}.yaml"), text)).collect();
        let tree = Memory::of(&files);
        let mut index = MarkerIndex::default();
        let expected = planned(&tree, &request(&setters), &mut index);
        let reads_before = tree.reads.take();
        let mut again = MarkerIndex::read_from(bytes_of(&index).as_slice());
        prop_assert_eq!(planned(&tree, &request(&setters), &mut again), expected);
        let reads = tree.reads.take();
        planned(&tree, &request(&setters), &mut index);
        prop_assert_eq!(tree.reads.take(), reads);
        prop_assert!(reads <= reads_before);
        // Maps have no order, so only the lengths are compared.
        prop_assert_eq!(bytes_of(&index).len(), bytes_of(&again).len());
    }

    #[test]
    fn garbage_counts_as_an_empty_index(
        files in vec(contents(), 1..4),
        setters in setters(),
        garbage in vec(any::<u8>(), 0..60),
        at in any::<prop::sample::Index>(),
    ) {
        let files = files.into_iter().enumerate().map(|(number, text)| (format!("{number}.yaml"), text)).collect();
        let tree = Memory::of(&files);
        let expected = planned(&tree, &request(&setters), &mut MarkerIndex::default());
        let mut index = MarkerIndex::default();
        planned(&tree, &request(&setters), &mut index);
        let bytes = bytes_of(&index);
        let cut = &bytes[..at.index(bytes.len())];
        for bytes in [garbage.as_slice(), cut, b"", b"{}", b"null", br#"{"version":1}"#] {
            let mut index = MarkerIndex::read_from(bytes);
            prop_assert_eq!(planned(&tree, &request(&setters), &mut index), expected.clone());
        }
        // Bytes that still decode may be wrong, but must not cause a panic.
        let mut bytes = bytes;
        let at = at.index(bytes.len());
        bytes.splice(at..at, garbage);
        planned(&tree, &request(&setters), &mut MarkerIndex::read_from(bytes.as_slice()));
    }
}

#[test]
fn a_second_plan_reads_only_files_that_need_a_change() {
    let current = format!("a: 1.0 {}\n", marker("default:p:tag"));
    let other = format!("a: 1.0 {}\n", marker("default:q:tag"));
    let files = [("a.yaml", current), ("b.yaml", other), ("c.yaml", "a: 1\n".to_owned())];
    let tree = Memory::of(&files.map(|(path, text)| (path.to_owned(), text)).into());
    let setters = |tag: &str| {
        let policies = [("p", tag), ("q", "1.0")].map(|(name, tag)| {
            let image = ImageReference::from_parts("acme/p", tag, None).unwrap();
            (ObjectName { namespace: "default".into(), name: name.into() }, PolicyState::Image(image))
        });
        Setters::new(policies.into())
    };
    let mut index = MarkerIndex::default();
    for (tag, reads) in [("1.0", 3), ("1.0", 0), ("2.0", 1), ("1.0", 0)] {
        tree.reads.set(0);
        let request = UpdateRequest { setters: setters(tag), ..UpdateRequest::default() };
        plan(&tree, &request, &mut index, &mut |_| Ok(())).unwrap();
        assert_eq!(tree.reads.get(), reads, "{tag}");
    }
}

/// A version of a file that is replaced is removed from the index.
/// A file of many markers that changes often would otherwise fill the index with old versions.
#[test]
fn a_version_that_is_replaced_is_forgotten() {
    let policies = |tag: &str| {
        let image = ImageReference::from_parts("example.org/app", tag, None).unwrap();
        let name = ObjectName { namespace: "n".to_owned(), name: "app".to_owned() };
        BTreeMap::from([(name, PolicyState::Image(image))])
    };
    let mut index = MarkerIndex::default();
    let mut sizes = Vec::new();
    let mut text = format!("image: example.org/app:1 {}\n", marker("n:app"));
    for number in 2..20 {
        let tree = Memory::of(&BTreeMap::from([("app.yaml".to_owned(), text.clone())]));
        let request = UpdateRequest {
            setters: Setters::new(policies(&number.to_string())),
            ..UpdateRequest::default()
        };
        let edits = plan(&tree, &request, &mut index, &mut |_| Ok(())).unwrap().edits;
        text = String::from_utf8(edits[0].apply(text.as_bytes()).unwrap()).unwrap();
        index.remove(&edits[0].entry.content.unwrap());
        sizes.push(bytes_of(&index).len());
    }
    assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
}

/// A content under many names is read once.
///
/// There are nine names of three contents: one that is not YAML, one with a near miss, and one with a value
/// that has to change.
#[test]
fn a_content_under_many_names_is_read_once() {
    let contents = [
        format!("a: [ {}\n", marker("default:p:tag")),
        "a: 1.0 # {$imagepolicy: default:p}\n".to_owned(),
        format!("a: 1.0 {}\n", marker("default:p:tag")),
    ];
    let files = (0..9).map(|number| (format!("{}/{number}.yaml", number % 2), contents[number % 3].clone()));
    let tree = Memory::of(&files.collect());
    let image = ImageReference::from_parts("acme/p", "2.0", None).unwrap();
    let name = ObjectName { namespace: "default".into(), name: "p".into() };
    let request = request(&Setters::new([(name, PolicyState::Image(image))].into()));
    let mut index = MarkerIndex::default();
    let cold = plan(&tree, &request, &mut index, &mut |_| Ok(())).unwrap();
    assert_eq!((cold.unparsable.len(), cold.near_misses.len(), cold.edits.len()), (3, 3, 3));
    assert_eq!(tree.reads.take(), 3);
    // Unreadable files and near misses are reported again without another read.
    let warm = plan(&tree, &request, &mut index, &mut |_| Ok(())).unwrap();
    assert_eq!(tree.reads.take(), 1);
    assert_eq!(format!("{:?}", warm.unparsable), format!("{:?}", cold.unparsable));
    assert_eq!(warm.near_misses, cold.near_misses);
}

#[test]
fn an_interrupted_plan_is_continued_by_the_next() {
    let contents = |number: usize| match number % 3 {
        0 => format!("a: [ {} # {number}\n", marker("default:p:tag")),
        1 => format!("a: 1.0 # {{$imagepolicy: default:p}} {number}\n"),
        _ => format!("a: {number} {}\n", marker("default:p:tag")),
    };
    let files = (0..30).map(|number| (format!("{}/{number}.yaml", number % 4), contents(number)));
    let tree = Memory::of(&files.collect());
    let mut index = MarkerIndex::default();
    let mut runs = 0;
    let plan = loop {
        runs += 1;
        assert!(runs < 30, "no run gets further than the one before it");
        let before = tree.reads.get();
        // The deadline passes after seven files.
        let checkpoint = &mut |_| match tree.reads.get() - before {
            7.. => Err(Interrupt::Cancelled),
            _ => Ok(()),
        };
        match plan(&tree, &request(&Setters::default()), &mut index, checkpoint) {
            Ok(plan) => break plan,
            Err(PlanError::Interrupted(Interrupt::Cancelled)) => {
                index = MarkerIndex::read_from(bytes_of(&index).as_slice());
            }
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!((runs, tree.reads.get()), (5, 30));
    assert_eq!(
        (plan.files, plan.unparsable.len(), plan.near_misses.len(), plan.markers.len()),
        (30, 10, 10, 10)
    );
}
