//! Structs with their fields and methods, and pointers.

use std::rc::Rc;

use super::{Field, Method, StructType, Type, Value};
use crate::heap::{Heap, Held};

/// How many bytes a struct or what a pointer points to takes beside its values.
const OVERHEAD: usize = 80;

/// A struct: a value for each field of its type.
#[derive(Debug, Clone)]
pub struct Struct {
    kind: &'static StructType,
    fields: Rc<Held<Box<[Value]>>>,
}

/// A pointer to a value, or to none.
#[derive(Debug, Clone)]
pub struct Pointer {
    to: &'static Type,
    target: Option<Rc<Held<Value>>>,
}

/// What a name leads to in a struct.
enum Member {
    /// A field with its value.
    Field(&'static Field, Value),
    /// A method with the value that it belongs to.
    Method(&'static Method, Value),
}

impl Struct {
    /// A struct with its fields' values in order; what is missing is the zero of its type.
    #[must_use]
    pub fn new(kind: &'static StructType, fields: Vec<Value>) -> Self {
        let mut fields = fields;
        fields.truncate(kind.fields.len());
        fields.extend(kind.fields[fields.len()..].iter().map(|field| field.of.zero()));
        Self { kind, fields: Rc::new(Held::new(fields.into())) }
    }

    /// The type.
    #[must_use]
    pub fn kind(&self) -> &'static StructType {
        self.kind
    }

    /// The fields' values in order.
    #[must_use]
    pub fn fields(&self) -> &[Value] {
        &self.fields
    }

    /// What only copies of this very struct have in common, as long as one of them is there.
    pub(crate) fn identity(&self) -> *const Value {
        self.fields.as_ptr()
    }

    /// The value of a field by its name, embedded ones included.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Value> {
        match self.member(name, |member| matches!(member, Member::Field(..)))? {
            Member::Field(_, value) => Some(value),
            Member::Method(..) => None,
        }
    }

    /// The method of a name, be it one of an embedded struct.
    pub(crate) fn method(&self, name: &str) -> Option<(&'static Method, Value)> {
        match self.member(name, |member| matches!(member, Member::Method(..)))? {
            Member::Method(method, value) => Some((method, value)),
            Member::Field(..) => None,
        }
    }

    /// The field of a name with its description.
    pub(crate) fn described_field(&self, name: &str) -> Option<(&'static Field, Value)> {
        match self.member(name, |member| matches!(member, Member::Field(..)))? {
            Member::Field(field, value) => Some((field, value)),
            Member::Method(..) => None,
        }
    }

    /// What a name leads to: of several, the least embedded, if it is the only one there.
    fn member(&self, name: &str, is_wanted: fn(&Member) -> bool) -> Option<Member> {
        let mut level = vec![self.clone()];
        while !level.is_empty() {
            let mut found = level.iter().filter_map(|object| object.own(name));
            if let Some(first) = found.next() {
                return (found.next().is_none() && is_wanted(&first)).then_some(first);
            }
            level = level.iter().flat_map(Self::embedded).collect();
        }
        None
    }

    fn own(&self, name: &str) -> Option<Member> {
        if let Some(method) = self.kind.methods.iter().find(|method| method.name == name) {
            return Some(Member::Method(method, Value::Struct(self.clone())));
        }
        let at = self.kind.fields.iter().position(|field| field.name == name)?;
        Some(Member::Field(&self.kind.fields[at], self.fields[at].clone()))
    }

    fn embedded(&self) -> Vec<Self> {
        let fields = self.kind.fields.iter().zip(self.fields.iter());
        let embedded = fields.filter(|(field, _)| field.embedded).map(|(_, value)| value.indirect());
        embedded
            .filter_map(|value| if let Value::Struct(object) = value { Some(object) } else { None })
            .collect()
    }

    /// Counts the fields, with `factor` times their bytes; false when they were counted before.
    pub(crate) fn count(&self, heap: &Heap, factor: usize) -> bool {
        self.fields.count(heap, factor * (OVERHEAD + self.fields.len() * size_of::<Value>()))
    }

    pub(super) fn depth(&self) -> usize {
        self.fields.iter().map(Value::depth).max().unwrap_or(0) + 1
    }
}

impl Pointer {
    /// A pointer to a value.
    #[must_use]
    pub fn new(to: &'static Type, target: Value) -> Self {
        Self { to, target: Some(Rc::new(Held::new(target))) }
    }

    /// The nil pointer of a type.
    #[must_use]
    pub fn nil(to: &'static Type) -> Self {
        Self { to, target: None }
    }

    /// The type of what it points to.
    #[must_use]
    pub fn to(&self) -> &'static Type {
        self.to
    }

    /// What it points to.
    #[must_use]
    pub fn target(&self) -> Option<&Value> {
        self.target.as_deref().map(|target| &**target)
    }

    /// Counts what it points to, with `factor` times the bytes; false when that was counted before.
    pub(crate) fn count(&self, heap: &Heap, factor: usize) -> bool {
        let bytes = factor * (OVERHEAD + size_of::<Value>());
        self.target.as_ref().is_some_and(|target| target.count(heap, bytes))
    }

    /// Whether both point to one and the same value.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.target, &other.target) {
            (Some(target), Some(other)) => Rc::ptr_eq(target, other),
            (None, None) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LEFT: StructType = StructType {
        name: "t.Left",
        fields: &[Field::new("Both", Type::String), Field::new("One", Type::String)],
        methods: &[Method::new("Twice", |_, _| Ok("left".into()))],
    };
    static RIGHT: StructType = StructType {
        name: "t.Right",
        fields: &[Field::new("Both", Type::String)],
        methods: &[Method::new("Twice", |_, _| Ok("right".into()))],
    };
    static OUTER: StructType = StructType {
        name: "t.Outer",
        fields: &[
            Field { embedded: true, ..Field::new("Left", Type::Struct(&LEFT)) },
            Field { embedded: true, ..Field::new("Right", Type::Struct(&RIGHT)) },
        ],
        methods: &[],
    };

    #[test]
    fn what_two_embedded_structs_have_is_nobodys() {
        let outer = Struct::new(&OUTER, Vec::new());
        assert!(outer.field("One").is_some());
        assert!(outer.field("Both").is_none());
        assert!(outer.method("Twice").is_none());
        assert!(outer.field("Left").is_some());
    }
}
