//! Implements `print` and its variants, and the escaping functions.

use super::{Arguments, Function};
use crate::budget::{Budget, Failure};
use crate::format::{html_escape, js_escape, print, print_line, printf, query_escape};
use crate::value::{ANY, Type, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("print", &[ANY], |a, budget| Ok(print(a.from(0), budget.most())?.into())),
    Function::variadic("println", &[ANY], |a, budget| Ok(print_line(a.from(0), budget.most())?.into())),
    Function::variadic("printf", &[Type::String, ANY], |a, budget| {
        Ok(printf(a.bytes(0), a.from(1), budget.most())?.into())
    }),
    Function::variadic("html", &[ANY], |a, budget| Ok(html_escape(&whole(a, budget)?).into())),
    Function::variadic("js", &[ANY], |a, budget| Ok(js_escape(&whole(a, budget)?).into())),
    Function::variadic("urlquery", &[ANY], |a, budget| Ok(query_escape(&whole(a, budget)?).into())),
];

/// Formats all arguments as one text.
fn whole(arguments: Arguments<'_>, budget: &Budget<'_>) -> Result<Vec<u8>, Failure> {
    if let [Value::String(text)] = arguments.from(0) {
        return Ok(text.as_bytes().to_vec());
    }
    let shown = |value: &Value| match value {
        Value::Nil => Value::from("<no value>"),
        Value::Pointer(_) => value.indirect(),
        other => other.clone(),
    };
    let values: Vec<Value> = arguments.from(0).iter().map(shown).collect();
    print(&values, budget.most())
}
