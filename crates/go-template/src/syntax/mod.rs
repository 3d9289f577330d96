//! The syntax: from text to trees.

mod control;
mod display;
mod lexer;
mod node;
mod number;
mod parser;
mod pipeline;
mod token;
mod unquote;

pub(crate) use node::{Branch, BranchKind, Command, Name, Node, Pipe, Place, Term, Variable};
pub(crate) use number::Number;
pub(crate) use parser::parse;

/// The maximum nesting depth of actions and parentheses.
pub(crate) const MAX_DEPTH: usize = 100;
