//! Hostile git objects, written by hand, which git itself would not make.

use std::fs;
use std::os::unix::fs::MetadataExt;

use git2::{ObjectType, Oid, Repository};
use tagboat::directory::Directory;
use tagboat::error::chain;
use tagboat::git::outcome::Outcome;
use tagboat::git::{Failure, GitTree};
use tagboat::update::{FileTree, MarkerIndex, TreeError, TreePath, UpdateRequest, plan};
use tempfile::TempDir;

use super::local_remote::LocalRemote;
use crate::support::bare_repository::BareRepository;
use crate::support::content::{Content, change, file};
use crate::support::fleet::tag_line;

const FILE: &str = "100644";
const LINK: &str = "120000";
const DIRECTORY: &str = "40000";

/// An entry of a tree: mode, name and object.
type Line<'l> = (&'l str, &'l str, Oid);

/// Writes a tree with these entries as they are, in git's order.
fn tree(objects: &Repository, entries: &[Line<'_>]) -> Oid {
    let lines = entries
        .iter()
        .flat_map(|(mode, name, id)| [mode.as_bytes(), b" ", name.as_bytes(), b"\0", id.as_bytes()].concat());
    objects.odb().unwrap().write(ObjectType::Tree, &lines.collect::<Vec<u8>>()).unwrap()
}

/// Nested directories to a depth, with a marked file in the innermost.
fn nested(objects: &Repository, depth: usize) -> Oid {
    let file = objects.blob(tag_line("1.0.0").as_bytes()).unwrap();
    (0..depth)
        .fold(tree(objects, &[(FILE, "a.yaml", file)]), |below, _| tree(objects, &[(DIRECTORY, "d", below)]))
}

/// Moves `main` to a new commit of this tree.
fn commit(repository: &BareRepository, tree: Oid) -> String {
    let tree = tree.to_string();
    let commit = String::from_utf8(repository.git(["commit-tree", "-m", "By hand", &tree])).unwrap();
    repository.move_branch("main", commit.trim());
    commit.trim().to_owned()
}

fn repository() -> (TempDir, BareRepository, Repository) {
    let root = tempfile::tempdir().unwrap();
    let repository = BareRepository::empty(&root.path().join("fleet.git"));
    let objects = Repository::open_bare(repository.path()).unwrap();
    (root, repository, objects)
}

/// The error of listing the tree of a commit.
#[track_caller]
fn refusal(objects: &Repository, commit: &str) -> TreeError {
    let tree = GitTree::of(objects, commit.parse().unwrap()).unwrap();
    let error = tree.entries(&TreePath::root()).unwrap_err();
    assert!(!tree.is_damaged());
    error
}

#[test]
fn a_tree_nested_six_thousand_deep_is_refused() {
    let (root, repository, objects) = repository();
    let error = refusal(&objects, &commit(&repository, nested(&objects, 6000)));
    assert!(matches!(error, TreeError::TooDeep { .. }), "{error}");

    // A commit and a directory have the same limit of depth.
    for (depth, is_refused) in [(199, false), (200, true)] {
        let id = commit(&repository, nested(&objects, depth));
        let committed = GitTree::of(&objects, id.parse().unwrap()).unwrap();
        let local = root.path().join(depth.to_string());
        let parts = vec!["d"; depth].join("/");
        fs::create_dir_all(local.join(&parts)).unwrap();
        fs::write(local.join(&parts).join("a.yaml"), tag_line("1.0.0")).unwrap();
        let file = TreePath::from_bytes(format!("{parts}/a.yaml"));
        for tree in [&committed as &dyn FileTree, &Directory::open(&local).unwrap()] {
            let (listing, kind) = (tree.entries(&TreePath::root()), tree.kind(&file));
            if is_refused {
                assert!(matches!(listing, Err(TreeError::TooDeep { .. })), "{listing:?}");
                assert!(matches!(kind, Err(TreeError::TooDeep { .. })), "{kind:?}");
            } else {
                assert_eq!((listing.unwrap().len(), kind.is_ok()), (1, true));
            }
        }
    }
}

#[test]
fn a_few_objects_that_stand_for_a_tree_without_end_are_refused() {
    let (_root, repository, objects) = repository();
    let names: Vec<String> = (0..10).map(|number| format!("d{number}")).collect();
    let bomb = (0..10).fold(nested(&objects, 0), |below, _| {
        tree(&objects, &names.iter().map(|name| (DIRECTORY, name.as_str(), below)).collect::<Vec<_>>())
    });
    let error = refusal(&objects, &commit(&repository, bomb));
    assert!(matches!(error, TreeError::TooMany { .. }), "{error}");
}

#[test]
fn a_mirror_of_a_tree_that_is_too_deep_is_kept_and_the_tree_reported() {
    let local = LocalRemote::new(&[file("app.yaml", tag_line("1.0.0"))]);
    local.update("1.0.0").unwrap();
    let inode = || fs::metadata(local.mirror()).unwrap().ino();
    let before = inode();
    let objects = Repository::open_bare(local.remote.path()).unwrap();
    commit(&local.remote, nested(&objects, 300));
    let Err(Failure::Proposer(error)) = local.dry_run("2.0.0").result else { panic!("it was taken") };
    assert!(
        chain(&error).starts_with("a path has more than 200 parts, the limit: d/d/d/"),
        "{}",
        chain(&error)
    );
    assert_eq!(inode(), before);
}

#[test]
fn a_commit_is_made_beside_names_that_git_refuses() {
    let local = LocalRemote::new(&[file("app.yaml", tag_line("1.0.0"))]);
    let objects = Repository::open_bare(local.remote.path()).unwrap();
    let marked = objects.blob(tag_line("1.0.0").as_bytes()).unwrap();
    let target = objects.blob(b".GIT/a.yaml").unwrap();
    let inner = tree(&objects, &[(FILE, "a.yaml", marked)]);
    let root = tree(
        &objects,
        &[
            (DIRECTORY, "..", inner),
            (DIRECTORY, ".GIT", inner),
            (DIRECTORY, ".git", inner),
            (FILE, ".git:a.yaml", marked),
            (FILE, "app.yaml", marked),
            (DIRECTORY, "git~1", inner),
            (LINK, "link.yaml", target),
            (FILE, "x/y.yaml", marked),
        ],
    );
    commit(&local.remote, root);
    let Outcome::Pushed(push) = local.update("2.0.0").unwrap() else { panic!("nothing was pushed") };
    let changed = local.remote.git(["diff", "--name-only", "main~", &push.commit.to_string()]);
    assert_eq!(String::from_utf8(changed).unwrap(), "app.yaml\n");
    assert!(matches!(local.update("2.0.0").unwrap(), Outcome::NothingToCommit { .. }));
}

#[test]
fn a_link_is_not_read_beyond_its_limit_nor_a_file_searched_that_memory_should_not_hold() {
    let root = tempfile::tempdir().unwrap();
    let long = [b"../".repeat(100_000), b"a.yaml".to_vec()].concat();
    let size = 64 * 1024 * 1024 + 1;
    let files = [change("link.yaml", Content::Link(long.clone())), file("large.yaml", vec![b' '; size])];
    let repository = BareRepository::with_files(&root.path().join("fleet.git"), &files);
    let objects = Repository::open_bare(repository.path()).unwrap();
    let tree = GitTree::of(&objects, repository.id("main").unwrap().parse().unwrap()).unwrap();

    let entries = tree.entries(&TreePath::root()).unwrap();
    let [file, link] = entries.as_slice() else { panic!("{entries:?}") };
    let read = tree.read(link, 4096, &mut Vec::new());
    assert!(matches!(read, Err(TreeError::TooLarge { size, .. }) if size == long.len() as u64), "{read:?}");
    let search = tree.contains(file, b"x");
    assert!(matches!(search, Err(TreeError::TooLarge { .. })), "{search:?}");

    let plan = plan(&tree, &UpdateRequest::default(), &mut MarkerIndex::default(), &mut |_| Ok(())).unwrap();
    let skipped: Vec<_> = plan.skipped.iter().map(|it| format!("{}: {}", it.file, it.cause)).collect();
    assert_eq!(skipped, ["link.yaml: it cannot be read"]);
    let unparsable: Vec<_> = plan.unparsable.iter().map(|it| format!("{}: {}", it.file, it.error)).collect();
    assert_eq!(
        unparsable,
        [format!("large.yaml: the file has {size} bytes, more than the limit of 16777216")]
    );
}
