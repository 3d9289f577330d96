//! Evaluates arguments and converts them to the types of parameters.

use super::call::{CallArguments, Target};
use super::{Operand, State};
use crate::functions::HELD;
use crate::syntax::{Place, Term};
use crate::value::{ANY, Pointer, Type, Value};

impl<'t> State<'t, '_, '_> {
    /// Evaluates an argument and converts it to the parameter's type, if there is one.
    pub(super) fn argument(
        &mut self,
        dot: &Operand,
        wanted: Option<Type>,
        term: &'t Term,
    ) -> Result<Operand, String> {
        self.at(Place::Term(term));
        let nothing = CallArguments::nothing(Place::Term(term));
        let value = match term {
            Term::Dot { .. } => dot.clone(),
            Term::Nil { .. } => return self.nil(wanted.unwrap_or(ANY)),
            Term::Field { fields, .. } => self.fields(dot, dot.clone(), fields, nothing)?,
            Term::Variable(variable) => self.variable(dot, variable, nothing)?,
            Term::Pipe(pipe) => self.pipe(dot, pipe)?,
            Term::Identifier { function, .. } => self.call(dot, &Target::Function(function), nothing)?,
            Term::Chain { .. } => self.chain(dot, term, nothing)?,
            Term::Bool { .. } | Term::Number { .. } | Term::String { .. } => {
                return self.literal(wanted.unwrap_or(ANY), term);
            }
        };
        self.fit(value, wanted)
    }

    fn nil(&self, wanted: Type) -> Result<Operand, String> {
        if wanted.can_be_nil() {
            return Ok(Operand::of(wanted.zero()));
        }
        self.error(format_args!("cannot assign nil to {wanted}"))
    }

    /// Evaluates a constant as a value of a type.
    fn literal(&self, wanted: Type, term: &Term) -> Result<Operand, String> {
        let number = if let Term::Number { number, .. } = term { Some(number) } else { None };
        let (value, expected) = match wanted {
            Type::Bool => {
                (if let Term::Bool { truth, .. } = term { Some(Value::Bool(*truth)) } else { None }, "bool")
            }
            Type::String => (
                if let Term::String { text, .. } = term { Some(Value::String(text.clone())) } else { None },
                "string",
            ),
            Type::Int(kind) => (number.and_then(|n| n.int).map(|int| Value::Int(int, kind)), "integer"),
            Type::Uint(kind) => {
                (number.and_then(|n| n.uint).map(|uint| Value::Uint(uint, kind)), "unsigned integer")
            }
            Type::Float => (number.and_then(|n| n.float).map(Value::Float), "float"),
            Type::Complex => (number.and_then(|n| n.complex).map(|(r, i)| Value::Complex(r, i)), "complex"),
            Type::Interface(_) => return self.free_literal(term),
            _ => return self.error(format_args!("can't handle {term} for arg of type {wanted}")),
        };
        match value {
            Some(value) => Ok(Operand::of(value)),
            None => self.error(format_args!("expected {expected}; found {term}")),
        }
    }

    /// Evaluates a constant with its default type.
    fn free_literal(&self, term: &Term) -> Result<Operand, String> {
        match term {
            Term::Bool { truth, .. } => Ok(Operand::of(Value::Bool(*truth))),
            Term::Number { number, .. } => self.constant(number),
            Term::String { text, .. } => Ok(Operand::of(Value::String(text.clone()))),
            _ => self.error(format_args!("can't handle assignment of {term} to empty interface argument")),
        }
    }

    /// Converts a value so that it may be passed as the wanted type.
    pub(super) fn fit(&self, operand: Operand, wanted: Option<Type>) -> Result<Operand, String> {
        let Some(wanted) = wanted else { return Ok(operand) };
        if operand.is_none() {
            if wanted.can_be_nil() {
                return Ok(Operand::of(wanted.zero()));
            }
            return self.error(format_args!("invalid value; expected {wanted}"));
        }
        if wanted == HELD && matches!(operand.value, Value::Nil) {
            return Ok(Operand::of(Value::Pointer(Pointer::nil(&ANY))));
        }
        if matches!(wanted, Type::Interface(_)) || operand.value.type_of().is_some_and(|of| of.fits(wanted)) {
            return Ok(operand);
        }
        if let Value::Pointer(pointer) = &operand.value
            && pointer.to().fits(wanted)
        {
            return match pointer.target() {
                Some(target) => Ok(Operand::of(target.clone())),
                None => self.error(format_args!("dereference of nil pointer of type {wanted}")),
            };
        }
        let got =
            if operand.value.type_of().is_some() { operand.value.type_name() } else { operand.type_name() };
        self.error(format_args!("wrong type for value; expected {wanted}; got {got}"))
    }
}
