//! `time.Time` as a value with its methods.

use std::cmp::Ordering;

use crate::time::{Date, Moment, Zone, month_name, show_duration, weekday_name};
use crate::value::{Field, INT, IntKind, Method, NamedInt, Struct, StructType, Type, Value};

/// The type of a point in time.
pub(in crate::sprig) const TIME: Type = Type::Struct(&TIME_STRUCT);

/// The parameter types of methods that take another point in time.
///
/// They are a static because the type refers to itself.
static ANOTHER: [Type; 1] = [Type::Struct(&TIME_STRUCT)];

static TIME_STRUCT: StructType = StructType {
    name: "time.Time",
    // Go's fields differ in content, but templates cannot read them.
    fields: &[
        Field::new("wall", Type::Int(IntKind::Int64)),
        Field::new("ext", Type::Int(IntKind::Int64)),
        Field::new("loc", Type::Int(IntKind::Int64)),
        Field::new("zone", Type::String),
    ],
    methods: &[
        Method::new("String", |time, _| Ok(moment_of(time).text().into())),
        Method::new("MarshalText", |time, _| {
            Ok(moment_of(time).format(b"2006-01-02T15:04:05.999999999Z07:00").into())
        }),
        with(
            &[Type::String],
            Method::new("Format", |time, arguments| match arguments {
                [Value::String(layout)] => Ok(moment_of(time).format(layout.as_bytes()).into()),
                _ => Ok(Value::Nil),
            }),
        ),
        Method::new("Year", |time, _| Ok(Value::int(moment_of(time).date().year))),
        Method::new("Month", |time, _| Ok(Value::Int(moment_of(time).date().month, IntKind::Named(&MONTH)))),
        Method::new("Day", |time, _| Ok(Value::int(moment_of(time).date().day))),
        Method::new("Weekday", |time, _| {
            Ok(Value::Int(moment_of(time).date().weekday(), IntKind::Named(&WEEKDAY)))
        }),
        Method::new("YearDay", |time, _| Ok(Value::int(moment_of(time).date().day_of_year()))),
        Method::new("Hour", |time, _| Ok(Value::int(moment_of(time).second_of_day() / 3600))),
        Method::new("Minute", |time, _| Ok(Value::int(moment_of(time).second_of_day() / 60 % 60))),
        Method::new("Second", |time, _| Ok(Value::int(moment_of(time).second_of_day() % 60))),
        Method::new("Nanosecond", |time, _| Ok(Value::int(moment_of(time).nanoseconds))),
        Method::new("Unix", |time, _| Ok(Value::int64(moment_of(time).seconds))),
        Method::new("UnixMilli", |time, _| Ok(unix(time, 1_000))),
        Method::new("UnixMicro", |time, _| Ok(unix(time, 1_000_000))),
        Method::new("UnixNano", |time, _| Ok(unix(time, 1_000_000_000))),
        Method::new("IsZero", |time, _| {
            let (moment, zero) = (moment_of(time), Moment::zero());
            Ok((moment.seconds == zero.seconds && moment.nanoseconds == 0).into())
        }),
        Method::new("UTC", utc),
        Method::new("Local", utc),
        with(
            &[A_DURATION],
            Method::new("Add", |time, arguments| Ok(value_of(&moment_of(time).plus(number(arguments, 0))))),
        ),
        with(&[INT, INT, INT], Method::new("AddDate", add_date)),
        with(
            &ANOTHER,
            Method::new("Sub", |time, arguments| {
                let (left, right) = (moment_of(time), other(arguments));
                let seconds = i128::from(left.seconds) - i128::from(right.seconds);
                let difference = seconds * 1_000_000_000 + i128::from(left.nanoseconds - right.nanoseconds);
                let bounded = difference.clamp(i64::MIN.into(), i64::MAX.into());
                Ok(Value::Int(i64::try_from(bounded).unwrap_or(0), IntKind::Named(&DURATION)))
            }),
        ),
        with(&ANOTHER, Method::new("Before", |time, arguments| Ok(order(time, arguments).is_lt().into()))),
        with(&ANOTHER, Method::new("After", |time, arguments| Ok(order(time, arguments).is_gt().into()))),
        with(&ANOTHER, Method::new("Equal", |time, arguments| Ok(order(time, arguments).is_eq().into()))),
        with(
            &ANOTHER,
            Method::new("Compare", |time, arguments| Ok(Value::int(order(time, arguments) as i64))),
        ),
    ],
};

static MONTH: NamedInt = NamedInt { name: "time.Month", kind: IntKind::Int, text: month_name };
static WEEKDAY: NamedInt = NamedInt { name: "time.Weekday", kind: IntKind::Int, text: weekday_name };
static DURATION: NamedInt = NamedInt { name: "time.Duration", kind: IntKind::Int64, text: show_duration };
const A_DURATION: Type = Type::Int(IntKind::Named(&DURATION));

const fn with(parameters: &'static [Type], method: Method) -> Method {
    Method { parameters, ..method }
}

/// Converts a point in time to a value.
pub(super) fn value_of(moment: &Moment) -> Value {
    let fields = vec![
        Value::int64(moment.seconds),
        Value::int64(moment.nanoseconds),
        Value::int64(moment.zone.offset),
        moment.zone.name.clone().into(),
    ];
    Struct::new(&TIME_STRUCT, fields).into()
}

/// Converts a value to a point in time.
pub(super) fn moment_of(value: &Value) -> Moment {
    let Value::Struct(object) = value else { return Moment::zero() };
    match object.fields() {
        [Value::Int(seconds, _), Value::Int(nanoseconds, _), Value::Int(offset, _), Value::String(name)] => {
            Moment {
                seconds: *seconds,
                nanoseconds: *nanoseconds,
                zone: Zone { name: name.clone(), offset: *offset },
            }
        }
        _ => Moment::zero(),
    }
}

fn number(arguments: &[Value], at: usize) -> i64 {
    if let Some(Value::Int(number, _)) = arguments.get(at) { *number } else { 0 }
}

fn other(arguments: &[Value]) -> Moment {
    arguments.first().map_or_else(Moment::zero, moment_of)
}

fn order(time: &Value, arguments: &[Value]) -> Ordering {
    let (left, right) = (moment_of(time), other(arguments));
    (left.seconds, left.nanoseconds).cmp(&(right.seconds, right.nanoseconds))
}

fn unix(time: &Value, per_second: i64) -> Value {
    let moment = moment_of(time);
    let part = moment.nanoseconds / (1_000_000_000 / per_second);
    Value::int64(moment.seconds.wrapping_mul(per_second).wrapping_add(part))
}

fn utc(time: &Value, _: &[Value]) -> Result<Value, String> {
    Ok(value_of(&Moment { zone: Zone::utc(), ..moment_of(time) }))
}

fn add_date(time: &Value, arguments: &[Value]) -> Result<Value, String> {
    let moment = moment_of(time);
    let date = moment.date();
    let bounded = |at| number(arguments, at).clamp(-1_000_000, 1_000_000);
    let months = date.month - 1 + bounded(1);
    let later = Date {
        year: date.year + bounded(0) + months.div_euclid(12),
        month: months.rem_euclid(12) + 1,
        day: date.day + bounded(2),
    };
    let seconds = later.number() * 86_400 + moment.second_of_day() - moment.zone.offset;
    Ok(value_of(&Moment { seconds, ..moment }))
}
