//! Merges dicts, as `dario.cat/mergo` does.

use crate::budget::{Budget, Failure, MAX_VALUE_DEPTH};
use crate::functions::{Arguments, Function};
use crate::value::{ANY, DICT, Map, Type, Value};

use super::dicts::dict_of;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("merge", &[DICT, DICT], |a, budget| lenient(a, false, budget)).giving_any(),
    Function::variadic("mustMerge", &[DICT, DICT], |a, budget| strict(a, false, budget)).giving_any(),
    Function::variadic("mergeOverwrite", &[DICT, DICT], |a, budget| lenient(a, true, budget)).giving_any(),
    Function::variadic("mustMergeOverwrite", &[DICT, DICT], |a, budget| strict(a, true, budget)).giving_any(),
];

/// The errors of a merge.
enum MergeError {
    /// The library returns an error.
    OtherType,
    /// The library panics, or a limit is reached.
    Failure(Failure),
}

impl From<Failure> for MergeError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Merges, and returns an empty string if the library returns an error.
fn lenient(arguments: Arguments<'_>, overwrites: bool, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    match merge(arguments, overwrites, budget) {
        Ok(merged) => Ok(merged),
        Err(MergeError::OtherType) => Ok("".into()),
        Err(MergeError::Failure(failure)) => Err(failure),
    }
}

fn strict(arguments: Arguments<'_>, overwrites: bool, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    merge(arguments, overwrites, budget).map_err(|unmerged| match unmerged {
        MergeError::OtherType => "src and dst must be of same type".into(),
        MergeError::Failure(failure) => failure,
    })
}

/// Merges all other dicts into the first, in place.
fn merge(arguments: Arguments<'_>, overwrites: bool, budget: &mut Budget<'_>) -> Result<Value, MergeError> {
    let sources = || arguments.from(1).iter().filter_map(dict_of);
    let mut target = arguments.dict(0).clone();
    if target.is_nil() && sources().any(|source| !source.is_nil()) {
        target = Map::dict([]);
        budget.count(&target.clone().into())?;
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
    budget: &mut Budget<'_>,
    depth: usize,
) -> Result<(), MergeError> {
    if depth > MAX_VALUE_DEPTH {
        return Err(Failure::too_deep().into());
    }
    let (entries, _charge) = budget.snapshot(source)?;
    for (key, value) in entries {
        budget.step(0)?;
        if matches!(value, Value::Nil) {
            if overwrites {
                put(target, source, (key, value), budget)?;
            }
            continue;
        }
        let before = target.get(&key);
        if let Some(before) = &before {
            inside(before, &value, overwrites, budget, depth)?;
        }
        let is_kept = before.as_ref().is_some_and(|before| !is_empty(before));
        let are_maps = matches!((&before, &value), (Some(Value::Map(_)), Value::Map(_)));
        if is_kept && (are_maps || !overwrites) {
            continue;
        }
        put(target, source, (key, value), budget)?;
    }
    Ok(())
}

/// Merges a value into the existing value of the same key, in place.
///
/// Only a map can be changed in place.
fn inside(
    before: &Value,
    value: &Value,
    overwrites: bool,
    budget: &mut Budget<'_>,
    depth: usize,
) -> Result<(), MergeError> {
    match (before, value) {
        (Value::Map(before), Value::Map(value)) if !before.is_nil() => {
            into(before, value, overwrites, budget, depth + 1)
        }
        (Value::Struct(_), Value::Map(_) | Value::Pointer(_)) => {
            let kind = value.kind_name();
            Err(Failure(format!("reflect: call of reflect.Value.Field on {kind} Value")).into())
        }
        (Value::Pointer(pointer), Value::Map(_) | Value::Struct(_))
            if pointer.target().is_some()
                && !value.is_nil()
                && !overwrites
                && value.type_of() != Some(*pointer.to()) =>
        {
            Err(MergeError::OtherType)
        }
        _ => Ok(()),
    }
}

/// Stores a value of one map in another, if that accepts values of its type.
fn put(
    target: &Map,
    source: &Map,
    (key, value): (Value, Value),
    budget: &mut Budget<'_>,
) -> Result<(), MergeError> {
    let (of, wanted): (Type, Type) = (source.kind().value, target.kind().value);
    if wanted != ANY && of != wanted {
        let message =
            format!("reflect.Value.SetMapIndex: value of type {of} is not assignable to type {wanted}");
        return Err(Failure(message).into());
    }
    budget.insert(target, key, value)?;
    Ok(())
}

/// Returns whether the library treats a value as unset.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Struct(_) | Value::Complex(..) => false,
        Value::Pointer(pointer) => pointer.target().is_none_or(is_empty),
        other => !other.is_true(),
    }
}
