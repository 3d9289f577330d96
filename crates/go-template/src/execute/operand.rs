//! Values with what Go's reflection knows of the place where they were found.

use crate::value::{Type, Value};

/// A value, and the interface type of the place that held it.
///
/// An element of a list of anything is seen as `interface {}` until a pipe has given it on; errors name that type.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) value: Value,
    pub(super) interface: Option<&'static str>,
}

impl Operand {
    /// A value as itself.
    pub(super) fn of(value: Value) -> Self {
        Self { value, interface: None }
    }

    /// A value in a place of a type.
    pub(super) fn placed(value: Value, of: Type) -> Self {
        let interface = if let Type::Interface(name) = of { Some(name) } else { None };
        Self { value, interface }
    }

    /// No value, as a missing key gives.
    pub(super) fn none() -> Self {
        Self::of(Value::Nil)
    }

    /// Whether there is not even a nil in an interface.
    pub(super) fn is_none(&self) -> bool {
        self.interface.is_none() && matches!(self.value, Value::Nil)
    }

    /// The value as a pipe gives it on: out of an empty interface.
    pub(super) fn given_on(self) -> Self {
        if self.interface == Some("interface {}") { Self::of(self.value) } else { self }
    }

    /// The name of the type that it is seen as.
    pub(super) fn type_name(&self) -> String {
        self.interface.map_or_else(|| self.value.type_name(), str::to_owned)
    }
}
