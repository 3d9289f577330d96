//! Trees of files as values, which can be written, read and compared byte for byte.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A file or a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// A file with these bytes.
    File(Vec<u8>),
    /// A link to this target.
    Link(PathBuf),
}

/// Files and links by their path from the root.
/// Directories are part of the paths only.
pub(crate) type Tree = BTreeMap<PathBuf, Node>;

/// A tree of text files.
pub(crate) fn of_texts<const N: usize>(files: [(&str, &str); N]) -> Tree {
    files.into_iter().map(|(path, text)| (path.into(), Node::File(text.into()))).collect()
}

/// Reads a tree without following any link.
pub(crate) fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for item in
            fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        {
            let path = item.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            let key = path.strip_prefix(root).unwrap().to_owned();
            if kind.is_dir() {
                directories.push(path);
            } else if kind.is_symlink() {
                tree.insert(key, Node::Link(fs::read_link(&path).unwrap()));
            } else {
                tree.insert(key, Node::File(fs::read(&path).unwrap()));
            }
        }
    }
    tree
}

/// Writes a tree below `root`.
pub(crate) fn write(root: &Path, tree: &Tree) {
    fs::create_dir_all(root).unwrap();
    for (path, node) in tree {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match node {
            Node::File(content) => fs::write(&path, content).unwrap(),
            Node::Link(target) => symlink(target, &path).unwrap(),
        }
    }
}

/// The differences between two trees as text; empty if they are equal.
pub(crate) fn differences(wanted: &Tree, found: &Tree) -> String {
    let mut text = String::new();
    let paths: std::collections::BTreeSet<_> = wanted.keys().chain(found.keys()).collect();
    for path in paths {
        let (wanted, found) = (wanted.get(path), found.get(path));
        if wanted != found {
            let show = |node: Option<&Node>| match node {
                None => "(nothing)".to_owned(),
                Some(Node::Link(target)) => format!("link to {}", target.display()),
                Some(Node::File(content)) => content.escape_ascii().to_string().replace("\\n", "\\n\n    "),
            };
            let path = path.display();
            writeln!(text, "  {path}\n  wanted:\n    {}\n  found:\n    {}", show(wanted), show(found))
                .unwrap();
        }
    }
    text
}
