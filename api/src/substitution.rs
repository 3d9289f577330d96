//! Placeholders in manifests, which are substituted before the manifests are applied.

/// The openings of placeholders: of Flux's substitution, of charts, and of resource sets.
const OPENINGS: [&str; 3] = ["${", "{{", "<<"];

/// Returns true if a text has a placeholder.
/// Its value is not known yet.
#[must_use]
pub fn contains_placeholder(text: &str) -> bool {
    OPENINGS.iter().any(|opening| text.contains(opening))
}
