//! Semantic versions, as Masterminds' `semver` implements them.

use std::cmp::Ordering;

use tagboat_versions::{Constraint, Version, VersionError};

use crate::budget::{Budget, Failure};
use crate::format::quote;
use crate::functions::{Arguments, Function};
use crate::text::Text;
use crate::value::{Field, Method, Pointer, Struct, StructType, Type, UintKind, Value};

const TEXT: Type = Type::String;
const NUMBER: Type = Type::Uint(UintKind::Uint64);

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("semver", &[TEXT], |a, _| {
        let version = parse(a.text(0))?;
        Ok(Value::Pointer(Pointer::new(&VERSION, structure(&version))))
    }),
    Function::new("semverCompare", &[TEXT, TEXT], compare),
];

static VERSION: Type = Type::Struct(&VERSION_STRUCT);

/// The parameter types of methods that take another version.
///
/// They are a static because the type refers to itself.
static ANOTHER: [Type; 1] = [Type::Pointer(&VERSION)];

static VERSION_STRUCT: StructType = StructType {
    name: "semver.Version",
    fields: &[
        Field::new("major", NUMBER),
        Field::new("minor", NUMBER),
        Field::new("patch", NUMBER),
        Field::new("pre", TEXT),
        Field::new("metadata", TEXT),
        Field::new("original", TEXT),
    ],
    methods: &[
        Method::new("String", |value, _| Ok(plain(value).into())),
        Method::new("MarshalText", |value, _| Ok(plain(value).into())),
        Method::new("Original", |value, _| Ok(field(value, 5))),
        Method::new("Major", |value, _| Ok(field(value, 0))),
        Method::new("Minor", |value, _| Ok(field(value, 1))),
        Method::new("Patch", |value, _| Ok(field(value, 2))),
        Method::new("Prerelease", |value, _| Ok(field(value, 3))),
        Method::new("Metadata", |value, _| Ok(field(value, 4))),
        Method::new("IncPatch", |value, _| {
            // A prerelease precedes its version.
            let step = u64::from(text(value, 3).is_empty());
            next(value, [number(value, 0), number(value, 1), increased(number(value, 2), step, "patch")?])
        }),
        Method::new("IncMinor", |value, _| {
            next(value, [number(value, 0), increased(number(value, 1), 1, "minor")?, 0])
        }),
        Method::new("IncMajor", |value, _| next(value, [increased(number(value, 0), 1, "major")?, 0, 0])),
        with_text(Method::new("SetPrerelease", |value, arguments| {
            let prerelease = argument(arguments);
            renamed(value, &prerelease, &text(value, 4)).map_err(|error| match error {
                VersionError::LeadingZero { .. } => "version segment starts with 0".to_owned(),
                _ => "invalid prerelease string".to_owned(),
            })
        })),
        with_text(Method::new("SetMetadata", |value, arguments| {
            let metadata = argument(arguments);
            renamed(value, &text(value, 3), &metadata).map_err(|_| "invalid metadata string".to_owned())
        })),
        with_another(Method::new("LessThan", |value, other| Ok(order(value, other)?.is_lt().into()))),
        with_another(Method::new("LessThanEqual", |value, other| Ok(order(value, other)?.is_le().into()))),
        with_another(Method::new("GreaterThan", |value, other| Ok(order(value, other)?.is_gt().into()))),
        with_another(Method::new("GreaterThanEqual", |value, other| Ok(order(value, other)?.is_ge().into()))),
        with_another(Method::new("Equal", |value, other| Ok(order(value, other)?.is_eq().into()))),
        with_another(Method::new("Compare", |value, other| Ok(Value::int(order(value, other)? as i64)))),
    ],
};

const fn with_text(method: Method) -> Method {
    Method { parameters: &[TEXT], ..method }
}

const fn with_another(method: Method) -> Method {
    Method { parameters: &ANOTHER, ..method }
}

