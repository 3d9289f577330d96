//! Functions on dicts.

use crate::budget::{Budget, Failure};
use crate::functions::{Arguments, Function};
use crate::text::Text;
use crate::value::{ANY, DICT, Map, Pointer, Slice, Struct, Type, Value};

use super::cast::text_of;

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("dict", &[ANY], dict),
    Function::new("get", &[DICT, TEXT], |a, _| Ok(a.dict(0).at(a.text(1)).unwrap_or_else(|| "".into())))
        .light()
        .giving_any(),
    Function::new("set", &[DICT, TEXT, ANY], |a, budget| {
        if !budget.insert(a.dict(0), a.value(1).clone(), a.value(2).clone())? {
            return Err("assignment to entry in nil map".into());
        }
        Ok(a.value(0).clone())
    })
    .light(),
    Function::new("unset", &[DICT, TEXT], |a, _| {
        a.dict(0).remove(a.value(1));
        Ok(a.value(0).clone())
    })
    .light(),
    Function::new("hasKey", &[DICT, TEXT], |a, _| Ok(a.dict(0).get(a.value(1)).is_some().into())).light(),
    Function::variadic("pluck", &[TEXT, DICT], |a, _| {
        let key = a.value(0);
        let found = a.from(1).iter().filter_map(|dict| dict_of(dict).and_then(|dict| dict.get(key)));
        Ok(Value::list(found.collect()))
    }),
    Function::variadic("keys", &[DICT], |a, budget| {
        let mut keys = Vec::new();
        for dict in a.from(0).iter().filter_map(dict_of) {
            budget.check_list(keys.len() + dict.len())?;
            dict.each(&mut |key, _| keys.extend(key_of(key)));
        }
        Ok(Value::texts(keys))
    }),
    Function::new("values", &[DICT], |a, _| {
        Ok(Value::list(a.dict(0).entries().into_iter().map(|(_, value)| value).collect()))
    }),
    Function::variadic("pick", &[DICT, TEXT], |a, _| {
        let wanted = a.from(1).iter().filter_map(key_of);
        let found: Vec<_> =
            wanted.filter_map(|key| a.dict(0).at(&key).map(|value| (key.clone(), value))).collect();
        Ok(Map::dict(found).into())
    }),
    Function::variadic("omit", &[DICT, TEXT], |a, _| {
        let unwanted: std::collections::BTreeSet<Text> = a.from(1).iter().filter_map(key_of).collect();
        let entries = a.dict(0).entries().into_iter();
        let kept = entries.filter_map(|(key, value)| Some((key_of(&key)?, value)));
        let kept: Vec<_> = kept.filter(|(key, _)| !unwanted.contains(key)).collect();
        Ok(Map::dict(kept).into())
    }),
    Function::variadic("dig", &[ANY], dig).giving_any(),
    Function::new("deepCopy", &[ANY], copied).giving_any(),
    Function::new("mustDeepCopy", &[ANY], copied).giving_any(),
];

pub(super) fn dict_of(value: &Value) -> Option<&Map> {
    if let Value::Map(map) = value { Some(map) } else { None }
}

fn key_of(value: &Value) -> Option<Text> {
    if let Value::String(text) = value { Some(text.clone()) } else { None }
}

fn dict(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    let mut entries = Vec::new();
    for pair in arguments.from(0).chunks(2) {
        let key = text_of(&pair[0], budget)?;
        entries.push((key, pair.get(1).cloned().unwrap_or_else(|| "".into())));
    }
    Ok(Map::dict(entries).into())
}

/// Looks up nested keys.
/// The last argument is the dict, the one before it the default.
fn dig(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let [keys @ .., default, dict] = arguments.from(0) else {
        return Err("dig needs at least three arguments".into());
    };
    if keys.is_empty() {
        return Err("dig needs at least three arguments".into());
    }
    let mut found = as_dict(dict)?.clone();
    for key in keys {
        if !matches!(key, Value::String(_)) {
            return Err(conversion(key, "string"));
        }
    }
    let (last, before) = keys.split_last().expect("there is a key");
    for key in before {
        let Some(step) = found.get(key) else { return Ok(default.clone()) };
        found = as_dict(&step)?.clone();
    }
    Ok(found.get(last).unwrap_or_else(|| default.clone()))
}

fn as_dict(value: &Value) -> Result<&Map, Failure> {
    match value {
        Value::Map(map) if Type::Map(map.kind()) == DICT => Ok(map),
        other => Err(conversion(other, "map[string]interface {}")),
    }
}

fn conversion(value: &Value, wanted: &str) -> Failure {
    let name = if matches!(value, Value::Nil) { "nil".to_owned() } else { value.type_name() };
    format!("interface conversion: interface {{}} is {name}, not {wanted}").into()
}

fn copied(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    match arguments.value(0) {
        Value::Nil => Err("reflect: call of reflect.Value.Type on zero Value".into()),
        value => deep_copy(value, budget, 0),
    }
}

/// Returns a copy that shares no list and no dict with the value.
fn deep_copy(value: &Value, budget: &mut Budget<'_>, depth: usize) -> Result<Value, Failure> {
    if depth > crate::budget::MAX_VALUE_DEPTH {
        return Err(Failure::too_deep());
    }
    budget.step(0)?;
    // Nested copies are held in memory at the same time.
    let _charge = budget.hold(value.footprint())?;
    let copy = copy_with(value, budget, depth)?;
    budget.count(&copy)?;
    Ok(copy)
}

fn copy_with(value: &Value, budget: &mut Budget<'_>, depth: usize) -> Result<Value, Failure> {
    match value {
        Value::Slice(slice) if !slice.is_nil() => {
            let mut items = Vec::with_capacity(slice.len());
            slice.try_each(|_, item| {
                items.push(deep_copy(item, budget, depth + 1)?);
                Ok::<(), Failure>(())
            })?;
            Ok(Slice::new(slice.of(), items).into())
        }
        Value::Map(map) if !map.is_nil() => {
            let mut entries = Vec::with_capacity(map.len());
            map.try_each(|_, key, value| {
                entries.push((key.clone(), deep_copy(value, budget, depth + 1)?));
                Ok::<(), Failure>(())
            })?;
            Ok(Map::new(map.kind(), entries).into())
        }
        Value::Struct(object) if value.type_of() != Some(super::dates::TIME) => {
            let mut fields = Vec::new();
            for (field, value) in object.kind().fields.iter().zip(object.fields()) {
                // The library cannot read unexported fields, and skips them.
                let is_seen = field.is_exported();
                fields.push(if is_seen { deep_copy(value, budget, depth + 1)? } else { field.of.zero() });
            }
            Ok(Struct::new(object.kind(), fields).into())
        }
        Value::Pointer(pointer) => match pointer.target() {
            Some(target) => {
                let copy = deep_copy(target, budget, depth + 1)?;
                Ok(Value::Pointer(Pointer::new(pointer.to(), copy)))
            }
            None => Ok(value.clone()),
        },
        other => Ok(other.clone()),
    }
}
