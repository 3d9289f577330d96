//! JSON, as Go's `encoding/json` reads and writes it.

mod read;
mod write;

use crate::budget::{Budget, Failure};
use crate::functions::{Arguments, Function};
use crate::value::{ANY, Type, Value};

use read::read;
use write::{EncodeError, Style, write};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("fromJson", &[TEXT], |a, budget| match read(a.bytes(0), budget)? {
        Ok(value) => Ok(value),
        Err(_) => Ok(Value::Nil),
    })
    .giving_any(),
    Function::new("mustFromJson", &[TEXT], |a, budget| read(a.bytes(0), budget)?.map_err(Failure))
        .giving_any(),
    Function::new("toJson", &[ANY], |a, budget| lenient(a, Style::Compact, budget)),
    Function::new("toPrettyJson", &[ANY], |a, budget| lenient(a, Style::Pretty, budget)),
    Function::new("toRawJson", &[ANY], |a, budget| strict(a, Style::Raw, budget)),
    Function::new("mustToJson", &[ANY], |a, budget| strict(a, Style::Compact, budget)),
    Function::new("mustToPrettyJson", &[ANY], |a, budget| strict(a, Style::Pretty, budget)),
    Function::new("mustToRawJson", &[ANY], |a, budget| strict(a, Style::Raw, budget)),
];

/// Returns an empty string for an unsupported value, but a limit still fails.
fn lenient(arguments: Arguments<'_>, style: Style, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    match write(arguments.value(0), style, budget) {
        Ok(text) => Ok(text.into()),
        Err(EncodeError::Limit(failure)) => Err(failure),
        Err(EncodeError::Value(_)) => Ok("".into()),
    }
}

fn strict(arguments: Arguments<'_>, style: Style, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    match write(arguments.value(0), style, budget) {
        Ok(text) => Ok(text.into()),
        Err(EncodeError::Limit(failure)) => Err(failure),
        Err(EncodeError::Value(message)) => Err(Failure(message)),
    }
}
