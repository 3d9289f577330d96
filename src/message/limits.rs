//! Limits of templates and their data, which are input of tenants.
//!
//! No limit grows with the data.

use tagboat_api::settings::TemplateLanguage;
use tagboat_go_template::Limits;

use super::error::TemplateErrorKind;

/// The limits of a rendering.
pub(super) const LIMITS: Limits =
    Limits { depth: 250, steps: 10_000_000, output: 4 << 20, value: 2 << 20, memory: 24 << 20 };

/// The maximum number of steps in handlebars: each is more work than one in Go.
pub(super) const HANDLEBARS_STEPS: usize = 2_000_000;

/// The maximum size in bytes of the data as template values.
pub(super) const MAX_DATA: usize = 128 << 20;

/// The memory in bytes that a template's own values may take with any data.
const MIN_MEMORY: usize = 4 << 20;

/// Returns the maximum size of a template in bytes.
///
/// The compiled form of a template takes about a hundred times as much.
pub(super) fn template_size(language: TemplateLanguage) -> usize {
    match language {
        TemplateLanguage::Go => 1 << 17,
        // The parser takes four times as long for twice the size.
        TemplateLanguage::Handlebars => 1 << 16,
    }
}

/// The copies of the data in handlebars per copy in Go, which shares values.
const COPIES_IN_HANDLEBARS: usize = 2;

/// The limits of a rendering of data with `size` bytes as values in Go.
///
/// `remaining` is the remaining memory in bytes for these and for the values that the template makes.
///
/// # Errors
///
/// Returns an error if the data are too large, before the values are made.
pub(super) fn within(
    remaining: usize,
    (changes, size): (usize, usize),
    language: TemplateLanguage,
) -> Result<Limits, TemplateErrorKind> {
    let bytes = match language {
        TemplateLanguage::Go => size,
        TemplateLanguage::Handlebars => COPIES_IN_HANDLEBARS * size,
    };
    let most = remaining.min(MAX_DATA);
    if bytes > most.max(MIN_MEMORY) {
        return Err(TemplateErrorKind::TooMuchData { changes, bytes, most });
    }
    let memory = LIMITS.memory.min(remaining.saturating_sub(bytes)).max(MIN_MEMORY);
    Ok(Limits { memory, ..LIMITS })
}
