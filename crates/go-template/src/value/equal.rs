//! Equality: Go's `==` and `reflect.DeepEqual`.

use super::Value;

impl Value {
    /// Go's `==` on interface values; both must be of comparable types.
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

    /// Go's `reflect.DeepEqual`, which compares slices, maps, structs and pointers by content.
    ///
    /// `look` is called before each pair; its error ends the comparison.
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
                let mut is_equal = left.len() == right.len();
                left.try_each(|i, item| {
                    is_equal =
                        is_equal && item.is_deeply_equal(&right.get(i).unwrap_or(Value::Nil), look, depth)?;
                    Ok(())
                })?;
                Ok(is_equal)
            }
            (Self::Struct(left), Self::Struct(right)) => {
                all(left.fields().iter().zip(right.fields()), look, depth)
            }
            (Self::Map(left), Self::Map(right)) => {
                if left.len() != right.len() || left.is_same(right) {
                    return Ok(left.len() == right.len());
                }
                let mut is_equal = true;
                left.try_each(|_, key, value| {
                    let other = if is_equal { right.get(key) } else { None };
                    is_equal = match other {
                        Some(other) => value.is_deeply_equal(&other, look, depth)?,
                        None => false,
                    };
                    Ok(())
                })?;
                Ok(is_equal)
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
