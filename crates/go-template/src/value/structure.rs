//! Structs with their fields and methods, and pointers.

use std::rc::Rc;

use super::{Field, Method, StructType, Type, Value};
use crate::heap::{Heap, Held};

/// The size of a struct or pointer target in bytes without its values.
const OVERHEAD: usize = 80;

/// A struct: a value for each field of its type.
#[derive(Debug, Clone)]
pub struct Struct {
    kind: &'static StructType,
    fields: Rc<Held<Box<[Value]>>>,
}

/// A pointer to a value, or a nil pointer.
#[derive(Debug, Clone)]
pub struct Pointer {
    to: &'static Type,
    target: Option<Rc<Held<Value>>>,
}

/// The member of a struct that a name selects.
enum Member {
    /// A field with its value.
    Field(&'static Field, Value),
    /// A method with its receiver.
    Method(&'static Method, Value),
}

impl Struct {
    /// Makes a struct from its fields' values in order; missing values are zero values.
    #[must_use]
    pub fn new(kind: &'static StructType, fields: Vec<Value>) -> Self {
        let mut fields = fields;
        fields.truncate(kind.fields.len());
        fields.extend(kind.fields[fields.len()..].iter().map(|field| field.of.zero()));
        Self { kind, fields: Rc::new(Held::new(fields.into())) }
    }

    /// Returns the type.
    #[must_use]
    pub fn kind(&self) -> &'static StructType {
        self.kind
    }

    /// Returns the fields' values in order.
    #[must_use]
    pub fn fields(&self) -> &[Value] {
        &self.fields
    }

    /// Returns an address that all copies of this struct share.
    ///
    /// It is unique while one of the copies exists.
    pub(crate) fn identity(&self) -> *const Value {
        self.fields.as_ptr()
    }

    /// Returns the value of a field, embedded fields included.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Value> {
        match self.member(name, |member| matches!(member, Member::Field(..)))? {
            Member::Field(_, value) => Some(value),
            Member::Method(..) => None,
        }
    }

    /// Returns a method and its receiver, methods of embedded structs included.
    pub(crate) fn method(&self, name: &str) -> Option<(&'static Method, Value)> {
        match self.member(name, |member| matches!(member, Member::Method(..)))? {
            Member::Method(method, value) => Some((method, value)),
            Member::Field(..) => None,
        }
    }

    /// Returns a field's declaration and its value.
    pub(crate) fn described_field(&self, name: &str) -> Option<(&'static Field, Value)> {
        match self.member(name, |member| matches!(member, Member::Field(..)))? {
            Member::Field(field, value) => Some((field, value)),
            Member::Method(..) => None,
        }
    }

    /// Returns the member that a name selects.
    ///
    /// Of several members the least embedded one wins, if it is the only one at its depth.
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

    /// Counts the fields with `factor` times their bytes; returns false if they were counted before.
    pub(crate) fn count(&self, heap: &Heap, factor: usize) -> bool {
        self.fields.count(heap, factor * (OVERHEAD + self.fields.len() * size_of::<Value>()))
    }

    pub(super) fn depth(&self) -> usize {
        self.fields.iter().map(Value::depth).max().unwrap_or(0) + 1
    }
}

impl Pointer {
    /// Makes a pointer to a value.
    #[must_use]
    pub fn new(to: &'static Type, target: Value) -> Self {
        Self { to, target: Some(Rc::new(Held::new(target))) }
    }

    /// Returns the nil pointer of a type.
    #[must_use]
    pub fn nil(to: &'static Type) -> Self {
        Self { to, target: None }
    }

    /// Returns the type of the target.
    #[must_use]
    pub fn to(&self) -> &'static Type {
        self.to
    }

    /// Returns the target.
    #[must_use]
    pub fn target(&self) -> Option<&Value> {
        self.target.as_deref().map(|target| &**target)
    }

    /// Counts the target with `factor` times its bytes; returns false if it was counted before.
    pub(crate) fn count(&self, heap: &Heap, factor: usize) -> bool {
        let bytes = factor * (OVERHEAD + size_of::<Value>());
        self.target.as_ref().is_some_and(|target| target.count(heap, bytes))
    }

    /// Returns whether both point to the same value.
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
    fn members_of_two_embedded_structs_are_ambiguous() {
        let outer = Struct::new(&OUTER, Vec::new());
        assert!(outer.field("One").is_some());
        assert!(outer.field("Both").is_none());
        assert!(outer.method("Twice").is_none());
        assert!(outer.field("Left").is_some());
    }
}
