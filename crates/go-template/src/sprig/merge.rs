//! Dicts merged into one another, as `dario.cat/mergo` does it.

use crate::budget::{Budget, DEEPEST_VALUE, Failure};
use crate::functions::{Arguments, Function};
use crate::value::{DICT, Map, Value};

use super::dicts::dict_of;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("merge", &[DICT, DICT], |a, budget| merge(a, false, budget)).giving_any(),
    Function::variadic("mustMerge", &[DICT, DICT], |a, budget| merge(a, false, budget)).giving_any(),
    Function::variadic("mergeOverwrite", &[DICT, DICT], |a, budget| merge(a, true, budget)).giving_any(),
    Function::variadic("mustMergeOverwrite", &[DICT, DICT], |a, budget| merge(a, true, budget)).giving_any(),
];

/// Merges all other dicts into the first, which changes for all who share it.
fn merge(arguments: Arguments<'_>, overwrites: bool, budget: &mut Budget) -> Result<Value, Failure> {
    let sources = || arguments.from(1).iter().filter_map(dict_of);
    let mut target = arguments.dict(0).clone();
    if target.is_nil() && sources().any(|source| !source.is_nil()) {
        target = budget.dict([]);
    }
    for source in sources() {
        into(&target, source, overwrites, budget, 0)?;
    }
    Ok(target.into())
}

fn into(
    target: &Map,
    source: &Map,
    overwrites: bool,
    budget: &mut Budget,
    depth: usize,
) -> Result<(), Failure> {
    if depth > DEEPEST_VALUE {
        return Err(Failure::too_deep());
    }
    for (key, value) in source.entries() {
        budget.step(0)?;
        if matches!(value, Value::Nil) {
            if overwrites {
                target.insert(key, value);
            }
            continue;
        }
        let before = target.get(&key);
        let is_kept = before.as_ref().is_some_and(|before| !is_empty(before));
        match (&before, &value) {
            (Some(Value::Map(before)), Value::Map(value)) if is_kept => {
                into(before, value, overwrites, budget, depth + 1)?;
            }
            _ if overwrites || !is_kept => {
                target.insert(key, value);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the library takes a value for one that is not there.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Struct(_) | Value::Complex(..) => false,
        Value::Pointer(pointer) => pointer.target().is_none_or(is_empty),
        other => !other.is_true(),
    }
}
