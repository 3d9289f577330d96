//! An explicit null in a manifest means the same as leaving the field out.
//!
//! An API server drops such nulls before it fills in defaults; a manifest file comes to us as it was written.

use serde::{Deserialize, Deserializer};

/// Reads a value, taking null for the type's default.
pub(crate) fn as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
