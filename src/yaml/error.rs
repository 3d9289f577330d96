//! Why a file could not be read as YAML.

use tagboat_api::Reason;

use crate::failing::Failing;

/// A place in a file and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}")]
pub struct YamlError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What is wrong.
    #[source]
    pub cause: Cause,
}

/// One answer for every file that cannot be read: it stands in a repository, and the next commit may mend it.
///
/// An update lists such files and goes on, so this ends a reconcile only where one file is all there is to do. A
/// [`Cause`] has no answer of its own, for it is always part of this error.
impl Failing for YamlError {
    fn reason(&self) -> Reason {
        Reason::UpdateFailed
    }

    fn is_retryable(&self) -> bool {
        true
    }
}

/// What can be wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The bytes are not UTF-8.
    #[error("the file is not valid UTF-8 here")]
    NotUtf8,
    /// The bytes are not YAML.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// Nesting beyond [`Limits::depth`](super::Limits::depth).
    #[error("nested more than {limit} levels deep")]
    TooDeep {
        /// The limit in levels.
        limit: usize,
    },
    /// Aliases that multiply beyond [`Limits::alias_nodes`](super::Limits::alias_nodes).
    #[error("its aliases stand for more than {limit} values")]
    TooManyAliases {
        /// The limit in nodes.
        limit: u64,
    },
    /// An alias inside the very node it names.
    #[error("the alias refers to a value that contains it")]
    AliasLoop,
    /// A comment beyond [`Limits::comment_length`](super::Limits::comment_length).
    #[error("a comment of more than {limit} bytes")]
    CommentTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// A run of comments beyond [`Limits::comment_run`](super::Limits::comment_run).
    #[error("more than {limit} comments without a value between them")]
    TooManyComments {
        /// The limit in comments.
        limit: usize,
    },
    /// More markers than [`Limits::markers`](super::Limits::markers).
    #[error("more than {limit} markers and near misses")]
    TooManyMarkers {
        /// The limit in markers.
        limit: usize,
    },
    /// The bytes after an edit did not read as intended; the edit is given up.
    #[error("after the edit the file would not read as intended, so it was left as it is")]
    EditNotFaithful,
}

/// The parser's error, which prints without the place: that one stands in the [`YamlError`] around it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.info())]
pub struct SyntaxError(pub(super) granit_parser::ScanError);
