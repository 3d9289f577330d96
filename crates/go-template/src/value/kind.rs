//! Types of values: what Go's reflection would say of them.
//!
//! All types are static: a caller describes those of its data as constants, and templates make no new ones.

use std::fmt;

use super::{Map, Slice, Struct, Value};

/// The type of a value, printed as Go names it.
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
    /// An interface by its name: places of this type hold values of other types, or nothing.
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

/// The empty interface, which any value fits in.
pub const ANY: Type = Type::Interface("interface {}");

/// `int`.
pub const INT: Type = Type::Int(IntKind::Int);

/// `map[string]interface {}`, what sprig's `dict` makes.
pub const DICT: Type = Type::Map(&DICT_MAP);

/// The parts of [`DICT`].
pub static DICT_MAP: MapType = MapType { name: None, key: Type::String, value: ANY };

/// `map[string]string`.
pub static TEXT_MAP: MapType = MapType { name: None, key: Type::String, value: Type::String };

/// `[]interface {}`, what sprig's `list` makes.
pub const LIST: Type = Type::Slice(&ANY);

/// The width of a signed integer, or the named type that it has.
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
    /// A type of its own, as `time.Month`.
    Named(&'static NamedInt),
}

/// A type whose values are integers that print as words.
#[derive(Debug)]
pub struct NamedInt {
    /// The name, as `time.Month`.
    pub name: &'static str,
    /// The kind without the name.
    pub kind: IntKind,
    /// What the method `String` gives.
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
    /// Its name, when it has one, as `update.ObjectChanges`.
    pub name: Option<&'static str>,
    /// The type of its keys: boolean, number, string, or struct of such.
    pub key: Type,
    /// The type of its values.
    pub value: Type,
}

/// The type of a struct.
#[derive(Debug)]
pub struct StructType {
    /// Its name with the package, as `types.NamespacedName`.
    pub name: &'static str,
    /// Its fields in order.
    pub fields: &'static [Field],
    /// Its methods; one named `String` says how values print.
    pub methods: &'static [Method],
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// The name; when it begins with a small letter, templates cannot see it.
    pub name: &'static str,
    /// The type of what it holds.
    pub of: Type,
    /// Whether it is embedded, so that its fields and methods are the struct's as well.
    pub embedded: bool,
    /// How JSON shows it.
    pub json: Json,
}

/// How a field shows in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Json {
    /// Under its own name; an embedded one as part of what holds it.
    Plain,
    /// Under another name.
    Name(&'static str),
    /// Under another name, and left out when empty.
    OmitEmpty(&'static str),
    /// Inlined, like an embedded one.
    Inline,
    /// Not at all.
    Skip,
}

/// What a method is: from the value and the arguments to a result, or to an error's text.
pub type Run = fn(&Value, &[Value]) -> Result<Value, String>;

/// A method of a struct.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// The name.
    pub name: &'static str,
    /// The types of its parameters.
    pub parameters: &'static [Type],
    /// What it does; for the same struct and arguments always the same, so that it need not be done twice.
    pub run: Run,
}

impl Field {
    /// A field that is not embedded and keeps its name in JSON.
    #[must_use]
    pub const fn new(name: &'static str, of: Type) -> Self {
        Self { name, of, embedded: false, json: Json::Plain }
    }

    /// Whether templates can see the field.
    #[must_use]
    pub fn is_exported(&self) -> bool {
        self.name.chars().next().is_some_and(crate::unicode::is_upper)
    }
}

impl Method {
    /// A method without parameters.
    #[must_use]
    pub const fn new(name: &'static str, run: Run) -> Self {
        Self { name, parameters: &[], run }
    }
}

impl IntKind {
    /// The kind without a name of its own.
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
    /// Whether there is a field of this name, embedded ones included.
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
    /// The value that a place of this type holds before anything is put there.
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

    /// What Go calls the kind of types like this one.
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

    /// Whether a place of this type can hold nil.
    #[must_use]
    pub fn can_be_nil(self) -> bool {
        matches!(
            self,
            Self::Interface(_) | Self::Slice(_) | Self::Map(_) | Self::Pointer(_) | Self::Function(_)
        )
    }

    /// Whether a value of this type may stand where another type is wanted.
    pub(crate) fn fits(self, wanted: Self) -> bool {
        match (self, wanted) {
            (_, Self::Interface(_)) => true,
            // A type without a name is as good as any that is built alike.
            (Self::Map(kind), Self::Map(other)) if kind.name.is_none() || other.name.is_none() => {
                kind.key == other.key && kind.value == other.value
            }
            _ => self == wanted,
        }
    }

    /// Whether values of this type can be compared with `==` in Go.
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
