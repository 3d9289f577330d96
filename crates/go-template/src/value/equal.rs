//! Equality: Go's `==` and `reflect.DeepEqual`.

use super::Value;

impl Value {
    /// Go's `==` on interface values; both are of comparable types.
    pub(crate) fn is_identical(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nil, Self::Nil) => true,
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::Int(left, kind), Self::Int(right, other)) => left == right && kind == other,
            (Self::Uint(left, kind), Self::Uint(right, other)) => left == right && kind == other,
            (Self::Float(left), Self::Float(right)) => left == right,
            (Self::Complex(left, i), Self::Complex(right, k)) => left == right && i == k,
            (Self::String(left), Self::String(right)) => left == right,
            (Self::Pointer(left), Self::Pointer(right)) => left.to() == right.to() && left.is_same(right),
            (Self::Struct(left), Self::Struct(right)) => {
                left.kind() == right.kind()
                    && left.fields().iter().zip(right.fields()).all(|(left, right)| left.is_identical(right))
            }
            _ => false,
        }
    }

    /// Go's `reflect.DeepEqual`, which looks into slices, maps, structs and pointers.
    ///
    /// `look` is asked before each pair; its error ends the comparison.
    pub(crate) fn is_deeply_equal<E>(
        &self,
        other: &Self,
        look: &mut impl FnMut(&Value, usize) -> Result<(), E>,
        depth: usize,
    ) -> Result<bool, E> {
        look(self, depth)?;
        if self.type_of() != other.type_of() || self.is_nil() != other.is_nil() {
            return Ok(false);
        }
        let depth = depth + 1;
        match (self, other) {
            (Self::Slice(left), Self::Slice(right)) => {
                let (left, right) = (left.to_vec(), right.to_vec());
                Ok(left.len() == right.len() && all(left.iter().zip(&right), look, depth)?)
            }
            (Self::Struct(left), Self::Struct(right)) => {
                all(left.fields().iter().zip(right.fields()), look, depth)
            }
            (Self::Map(left), Self::Map(right)) => {
                if left.len() != right.len() || left.is_same(right) {
                    return Ok(left.len() == right.len());
                }
                for (key, value) in left.entries() {
                    let Some(other) = right.get(&key) else { return Ok(false) };
                    if !value.is_deeply_equal(&other, look, depth)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Self::Pointer(left), Self::Pointer(right)) => match (left.target(), right.target()) {
                _ if left.is_same(right) => Ok(true),
                (Some(left), Some(right)) => left.is_deeply_equal(right, look, depth),
                _ => Ok(false),
            },
            _ => Ok(self.is_identical(other)),
        }
    }
}

fn all<'v, E>(
    pairs: impl Iterator<Item = (&'v Value, &'v Value)>,
    look: &mut impl FnMut(&Value, usize) -> Result<(), E>,
    depth: usize,
) -> Result<bool, E> {
    for (left, right) in pairs {
        if !left.is_deeply_equal(right, look, depth)? {
            return Ok(false);
        }
    }
    Ok(true)
}
