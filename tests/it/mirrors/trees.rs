//! Tests that the tree of a commit is the same as its directory.
//! The commit is made from that directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tagboat::directory::Directory;
use tagboat::git::GitTree;
use tagboat::update::{Entry, EntryKind, FileTree, MarkerIndex, TreeError, TreePath, UpdateRequest, plan};

use super::local_remote::setters;
use super::plan_summary::outline;
use crate::support::bare_repository::BareRepository;
use crate::support::content::{Change, Content, change};
use crate::support::fleet::tag_line;
use crate::support::git_program::{git, output};

type Files = BTreeMap<Vec<u8>, Content>;

fn names() -> impl Strategy<Value = Vec<u8>> {
    let names: [&[u8]; 20] = [
        b"a",
        b"a",
        b"b",
        b"a-b",
        b"a.b",
        b"a0",
        b"a.yaml",
        b"b.yaml",
        b"c.yml",
        b"Kustomization",
        b".github",
        b".gitignore",
        b"-dash.yaml",
        b"..yaml",
        b"*.yaml",
        b"x y.yaml",
        b"line\nbreak.yaml",
        b"quo\"te\\.yaml",
        "\u{e9}.yaml".as_bytes(),
        b"\xff.yaml",
    ];
    select(names.to_vec()).prop_map(<[u8]>::to_vec)
}

fn contents() -> impl Strategy<Value = Content> {
    let texts = vec![
        tag_line("1.0.0"),
        tag_line("2.0.0"),
        format!("{}---\n{}", tag_line("1.0.0"), tag_line("'1'")),
        "a: 1\n".to_owned(),
        String::new(),
        "a: [ # {\"$imagepolicy\": \"default:podinfo\"}\n".to_owned(),
        "a: 1 # {$imagepolicy: default:podinfo}\n".to_owned(),
        "a: 1 # {\"$imagepolicy\": \"default:nobody\"}\n".to_owned(),
    ];
    let targets: [&[u8]; 12] = [
        b"a",
        b"b",
        b"a.yaml",
        b"b.yaml",
        b"../a.yaml",
        b"../b",
        b"a/b.yaml",
        b"../../a",
        b"/etc/passwd",
        b"missing",
        b".",
        b"\xff.yaml",
    ];
    prop_oneof![
        4 => select(texts.clone()).prop_map(|text| Content::File(text.into_bytes())),
        1 => select(texts).prop_map(|text| Content::Executable(text.into_bytes())),
        1 => vec(any::<u8>(), 0..40).prop_map(Content::File),
        2 => select(targets.to_vec()).prop_map(|target| Content::Link(target.to_vec())),
    ]
}

/// Files at paths, none of which is a directory of another.
fn files() -> impl Strategy<Value = Files> {
    vec((vec(names(), 1..4), contents()), 1..25).prop_map(|entries| {
        let mut files = Files::new();
        for (parts, content) in entries {
            let path = parts.join(&b'/');
            let is_free = |taken: &Vec<u8>| {
                *taken != path
                    && !taken.starts_with(&[&path[..], b"/"].concat())
                    && !path.starts_with(&[&taken[..], b"/"].concat())
            };
            if files.keys().all(is_free) {
                files.insert(path, content);
            }
        }
        files
    })
}

