//! The methods that values have.

use super::{IntKind, Method, NamedInt, Type, Value};
use crate::budget::Failure;
use crate::text::Text;

/// A method that was found on a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BoundMethod {
    /// One that the type of a struct describes.
    Declared(&'static Method),
    /// `String` of an integer that prints as a word.
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
    /// The method of a name, with the value that it belongs to.
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

    /// What the value says of itself, by its method `Error` or `String`.
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
