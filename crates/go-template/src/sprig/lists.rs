//! Functions on lists.

use std::collections::HashSet;

use crate::budget::{Budget, Failure};
use crate::functions::{Arguments, Function};
use crate::text::Text;
use crate::value::{ANY, INT, LIST, Slice, Type, Value};

use super::cast::{int_of, text_of, texts_of};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("list", &[ANY], |a, _| Ok(Value::list(a.from(0).to_vec()))),
    Function::variadic("tuple", &[ANY], |a, _| Ok(Value::list(a.from(0).to_vec()))),
    Function::new("append", &[ANY, ANY], push),
    Function::new("push", &[ANY, ANY], push),
    Function::new("mustAppend", &[ANY, ANY], push),
    Function::new("mustPush", &[ANY, ANY], push),
    Function::new("prepend", &[ANY, ANY], prepend),
    Function::new("mustPrepend", &[ANY, ANY], prepend),
    Function::new("first", &[ANY], |a, _| end_of(a, "first", |list| list.get(0))).light().giving_any(),
    Function::new("mustFirst", &[ANY], |a, _| end_of(a, "first", |list| list.get(0))).light().giving_any(),
    Function::new("last", &[ANY], |a, _| end_of(a, "last", |list| list.get(list.len() - 1)))
        .light()
        .giving_any(),
    Function::new("mustLast", &[ANY], |a, _| end_of(a, "last", |list| list.get(list.len() - 1)))
        .light()
        .giving_any(),
    Function::new("rest", &[ANY], rest),
    Function::new("mustRest", &[ANY], rest),
    Function::new("initial", &[ANY], initial),
    Function::new("mustInitial", &[ANY], initial),
    Function::new("reverse", &[ANY], reverse),
    Function::new("mustReverse", &[ANY], reverse),
    Function::new("compact", &[ANY], compact),
    Function::new("mustCompact", &[ANY], compact),
    Function::new("uniq", &[ANY], uniq),
    Function::new("mustUniq", &[ANY], uniq),
    Function::variadic("without", &[ANY, ANY], without),
    Function::variadic("mustWithout", &[ANY, ANY], without),
    Function::new("has", &[ANY, ANY], has),
    Function::new("mustHas", &[ANY, ANY], has),
    Function::variadic("slice", &[ANY, ANY], slice).light().giving_any(),
    Function::variadic("mustSlice", &[ANY, ANY], slice).light().giving_any(),
    Function::variadic("concat", &[ANY], concat).giving_any(),
    Function::new("chunk", &[INT, ANY], chunk),
    Function::new("mustChunk", &[INT, ANY], chunk),
    Function::new("sortAlpha", &[ANY], sort_alpha),
];

/// Returns the list at an argument position.
///
/// The error for another type begins with `wrong`.
fn list_at(arguments: Arguments<'_>, at: usize, wrong: &str) -> Result<Slice, Failure> {
    match arguments.value(at) {
        Value::Slice(slice) => Ok(slice.clone()),
        Value::Nil => Err("runtime error: invalid memory address or nil pointer dereference".into()),
        other => Err(format!("{wrong} type {}", other.kind_name()).into()),
    }
}

fn push(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let mut items = list_at(arguments, 0, "Cannot push on")?.to_vec();
    items.push(arguments.value(1).clone());
    Ok(Value::list(items))
}

fn prepend(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let mut items = list_at(arguments, 0, "Cannot prepend on")?.to_vec();
    items.insert(0, arguments.value(1).clone());
    Ok(Value::list(items))
}

/// Returns the first or last element, nil for an empty list.
fn end_of(
    arguments: Arguments<'_>,
    what: &str,
    end: impl Fn(&Slice) -> Option<Value>,
) -> Result<Value, Failure> {
    let list = list_at(arguments, 0, &format!("Cannot find {what} on"))?;
    Ok(if list.is_empty() { Value::Nil } else { end(&list).unwrap_or(Value::Nil) })
}

fn rest(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let list = list_at(arguments, 0, "Cannot find rest on")?;
    if list.is_empty() {
        return Ok(LIST.zero());
    }
    Ok(Value::list(list.to_vec().split_off(1)))
}

fn initial(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let mut items = list_at(arguments, 0, "Cannot find initial on")?.to_vec();
    Ok(if items.pop().is_none() { LIST.zero() } else { Value::list(items) })
}

