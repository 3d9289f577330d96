//! An index of markers saves reading, and never changes what a plan says.

use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tagboat::reference::ImageReference;
use tagboat::update::{
    ContentId, Entry, EntryKind, FileTree, MarkerIndex, Policy, PolicyName, Setters, TreeError, TreePath,
    UpdateRequest, plan,
};

use super::outline::outline;
use crate::support::manifests::marker;

/// Files in memory, whose contents have the ids that git would give them; it counts how often one is read.
#[derive(Debug, Default)]
struct Memory {
    files: BTreeMap<String, Vec<u8>>,
    reads: Cell<usize>,
}

impl Memory {
    fn of(files: &BTreeMap<String, String>) -> Self {
        let files = files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect();
        Self { files, reads: Cell::new(0) }
    }
}

impl FileTree for Memory {
    fn entries(&self, _: &TreePath) -> Result<Vec<Entry>, TreeError> {
        let entry = |(path, content): (&String, &Vec<u8>)| {
            let id = git2::Oid::hash_object(git2::ObjectType::Blob, content).unwrap();
            let content = Some(ContentId(id.as_bytes().try_into().unwrap()));
            Entry { path: TreePath::from_bytes(path.as_bytes()), kind: EntryKind::File, content }
        };
        Ok(self.files.iter().map(entry).collect())
    }

    fn kind(&self, path: &TreePath) -> Result<EntryKind, TreeError> {
        Ok(if path.is_root() { EntryKind::Directory } else { EntryKind::File })
    }

    fn read(&self, entry: &Entry, _: usize, content: &mut Vec<u8>) -> Result<(), TreeError> {
        self.reads.set(self.reads.get() + 1);
        content.clone_from(&self.files[std::str::from_utf8(entry.path.as_bytes()).unwrap()]);
        Ok(())
    }

    fn contains(&self, _: &Entry, _: &[u8]) -> Result<bool, TreeError> {
        unreachable!("no file is too large")
    }
}

fn planned(tree: &Memory, setters: &Setters, index: &mut MarkerIndex) -> String {
    let request = UpdateRequest { setters: setters.clone(), ..UpdateRequest::default() };
    outline(&plan(tree, &request, index, &mut |_| {}).unwrap(), tree)
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

fn setters() -> impl Strategy<Value = Setters> {
    let image = |tag: &str, digest: Option<&str>| {
        Policy::Image(ImageReference::from_parts("acme/p", tag, digest).unwrap())
    };
    let digest = format!("sha256:{}", "0".repeat(64));
    let policy = select(vec![
        image("1.0", None),
        image("2.0", None),
        image("on", Some(&digest)),
        Policy::WithoutImage,
        Policy::NotSelected,
    ]);
    let name = select(vec![("default", "p"), ("default", "q"), ("other", "p")]);
    let name =
        name.prop_map(|(namespace, name)| PolicyName { namespace: namespace.into(), name: name.into() });
    let namespace = option::of(select(vec!["default", "other"]));
    (btree_map(name, policy, 0..4), namespace).prop_map(|(policies, namespace)| {
        let setters = Setters::new(policies);
        match namespace {
            Some(namespace) => setters.only_for(namespace.to_owned()),
            None => setters,
        }
    })
}

/// What happens between two runs.
#[derive(Debug, Clone)]
struct Step {
    changes: BTreeMap<String, Option<String>>,
    setters: Option<Setters>,
    is_kept_on_disk: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let path = select(vec!["a.yaml", "b.yaml", "c/d.yaml", "c/e.yml", "f.yaml"]).prop_map(str::to_owned);
    let changes = btree_map(path, option::weighted(0.9, contents()), 0..4);
    let step = (changes, option::weighted(0.6, setters()), any::<bool>());
    let step =
        step.prop_map(|(changes, setters, is_kept_on_disk)| Step { changes, setters, is_kept_on_disk });
    vec(step, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

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
                index = MarkerIndex::from_bytes(&index.to_bytes());
                prop_assert!(!index.has_news());
            }
            let tree = Memory::of(&files);
            let expected = planned(&tree, &setters, &mut MarkerIndex::default());
            let reads_without = tree.reads.take();
            prop_assert_eq!(planned(&tree, &setters, &mut index), expected);
            prop_assert!(tree.reads.get() <= reads_without);
        }
    }

    #[test]
    fn an_index_is_the_same_when_it_is_read_again(files in vec(contents(), 0..8), setters in setters()) {
        let files = files.into_iter().enumerate().map(|(number, text)| (format!("{number}.yaml"), text)).collect();
        let tree = Memory::of(&files);
        let mut index = MarkerIndex::default();
        let expected = planned(&tree, &setters, &mut index);
        let reads_before = tree.reads.take();
        let mut again = MarkerIndex::from_bytes(&index.to_bytes());
        prop_assert_eq!(planned(&tree, &setters, &mut again), expected);
        let reads = tree.reads.take();
        planned(&tree, &setters, &mut index);
        prop_assert_eq!(tree.reads.take(), reads);
        prop_assert!(reads <= reads_before);
        // Maps have no order; that of their lengths is enough here.
        prop_assert_eq!(index.to_bytes().len(), again.to_bytes().len());
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
        let expected = planned(&tree, &setters, &mut MarkerIndex::default());
        let mut index = MarkerIndex::default();
        planned(&tree, &setters, &mut index);
        let bytes = index.to_bytes();
        let cut = &bytes[..at.index(bytes.len())];
        for bytes in [garbage.as_slice(), cut, b"", b"{}", b"null", br#"{"version":1}"#] {
            let mut index = MarkerIndex::from_bytes(bytes);
            prop_assert_eq!(planned(&tree, &setters, &mut index), expected.clone());
        }
        // Bytes that still say something may say something wrong, but panic they must not.
        let mut bytes = bytes;
        let at = at.index(bytes.len());
        bytes.splice(at..at, garbage);
        planned(&tree, &setters, &mut MarkerIndex::from_bytes(&bytes));
    }
}

#[test]
fn a_second_plan_reads_only_what_has_to_change() {
    let current = format!("a: 1.0 {}\n", marker("default:p:tag"));
    let other = format!("a: 1.0 {}\n", marker("default:q:tag"));
    let files = [("a.yaml", current), ("b.yaml", other), ("c.yaml", "a: 1\n".to_owned())];
    let tree = Memory::of(&files.map(|(path, text)| (path.to_owned(), text)).into());
    let setters = |tag: &str| {
        let policies = [("p", tag), ("q", "1.0")].map(|(name, tag)| {
            let image = ImageReference::from_parts("acme/p", tag, None).unwrap();
            (PolicyName { namespace: "default".into(), name: name.into() }, Policy::Image(image))
        });
        Setters::new(policies.into())
    };
    let mut index = MarkerIndex::default();
    for (tag, reads) in [("1.0", 3), ("1.0", 0), ("2.0", 1), ("1.0", 0)] {
        tree.reads.set(0);
        let request = UpdateRequest { setters: setters(tag), ..UpdateRequest::default() };
        plan(&tree, &request, &mut index, &mut |_| {}).unwrap();
        assert_eq!(tree.reads.get(), reads, "{tag}");
    }
}
