//! Tokens.

use std::borrow::Cow;
use std::fmt;

use crate::format::quote;

/// A token of a template.
#[derive(Debug, Clone)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind,
    /// Its position in bytes.
    pub(super) at: usize,
    /// The token itself, or an error message.
    pub(super) text: Cow<'t, str>,
    /// The line on which it begins, from 1.
    pub(super) line: usize,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelimiter,
    LeftParenthesis,
    Number,
    Pipe,
    RawString,
    RightDelimiter,
    RightParenthesis,
    Space,
    String,
    Text,
    Variable,
    Dot,
    Nil,
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

impl TokenKind {
    /// Returns the kind of a keyword.
    pub(super) fn of_keyword(word: &str) -> Option<Self> {
        Some(match word {
            "block" => Self::Block,
            "break" => Self::Break,
            "continue" => Self::Continue,
            "define" => Self::Define,
            "else" => Self::Else,
            "end" => Self::End,
            "if" => Self::If,
            "range" => Self::Range,
            "nil" => Self::Nil,
            "template" => Self::Template,
            "with" => Self::With,
            _ => return None,
        })
    }

    fn is_keyword(self) -> bool {
        matches!(
            self,
            Self::Dot
                | Self::Nil
                | Self::Block
                | Self::Break
                | Self::Continue
                | Self::Define
                | Self::Else
                | Self::End
                | Self::If
                | Self::Range
                | Self::Template
                | Self::With
        )
    }
}

impl Token<'_> {
    /// Returns a placeholder for a token that was not read yet.
    pub(super) fn none() -> Self {
        Self { kind: TokenKind::Error, at: 0, text: Cow::Borrowed(""), line: 0 }
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TokenKind::Eof => formatter.write_str("EOF"),
            TokenKind::Error => formatter.write_str(&self.text),
            kind if kind.is_keyword() => write!(formatter, "<{}>", self.text),
            _ if self.text.len() > 10 => {
                let begin: String = self.text.chars().take(10).collect();
                write!(formatter, "{}...", quote(&begin))
            }
            _ => formatter.write_str(&quote(&self.text)),
        }
    }
}
