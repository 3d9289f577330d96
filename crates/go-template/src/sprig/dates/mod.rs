//! Functions on dates and durations.

mod time;

use crate::budget::{Budget, Failure};
use crate::functions::{Arguments, Function};
use crate::strconv::parse_int;
use crate::time::{Moment, parse, parse_duration, show_duration};
use crate::value::{ANY, IntKind, Type, Value};

pub(super) use time::TIME;
use time::{moment_of, value_of};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("toDate", &[TEXT, TEXT], |a, _| {
        Ok(value_of(&parse(a.bytes(0), a.bytes(1)).unwrap_or_else(|_| Moment::zero())))
    }),
    Function::new("mustToDate", &[TEXT, TEXT], |a, _| Ok(value_of(&parse(a.bytes(0), a.bytes(1))?))),
    Function::new("mustDateModify", &[TEXT, TIME], modify),
    Function::new("must_date_modify", &[TEXT, TIME], modify),
    Function::new("unixEpoch", &[TIME], |a, _| Ok(moment_of(a.value(0)).seconds.to_string().into())),
    Function::new("duration", &[ANY], |a, _| {
        let seconds = match a.value(0) {
            Value::String(text) => {
                std::str::from_utf8(text.as_bytes()).ok().map_or(0, |text| match parse_int(text, 10) {
                    Ok(number) => number,
                    Err(crate::strconv::NumberError::Range) if text.starts_with('-') => i64::MIN,
                    Err(crate::strconv::NumberError::Range) => i64::MAX,
                    Err(crate::strconv::NumberError::Syntax) => 0,
                })
            }
            Value::Int(seconds, IntKind::Int64) => *seconds,
            _ => 0,
        };
        Ok(show_duration(seconds.wrapping_mul(1_000_000_000)).into())
    }),
    Function::new("durationRound", &[ANY], |a, _| {
        let nanoseconds = match a.value(0) {
            Value::String(text) => parse_duration(text.as_bytes()).unwrap_or(0),
            Value::Int(nanoseconds, IntKind::Int64) => *nanoseconds,
            Value::Struct(_) if a.value(0).type_of() == Some(TIME) => {
                return Err("the time since a date changes, and a template must always render the same text; give a duration".into());
            }
            _ => 0,
        };
        Ok(rounded(nanoseconds.unsigned_abs()).into())
    }),
];

fn modify(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let duration = parse_duration(arguments.bytes(0))?;
    Ok(value_of(&moment_of(arguments.value(1)).plus(duration)))
}

/// Returns the largest unit of which the duration has more than one.
fn rounded(nanoseconds: u64) -> String {
    const SECOND: u64 = 1_000_000_000;
    const DAY: u64 = 86_400 * SECOND;
    let units = [
        ("y", 365 * DAY),
        ("mo", 30 * DAY),
        ("d", DAY),
        ("h", 3_600 * SECOND),
        ("m", 60 * SECOND),
        ("s", SECOND),
    ];
    let unit = units.into_iter().find(|&(_, length)| nanoseconds > length);
    unit.map_or_else(|| "0s".to_owned(), |(name, length)| format!("{}{name}", nanoseconds / length))
}
