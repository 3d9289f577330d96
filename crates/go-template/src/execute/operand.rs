//! Values with the static type that Go's reflection knows for them.

use crate::value::{Type, Value};

/// A value, and the interface type of the location that held it.
///
/// An element of a `[]interface {}` has the type `interface {}` until it passes through a pipe; errors name that
/// type.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) value: Value,
    pub(super) interface: Option<&'static str>,
}

impl Operand {
    /// Returns an operand of the value's own type.
    pub(super) fn of(value: Value) -> Self {
        Self { value, interface: None }
    }

    /// Returns an operand from a location of a type.
    pub(super) fn placed(value: Value, of: Type) -> Self {
        let interface = if let Type::Interface(name) = of { Some(name) } else { None };
        Self { value, interface }
    }

    /// Returns an operand without a value, as a missing key gives.
    pub(super) fn none() -> Self {
        Self::of(Value::Nil)
    }

    /// Returns whether there is no value at all, not even a nil in an interface.
    pub(super) fn is_none(&self) -> bool {
        self.interface.is_none() && matches!(self.value, Value::Nil)
    }

    /// Returns the operand as a pipe passes it on: without its empty interface.
    pub(super) fn piped(self) -> Self {
        if self.interface == Some("interface {}") { Self::of(self.value) } else { self }
    }

    /// Returns the name of the operand's static type.
    pub(super) fn type_name(&self) -> String {
        self.interface.map_or_else(|| self.value.type_name(), str::to_owned)
    }
}
