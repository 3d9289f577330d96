//! Implements `eq`, `ne`, `lt`, `le`, `gt` and `ge`.

use std::cmp::Ordering;
use std::mem::discriminant;

use super::{Arguments, Function};
use crate::budget::{Budget, Failure};
use crate::format::{print_value, printf};
use crate::text::shown;
use crate::value::{ANY, Type, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("eq", &[ANY, ANY], |a, budget| Ok(equal(a, budget)?.into())),
    Function::new("ne", &[ANY, ANY], |a, budget| Ok((!equal(a, budget)?).into())),
    Function::new("lt", &[ANY, ANY], |a, _| Ok(less(a.value(0), a.value(1))?.into())),
    Function::new("le", &[ANY, ANY], |a, budget| Ok(less_or_equal(a, budget)?.into())),
    Function::new("gt", &[ANY, ANY], |a, budget| Ok((!less_or_equal(a, budget)?).into())),
    Function::new("ge", &[ANY, ANY], |a, _| Ok((!less(a.value(0), a.value(1))?).into())),
];

/// Returns whether the first value equals any of the others.
fn equal(arguments: Arguments<'_>, budget: &Budget<'_>) -> Result<bool, Failure> {
    let first = arguments.value(0);
    if arguments.len() < 2 {
        return Err("missing argument for comparison".into());
    }
    for other in arguments.from(1) {
        if are_equal(first, other, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn are_equal(left: &Value, right: &Value, budget: &Budget<'_>) -> Result<bool, Failure> {
    if let (Value::Int(signed, _), Value::Uint(unsigned, _))
    | (Value::Uint(unsigned, _), Value::Int(signed, _)) = (left, right)
    {
        return Ok(u64::try_from(*signed) == Ok(*unsigned));
    }
    match (is_basic(left), is_basic(right)) {
        (true, true) if discriminant(left) == discriminant(right) => Ok(match (left, right) {
            (Value::Int(left, _), Value::Int(right, _)) => left == right,
            (Value::Uint(left, _), Value::Uint(right, _)) => left == right,
            _ => left.is_identical(right),
        }),
        (false, false) => equal_composed(left, right, budget),
        _ if matches!(left, Value::Nil) || matches!(right, Value::Nil) => Ok(false),
        _ => Err(incompatible(left, right)),
    }
}

/// Compares two values that are neither numbers, strings nor bools.
fn equal_composed(left: &Value, right: &Value, budget: &Budget<'_>) -> Result<bool, Failure> {
    let as_text = |value: &Value| -> Result<String, Failure> {
        Ok(shown(&printf(b"%s", std::slice::from_ref(value), budget.most())?))
    };
    let is_nothing = |value: &Value| matches!(value, Value::Nil);
    if left.kind_name() != right.kind_name() && !is_nothing(left) && !is_nothing(right) {
        return Err(format!(
            "non-comparable types {}: {}, {}: {}",
            as_text(left)?,
            left.type_name(),
            right.type_name(),
            shown(&print_value(right, budget.most())?)
        )
        .into());
    }
    if left.is_nil() || right.is_nil() {
        return Ok(left.is_nil() == right.is_nil());
    }
    if !right.type_of().is_none_or(Type::is_comparable) {
        return Err(format!("non-comparable type {}: {}", as_text(right)?, right.type_name()).into());
    }
    Ok(left.is_identical(right))
}

fn is_basic(value: &Value) -> bool {
    matches!(
        value,
        Value::Bool(_)
            | Value::Int(..)
            | Value::Uint(..)
            | Value::Float(_)
            | Value::Complex(..)
            | Value::String(_)
    )
}

fn less(left: &Value, right: &Value) -> Result<bool, Failure> {
    let order = match (left, right) {
        (Value::Int(left, _), Value::Int(right, _)) => left.cmp(right),
        (Value::Uint(left, _), Value::Uint(right, _)) => left.cmp(right),
        (Value::Int(left, _), Value::Uint(right, _)) => {
            u64::try_from(*left).map_or(Ordering::Less, |left| left.cmp(right))
        }
        (Value::Uint(left, _), Value::Int(right, _)) => {
            u64::try_from(*right).map_or(Ordering::Greater, |right| left.cmp(&right))
        }
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right).unwrap_or(Ordering::Greater),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        _ if !is_basic(left) || !is_basic(right) || discriminant(left) == discriminant(right) => {
            return Err("invalid type for comparison".into());
        }
        _ => return Err(incompatible(left, right)),
    };
    Ok(order.is_lt())
}

fn less_or_equal(arguments: Arguments<'_>, budget: &Budget<'_>) -> Result<bool, Failure> {
    let (left, right) = (arguments.value(0), arguments.value(1));
    Ok(less(left, right)? || are_equal(left, right, budget)?)
}

fn incompatible(left: &Value, right: &Value) -> Failure {
    format!("incompatible types for comparison: {} and {}", left.type_name(), right.type_name()).into()
}