fn write(root: &Path, files: &Files) {
    for (path, content) in files {
        let path = root.join(std::ffi::OsStr::from_bytes(path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match content {
            Content::File(bytes) => fs::write(path, bytes).unwrap(),
            Content::Executable(bytes) => {
                fs::write(&path, bytes).unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            Content::Link(target) => symlink(std::ffi::OsStr::from_bytes(target), path).unwrap(),
            Content::Submodule(_) => {}
        }
    }
}

/// Every file and directory, some missing paths, and the root.
fn paths(files: &Files) -> BTreeSet<TreePath> {
    let mut paths = BTreeSet::from([TreePath::root(), TreePath::from_bytes("nope")]);
    for (path, content) in files {
        let path = TreePath::from_bytes(path.clone());
        if !matches!(content, Content::Link(_)) {
            paths.insert(path.join(b"below"));
        }
        paths.insert(path.parent().join(b"nope"));
        let mut at = path;
        while !at.is_root() {
            let parent = at.parent();
            paths.insert(at);
            at = parent;
        }
    }
    paths
}

/// The result of listing or reading a path of a tree, as text.
fn listing(tree: &dyn FileTree, path: &TreePath) -> String {
    let say = |result: Result<Vec<(TreePath, EntryKind)>, TreeError>| match result {
        Ok(entries) => format!("{entries:?}"),
        Err(error) => error.to_string(),
    };
    let entries = tree.entries(path);
    let kind = tree.kind(path).map_or_else(|error| error.to_string(), |kind| format!("{kind:?}"));
    format!(
        "{kind} {}",
        say(entries.map(|entries| entries.into_iter().map(|entry| (entry.path, entry.kind)).collect()))
    )
}

fn reading(tree: &dyn FileTree, entry: &Entry) -> String {
    let mut text = String::new();
    for limit in [usize::MAX, 10, 0] {
        let mut content = b"old".to_vec();
        text += &match tree.read(entry, limit, &mut content) {
            Ok(()) => content.escape_ascii().to_string(),
            Err(error) => error.to_string(),
        };
    }
    if entry.kind == EntryKind::File {
        for token in [b"$imagepolicy".as_slice(), b"\xff"] {
            text += &format!("{:?}", tree.contains(entry, token).unwrap());
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_commit_reads_as_the_directory_that_it_was_made_of(files in files()) {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("tree");
        fs::create_dir(&tree).unwrap();
        write(&tree, &files);
        let changes: Vec<Change> =
            files.iter().map(|(path, content)| change(path.clone(), content.clone())).collect();
        let repository = BareRepository::with_files(&root.path().join("fleet.git"), &changes);
        let commit = repository.id("main").unwrap().parse().unwrap();
        let objects = git2::Repository::open_bare(repository.path()).unwrap();
        let (directory, commit) = (Directory::open(&tree).unwrap(), GitTree::of(&objects, commit).unwrap());

        let paths = paths(&files);
        for path in &paths {
            prop_assert_eq!(listing(&commit, path), listing(&directory, path), "{}", path);
        }
        for entry in commit.entries(&TreePath::root()).unwrap() {
            let without_id = Entry { content: None, ..entry.clone() };
            let expected = reading(&directory, &entry);
            prop_assert_eq!(&reading(&commit, &entry), &expected, "{}", entry.path);
            prop_assert_eq!(&reading(&commit, &without_id), &expected, "{}", entry.path);
        }
        for path in paths {
            let Ok(text) = String::from_utf8(path.as_bytes().to_vec()) else { continue };
            let request = UpdateRequest {
                path: Some(text),
                setters: setters([("podinfo", "2.0.0")]),
                ..UpdateRequest::default()
            };
            let plan = |tree: &dyn FileTree| match plan(tree, &request, &mut MarkerIndex::default(), &mut |_| Ok(())) {
                Ok(plan) => outline(&plan, tree),
                Err(error) => tagboat::error::chain(&error),
            };
            prop_assert_eq!(plan(&commit), plan(&directory), "{}", path);
        }
        prop_assert!(!commit.is_damaged());
    }
}

#[test]
fn a_git_directory_in_a_commit_is_not_searched() {
    let root = tempfile::tempdir().unwrap();
    let files = [change("x/config.yaml", Content::File(tag_line("1.0.0").into_bytes()))];
    let repository = BareRepository::with_files(&root.path().join("fleet.git"), &files);
    let inner = repository.id("main:x").unwrap();
    let tree =
        output(git(repository.path()).arg("mktree"), format!("040000 tree {inner}\t.git\n").as_bytes());
    let tree = String::from_utf8(tree).unwrap();
    let commit = repository.git(["commit-tree", "-m", "Odd", tree.trim()]);
    let commit = String::from_utf8(commit).unwrap().trim().parse().unwrap();
    let objects = git2::Repository::open_bare(repository.path()).unwrap();
    let tree = GitTree::of(&objects, commit).unwrap();
    assert_eq!(tree.entries(&TreePath::root()).unwrap(), []);
}
