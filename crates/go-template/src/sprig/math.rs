//! Functions on numbers.

use crate::budget::{Budget, Failure};
use crate::format::print_value;
use crate::functions::{Arguments, Function};
use crate::strconv::parse_int;
use crate::value::{ANY, INT, Slice, Type, Value};

use super::cast::{float_of, int_of};
use super::decimal::{Decimal, calculate};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("atoi", &[TEXT], |a, _| {
        let number = std::str::from_utf8(a.bytes(0)).ok().and_then(|text| parse_int(text, 10).ok());
        // Go returns the nearest bound for a number out of range; sprig ignores the error.
        Ok(Value::int(number.unwrap_or_else(|| saturated(a.bytes(0)))))
    }),
    Function::new("int64", &[ANY], |a, _| Ok(Value::int64(int_of(a.value(0))))),
    Function::new("int", &[ANY], |a, _| Ok(Value::int(int_of(a.value(0))))),
    Function::new("float64", &[ANY], |a, _| Ok(float_of(a.value(0)).into())),
    Function::new("toDecimal", &[ANY], |a, budget| {
        let text = print_value(a.value(0), budget.most())?;
        let number = std::str::from_utf8(&text).ok().and_then(|text| parse_int(text, 8).ok());
        Ok(Value::int64(number.unwrap_or(0)))
    }),
    Function::new("add1", &[ANY], |a, _| Ok(Value::int64(int_of(a.value(0)).wrapping_add(1)))),
    Function::variadic("add", &[ANY], |a, _| {
        Ok(Value::int64(a.from(0).iter().map(int_of).fold(0, i64::wrapping_add)))
    }),
    Function::new("sub", &[ANY, ANY], |a, _| {
        Ok(Value::int64(int_of(a.value(0)).wrapping_sub(int_of(a.value(1)))))
    }),
    Function::new("div", &[ANY, ANY], |a, _| divide(a, i64::wrapping_div)),
    Function::new("mod", &[ANY, ANY], |a, _| divide(a, i64::wrapping_rem)),
    Function::variadic("mul", &[ANY, ANY], |a, _| {
        Ok(Value::int64(a.from(0).iter().map(int_of).fold(1, i64::wrapping_mul)))
    }),
    Function::new("add1f", &[ANY], |a, budget| {
        calculate(float_of(a.value(0)), &[1.0], |left, right| Ok(left.add(right)), budget)
    }),
    Function::variadic("addf", &[ANY], |a, budget| {
        calculate(0.0, &floats(a.from(0)), |left, right| Ok(left.add(right)), budget)
    }),
    Function::variadic("subf", &[ANY, ANY], |a, budget| {
        calculate(float_of(a.value(0)), &floats(a.from(1)), |left, right| Ok(left.sub(right)), budget)
    }),
    Function::variadic("mulf", &[ANY, ANY], |a, budget| {
        calculate(float_of(a.value(0)), &floats(a.from(1)), |left, right| Ok(left.mul(right)), budget)
    }),
    Function::variadic("divf", &[ANY, ANY], |a, budget| {
        calculate(float_of(a.value(0)), &floats(a.from(1)), Decimal::div, budget)
    }),
    Function::variadic("biggest", &[ANY, ANY], |a, _| Ok(extreme(a, i64::max))),
    Function::variadic("max", &[ANY, ANY], |a, _| Ok(extreme(a, i64::max))),
    Function::variadic("min", &[ANY, ANY], |a, _| Ok(extreme(a, i64::min))),
    Function::variadic("maxf", &[ANY, ANY], |a, _| Ok(extreme_float(a, f64::max, f64::INFINITY))),
    Function::variadic("minf", &[ANY, ANY], |a, _| Ok(extreme_float(a, f64::min, f64::NEG_INFINITY))),
    Function::new("ceil", &[ANY], |a, _| Ok(float_of(a.value(0)).ceil().into())),
    Function::new("floor", &[ANY], |a, _| Ok(float_of(a.value(0)).floor().into())),
    Function::variadic("round", &[ANY, INT, Type::Float], |a, _| Ok(round(a).into())),
    Function::new("until", &[INT], |a, budget| {
        let step = if a.int(0) < 0 { -1 } else { 1 };
        ints(steps(0, a.int(0), step, budget)?)
    }),
    Function::new("untilStep", &[INT, INT, INT], |a, budget| {
        ints(steps(a.int(0), a.int(1), a.int(2), budget)?)
    }),
    Function::variadic("seq", &[INT], seq),
];

