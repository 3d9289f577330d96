//! The parser of templates.
//! It makes, from tokens, the trees of a template and of the templates that it defines.

use std::collections::HashMap;
use std::sync::Arc;

use super::lexer::Lexer;
use super::token::{Token, TokenKind};
use super::unquote::unquote;
use super::{MAX_DEPTH, Name, Node};
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
    tokens: [Token<'t>; 3],
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
        let tokens = [Token::none(), Token::none(), Token::none()];
        Self { tokens, ahead: 0, variables: vec!["$".into()], action_line: 0, ranges: 0 }
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
    pub(super) fn next(&mut self) -> Token<'t> {
        if self.tree.ahead > 0 {
            self.tree.ahead -= 1;
        } else {
            self.tree.tokens[0] = self.lexer.next_token();
        }
        self.tree.tokens[self.tree.ahead].clone()
    }

    pub(super) fn back(&mut self) {
        self.tree.ahead += 1;
    }

    pub(super) fn back_two(&mut self, first: Token<'t>) {
        self.tree.tokens[1] = first;
        self.tree.ahead = 2;
    }

    pub(super) fn back_three(&mut self, first: Token<'t>, second: Token<'t>) {
        self.tree.tokens[1] = second;
        self.tree.tokens[2] = first;
        self.tree.ahead = 3;
    }

    pub(super) fn peek(&mut self) -> Token<'t> {
        if self.tree.ahead == 0 {
            self.tree.ahead = 1;
            self.tree.tokens[0] = self.lexer.next_token();
        }
        self.tree.tokens[self.tree.ahead - 1].clone()
    }

    pub(super) fn next_after_space(&mut self) -> Token<'t> {
        loop {
            let token = self.next();
            if token.kind != TokenKind::Space {
                return token;
            }
        }
    }

    pub(super) fn peek_after_space(&mut self) -> Token<'t> {
        let token = self.next_after_space();
        self.back();
        token
    }

    pub(super) fn error<T>(&self, message: impl std::fmt::Display) -> Result<T, String> {
        Err(format!("template: {}:{}: {message}", self.name, self.tree.tokens[0].line))
    }

    pub(super) fn unexpected<T>(&self, token: &Token<'t>, context: &str) -> Result<T, String> {
        if token.kind != TokenKind::Error {
            return self.error(format_args!("unexpected {token} in {context}"));
        }
        let started = self.tree.action_line;
        if started == 0 || started == token.line {
            return self.error(token);
        }
        let action = if token.text.ends_with(" action") { "" } else { " in action" };
        self.error(format_args!("{token}{action} started at {}:{started}", self.name))
    }

    pub(super) fn expect(&mut self, kind: TokenKind, context: &str) -> Result<Token<'t>, String> {
        let token = self.next_after_space();
        if token.kind == kind { Ok(token) } else { self.unexpected(&token, context) }
    }

    /// Parses a part one nesting level deeper.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.depth == MAX_DEPTH {
            return self
                .error(format_args!("actions and parentheses are nested deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub(super) fn unquoted(&self, token: &Token<'t>) -> Result<Name, String> {
        unquote(&token.text).map_or_else(|| self.error("invalid syntax"), Ok)
    }

    fn top(&mut self) -> Result<Vec<Node>, String> {
        let mut nodes = Vec::new();
        while self.peek().kind != TokenKind::Eof {
            if self.peek().kind == TokenKind::LeftDelimiter {
                let delimiter = self.next();
                if self.next_after_space().kind == TokenKind::Define {
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
            if !matches!(name.kind, TokenKind::String | TokenKind::RawString) {
                return parser.unexpected(&name, CONTEXT);
            }
            let name = parser.unquoted(&name)?;
            parser.expect(TokenKind::RightDelimiter, CONTEXT)?;
            let stop = parser.body_of(name)?;
            parser.refuse_else(stop, CONTEXT)
        })
    }

    /// Parses the nodes of an inner template up to its end.
    /// Text behind an `else` is not read.
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
        while self.peek_after_space().kind != TokenKind::Eof {
            match self.text_or_action()? {
                Step::Node(node) => nodes.push(node),
                Step::Stop(stop) => return Ok((nodes, stop)),
            }
        }
        self.error("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Result<Step, String> {
        let token = self.next_after_space();
        match token.kind {
            TokenKind::Text => Ok(Step::Node(Node::Text { at: token.at, text: token.text.as_ref().into() })),
            TokenKind::LeftDelimiter => {
                self.tree.action_line = token.line;
                let step = self.deeper(Self::action)?;
                self.tree.action_line = 0;
                Ok(step)
            }
            _ => self.unexpected(&token, "input"),
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
