//! Implements `index`.

use super::{Arguments, Function};
use crate::budget::Failure;
use crate::value::{ANY, Type, UintKind, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    // The executor calls the function below directly, to learn the type of the location.
    Function::variadic("index", &[ANY, ANY], |a, _| Ok(index(a)?.0)).light(),
];

/// Returns the indexed element of a value, and the static type of its location.
pub(crate) fn index(arguments: Arguments<'_>) -> Result<(Value, Type), Failure> {
    let mut item = arguments.value(0).clone();
    let mut of = ANY;
    if matches!(item, Value::Nil) {
        return Err("index of untyped nil".into());
    }
    for index in arguments.from(1) {
        item = item.indirect();
        (item, of) = match &item {
            Value::Nil | Value::Pointer(_) => return Err("index of nil pointer".into()),
            Value::String(text) => {
                let at = place(index, text.len())?;
                let byte = text.as_bytes().get(at).ok_or("reflect: string index out of range")?;
                (Value::Uint((*byte).into(), UintKind::Uint8), Type::Uint(UintKind::Uint8))
            }
            Value::Slice(slice) => {
                let found = slice.get(place(index, slice.len())?);
                (found.ok_or("reflect: slice index out of range")?, *slice.of())
            }
            Value::Map(map) => {
                let key = fit_key(index, map.kind().key)?;
                let of = map.kind().value;
                (map.get(&key).unwrap_or_else(|| of.zero()), of)
            }
            other => return Err(format!("can't index item of type {}", other.type_name()).into()),
        };
    }
    Ok((item, of))
}

/// Checks an index against a length.
/// Like Go, it accepts an index equal to the length.
fn place(index: &Value, length: usize) -> Result<usize, Failure> {
    let at = match index {
        Value::Int(number, _) => *number,
        Value::Uint(number, _) => number.cast_signed(),
        Value::Nil => return Err("cannot index slice/array with nil".into()),
        other => return Err(format!("cannot index slice/array with type {}", other.type_name()).into()),
    };
    let place = usize::try_from(at).ok().filter(|&place| place <= length);
    place.ok_or_else(|| format!("index out of range: {at}").into())
}

/// Converts a value to the type of a key or of an argument of `call`.
pub(crate) fn fit_key(value: &Value, wanted: Type) -> Result<Value, Failure> {
    let Some(of) = value.type_of() else {
        if wanted.can_be_nil() {
            return Ok(wanted.zero());
        }
        return Err(format!("value is nil; should be of type {wanted}").into());
    };
    if of.fits(wanted) {
        return Ok(value.clone());
    }
    match (value, wanted) {
        (Value::Int(number, _), Type::Int(kind)) => Ok(Value::Int(*number, kind)),
        (Value::Int(number, _), Type::Uint(kind)) => Ok(Value::Uint(number.cast_unsigned(), kind)),
        (Value::Uint(number, _), Type::Int(kind)) => Ok(Value::Int(number.cast_signed(), kind)),
        (Value::Uint(number, _), Type::Uint(kind)) => Ok(Value::Uint(*number, kind)),
        _ => Err(format!("value has type {of}; should be {wanted}").into()),
    }
}
