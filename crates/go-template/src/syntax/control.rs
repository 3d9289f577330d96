//! Parses control actions: `if`, `range`, `define` and the like.

use super::parser::{Parser, Step, Stop};
use super::token::{Token, TokenKind};
use super::{Branch, BranchKind, Name, Node};

impl<'t> Parser<'t> {
    /// Parses an action behind its left delimiter.
    pub(super) fn action(&mut self) -> Result<Step, String> {
        let token = self.next_after_space();
        let node = match token.kind {
            TokenKind::Block => self.block()?,
            TokenKind::Break => self.leave(&token, "{{break}}")?,
            TokenKind::Continue => self.leave(&token, "{{continue}}")?,
            TokenKind::Else => return self.otherwise(),
            TokenKind::End => {
                self.expect(TokenKind::RightDelimiter, "end")?;
                return Ok(Step::Stop(Stop::End));
            }
            TokenKind::If => self.branch(BranchKind::If)?,
            TokenKind::Range => self.branch(BranchKind::Range)?,
            TokenKind::Template => self.template()?,
            TokenKind::With => self.branch(BranchKind::With)?,
            _ => {
                self.back();
                let at = self.peek().at;
                Node::Action { at, pipe: self.pipe("command", TokenKind::RightDelimiter)? }
            }
        };
        Ok(Step::Node(node))
    }

    fn leave(&mut self, word: &Token<'t>, text: &str) -> Result<Node, String> {
        self.expect(TokenKind::RightDelimiter, text)?;
        if self.tree.ranges == 0 {
            return self.error(format_args!("{text} outside {{{{range}}}}"));
        }
        let at = word.at;
        Ok(if word.kind == TokenKind::Break { Node::Break { at } } else { Node::Continue { at } })
    }

    fn otherwise(&mut self) -> Result<Step, String> {
        if !matches!(self.peek_after_space().kind, TokenKind::If | TokenKind::With) {
            self.expect(TokenKind::RightDelimiter, "else")?;
        }
        Ok(Step::Stop(Stop::Else))
    }

    fn branch(&mut self, kind: BranchKind) -> Result<Node, String> {
        let (context, again) = match kind {
            BranchKind::If => ("if", Some(TokenKind::If)),
            BranchKind::With => ("with", Some(TokenKind::With)),
            BranchKind::Range => ("range", None),
        };
        let known = self.tree.variables.len();
        let pipe = self.pipe(context, TokenKind::RightDelimiter)?;
        let ranges = self.tree.ranges;
        self.tree.ranges += usize::from(kind == BranchKind::Range);
        let (body, stop) = self.list()?;
        self.tree.ranges = ranges;
        let otherwise = match stop {
            Stop::End => None,
            Stop::Else if Some(self.peek().kind) == again => {
                self.next();
                Some(vec![self.deeper(|parser| parser.branch(kind))?])
            }
            Stop::Else => {
                let (nodes, stop) = self.list()?;
                if stop != Stop::End {
                    return self.error(format_args!("expected end; found {}", stop.text()));
                }
                Some(nodes)
            }
        };
        self.tree.variables.truncate(known);
        Ok(Node::Branch(Branch { at: pipe.at, kind, pipe, body, otherwise }))
    }

    fn block(&mut self) -> Result<Node, String> {
        const CONTEXT: &str = "block clause";
        let token = self.next_after_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = self.pipe(CONTEXT, TokenKind::RightDelimiter)?;
        let inner = name.clone();
        let stop = self.inner(|parser| parser.body_of(inner))?;
        // Go reports the line of the block, not that of the `else`.
        self.refuse_else(stop, CONTEXT)?;
        Ok(Node::Template { at: token.at, name, pipe: Some(pipe) })
    }

    fn template(&mut self) -> Result<Node, String> {
        const CONTEXT: &str = "template clause";
        let token = self.next_after_space();
        let name = self.template_name(&token, CONTEXT)?;
        let mut pipe = None;
        if self.next_after_space().kind != TokenKind::RightDelimiter {
            self.back();
            pipe = Some(self.pipe(CONTEXT, TokenKind::RightDelimiter)?);
        }
        Ok(Node::Template { at: token.at, name, pipe })
    }

    fn template_name(&mut self, token: &Token<'t>, context: &str) -> Result<Name, String> {
        match token.kind {
            TokenKind::String | TokenKind::RawString => self.unquoted(token),
            _ => self.unexpected(token, context),
        }
    }
}
