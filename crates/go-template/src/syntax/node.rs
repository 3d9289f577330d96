//! The syntax trees of templates.

use std::fmt;
use std::sync::Arc;

use super::Number;
use crate::functions::Function;
use crate::text::Text;

/// The name of a template: a string constant, which may hold any bytes.
pub(crate) type Name = Text;

/// An element of a template.
#[derive(Debug)]
pub(crate) enum Node {
    Text { at: usize, text: Text },
    Action { at: usize, pipe: Pipe },
    Branch(Branch),
    Template { at: usize, name: Name, pipe: Option<Pipe> },
    Break { at: usize },
    Continue { at: usize },
}

/// `if`, `with` or `range`.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) at: usize,
    pub(crate) kind: BranchKind,
    pub(crate) pipe: Pipe,
    pub(crate) body: Vec<Node>,
    pub(crate) otherwise: Option<Vec<Node>>,
}

/// The keyword of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BranchKind {
    If,
    With,
    Range,
}

/// Commands, each of which passes its value to the next.
///
/// The variables get the value of the last one.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) at: usize,
    pub(crate) is_assignment: bool,
    pub(crate) variables: Vec<Variable>,
    pub(crate) commands: Vec<Command>,
}

/// A function or method with its arguments, or a single value.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) at: usize,
    /// At least one.
    pub(crate) terms: Vec<Term>,
}

/// A variable, with the fields that are read from it.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) at: usize,
    pub(crate) name: Arc<str>,
    pub(crate) fields: Vec<Arc<str>>,
}

/// The smallest part of a command.
#[derive(Debug)]
pub(crate) enum Term {
    Bool { at: usize, truth: bool },
    Chain { at: usize, head: Box<Term>, fields: Vec<Arc<str>> },
    Dot { at: usize },
    Field { at: usize, fields: Vec<Arc<str>> },
    Identifier { at: usize, function: &'static Function },
    Nil { at: usize },
    Number { at: usize, number: Number },
    Pipe(Pipe),
    String { at: usize, quoted: Arc<str>, text: Text },
    Variable(Variable),
}

/// Any part of a tree, for errors that name it.
#[derive(Clone, Copy)]
pub(crate) enum Place<'t> {
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Term(&'t Term),
}

impl Node {
    fn at(&self) -> usize {
        match self {
            Self::Text { at, .. }
            | Self::Action { at, .. }
            | Self::Template { at, .. }
            | Self::Break { at }
            | Self::Continue { at } => *at,
            Self::Branch(branch) => branch.at,
        }
    }
}

impl Term {
    fn at(&self) -> usize {
        match self {
            Self::Bool { at, .. }
            | Self::Chain { at, .. }
            | Self::Dot { at }
            | Self::Field { at, .. }
            | Self::Identifier { at, .. }
            | Self::Nil { at }
            | Self::Number { at, .. }
            | Self::String { at, .. } => *at,
            Self::Pipe(pipe) => pipe.at,
            Self::Variable(variable) => variable.at,
        }
    }

    /// Returns whether this is a constant or the dot.
    ///
    /// Only the first stage of a pipe can be such a value.
    pub(super) fn is_plain_value(&self) -> bool {
        matches!(
            self,
            Self::Bool { .. }
                | Self::Dot { .. }
                | Self::Nil { .. }
                | Self::Number { .. }
                | Self::String { .. }
        )
    }
}

impl Place<'_> {
    /// Returns the position in bytes.
    pub(crate) fn at(&self) -> usize {
        match self {
            Self::Node(node) => node.at(),
            Self::Pipe(pipe) => pipe.at,
            Self::Command(command) => command.at,
            Self::Term(term) => term.at(),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => node.fmt(formatter),
            Self::Pipe(pipe) => pipe.fmt(formatter),
            Self::Command(command) => command.fmt(formatter),
            Self::Term(term) => term.fmt(formatter),
        }
    }
}