/// Parses a version; the error is the library's.
fn parse(text: &Text) -> Result<Version, String> {
    let Ok(text) = std::str::from_utf8(text.as_bytes()) else {
        return Err("invalid semantic version".to_owned());
    };
    Version::parse(text).map_err(|error| match error {
        VersionError::TooLong { .. } => "version string is too long (max 256 bytes)".to_owned(),
        VersionError::NumberTooLarge { number } => {
            let number = quote(&number);
            format!("error parsing version segment: strconv.ParseUint: parsing {number}: value out of range")
        }
        VersionError::LeadingZero { .. } => "version segment starts with 0".to_owned(),
        VersionError::Malformed { .. } | VersionError::TooFewDots { .. } => {
            "invalid semantic version".to_owned()
        }
    })
}

fn compare(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let constraint = String::from_utf8_lossy(arguments.bytes(0));
    let constraint = Constraint::parse(&constraint).map_err(|error| error.to_string())?;
    Ok(constraint.matches(&parse(arguments.text(1))?).into())
}

fn structure(version: &Version) -> Value {
    let number = |number| Value::Uint(number, UintKind::Uint64);
    let fields = vec![
        number(version.major()),
        number(version.minor()),
        number(version.patch()),
        version.prerelease().unwrap_or_default().into(),
        version.metadata().unwrap_or_default().into(),
        version.as_str().into(),
    ];
    Struct::new(&VERSION_STRUCT, fields).into()
}

fn field(value: &Value, at: usize) -> Value {
    match value.indirect() {
        Value::Struct(object) => object.fields().get(at).cloned().unwrap_or(Value::Nil),
        _ => Value::Nil,
    }
}

fn number(value: &Value, at: usize) -> u64 {
    if let Value::Uint(number, _) = field(value, at) { number } else { 0 }
}

fn text(value: &Value, at: usize) -> String {
    if let Value::String(text) = field(value, at) { text.to_string() } else { String::new() }
}

fn argument(arguments: &[Value]) -> String {
    if let Some(Value::String(text)) = arguments.first() { text.to_string() } else { String::new() }
}

/// Formats the version with all three numbers and without a `v`.
fn plain(value: &Value) -> String {
    let numbers = [number(value, 0), number(value, 1), number(value, 2)];
    written(numbers, &text(value, 3), &text(value, 4))
}

fn written([major, minor, patch]: [u64; 3], prerelease: &str, metadata: &str) -> String {
    let behind = |mark, text: &str| if text.is_empty() { String::new() } else { format!("{mark}{text}") };
    format!("{major}.{minor}.{patch}{}{}", behind('-', prerelease), behind('+', metadata))
}

fn increased(number: u64, step: u64, what: &str) -> Result<u64, String> {
    number.checked_add(step).ok_or_else(|| format!("{what} version increment would overflow uint64"))
}

/// Parses a new version with the same prefix.
fn with_prefix(value: &Value, written: &str) -> Result<Value, VersionError> {
    let prefix = if text(value, 5).starts_with('v') { "v" } else { "" };
    Ok(structure(&Version::parse(&format!("{prefix}{written}"))?))
}

fn next(value: &Value, numbers: [u64; 3]) -> Result<Value, String> {
    with_prefix(value, &written(numbers, "", "")).map_err(|error| error.to_string())
}

fn renamed(value: &Value, prerelease: &str, metadata: &str) -> Result<Value, VersionError> {
    let numbers = [number(value, 0), number(value, 1), number(value, 2)];
    with_prefix(value, &written(numbers, prerelease, metadata))
}

fn order(value: &Value, other: &[Value]) -> Result<Ordering, String> {
    let other = other.first().ok_or("there is no other version")?;
    if other.is_nil() {
        return Err("runtime error: invalid memory address or nil pointer dereference".to_owned());
    }
    let version = |value: &Value| Version::parse(&text(value, 5)).map_err(|error| error.to_string());
    Ok(version(value)?.cmp(&version(other)?))
}
