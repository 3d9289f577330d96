//! Looks up methods of values.

use super::{IntKind, Method, NamedInt, Type, Value};
use crate::budget::Failure;
use crate::text::Text;

/// A method that was found on a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BoundMethod {
    /// A method that a struct type declares.
    Declared(&'static Method),
    /// `String` of a named integer type.
    Word(&'static NamedInt),
}

impl BoundMethod {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Declared(method) => method.name,
            Self::Word(_) => "String",
        }
    }

    pub(crate) fn parameters(&self) -> &'static [Type] {
        match self {
            Self::Declared(method) => method.parameters,
            Self::Word(_) => &[],
        }
    }

    pub(crate) fn call(&self, receiver: &Value, arguments: &[Value]) -> Result<Value, Failure> {
        match self {
            Self::Declared(method) => Ok((method.run)(receiver, arguments)?),
            Self::Word(named) => {
                let number = if let Value::Int(number, _) = receiver { *number } else { 0 };
                Ok(Value::from((named.text)(number)))
            }
        }
    }
}

impl Value {
    /// Returns the method of a name, with its receiver.
    pub(crate) fn method(&self, name: &str) -> Option<(BoundMethod, Self)> {
        match self {
            Self::Struct(object) => {
                let (method, receiver) = object.method(name)?;
                Some((BoundMethod::Declared(method), receiver))
            }
            Self::Int(_, IntKind::Named(named)) if name == "String" => {
                Some((BoundMethod::Word(named), self.clone()))
            }
            _ => None,
        }
    }

    /// Returns the text of the value's method `Error` or `String`.
    pub(crate) fn own_text(&self) -> Result<Option<Text>, Failure> {
        let owner = match self {
            Self::Pointer(pointer) => match pointer.target() {
                Some(target @ Self::Struct(_)) => target,
                _ => return Ok(None),
            },
            Self::Struct(_) | Self::Int(_, IntKind::Named(_)) => self,
            _ => return Ok(None),
        };
        let found = owner.method("Error").or_else(|| owner.method("String"));
        let Some((method, receiver)) = found.filter(|(method, _)| method.parameters().is_empty()) else {
            return Ok(None);
        };
        match method.call(&receiver, &[])? {
            Self::String(text) => Ok(Some(text)),
            _ => Ok(None),
        }
    }
}
