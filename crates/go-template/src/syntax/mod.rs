//! The language: from text to trees.

mod control;
mod item;
mod lexer;
mod node;
mod number;
mod parser;
mod pipeline;
mod show;
mod unquote;

pub(crate) use node::{Branch, BranchKind, Command, Name, Node, Pipe, Place, Term, Variable};
pub(crate) use number::Number;
pub(crate) use parser::parse;

/// How deep actions and parentheses may stand in one another.
pub(crate) const DEEPEST: usize = 100;
