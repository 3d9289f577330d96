//! Treats an explicit null in a manifest as an absent field.
//!
//! An API server drops such nulls before it adds defaults; a manifest file is read as it was written.

use serde::{Deserialize, Deserializer};

/// Parses a value; null gives the type's default.
pub(crate) fn as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