fn saturated(text: &[u8]) -> i64 {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        0
    } else if text.starts_with(b"-") {
        i64::MIN
    } else {
        i64::MAX
    }
}

fn floats(values: &[Value]) -> Vec<f64> {
    values.iter().map(float_of).collect()
}

fn divide(arguments: Arguments<'_>, operation: fn(i64, i64) -> i64) -> Result<Value, Failure> {
    let (left, right) = (int_of(arguments.value(0)), int_of(arguments.value(1)));
    if right == 0 {
        return Err("runtime error: integer divide by zero".into());
    }
    Ok(Value::int64(operation(left, right)))
}

fn extreme(arguments: Arguments<'_>, choose: fn(i64, i64) -> i64) -> Value {
    let first = int_of(arguments.value(0));
    Value::int64(arguments.from(1).iter().map(int_of).fold(first, choose))
}

fn extreme_float(arguments: Arguments<'_>, choose: fn(f64, f64) -> f64, limit: f64) -> Value {
    let first = float_of(arguments.value(0));
    // In Go, infinity wins over NaN, and NaN over all other numbers; for zeros the sign decides.
    let choose = |left: f64, right: f64| {
        if left == limit || right == limit {
            limit
        } else if left.is_nan() || right.is_nan() {
            f64::NAN
        } else if left == 0.0 && right == 0.0 {
            if (limit > 0.0) == left.is_sign_negative() { right } else { left }
        } else {
            choose(left, right)
        }
    };
    floats(arguments.from(1)).into_iter().fold(first, choose).into()
}

fn round(arguments: Arguments<'_>) -> f64 {
    let places = arguments.int(1);
    let up_from = if arguments.len() > 2 { arguments.float(2) } else { 0.5 };
    let power = power_of_ten(places);
    let digits = power * float_of(arguments.value(0));
    // In Go, the fraction of an infinite number is NaN.
    let fraction = if digits.is_infinite() { f64::NAN } else { digits.fract() };
    (if fraction >= up_from { digits.ceil() } else { digits.floor() }) / power
}

/// Returns a power of ten by Go's multiplications.
///
/// The last bit can differ from the nearest float.
fn power_of_ten(power: i64) -> f64 {
    let mut exponent = i128::from(power.unsigned_abs());
    let (mut result, mut result_exponent) = (1.0f64, 0i128);
    let (mut factor, mut factor_exponent) = (0.625f64, 4i128);
    while exponent > 0 {
        if factor_exponent > 4096 {
            return if power < 0 { 0.0 } else { f64::INFINITY };
        }
        if exponent & 1 == 1 {
            result *= factor;
            result_exponent += factor_exponent;
        }
        factor *= factor;
        factor_exponent *= 2;
        if factor < 0.5 {
            factor += factor;
            factor_exponent -= 1;
        }
        exponent >>= 1;
    }
    if power < 0 {
        result = 1.0 / result;
        result_exponent = -result_exponent;
    }
    // All steps but the last are exact, so the result is rounded once.
    let mut left = i32::try_from(result_exponent.clamp(-3000, 3000)).unwrap_or(0);
    while left != 0 {
        let step = left.clamp(-1000, 1000);
        result *= 2f64.powi(step);
        left -= step;
    }
    result
}

/// Returns the numbers from `start` to `stop`, without `stop`.
fn steps(start: i64, stop: i64, step: i64, budget: &mut Budget<'_>) -> Result<Vec<i64>, Failure> {
    let is_moving = if stop < start { step < 0 } else { step > 0 };
    if !is_moving {
        return Ok(Vec::new());
    }
    let distance = stop.abs_diff(start);
    let count = usize::try_from(distance.div_ceil(step.unsigned_abs())).unwrap_or(usize::MAX);
    budget.check_list(count)?;
    let next = |number: &i64| number.checked_add(step);
    Ok(std::iter::successors(Some(start), next).take(count).collect())
}

fn ints(numbers: Vec<i64>) -> Result<Value, Failure> {
    Ok(Slice::new(&INT, numbers.into_iter().map(Value::int).collect()).into())
}

fn seq(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    let direction = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let (start, step, end) = match arguments.len() {
        1 => (1, direction(1, arguments.int(0)), arguments.int(0)),
        2 => (arguments.int(0), direction(arguments.int(0), arguments.int(1)), arguments.int(1)),
        3 => (arguments.int(0), arguments.int(1), arguments.int(2)),
        _ => return Ok("".into()),
    };
    if end < start && step > 0 {
        return Ok("".into());
    }
    let numbers = steps(start, end.wrapping_add(direction(start, end)), step, budget)?;
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    Ok(texts.join(" ").into())
}
