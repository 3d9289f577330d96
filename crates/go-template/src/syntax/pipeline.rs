//! Parses pipes, commands and terms.

use std::sync::Arc;

use super::item::{Item, Kind};
use super::parser::Parser;
use super::{Command, Number, Pipe, Term, Variable};

impl<'t> Parser<'t> {
    pub(super) fn pipe(&mut self, context: &str, end: Kind) -> Result<Pipe, String> {
        let at = self.peek_after_space().at;
        let mut pipe = Pipe { at, is_assignment: false, variables: Vec::new(), commands: Vec::new() };
        self.declarations(&mut pipe, context)?;
        loop {
            let item = self.next_after_space();
            match item.kind {
                kind if kind == end => break,
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParenthesis => {
                    self.back();
                    pipe.commands.push(self.command()?);
                }
                _ => return self.unexpected(&item, context),
            }
        }
        self.check(&pipe, context)?;
        Ok(pipe)
    }

    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Result<(), String> {
        loop {
            let variable = self.peek_after_space();
            if variable.kind != Kind::Variable {
                return Ok(());
            }
            self.next();
            let after = self.peek();
            let next = self.peek_after_space();
            if matches!(next.kind, Kind::Assign | Kind::Declare) {
                pipe.is_assignment = next.kind == Kind::Assign;
                self.next_after_space();
                self.declare(pipe, &variable);
                return Ok(());
            }
            if next.kind != Kind::Char || next.text != "," {
                if after.kind == Kind::Space {
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
                Kind::Variable | Kind::RightDelimiter | Kind::RightParenthesis
            ) {
                return self.error("range can only initialize variables");
            }
        }
    }

    fn declare(&mut self, pipe: &mut Pipe, item: &Item<'t>) {
        let variable = variable(item.at, &item.text);
        self.tree.variables.push(item.text.as_ref().into());
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
            let item = self.next();
            match item.kind {
                Kind::Space => continue,
                Kind::RightDelimiter | Kind::RightParenthesis => self.back(),
                Kind::Pipe => {}
                _ => return self.unexpected(&item, "operand"),
            }
            break;
        }
        if terms.is_empty() { self.error("empty command") } else { Ok(Command { at, terms }) }
    }

    fn operand(&mut self) -> Result<Option<Term>, String> {
        let Some(term) = self.term()? else { return Ok(None) };
        let first = self.peek();
        if first.kind != Kind::Field {
            return Ok(Some(term));
        }
        let mut fields: Vec<Arc<str>> = Vec::new();
        while self.peek().kind == Kind::Field {
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
        let item = self.next_after_space();
        let at = item.at;
        let text = item.text.as_ref();
        Ok(Some(match item.kind {
            Kind::Identifier => {
                let Some(function) = (self.find)(text) else {
                    let name = crate::format::quote(text);
                    return self.error(format_args!("function {name} not defined"));
                };
                Term::Identifier { at, function }
            }
            Kind::Dot => Term::Dot { at },
            Kind::Nil => Term::Nil { at },
            Kind::Variable => {
                let variable = variable(at, text);
                if !self.tree.variables.contains(&variable.name) {
                    let name = crate::format::quote(&variable.name);
                    return self.error(format_args!("undefined variable {name}"));
                }
                Term::Variable(variable)
            }
            Kind::Field => Term::Field { at, fields: text[1..].split('.').map(Arc::from).collect() },
            Kind::Bool => Term::Bool { at, truth: text == "true" },
            Kind::CharConstant | Kind::Complex | Kind::Number => match Number::parse(text, item.kind) {
                Ok(number) => Term::Number { at, number },
                Err(message) => return self.error(message),
            },
            Kind::LeftParenthesis => Term::Pipe(
                self.deeper(|parser| parser.pipe("parenthesized pipeline", Kind::RightParenthesis))?,
            ),
            Kind::String | Kind::RawString => {
                Term::String { at, quoted: text.into(), text: self.unquoted(&item)? }
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
