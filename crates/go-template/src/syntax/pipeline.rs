//! Parses pipes, commands and terms.

use std::sync::Arc;

use super::parser::Parser;
use super::token::{Token, TokenKind};
use super::{Command, Number, Pipe, Term, Variable};

impl<'t> Parser<'t> {
    pub(super) fn pipe(&mut self, context: &str, end: TokenKind) -> Result<Pipe, String> {
        let at = self.peek_after_space().at;
        let mut pipe = Pipe { at, is_assignment: false, variables: Vec::new(), commands: Vec::new() };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.next_after_space();
            match token.kind {
                kind if kind == end => break,
                TokenKind::Bool
                | TokenKind::CharConstant
                | TokenKind::Complex
                | TokenKind::Dot
                | TokenKind::Field
                | TokenKind::Identifier
                | TokenKind::Number
                | TokenKind::Nil
                | TokenKind::RawString
                | TokenKind::String
                | TokenKind::Variable
                | TokenKind::LeftParenthesis => {
                    self.back();
                    pipe.commands.push(self.command()?);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        self.check(&pipe, context)?;
        Ok(pipe)
    }

    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Result<(), String> {
        loop {
            let variable = self.peek_after_space();
            if variable.kind != TokenKind::Variable {
                return Ok(());
            }
            self.next();
            let after = self.peek();
            let next = self.peek_after_space();
            if matches!(next.kind, TokenKind::Assign | TokenKind::Declare) {
                pipe.is_assignment = next.kind == TokenKind::Assign;
                self.next_after_space();
                self.declare(pipe, &variable);
                return Ok(());
            }
            if next.kind != TokenKind::Char || next.text != "," {
                if after.kind == TokenKind::Space {
                    self.back_three(variable, after);
                } else {
                    self.back_two(variable);
                }
                return Ok(());
            }
            self.next_after_space();
            self.declare(pipe, &variable);
            if context != "range" || pipe.variables.len() >= 2 {
                return self.error(format_args!("too many declarations in {context}"));
            }
            if !matches!(
                self.peek_after_space().kind,
                TokenKind::Variable | TokenKind::RightDelimiter | TokenKind::RightParenthesis
            ) {
                return self.error("range can only initialize variables");
            }
        }
    }

    fn declare(&mut self, pipe: &mut Pipe, token: &Token<'t>) {
        let variable = variable(token.at, &token.text);
        self.tree.variables.push(token.text.as_ref().into());
        pipe.variables.push(variable);
    }

    fn check(&self, pipe: &Pipe, context: &str) -> Result<(), String> {
        if pipe.commands.is_empty() {
            return self.error(format_args!("missing value for {context}"));
        }
        match pipe.commands.iter().skip(1).position(|command| command.terms[0].is_plain_value()) {
            Some(stage) => self.error(format_args!("non executable command in pipeline stage {}", stage + 2)),
            None => Ok(()),
        }
    }

    fn command(&mut self) -> Result<Command, String> {
        let at = self.peek_after_space().at;
        let mut terms = Vec::new();
        loop {
            self.peek_after_space();
            terms.extend(self.operand()?);
            let token = self.next();
            match token.kind {
                TokenKind::Space => continue,
                TokenKind::RightDelimiter | TokenKind::RightParenthesis => self.back(),
                TokenKind::Pipe => {}
                _ => return self.unexpected(&token, "operand"),
            }
            break;
        }
        if terms.is_empty() { self.error("empty command") } else { Ok(Command { at, terms }) }
    }

    fn operand(&mut self) -> Result<Option<Term>, String> {
        let Some(term) = self.term()? else { return Ok(None) };
        let first = self.peek();
        if first.kind != TokenKind::Field {
            return Ok(Some(term));
        }
        let mut fields: Vec<Arc<str>> = Vec::new();
        while self.peek().kind == TokenKind::Field {
            fields.push(self.next().text[1..].into());
        }
        let at = first.at;
        Ok(Some(match term {
            Term::Field { fields: mut all, .. } => {
                all.extend(fields);
                Term::Field { at, fields: all }
            }
            Term::Variable(variable) => {
                let mut all = variable.fields;
                all.extend(fields);
                Term::Variable(Variable { at, name: variable.name, fields: all })
            }
            term if term.is_plain_value() => {
                let term = crate::format::quote(&term.to_string());
                return self.error(format_args!("unexpected . after term {term}"));
            }
            head => Term::Chain { at, head: Box::new(head), fields },
        }))
    }

    fn term(&mut self) -> Result<Option<Term>, String> {
        let token = self.next_after_space();
        let at = token.at;
        let text = token.text.as_ref();
        Ok(Some(match token.kind {
            TokenKind::Identifier => {
                let Some(function) = (self.find)(text) else {
                    let name = crate::format::quote(text);
                    return self.error(format_args!("function {name} not defined"));
                };
                Term::Identifier { at, function }
            }
            TokenKind::Dot => Term::Dot { at },
            TokenKind::Nil => Term::Nil { at },
            TokenKind::Variable => {
                let variable = variable(at, text);
                if !self.tree.variables.contains(&variable.name) {
                    let name = crate::format::quote(&variable.name);
                    return self.error(format_args!("undefined variable {name}"));
                }
                Term::Variable(variable)
            }
            TokenKind::Field => Term::Field { at, fields: text[1..].split('.').map(Arc::from).collect() },
            TokenKind::Bool => Term::Bool { at, truth: text == "true" },
            TokenKind::CharConstant | TokenKind::Complex | TokenKind::Number => {
                match Number::parse(text, token.kind) {
                    Ok(number) => Term::Number { at, number },
                    Err(message) => return self.error(message),
                }
            }
            TokenKind::LeftParenthesis => Term::Pipe(
                self.deeper(|parser| parser.pipe("parenthesized pipeline", TokenKind::RightParenthesis))?,
            ),
            TokenKind::String | TokenKind::RawString => {
                Term::String { at, quoted: text.into(), text: self.unquoted(&token)? }
            }
            _ => {
                self.back();
                return Ok(None);
            }
        }))
    }
}

/// Makes a variable from its token; its fields are tokens of their own.
fn variable(at: usize, text: &str) -> Variable {
    Variable { at, name: text.into(), fields: Vec::new() }
}
