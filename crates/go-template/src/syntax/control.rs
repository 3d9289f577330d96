//! Parses control actions: `if`, `range`, `define` and the like.

use super::item::{Item, Kind};
use super::parser::{Parser, Step, Stop};
use super::{Branch, BranchKind, Name, Node};

impl<'t> Parser<'t> {
    /// Parses an action behind its left delimiter.
    pub(super) fn action(&mut self) -> Result<Step, String> {
        let item = self.next_after_space();
        let node = match item.kind {
            Kind::Block => self.block()?,
            Kind::Break => self.leave(&item, "{{break}}")?,
            Kind::Continue => self.leave(&item, "{{continue}}")?,
            Kind::Else => return self.otherwise(),
            Kind::End => {
                self.expect(Kind::RightDelimiter, "end")?;
                return Ok(Step::Stop(Stop::End));
            }
            Kind::If => self.branch(BranchKind::If)?,
            Kind::Range => self.branch(BranchKind::Range)?,
            Kind::Template => self.template()?,
            Kind::With => self.branch(BranchKind::With)?,
            _ => {
                self.back();
                let at = self.peek().at;
                Node::Action { at, pipe: self.pipe("command", Kind::RightDelimiter)? }
            }
        };
        Ok(Step::Node(node))
    }

    fn leave(&mut self, word: &Item<'t>, text: &str) -> Result<Node, String> {
        self.expect(Kind::RightDelimiter, text)?;
        if self.tree.ranges == 0 {
            return self.error(format_args!("{text} outside {{{{range}}}}"));
        }
        let at = word.at;
        Ok(if word.kind == Kind::Break { Node::Break { at } } else { Node::Continue { at } })
    }

    fn otherwise(&mut self) -> Result<Step, String> {
        if !matches!(self.peek_after_space().kind, Kind::If | Kind::With) {
            self.expect(Kind::RightDelimiter, "else")?;
        }
        Ok(Step::Stop(Stop::Else))
    }

    fn branch(&mut self, kind: BranchKind) -> Result<Node, String> {
        let (context, again) = match kind {
            BranchKind::If => ("if", Some(Kind::If)),
            BranchKind::With => ("with", Some(Kind::With)),
            BranchKind::Range => ("range", None),
        };
        let known = self.tree.variables.len();
        let pipe = self.pipe(context, Kind::RightDelimiter)?;
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
        let item = self.next_after_space();
        let name = self.template_name(&item, CONTEXT)?;
        let pipe = self.pipe(CONTEXT, Kind::RightDelimiter)?;
        let inner = name.clone();
        let stop = self.inner(|parser| parser.body_of(inner))?;
        // Go reports the line of the block, not that of the `else`.
        self.refuse_else(stop, CONTEXT)?;
        Ok(Node::Template { at: item.at, name, pipe: Some(pipe) })
    }

    fn template(&mut self) -> Result<Node, String> {
        const CONTEXT: &str = "template clause";
        let item = self.next_after_space();
        let name = self.template_name(&item, CONTEXT)?;
        let mut pipe = None;
        if self.next_after_space().kind != Kind::RightDelimiter {
            self.back();
            pipe = Some(self.pipe(CONTEXT, Kind::RightDelimiter)?);
        }
        Ok(Node::Template { at: item.at, name, pipe })
    }

    fn template_name(&mut self, item: &Item<'t>, context: &str) -> Result<Name, String> {
        match item.kind {
            Kind::String | Kind::RawString => self.unquoted(item),
            _ => self.unexpected(item, context),
        }
    }
}
