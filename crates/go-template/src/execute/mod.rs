//! The executor: walks the tree of a template with its data.

mod argument;
mod call;
mod field;
mod operand;
mod pipe;
mod range;

use std::sync::Arc;

use crate::budget::{Budget, Failure};
use crate::format::{print_value, quote_bytes};
use crate::syntax::{Branch, BranchKind, Name, Node, Pipe, Place};
use crate::template::Template;
use crate::text::shown;
use crate::value::Value;

use operand::Operand;

/// The maximum number of variables in scope.
const MAX_VARIABLES: usize = 10_000;

/// Renders a template with data; the error is Go's message.
pub(crate) fn execute(template: &Template, data: &Value, budget: &mut Budget<'_>) -> Result<Vec<u8>, String> {
    budget.exempt(data);
    let name: Name = template.name().into();
    let nodes = template.tree(&name).expect("parsing adds the tree of the template's own name");
    let dot = Operand::of(data.clone());
    let mut state = State {
        template,
        name,
        place: None,
        variables: vec![("$".into(), dot.clone())],
        outer_variables: 0,
        depth: 0,
        out: Vec::new(),
        budget,
    };
    state.walk_all(&dot, nodes)?;
    Ok(state.out)
}

/// The state of the walk.
struct State<'t, 'b, 'i> {
    template: &'t Template,
    /// The name of the template that is being executed.
    name: Name,
    /// The node that was evaluated last, for errors.
    place: Option<Place<'t>>,
    variables: Vec<(Arc<str>, Operand)>,
    /// The number of variables of the calling templates.
    outer_variables: usize,
    depth: usize,
    out: Vec<u8>,
    budget: &'b mut Budget<'i>,
}

/// The control flow after a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

impl<'t> State<'t, '_, '_> {
    fn at(&mut self, place: Place<'t>) {
        self.place = Some(place);
    }

    fn error<T>(&self, message: impl std::fmt::Display) -> Result<T, String> {
        let Some(place) = &self.place else {
            return Err(format!("template: {}: {message}", self.name));
        };
        let location = self.template.location(place.at());
        let name = quote_bytes(self.name.as_bytes());
        Err(format!("template: {location}: executing {name} at <{place}>: {message}"))
    }

    /// Makes an error at the node that was evaluated last.
    fn fail<T>(&self, failure: Failure) -> Result<T, String> {
        self.error(failure.0)
    }

    fn step(&mut self) -> Result<(), String> {
        self.budget.step(0).or_else(|failure| self.fail(failure))
    }

    /// Walks a part one nesting level deeper.
    fn deeper<T>(&mut self, walk: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        let most = self.budget.limits().depth;
        if self.depth == most {
            return self.error(format_args!("the template goes deeper than the limit of {most} levels"));
        }
        self.depth += 1;
        let result = walk(self)?;
        self.depth -= 1;
        Ok(result)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let most = self.budget.limits().output;
        if self.out.len() + bytes.len() > most {
            return self.error(format_args!("the text is longer than the limit of {most} bytes"));
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn walk_all(&mut self, dot: &Operand, nodes: &'t [Node]) -> Result<Flow, String> {
        for node in nodes {
            let flow = self.walk(dot, node)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn walk(&mut self, dot: &Operand, node: &'t Node) -> Result<Flow, String> {
        self.at(Place::Node(node));
        self.step()?;
        match node {
            Node::Text { text, .. } => self.write(text.as_bytes())?,
            Node::Action { pipe, .. } => {
                let value = self.pipe(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.at(Place::Node(node));
                    self.show(&value)?;
                }
            }
            Node::Break { .. } => return Ok(Flow::Break),
            Node::Continue { .. } => return Ok(Flow::Continue),
            Node::Branch(branch) => {
                let known = self.variables.len();
                let flow = self.deeper(|state| match branch.kind {
                    BranchKind::Range => state.range(dot, branch),
                    BranchKind::If | BranchKind::With => state.choose(dot, branch),
                })?;
                self.variables.truncate(known);
                return Ok(flow);
            }
            Node::Template { name, pipe, .. } => self.template(dot, name, pipe.as_ref())?,
        }
        Ok(Flow::Next)
    }

    fn choose(&mut self, dot: &Operand, branch: &'t Branch) -> Result<Flow, String> {
        let value = self.pipe(dot, &branch.pipe)?;
        if value.value.is_true() {
            let dot = if branch.kind == BranchKind::With { &value } else { dot };
            return self.walk_all(dot, &branch.body);
        }
        branch.otherwise.as_ref().map_or(Ok(Flow::Next), |otherwise| self.walk_all(dot, otherwise))
    }

    fn template(&mut self, dot: &Operand, name: &Name, pipe: Option<&'t Pipe>) -> Result<(), String> {
        let place = self.place;
        let Some(nodes) = self.template.tree(name) else {
            return self.error(format_args!("template {} not defined", quote_bytes(name.as_bytes())));
        };
        let dot = match pipe {
            Some(pipe) => self.pipe(dot, pipe)?,
            None => Operand::none(),
        };
        self.deeper(|state| {
            let outer = std::mem::replace(&mut state.name, name.clone());
            let variables = std::mem::replace(&mut state.variables, vec![("$".into(), dot.clone())]);
            state.outer_variables += variables.len();
            state.walk_all(&dot, nodes)?;
            state.outer_variables -= variables.len();
            state.variables = variables;
            state.name = outer;
            Ok(())
        })?;
        self.place = place;
        Ok(())
    }

    /// Writes a value as an action prints it.
    fn show(&mut self, operand: &Operand) -> Result<(), String> {
        let value = operand.value.indirect();
        let bytes = match &value {
            Value::Nil => b"<no value>".to_vec(),
            Value::String(text) => text.as_bytes().to_vec(),
            Value::Function(function) => {
                let place = self.place.map(|place| place.to_string()).unwrap_or_default();
                return self.error(format_args!("can't print {place} of type {}", function.signature()));
            }
            value => {
                let most = self.budget.limits().output;
                print_value(value, most).or_else(|failure| self.fail(failure))?
            }
        };
        self.write(&bytes)?;
        self.budget.step(bytes.len()).or_else(|failure| self.fail(failure))
    }

    /// Formats a value for an error message.
    fn shown(&self, value: &Value) -> String {
        shown(&print_value(value, self.budget.most()).unwrap_or_default())
    }
}
