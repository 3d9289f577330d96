//! The order of map keys, for `range` and for printing.

use std::cmp::Ordering;

use super::Value;

/// Compares two keys: numbers by size, strings by bytes, structs field by field.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Int(left, _), Value::Int(right, _)) => left.cmp(right),
        (Value::Uint(left, _), Value::Uint(right, _)) => left.cmp(right),
        (Value::Float(left), Value::Float(right)) => compare_floats(*left, *right),
        (Value::Complex(left, i), Value::Complex(right, k)) => {
            compare_floats(*left, *right).then_with(|| compare_floats(*i, *k))
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Struct(left), Value::Struct(right)) => {
            let pairs = left.fields().iter().zip(right.fields());
            pairs
                .map(|(left, right)| compare(left, right))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        }
        // The keys of one map have one type, so any order will do here.
        _ => left.type_name().cmp(&right.type_name()),
    }
}

/// Sorts NaN first, as Go's `cmp.Compare` does; zeros of either sign are equal.
fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| right.is_nan().cmp(&left.is_nan()))
}
