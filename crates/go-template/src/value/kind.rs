//! Types of values, as Go's reflection reports them.
//!
//! All types are static: a caller describes the types of its data as constants, and templates make no new ones.

use std::fmt;

use super::{Map, Slice, Struct, Value};

/// The type of a value; it prints as Go's name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Type {
    /// `bool`.
    Bool,
    /// A signed integer.
    Int(IntKind),
    /// An unsigned integer.
    Uint(UintKind),
    /// `float64`.
    Float,
    /// `complex128`.
    Complex,
    /// `string`.
    String,
    /// An interface by its name.
    ///
    /// Locations of this type hold values of other types, or nothing.
    Interface(&'static str),
    /// A slice of elements of a type.
    Slice(&'static Type),
    /// A map.
    Map(&'static MapType),
    /// A struct.
    Struct(&'static StructType),
    /// A pointer to a value of a type.
    Pointer(&'static Type),
    /// A function by its signature, as `func(int) string`.
    Function(&'static str),
}

/// The empty interface, which any value implements.
pub const ANY: Type = Type::Interface("interface {}");

/// `int`.
pub const INT: Type = Type::Int(IntKind::Int);

/// `map[string]interface {}`, the result of sprig's `dict`.
pub const DICT: Type = Type::Map(&DICT_MAP);

/// The key and value types of [`DICT`].
pub static DICT_MAP: MapType = MapType { name: None, key: Type::String, value: ANY };

/// `map[string]string`.
pub static TEXT_MAP: MapType = MapType { name: None, key: Type::String, value: Type::String };

/// `[]interface {}`, the result of sprig's `list`.
pub const LIST: Type = Type::Slice(&ANY);

/// The width of a signed integer, or its named type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IntKind {
    /// `int`, of 64 bits.
    Int,
    /// `int8`.
    Int8,
    /// `int16`.
    Int16,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// A named type, for example `time.Month`.
    Named(&'static NamedInt),
}

/// A named integer type whose values print as words.
#[derive(Debug)]
pub struct NamedInt {
    /// The name, for example `time.Month`.
    pub name: &'static str,
    /// The underlying kind.
    pub kind: IntKind,
    /// The method `String`.
    pub text: fn(i64) -> String,
}

/// The width of an unsigned integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UintKind {
    /// `uint`, of 64 bits.
    Uint,
    /// `uint8`.
    Uint8,
    /// `uint16`.
    Uint16,
    /// `uint32`.
    Uint32,
    /// `uint64`.
    Uint64,
}

/// The type of a map.
#[derive(Debug)]
pub struct MapType {
    /// Its name, if it has one, for example `update.ObjectChanges`.
    pub name: Option<&'static str>,
    /// The type of its keys: bool, number, string, or a struct of these.
    pub key: Type,
    /// The type of its values.
    pub value: Type,
}

/// The type of a struct.
#[derive(Debug)]
pub struct StructType {
    /// Its name with the package, for example `types.NamespacedName`.
    pub name: &'static str,
    /// Its fields in order.
    pub fields: &'static [Field],
    /// Its methods; `String` defines how values print.
    pub methods: &'static [Method],
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// The name of the field.
    /// A field with a small first letter is unexported, and templates cannot read it.
    pub name: &'static str,
    /// The type of its value.
    pub of: Type,
    /// True if the field is embedded.
    /// Its fields and methods are then also those of the outer struct.
    pub embedded: bool,
    /// Its JSON encoding.
    pub json: Json,
}

/// The JSON encoding of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Json {
    /// Under its own name; an embedded field is inlined.
    Plain,
    /// Under another name.
    Name(&'static str),
    /// Under another name, and omitted if empty.
    OmitEmpty(&'static str),
    /// Inlined like an embedded field.
    Inline,
    /// Omitted.
    Skip,
}

/// The implementation of a method.
/// It takes the receiver and the arguments, and returns a result or an error message.
pub type Run = fn(&Value, &[Value]) -> Result<Value, String>;

/// A method of a struct.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// The name.
    pub name: &'static str,
    /// The types of its parameters.
    pub parameters: &'static [Type],
    /// The implementation.
    ///
    /// It must be deterministic, so that a result can be reused for the same struct and arguments.
    pub run: Run,
}

impl Field {
    /// Makes a field that is not embedded and keeps its name in JSON.
    #[must_use]
    pub const fn new(name: &'static str, of: Type) -> Self {
        Self { name, of, embedded: false, json: Json::Plain }
    }

    /// Returns whether templates can see the field.
    #[must_use]
    pub fn is_exported(&self) -> bool {
        self.name.chars().next().is_some_and(crate::unicode::is_upper)
    }
}

impl Method {
    /// Makes a method without parameters.
    #[must_use]
    pub const fn new(name: &'static str, run: Run) -> Self {
        Self { name, parameters: &[], run }
    }
}

impl IntKind {
    /// Returns the underlying kind of a named type.
    #[must_use]
    pub fn plain(self) -> Self {
        match self {
            Self::Named(named) => named.kind,
            other => other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Named(named) => named.name,
        }
    }
}

impl UintKind {
    fn name(self) -> &'static str {
        match self {
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
        }
    }
}

impl PartialEq for NamedInt {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl PartialEq for StructType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl PartialEq for MapType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.key == other.key && self.value == other.value
    }
}

impl StructType {
    /// Returns whether there is a field of this name, embedded fields included.
    pub(crate) fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|field| {
            let inner = match &field.of {
                Type::Struct(kind) | Type::Pointer(Type::Struct(kind)) if field.embedded => Some(kind),
                _ => None,
            };
            field.name == name || inner.is_some_and(|kind| kind.has_field(name))
        })
    }
}

