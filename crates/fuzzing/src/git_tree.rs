//! Git trees as a hostile remote can send them, made from an input's bytes.
//!
//! They have odd names and modes, unsorted and duplicate entries, and missing objects or objects of the wrong type.

use git2::{ObjectType, Odb, Oid, Repository};
use tagboat::git::{CommitId, GitTree};
use tagboat::update::{EntryKind, FileTree, TreePath};

use crate::choices::Choices;

/// The maximum number of trees of an input; each may hold those before it.
const TREES: usize = 6;

/// The maximum number of entries of a tree.
const ENTRIES: usize = 4;

/// The content of every blob.
const CONTENT: &[u8] = b"image: podinfo:1.0 # {\"$imagepolicy\": \"a:b\"}\n";

const MODES: [&[u8]; 12] = [
    b"100644",
    b"40000",
    b"100644",
    b"40000",
    b"100755",
    b"120000",
    b"160000",
    b"040000",
    b"100664",
    b"0",
    b"37777777777",
    b"x",
];

const NAMES: [&[u8]; 16] = [
    b"a",
    b"b",
    b"a.yaml",
    b"a-b",
    b"\xc3\xa9",
    b"\xff",
    b".github",
    b".git",
    b".GIT. ",
    b"git~1",
    b"..",
    b".",
    b"",
    b"a/b",
    b"a\\b",
    b"a\nb",
];

/// Lists and reads the tree of a commit, or expects an error message.
///
/// Every listed name must be valid in a checkout.
pub fn git_tree(input: &[u8]) {
    let odb = Odb::new().expect("a database of objects needs no file");
    odb.add_new_mempack_backend(1).expect("a database takes a backend");
    let repository = Repository::from_odb(odb).expect("a repository needs no more than a database");
    let odb = repository.odb().expect("the repository has its database");
    let Some(commit) = write_commit(&odb, &mut Choices::new(input)) else { return };
    match GitTree::of(&repository, CommitId::from(commit)) {
        Ok(tree) => check(&tree),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Returns the commit of the input's last tree; `None` if libgit2 rejects an object.
fn write_commit(odb: &Odb<'_>, choices: &mut Choices<'_>) -> Option<Oid> {
    let blob = odb.write(ObjectType::Blob, CONTENT).ok()?;
    let missing = Oid::from_bytes(&[7; 20]).expect("an id has 20 bytes");
    let mut targets = vec![blob, missing];
    for _ in 0..=choices.below(TREES) {
        let mut entries: Vec<Vec<u8>> =
            (0..choices.below(ENTRIES + 1)).map(|_| entry(choices, &targets)).collect();
        if choices.below(3) != 2 {
            entries.sort_by_key(|entry| entry.split(|&byte| byte == b' ').nth(1).map(<[u8]>::to_vec));
        }
        let mut tree = entries.concat();
        if choices.one_in(8) {
            tree.extend(choices.bytes(24));
        }
        targets.push(odb.write(ObjectType::Tree, &tree).ok()?);
    }
    let tree = targets.last().expect("there is a blob at least");
    let text = format!("tree {tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n");
    odb.write(ObjectType::Commit, text.as_bytes()).ok()
}

fn entry(choices: &mut Choices<'_>, targets: &[Oid]) -> Vec<u8> {
    let mode = choices.one_of(&MODES);
    let name = if choices.one_in(4) { choices.bytes(8) } else { choices.one_of(&NAMES).to_vec() };
    let target = targets[targets.len() - 1 - choices.below(targets.len())];
    [mode, b" ", name.as_slice(), b"\0", target.as_bytes()].concat()
}

fn check(tree: &GitTree<'_>) {
    let entries = match tree.entries(&TreePath::root()) {
        Ok(entries) => entries,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for entry in &entries {
        assert!(matches!(entry.kind, EntryKind::File | EntryKind::Link), "{entry:?}");
        let parts = entry.path.as_bytes().split(|&byte| byte == b'/');
        for part in parts {
            let is_plain = !part.is_empty() && !part.eq_ignore_ascii_case(b".git") && !part.contains(&0);
            assert!(is_plain && part != b"." && part != b"..", "{}", entry.path);
        }
        let mut content = Vec::new();
        if tree.read(entry, CONTENT.len(), &mut content).is_ok() {
            assert_eq!(content, CONTENT, "{}", entry.path);
        }
        // In an unsorted tree, or one with duplicate names, a path may lead elsewhere or nowhere.
        let _ = tree.kind(&entry.path);
    }
}
