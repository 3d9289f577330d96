//! Implements `default`, `coalesce`, `ternary` and related functions.

use crate::functions::Function;
use crate::value::{ANY, Type, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("default", &[ANY, ANY], |a, _| {
        let is_missing = a.from(1).first().is_none_or(is_empty);
        Ok(a.value(usize::from(!is_missing)).clone())
    })
    .light()
    .giving_any(),
    Function::new("empty", &[ANY], |a, _| Ok(is_empty(a.value(0)).into())).light(),
    Function::variadic("coalesce", &[ANY], |a, _| {
        Ok(a.from(0).iter().find(|value| !is_empty(value)).cloned().unwrap_or(Value::Nil))
    })
    .light()
    .giving_any(),
    Function::variadic("all", &[ANY], |a, _| Ok((!a.from(0).iter().any(is_empty)).into())),
    Function::variadic("any", &[ANY], |a, _| Ok((!a.from(0).iter().all(is_empty)).into())),
    Function::new("ternary", &[ANY, ANY, Type::Bool], |a, _| Ok(a.value(usize::from(!a.truth(2))).clone()))
        .light()
        .giving_any(),
    Function::new("fail", &[Type::String], |a, _| Err(a.text(0).to_string().into())),
];

/// Returns whether sprig treats a value as empty: the values that `if` treats as false.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.is_true()
}
