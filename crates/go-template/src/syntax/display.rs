//! Formats trees as source text, for errors that quote the failing part.

use std::fmt;

use super::{Branch, BranchKind, Command, Node, Pipe, Term, Variable};
use crate::format::quote_bytes;

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { text, .. } => text.fmt(formatter),
            Self::Action { pipe, .. } => write!(formatter, "{{{{{pipe}}}}}"),
            Self::Branch(branch) => branch.fmt(formatter),
            Self::Template { name, pipe, .. } => {
                let name = quote_bytes(name.as_bytes());
                match pipe {
                    Some(pipe) => write!(formatter, "{{{{template {name} {pipe}}}}}"),
                    None => write!(formatter, "{{{{template {name}}}}}"),
                }
            }
            Self::Break { .. } => formatter.write_str("{{break}}"),
            Self::Continue { .. } => formatter.write_str("{{continue}}"),
        }
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.kind {
            BranchKind::If => "if",
            BranchKind::With => "with",
            BranchKind::Range => "range",
        };
        write!(formatter, "{{{{{word} {}}}}}", self.pipe)?;
        self.body.iter().try_for_each(|node| node.fmt(formatter))?;
        if let Some(otherwise) = &self.otherwise {
            formatter.write_str("{{else}}")?;
            otherwise.iter().try_for_each(|node| node.fmt(formatter))?;
        }
        formatter.write_str("{{end}}")
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, variable) in self.variables.iter().enumerate() {
            formatter.write_str(if i > 0 { ", " } else { "" })?;
            variable.fmt(formatter)?;
        }
        if !self.variables.is_empty() {
            formatter.write_str(if self.is_assignment { " = " } else { " := " })?;
        }
        for (i, command) in self.commands.iter().enumerate() {
            formatter.write_str(if i > 0 { " | " } else { "" })?;
            command.fmt(formatter)?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            formatter.write_str(if i > 0 { " " } else { "" })?;
            in_parentheses(term, formatter)?;
        }
        Ok(())
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        self.fields.iter().try_for_each(|field| write!(formatter, ".{field}"))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool { truth, .. } => truth.fmt(formatter),
            Self::Chain { head, fields, .. } => {
                in_parentheses(head, formatter)?;
                fields.iter().try_for_each(|field| write!(formatter, ".{field}"))
            }
            Self::Dot { .. } => formatter.write_str("."),
            Self::Field { fields, .. } => fields.iter().try_for_each(|field| write!(formatter, ".{field}")),
            Self::Identifier { function, .. } => formatter.write_str(function.name),
            Self::Nil { .. } => formatter.write_str("nil"),
            Self::Number { number, .. } => formatter.write_str(&number.text),
            Self::Pipe(pipe) => pipe.fmt(formatter),
            Self::String { quoted, .. } => formatter.write_str(quoted),
            Self::Variable(variable) => variable.fmt(formatter),
        }
    }
}

fn in_parentheses(term: &Term, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    if matches!(term, Term::Pipe(_)) { write!(formatter, "({term})") } else { write!(formatter, "{term}") }
}
