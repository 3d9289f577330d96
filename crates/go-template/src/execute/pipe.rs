//! Evaluates pipes and their commands.

use super::call::{CallArguments, Target};
use super::{MAX_VARIABLES, Operand, State};
use crate::syntax::{Command, Number, Pipe, Place, Term, Variable};
use crate::value::Value;

impl<'t> State<'t, '_, '_> {
    /// Evaluates a pipe and sets its variables.
    pub(super) fn pipe(&mut self, dot: &Operand, pipe: &'t Pipe) -> Result<Operand, String> {
        self.at(Place::Pipe(pipe));
        let value = self.deeper(|state| {
            let mut value = None;
            for command in &pipe.commands {
                state.step()?;
                value = Some(state.command(dot, command, value)?.piped());
            }
            Ok(value.unwrap_or_else(Operand::none))
        })?;
        for variable in &pipe.variables {
            if pipe.is_assignment {
                self.assign(&variable.name, value.clone())?;
            } else {
                self.declare(variable, value.clone())?;
            }
        }
        Ok(value)
    }

    fn declare(&mut self, variable: &Variable, value: Operand) -> Result<(), String> {
        if self.outer_variables + self.variables.len() >= MAX_VARIABLES {
            return self.error(format_args!("there are more variables than the limit of {MAX_VARIABLES}"));
        }
        self.variables.push((variable.name.clone(), value));
        Ok(())
    }

    pub(super) fn assign(&mut self, name: &str, value: Operand) -> Result<(), String> {
        match self.variables.iter_mut().rev().find(|(known, _)| known.as_ref() == name) {
            Some((_, place)) => *place = value,
            None => return self.error(format_args!("undefined variable: {name}")),
        }
        Ok(())
    }

    fn command(
        &mut self,
        dot: &Operand,
        command: &'t Command,
        last: Option<Operand>,
    ) -> Result<Operand, String> {
        let first = &command.terms[0];
        let terms = &command.terms[1..];
        let place = Place::Term(first);
        match first {
            Term::Field { fields, .. } => {
                self.at(place);
                return self.fields(dot, dot.clone(), fields, CallArguments { place, terms, last });
            }
            Term::Chain { .. } => return self.chain(dot, first, CallArguments { place, terms, last }),
            Term::Identifier { function, .. } => {
                self.at(place);
                let given = CallArguments { place: Place::Command(command), terms, last };
                return self.call(dot, &Target::Function(function), given);
            }
            Term::Pipe(pipe) => {
                self.refuse_arguments(command, last.as_ref())?;
                return self.pipe(dot, pipe);
            }
            Term::Variable(variable) => {
                if variable.fields.is_empty() {
                    self.at(place);
                    let value = self.variable_value(variable)?;
                    self.refuse_arguments(command, last.as_ref())?;
                    return Ok(value);
                }
                return self.variable(dot, variable, CallArguments { place, terms, last });
            }
            _ => {}
        }
        self.at(place);
        self.refuse_arguments(command, last.as_ref())?;
        match first {
            Term::Bool { truth, .. } => Ok(Operand::of(Value::Bool(*truth))),
            Term::Dot { .. } => Ok(dot.clone()),
            Term::Number { number, .. } => self.constant(number),
            Term::String { text, .. } => Ok(Operand::of(Value::String(text.clone()))),
            _ => self.error("nil is not a command"),
        }
    }

    fn refuse_arguments(&self, command: &'t Command, last: Option<&Operand>) -> Result<(), String> {
        if command.terms.len() > 1 || last.is_some() {
            return self.error(format_args!("can't give argument to non-function {}", command.terms[0]));
        }
        Ok(())
    }

    /// Returns a numeric constant with its default type.
    pub(super) fn constant(&self, number: &Number) -> Result<Operand, String> {
        let text = &number.text;
        let is_char = text.starts_with('\'');
        let is_hex =
            text.len() > 2 && text.to_ascii_lowercase().starts_with("0x") && !text.contains(['p', 'P']);
        let value = if let Some((real, imaginary)) = number.complex {
            Value::Complex(real, imaginary)
        } else if let Some(float) = number.float
            && !is_hex
            && !is_char
            && text.contains(['.', 'e', 'E', 'p', 'P'])
        {
            Value::Float(float)
        } else if let Some(int) = number.int {
            Value::int(int)
        } else {
            return self.error(format_args!("{text} overflows int"));
        };
        Ok(Operand::of(value))
    }

    pub(super) fn variable_value(&self, variable: &Variable) -> Result<Operand, String> {
        match self.variables.iter().rev().find(|(known, _)| *known == variable.name) {
            Some((_, value)) => Ok(value.clone()),
            None => self.error(format_args!("undefined variable: {}", variable.name)),
        }
    }

    pub(super) fn variable(
        &mut self,
        dot: &Operand,
        variable: &'t Variable,
        given: CallArguments<'t>,
    ) -> Result<Operand, String> {
        self.at(given.place);
        let value = self.variable_value(variable)?;
        self.fields(dot, value, &variable.fields, given)
    }

    pub(super) fn chain(
        &mut self,
        dot: &Operand,
        term: &'t Term,
        given: CallArguments<'t>,
    ) -> Result<Operand, String> {
        self.at(given.place);
        let Term::Chain { head, fields, .. } = term else {
            return self.error("only chains have fields");
        };
        if matches!(**head, Term::Nil { .. }) {
            return self.error(format_args!("indirection through explicit nil in {term}"));
        }
        let value = self.argument(dot, None, head)?;
        self.fields(dot, value, fields, given)
    }
}
