//! The functions that templates can call: sprig's, which win, and Go's own.

mod arguments;
mod compare;
mod index;
mod logic;
mod output;

pub(crate) use arguments::Arguments;
pub(crate) use index::{fit_key, index};
pub(crate) use logic::HELD;

use crate::budget::{Budget, Failure};
use crate::sprig;
use crate::value::{Type, Value};

/// The implementation of a function.
pub(crate) type Body = fn(Arguments<'_>, &mut Budget<'_>) -> Result<Value, Failure>;

/// A function that templates can call.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// The types of its parameters.
    pub(crate) parameters: &'static [Type],
    /// True if the last parameter takes any number of arguments.
    pub(crate) is_variadic: bool,
    /// True if the static type of its result is `interface {}`.
    pub(crate) gives_any: bool,
    /// True if its cost does not depend on the size of its arguments.
    pub(crate) is_light: bool,
    pub(crate) run: Body,
}

impl Function {
    pub(crate) const fn new(name: &'static str, parameters: &'static [Type], run: Body) -> Self {
        Self { name, parameters, is_variadic: false, gives_any: false, is_light: false, run }
    }

    pub(crate) const fn variadic(name: &'static str, parameters: &'static [Type], run: Body) -> Self {
        Self { name, parameters, is_variadic: true, gives_any: false, is_light: false, run }
    }

    pub(crate) const fn giving_any(self) -> Self {
        Self { gives_any: true, ..self }
    }

    pub(crate) const fn light(self) -> Self {
        Self { is_light: true, ..self }
    }

    /// Returns whether this is `and` or `or`, which short-circuit.
    pub(crate) fn is_choice(&self) -> bool {
        matches!(self.name, "and" | "or")
    }
}

/// Returns the function tables in order of precedence.
fn tables() -> impl Iterator<Item = &'static [Function]> {
    let own = [compare::FUNCTIONS, index::FUNCTIONS, logic::FUNCTIONS, output::FUNCTIONS];
    sprig::TABLES.iter().copied().chain(own)
}

/// Finds a function by its name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    tables().find_map(|table| table.iter().find(|function| function.name == name))
}

/// Returns the names of all functions in alphabetical order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = tables().flatten().map(|function| function.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}
