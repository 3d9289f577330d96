//! The parser: from tokens to the trees of a template and of the templates that it defines.

use std::collections::HashMap;
use std::sync::Arc;

use super::item::{Item, Kind};
use super::lexer::Lexer;
use super::unquote::unquote;
use super::{DEEPEST, Name, Node};
use crate::functions::Function;

/// Finds a function by its name.
pub(crate) type Find = fn(&str) -> Option<&'static Function>;

/// The trees of a text by template name.
pub(crate) type Trees = HashMap<Name, Vec<Node>>;

/// Parses a text into trees; its own tree has the given name.
pub(crate) fn parse(name: &str, text: &str, find: Find) -> Result<Trees, String> {
    let lexer = Lexer::new(text);
    let mut parser = Parser { name, lexer, find, trees: Trees::new(), tree: Tree::new(), depth: 0 };
    let nodes = parser.top()?;
    parser.add(name.into(), nodes)?;
    Ok(parser.trees)
}

pub(super) struct Parser<'t> {
    name: &'t str,
    lexer: Lexer<'t>,
    pub(super) find: Find,
    trees: Trees,
    pub(super) tree: Tree<'t>,
    /// The current nesting depth of actions and parentheses.
    depth: usize,
}

/// The parser state of one template; an inner definition has its own.
pub(super) struct Tree<'t> {
    /// The lookahead tokens, the next one last.
    ///
    /// The first position also has the line for errors.
    items: [Item<'t>; 3],
    ahead: usize,
    pub(super) variables: Vec<Arc<str>>,
    /// The line on which the action began, 0 outside actions.
    action_line: usize,
    pub(super) ranges: usize,
}

/// The end of a list of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    End,
    Else,
}

/// A node, or the end of the list.
pub(super) enum Step {
    Node(Node),
    Stop(Stop),
}

impl Tree<'_> {
    fn new() -> Self {
        let items = [Item::none(), Item::none(), Item::none()];
        Self { items, ahead: 0, variables: vec!["$".into()], action_line: 0, ranges: 0 }
    }
}

impl Stop {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

impl<'t> Parser<'t> {
    pub(super) fn next(&mut self) -> Item<'t> {
        if self.tree.ahead > 0 {
            self.tree.ahead -= 1;
        } else {
            self.tree.items[0] = self.lexer.next_item();
        }
        self.tree.items[self.tree.ahead].clone()
    }

    pub(super) fn back(&mut self) {
        self.tree.ahead += 1;
    }

    pub(super) fn back_two(&mut self, first: Item<'t>) {
        self.tree.items[1] = first;
        self.tree.ahead = 2;
    }

    pub(super) fn back_three(&mut self, first: Item<'t>, second: Item<'t>) {
        self.tree.items[1] = second;
        self.tree.items[2] = first;
        self.tree.ahead = 3;
    }