fn reverse(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let mut items = list_at(arguments, 0, "Cannot find reverse on")?.to_vec();
    items.reverse();
    Ok(Value::list(items))
}

fn compact(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let mut items = list_at(arguments, 0, "Cannot compact on")?.to_vec();
    items.retain(|item| !super::defaults::is_empty(item));
    Ok(Value::list(items))
}

fn is_among(items: &[Value], wanted: &Value, budget: &mut Budget<'_>) -> Result<bool, Failure> {
    for item in items {
        if budget.are_equal(wanted, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes duplicates.
///
/// A string equals only strings, so it is looked up in a set instead of compared with all elements before it.
fn uniq(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    let mut texts: HashSet<Text> = HashSet::new();
    let (mut kept, mut others) = (Vec::new(), Vec::new());
    for item in list_at(arguments, 0, "Cannot find uniq on")?.to_vec() {
        let is_new = if let Value::String(text) = &item {
            budget.step(text.len())?;
            texts.insert(text.clone())
        } else {
            let is_new = !is_among(&others, &item, budget)?;
            others.extend(is_new.then(|| item.clone()));
            is_new
        };
        kept.extend(is_new.then_some(item));
    }
    Ok(Value::list(kept))
}

fn without(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    let mut kept = Vec::new();
    for item in list_at(arguments, 0, "Cannot find without on")?.to_vec() {
        if !is_among(arguments.from(1), &item, budget)? {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

fn has(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    if matches!(arguments.value(1), Value::Nil) {
        return Ok(false.into());
    }
    let items = list_at(arguments, 1, "Cannot find has on")?.to_vec();
    Ok(is_among(&items, arguments.value(0), budget)?.into())
}

fn slice(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let list = match arguments.value(0) {
        Value::Slice(list) => list,
        Value::Nil => return Err("runtime error: invalid memory address or nil pointer dereference".into()),
        other => {
            return Err(format!("list should be type of slice or array but {}", other.kind_name()).into());
        }
    };
    if list.is_empty() {
        return Ok(Value::Nil);
    }
    let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let start = arguments.from(1).first().map_or(0, int_of);
    let end = arguments.from(2).first().map_or(length, int_of);
    let part = usize::try_from(start)
        .ok()
        .zip(usize::try_from(end).ok())
        .and_then(|(start, end)| list.part(start..end, list.capacity()));
    Ok(part.ok_or("reflect.Value.Slice: slice index out of bounds")?.into())
}

fn concat(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    let mut all = Vec::new();
    for value in arguments.from(0) {
        match value {
            Value::Slice(list) => {
                budget.check_list(all.len() + list.len())?;
                all.extend(list.to_vec());
            }
            Value::Nil => {
                return Err("runtime error: invalid memory address or nil pointer dereference".into());
            }
            other => return Err(format!("Cannot concat type {} as list", other.kind_name()).into()),
        }
    }
    Ok(if all.is_empty() { LIST.zero() } else { Value::list(all) })
}

fn chunk(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    let list = list_at(arguments, 1, "Cannot chunk")?;
    let items = list.to_vec();
    let size = arguments.int(0);
    let chunks: Vec<Value> = match (usize::try_from(size), items.len()) {
        (Ok(size @ 1..), count) => {
            budget.check_made(count.div_ceil(size))?;
            items.chunks(size).map(|items| Value::list(items.to_vec())).collect()
        }
        // The results of Go's division for sizes below 1.
        (Err(_), 1) if size < -1 => vec![Value::list(items)],
        (Err(_), length @ 2..) if length as i128 - 1 <= -i128::from(size) => Vec::new(),
        _ => return Err("runtime error: makeslice: len out of range".into()),
    };
    Ok(Slice::new(&LIST, chunks).into())
}

fn sort_alpha(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    let value = arguments.value(0);
    let Value::Slice(list) = value.indirect() else {
        return Ok(Value::texts([text_of(value, budget)?]));
    };
    let mut texts: Vec<Text> = texts_of(value, budget)?;
    texts.sort_unstable();
    let sorted: Vec<Value> = texts.into_iter().map(Value::String).collect();
    if *list.of() == TEXT {
        // A list of strings is sorted in place, visible to all that share it.
        list.overwrite(sorted);
        return Ok(list.into());
    }
    Ok(Slice::new(&Type::String, sorted).into())
}
