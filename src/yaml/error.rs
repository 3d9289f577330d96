//! The errors of reading a file as YAML.

use std::str::Utf8Error;

/// An error with its position in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}")]
pub struct YamlError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The cause.
    #[source]
    pub cause: YamlErrorKind,
}

impl YamlError {
    /// Makes the error of bytes that are not UTF-8, at their first invalid byte.
    pub fn not_utf8(content: &[u8], error: Utf8Error) -> Self {
        let before = &content[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let column = 1 + String::from_utf8_lossy(&before[start..]).chars().count();
        Self { line, column, cause: YamlErrorKind::NotUtf8 }
    }
}

/// The cause of an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlErrorKind {
    /// The bytes are not UTF-8.
    #[error("the file is not valid UTF-8 here")]
    NotUtf8,
    /// The bytes are not YAML.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// Collections are nested deeper than [`Limits::depth`](super::Limits::depth).
    #[error("nested more than {limit} levels deep")]
    TooDeep {
        /// The limit in levels.
        limit: usize,
    },
    /// Aliases expand to more nodes than [`Limits::alias_nodes`](super::Limits::alias_nodes).
    #[error("its aliases stand for more than {limit} values")]
    TooManyAliases {
        /// The limit in nodes.
        limit: u64,
    },
    /// An alias is inside the node that it refers to.
    #[error("the alias refers to a value that contains it")]
    AliasLoop,
    /// A comment is longer than [`Limits::comment_length`](super::Limits::comment_length).
    #[error("a comment of more than {limit} bytes")]
    CommentTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// A run of comments is longer than [`Limits::comment_run`](super::Limits::comment_run).
    #[error("more than {limit} comments without a value between them")]
    TooManyComments {
        /// The limit in comments.
        limit: usize,
    },
    /// There are more markers than [`Limits::markers`](super::Limits::markers).
    #[error("more than {limit} markers and near misses")]
    TooManyMarkers {
        /// The limit in markers.
        limit: usize,
    },
    /// The bytes after an edit did not read as intended; the edit is discarded.
    #[error("after the edit the file would not read as intended, so it is unchanged")]
    EditNotFaithful,
}

/// The parser's error, printed without its position, which [`YamlError`] states.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.info())]
pub struct SyntaxError(pub(super) granit_parser::ScanError);
