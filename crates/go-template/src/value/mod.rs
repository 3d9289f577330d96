//! Values: the data of a template, and the results of functions.

mod count;
mod equal;
mod function;
mod kind;
mod map;
mod method;
mod order;
mod slice;
mod structure;

pub use function::Callable;
pub use kind::{
    ANY, DICT, DICT_MAP, Field, INT, IntKind, Json, LIST, MapType, Method, NamedInt, Run, StructType,
    TEXT_MAP, Type, UintKind,
};
pub use map::Map;
pub(crate) use map::WeakMap;
pub use slice::Slice;
pub use structure::{Pointer, Struct};

pub(crate) use count::Count;
pub(crate) use method::BoundMethod;
pub(crate) use order::compare;

use crate::text::Text;

/// A value with the type that it has in Go.
///
/// Copies are cheap: they share their content, as in Go.
#[derive(Debug, Clone)]
pub enum Value {
    /// Nil without a type.
    Nil,
    /// A bool.
    Bool(bool),
    /// A signed integer.
    Int(i64, IntKind),
    /// An unsigned integer.
    Uint(u64, UintKind),
    /// A floating-point number.
    Float(f64),
    /// A complex number: its real and its imaginary part.
    Complex(f64, f64),
    /// A string.
    String(Text),
    /// A slice.
    Slice(Slice),
    /// A map.
    Map(Map),
    /// A struct.
    Struct(Struct),
    /// A pointer.
    Pointer(Pointer),
    /// A function, for `call`.
    Function(Callable),
}

impl Value {
    /// An `int`.
    #[must_use]
    pub fn int(number: i64) -> Self {
        Self::Int(number, IntKind::Int)
    }

    /// An `int64`.
    #[must_use]
    pub fn int64(number: i64) -> Self {
        Self::Int(number, IntKind::Int64)
    }

    /// A `[]interface {}`.
    #[must_use]
    pub fn list(items: Vec<Self>) -> Self {
        Self::Slice(Slice::new(&ANY, items))
    }

    /// A `[]string`.
    #[must_use]
    pub fn texts(items: impl IntoIterator<Item = Text>) -> Self {
        Self::Slice(Slice::new(&Type::String, items.into_iter().map(Self::String).collect()))
    }

    /// Returns the type; `None` for nil.
    #[must_use]
    pub fn type_of(&self) -> Option<Type> {
        Some(match self {
            Self::Nil => return None,
            Self::Bool(_) => Type::Bool,
            Self::Int(_, kind) => Type::Int(*kind),
            Self::Uint(_, kind) => Type::Uint(*kind),
            Self::Float(_) => Type::Float,
            Self::Complex(..) => Type::Complex,
            Self::String(_) => Type::String,
            Self::Slice(slice) => Type::Slice(slice.of()),
            Self::Map(map) => Type::Map(map.kind()),
            Self::Struct(object) => Type::Struct(object.kind()),
            Self::Pointer(pointer) => Type::Pointer(pointer.to()),
            Self::Function(function) => Type::Function(function.signature()),
        })
    }

    /// Returns the name of the type, `<nil>` for nil.
    #[must_use]
    pub fn type_name(&self) -> String {
        self.type_of().map_or_else(|| "<nil>".to_owned(), |kind| kind.to_string())
    }

    /// Returns the name of the kind, `invalid` for nil.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        self.type_of().map_or("invalid", Type::kind_name)
    }

    /// Returns whether this is nil.
    /// A nil has no type, or a type that can be nil.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        match self {
            Self::Nil => true,
            Self::Slice(slice) => slice.is_nil(),
            Self::Map(map) => map.is_nil(),
            Self::Pointer(pointer) => pointer.target().is_none(),
            _ => false,
        }
    }

    /// Returns whether `if` treats it as true.
    #[must_use]
    pub fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(truth) => *truth,
            Self::Int(number, _) => *number != 0,
            Self::Uint(number, _) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::String(text) => !text.is_empty(),
            Self::Slice(slice) => !slice.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Pointer(pointer) => pointer.target().is_some(),
            Self::Struct(_) | Self::Function(_) => true,
        }
    }

    /// Dereferences pointers; a nil pointer stays.
    #[must_use]
    pub fn indirect(&self) -> Self {
        let mut value = self;
        while let Self::Pointer(pointer) = value {
            let Some(target) = pointer.target() else { break };
            value = target;
        }
        value.clone()
    }

    /// Returns the nesting depth of slices and structs; maps are not visited.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Slice(slice) => slice.depth(),
            Self::Struct(object) => object.depth(),
            Self::Pointer(pointer) => pointer.target().map_or(0, Self::depth) + 1,
            _ => 0,
        }
    }

    /// Returns the size: the bytes of a string, the elements of a slice or map.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Slice(slice) => slice.len(),
            Self::Map(map) => map.len(),
            _ => 1,
        }
    }

    /// Returns the cost of copying it, in bytes, without the content of its elements.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Slice(_) => self.size() * 16,
            // Its entries are copied one by one, which takes a step each.
            Self::Map(_) => self.size() * crate::budget::STEP_SIZE,
            _ => self.size(),
        }
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::String(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::String(bytes.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl From<Slice> for Value {
    fn from(slice: Slice) -> Self {
        Self::Slice(slice)
    }
}

impl From<Struct> for Value {
    fn from(object: Struct) -> Self {
        Self::Struct(object)
    }
}
