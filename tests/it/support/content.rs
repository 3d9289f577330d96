//! Entries of a commit's tree, and changes to them.

/// The content at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    File(Vec<u8>),
    Executable(Vec<u8>),
    /// A symbolic link, with its target.
    Link(Vec<u8>),
    /// A submodule, with the id of its commit.
    Submodule(String),
}

/// A path and its new content, or its removal.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) path: Vec<u8>,
    pub(crate) content: Option<Content>,
}

/// A plain file.
pub(crate) fn file(path: impl Into<Vec<u8>>, content: impl Into<Vec<u8>>) -> Change {
    change(path, Content::File(content.into()))
}

/// Any content at a path.
pub(crate) fn change(path: impl Into<Vec<u8>>, content: Content) -> Change {
    Change { path: path.into(), content: Some(content) }
}

/// The removal of a path.
pub(crate) fn removed(path: impl Into<Vec<u8>>) -> Change {
    Change { path: path.into(), content: None }
}

impl Content {
    /// Makes an entry from git's listing.
    /// The listing has its mode, its object, and the object's bytes if it is a blob.
    pub(super) fn of_git(mode: &str, id: &str, blob: impl FnOnce() -> Vec<u8>) -> Self {
        match mode {
            "100644" => Self::File(blob()),
            "100755" => Self::Executable(blob()),
            "120000" => Self::Link(blob()),
            "160000" => Self::Submodule(id.to_owned()),
            other => panic!("git has no mode {other}"),
        }
    }

    pub(super) fn mode(&self) -> &'static str {
        match self {
            Self::File(_) => "100644",
            Self::Executable(_) => "100755",
            Self::Link(_) => "120000",
            Self::Submodule(_) => "160000",
        }
    }
}
