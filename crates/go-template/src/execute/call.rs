//! Calls of functions and methods.

use super::{Operand, State};
use crate::budget::Failure;
use crate::functions::{Arguments, Function, index};
use crate::syntax::{Place, Term};
use crate::value::{ANY, BoundMethod, Type, Value};

/// The arguments of a function or a field.
pub(super) struct CallArguments<'t> {
    /// The part of the template that errors name.
    pub(super) place: Place<'t>,
    pub(super) terms: &'t [Term],
    /// The value from the previous stage of the pipe, which is the last argument.
    pub(super) last: Option<Operand>,
}

impl<'t> CallArguments<'t> {
    /// Returns an empty list of arguments.
    pub(super) fn nothing(place: Place<'t>) -> Self {
        Self { place, terms: &[], last: None }
    }
}

/// The callee.
pub(super) enum Target {
    Function(&'static Function),
    Method(BoundMethod, Value),
}

impl Target {
    fn name(&self) -> &'static str {
        match self {
            Self::Function(function) => function.name,
            Self::Method(method, _) => method.name(),
        }
    }

    fn parameters(&self) -> &'static [Type] {
        match self {
            Self::Function(function) => function.parameters,
            Self::Method(method, _) => method.parameters(),
        }
    }

    fn is_variadic(&self) -> bool {
        matches!(self, Self::Function(function) if function.is_variadic)
    }
}

impl<'t> State<'t, '_, '_> {
    pub(super) fn call(
        &mut self,
        dot: &Operand,
        target: &Target,
        given: CallArguments<'t>,
    ) -> Result<Operand, String> {
        let CallArguments { place, terms: arguments, last } = given;
        let name = target.name();
        self.check_count(target, arguments.len(), usize::from(last.is_some()))?;
        if let Target::Function(function) = target
            && function.is_choice()
        {
            return self.choice(dot, name == "or", arguments, last);
        }
        let parameters = target.parameters();
        let of = |i: usize| parameters.get(i).or(parameters.last()).copied().unwrap_or(ANY);
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for (i, term) in arguments.iter().enumerate() {
            values.push(self.argument(dot, Some(of(i)), term)?.value);
        }
        if let Some(last) = last {
            values.push(self.fit(last, Some(of(values.len())))?.value);
        }
        let result = self.run(target, &values, arguments);
        match result {
            Ok(operand) => Ok(operand),
            Err(failure) => {
                self.at(place);
                self.error(format_args!("error calling {name}: {}", failure.0))
            }
        }
    }

    fn run(&mut self, target: &Target, values: &[Value], terms: &'t [Term]) -> Result<Operand, Failure> {
        let is_light = matches!(target, Target::Function(function) if function.is_light);
        self.budget.step(if is_light { 0 } else { values.iter().map(Value::weight).sum() })?;
        if !is_light {
            // A function may copy its arguments.
            self.budget.check_room(values.iter().map(Value::footprint).sum())?;
        }
        let operand = match target {
            Target::Function(function) if function.name == "call" => {
                let name = terms.first().map_or_else(|| unnamed(values), ToString::to_string);
                Operand::of(call_value(&name, values)?)
            }
            Target::Function(function) if function.name == "index" => {
                let (value, of) = index(Arguments::new(values))?;
                Operand::placed(value, of)
            }
            Target::Function(function) => {
                let value = (function.run)(Arguments::new(values), self.budget)?;
                if function.gives_any { Operand::placed(value, ANY) } else { Operand::of(value) }
            }
            Target::Method(method, receiver) => Operand::of(self.budget.call(*method, receiver, values)?),
        };
        self.budget.check(&operand.value)?;
        self.budget.count(&operand.value)?;
        match target {
            Target::Function(_) if is_light => {}
            Target::Function(_) => self.budget.step(operand.value.weight())?,
            // Results of methods of the data belong to the data and are not counted.
            Target::Method(..) => self.budget.step(operand.value.size())?,
        }
        Ok(operand)
    }

    fn check_count(&self, target: &Target, arguments: usize, last: usize) -> Result<(), String> {
        let (name, wanted) = (target.name(), target.parameters().len());
        if target.is_variadic() {
            if arguments + last < wanted - 1 {
                return self.error(format_args!(
                    "wrong number of args for {name}: want at least {} got {arguments}",
                    wanted - 1
                ));
            }
        } else if arguments + last != wanted {
            return self.error(format_args!(
                "wrong number of args for {name}: want {wanted} got {}",
                arguments + last
            ));
        }
        Ok(())
    }

    /// Evaluates `and` and `or`, which short-circuit.
    fn choice(
        &mut self,
        dot: &Operand,
        is_or: bool,
        arguments: &'t [Term],
        last: Option<Operand>,
    ) -> Result<Operand, String> {
        let mut chosen = Operand::none();
        for term in arguments {
            chosen = self.argument(dot, Some(ANY), term)?;
            if chosen.value.is_true() == is_or {
                return Ok(chosen);
            }
        }
        match last {
            Some(last) => self.fit(last, Some(ANY)),
            None => Ok(chosen),
        }
    }
}

/// Returns the description of the callee that `call` uses in errors.
///
/// This is for a function that came through a pipe, and so has no name.
fn unnamed(values: &[Value]) -> String {
    match values.first() {
        Some(Value::String(text)) => text.to_string(),
        None | Some(Value::Nil) => "<invalid Value>".to_owned(),
        Some(other) => format!("<{} Value>", other.type_name()),
    }
}

/// Implements the built-in `call`: calls a function that the data holds.
fn call_value(name: &str, values: &[Value]) -> Result<Value, Failure> {
    let Some((function, arguments)) = values.split_first() else { return Err("call of nil".into()) };
    let function = match function {
        Value::Nil => return Err("call of nil".into()),
        Value::Function(function) => function,
        other => return Err(format!("non-function {name} of type {}", other.type_name()).into()),
    };
    let parameters = function.parameters();
    if arguments.len() != parameters.len() {
        return Err(format!(
            "wrong number of args for {name}: got {} want {}",
            arguments.len(),
            parameters.len()
        )
        .into());
    }
    let fitting: Result<Vec<Value>, Failure> = arguments
        .iter()
        .zip(parameters)
        .enumerate()
        .map(|(i, (argument, of))| {
            crate::functions::fit_key(argument, *of)
                .map_err(|failure| format!("arg {i}: {}", failure.0).into())
        })
        .collect();
    Ok(function.call(&fitting?)?)
}
