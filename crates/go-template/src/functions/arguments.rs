//! The arguments of a call; the executor has checked their types.

use crate::text::Text;
use crate::value::{Map, Value};

/// The arguments by position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments<'v>(&'v [Value]);

impl<'v> Arguments<'v> {
    pub(crate) fn new(values: &'v [Value]) -> Self {
        Self(values)
    }

    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// Returns the arguments from a position on.
    pub(crate) fn from(self, at: usize) -> &'v [Value] {
        self.0.get(at..).unwrap_or_default()
    }

    pub(crate) fn value(self, at: usize) -> &'v Value {
        self.0.get(at).unwrap_or(&Value::Nil)
    }

    pub(crate) fn text(self, at: usize) -> &'v Text {
        match self.value(at) {
            Value::String(text) => text,
            other => unreachable_argument(other),
        }
    }

    pub(crate) fn bytes(self, at: usize) -> &'v [u8] {
        self.text(at).as_bytes()
    }

    pub(crate) fn int(self, at: usize) -> i64 {
        match self.value(at) {
            Value::Int(number, _) => *number,
            other => unreachable_argument(other),
        }
    }

    pub(crate) fn float(self, at: usize) -> f64 {
        match self.value(at) {
            Value::Float(number) => *number,
            other => unreachable_argument(other),
        }
    }

    pub(crate) fn truth(self, at: usize) -> bool {
        matches!(self.value(at), Value::Bool(true))
    }

    pub(crate) fn dict(self, at: usize) -> &'v Map {
        match self.value(at) {
            Value::Map(map) => map,
            other => unreachable_argument(other),
        }
    }
}

/// Panics: the executor has checked the types of all arguments.
fn unreachable_argument(value: &Value) -> ! {
    unreachable!("a function takes no argument of type {} here", value.type_name())
}
