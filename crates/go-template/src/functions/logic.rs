//! Implements `and`, `or`, `not`, `len` and `call`.

use super::{Arguments, Function};
use crate::budget::{Budget, Failure};
use crate::value::{ANY, Type, Value};

/// The type of a parameter that distinguishes a nil in an interface from no value.
///
/// The nil in an interface is passed as a nil pointer.
pub(crate) const HELD: Type = Type::Interface("reflect.Value");

pub(super) const FUNCTIONS: &[Function] = &[
    // The executor implements these itself.
    Function::variadic("and", &[ANY, ANY], by_executor),
    Function::variadic("or", &[ANY, ANY], by_executor),
    Function::variadic("call", &[ANY, ANY], by_executor),
    Function::new("not", &[ANY], |a, _| Ok(Value::Bool(!a.value(0).is_true()))).light(),
    Function::new("len", &[HELD], length).light(),
];

fn by_executor(_: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    Ok(Value::Nil)
}

fn length(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let length = match arguments.value(0).indirect() {
        Value::String(text) => text.len(),
        Value::Slice(slice) => slice.len(),
        Value::Map(map) => map.len(),
        Value::Pointer(_) => return Err("len of nil pointer".into()),
        Value::Nil => return Err("reflect: call of reflect.Value.Type on zero Value".into()),
        other => return Err(format!("len of type {}", other.type_name()).into()),
    };
    Ok(Value::int(i64::try_from(length).unwrap_or(i64::MAX)))
}