    pub(super) fn peek(&mut self) -> Item<'t> {
        if self.tree.ahead == 0 {
            self.tree.ahead = 1;
            self.tree.items[0] = self.lexer.next_item();
        }
        self.tree.items[self.tree.ahead - 1].clone()
    }

    pub(super) fn next_after_space(&mut self) -> Item<'t> {
        loop {
            let item = self.next();
            if item.kind != Kind::Space {
                return item;
            }
        }
    }

    pub(super) fn peek_after_space(&mut self) -> Item<'t> {
        let item = self.next_after_space();
        self.back();
        item
    }

    pub(super) fn error<T>(&self, message: impl std::fmt::Display) -> Result<T, String> {
        Err(format!("template: {}:{}: {message}", self.name, self.tree.items[0].line))
    }

    pub(super) fn unexpected<T>(&self, item: &Item<'t>, context: &str) -> Result<T, String> {
        if item.kind != Kind::Error {
            return self.error(format_args!("unexpected {item} in {context}"));
        }
        let started = self.tree.action_line;
        if started == 0 || started == item.line {
            return self.error(item);
        }
        let action = if item.text.ends_with(" action") { "" } else { " in action" };
        self.error(format_args!("{item}{action} started at {}:{started}", self.name))
    }

    pub(super) fn expect(&mut self, kind: Kind, context: &str) -> Result<Item<'t>, String> {
        let item = self.next_after_space();
        if item.kind == kind { Ok(item) } else { self.unexpected(&item, context) }
    }

    /// Parses a part one nesting level deeper.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.depth == DEEPEST {
            return self
                .error(format_args!("actions and parentheses are nested deeper than {DEEPEST} levels"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub(super) fn unquoted(&self, item: &Item<'t>) -> Result<Name, String> {
        unquote(&item.text).map_or_else(|| self.error("invalid syntax"), Ok)
    }

    fn top(&mut self) -> Result<Vec<Node>, String> {
        let mut nodes = Vec::new();
        while self.peek().kind != Kind::Eof {
            if self.peek().kind == Kind::LeftDelimiter {
                let delimiter = self.next();
                if self.next_after_space().kind == Kind::Define {
                    self.definition()?;
                    continue;
                }
                self.back_two(delimiter);
            }
            match self.text_or_action()? {
                Step::Node(node) => nodes.push(node),
                Step::Stop(stop) => return self.error(format_args!("unexpected {}", stop.text())),
            }
        }
        Ok(nodes)
    }

    /// Parses an inner template with a state of its own.
    pub(super) fn inner<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        let outer = std::mem::replace(&mut self.tree, Tree::new());
        let result = self.deeper(read)?;
        self.tree = outer;
        Ok(result)
    }

    fn definition(&mut self) -> Result<(), String> {
        const CONTEXT: &str = "define clause";
        self.inner(|parser| {
            let name = parser.next_after_space();
            if !matches!(name.kind, Kind::String | Kind::RawString) {
                return parser.unexpected(&name, CONTEXT);
            }
            let name = parser.unquoted(&name)?;
            parser.expect(Kind::RightDelimiter, CONTEXT)?;
            let stop = parser.body_of(name)?;
            parser.refuse_else(stop, CONTEXT)
        })
    }

    /// Parses the nodes of an inner template up to its end; text behind an `else` is not read.
    pub(super) fn body_of(&mut self, name: Name) -> Result<Stop, String> {
        let (nodes, stop) = self.list()?;
        if stop == Stop::End {
            self.add(name, nodes)?;
        }
        Ok(stop)
    }

    pub(super) fn refuse_else(&self, stop: Stop, context: &str) -> Result<(), String> {
        match stop {
            Stop::End => Ok(()),
            Stop::Else => self.error(format_args!("unexpected {} in {context}", stop.text())),
        }
    }

    fn add(&mut self, name: Name, nodes: Vec<Node>) -> Result<(), String> {
        if self.trees.get(&name).is_none_or(|before| is_blank(before)) {
            self.trees.insert(name, nodes);
        } else if !is_blank(&nodes) {
            let name = crate::format::quote_bytes(name.as_bytes());
            return self.error(format_args!("template: multiple definition of template {name}"));
        }
        Ok(())
    }

    pub(super) fn list(&mut self) -> Result<(Vec<Node>, Stop), String> {
        let mut nodes = Vec::new();
        while self.peek_after_space().kind != Kind::Eof {
            match self.text_or_action()? {
                Step::Node(node) => nodes.push(node),
                Step::Stop(stop) => return Ok((nodes, stop)),
            }
        }
        self.error("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Result<Step, String> {
        let item = self.next_after_space();
        match item.kind {
            Kind::Text => Ok(Step::Node(Node::Text { at: item.at, text: item.text.as_ref().into() })),
            Kind::LeftDelimiter => {
                self.tree.action_line = item.line;
                let step = self.deeper(Self::action)?;
                self.tree.action_line = 0;
                Ok(step)
            }
            _ => self.unexpected(&item, "input"),
        }
    }
}

/// Returns whether there is only whitespace.
fn is_blank(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| match node {
        Node::Text { text, .. } => text.to_string().chars().all(char::is_whitespace),
        _ => false,
    })
}