impl Type {
    /// Returns the zero value of this type.
    #[must_use]
    pub fn zero(self) -> Value {
        match self {
            Self::Bool => Value::Bool(false),
            Self::Int(kind) => Value::Int(0, kind),
            Self::Uint(kind) => Value::Uint(0, kind),
            Self::Float => Value::Float(0.0),
            Self::Complex => Value::Complex(0.0, 0.0),
            Self::String => Value::from(""),
            Self::Interface(_) | Self::Function(_) => Value::Nil,
            Self::Slice(of) => Value::Slice(Slice::nil(of)),
            Self::Map(kind) => Value::Map(Map::nil(kind)),
            Self::Struct(kind) => {
                Value::Struct(Struct::new(kind, kind.fields.iter().map(|field| field.of.zero()).collect()))
            }
            Self::Pointer(to) => Value::Pointer(super::Pointer::nil(to)),
        }
    }

    /// Returns Go's name for the kind of this type.
    #[must_use]
    pub fn kind_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int(kind) => kind.plain().name(),
            Self::Uint(kind) => kind.name(),
            Self::Float => "float64",
            Self::Complex => "complex128",
            Self::String => "string",
            Self::Interface(_) => "interface",
            Self::Slice(_) => "slice",
            Self::Map(_) => "map",
            Self::Struct(_) => "struct",
            Self::Pointer(_) => "ptr",
            Self::Function(_) => "func",
        }
    }

    /// Returns whether nil is a value of this type.
    #[must_use]
    pub fn can_be_nil(self) -> bool {
        matches!(
            self,
            Self::Interface(_) | Self::Slice(_) | Self::Map(_) | Self::Pointer(_) | Self::Function(_)
        )
    }

    /// Returns whether a value of this type is assignable to another type.
    pub(crate) fn fits(self, wanted: Self) -> bool {
        match (self, wanted) {
            (_, Self::Interface(_)) => true,
            // An unnamed type matches any type of the same structure.
            (Self::Map(kind), Self::Map(other)) if kind.name.is_none() || other.name.is_none() => {
                kind.key == other.key && kind.value == other.value
            }
            _ => self == wanted,
        }
    }

    /// Returns whether values of this type can be compared with `==` in Go.
    #[must_use]
    pub fn is_comparable(self) -> bool {
        match self {
            Self::Slice(_) | Self::Map(_) | Self::Function(_) => false,
            Self::Struct(kind) => kind.fields.iter().all(|field| field.of.is_comparable()),
            _ => true,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool | Self::Float | Self::Complex | Self::String => formatter.write_str(self.kind_name()),
            Self::Int(kind) => formatter.write_str(kind.name()),
            Self::Uint(kind) => formatter.write_str(kind.name()),
            Self::Interface(name) | Self::Function(name) => formatter.write_str(name),
            Self::Slice(of) => write!(formatter, "[]{of}"),
            Self::Map(kind) => match kind.name {
                Some(name) => formatter.write_str(name),
                None => write!(formatter, "map[{}]{}", kind.key, kind.value),
            },
            Self::Struct(kind) => formatter.write_str(kind.name),
            Self::Pointer(to) => write!(formatter, "*{to}"),
        }
    }
}
