//! Bounds of templates and of their data, which are the input of tenants. None grows with the data.

use tagboat_api::settings::TemplateLanguage;
use tagboat_go_template::Limits;

use super::error::MessageFault;

/// The bounds of a rendering.
pub(super) const LIMITS: Limits =
    Limits { depth: 250, steps: 10_000_000, output: 4 << 20, value: 2 << 20, memory: 24 << 20 };

/// How many steps a rendering in handlebars may take: one of them is more work than one in Go.
pub(super) const HANDLEBARS_STEPS: usize = 2_000_000;

/// How many bytes the data may take as values of a template.
pub(super) const MOST_DATA: usize = 128 << 20;

/// The least that the values which a template makes may take, however much the data take.
const LEAST_MEMORY: usize = 4 << 20;

/// How many bytes a template may have: what is made of it when it is read takes about a hundred times as many.
pub(super) fn template_size(language: TemplateLanguage) -> usize {
    match language {
        TemplateLanguage::Go => 1 << 17,
        // Its parser takes four times as long for twice as much.
        TemplateLanguage::Handlebars => 1 << 16,
    }
}

/// How often the data stand in a template of handlebars, for each time in one of Go: there nothing is shared.
const COPIES_IN_HANDLEBARS: usize = 2;

/// The bounds of a rendering of data that take `size` bytes as values in Go's language, where `room` bytes are left for
/// these and for what the template makes.
///
/// # Errors
///
/// Returns an error if the data take too much, before the values are made.
pub(super) fn within(
    room: usize,
    (changes, size): (usize, usize),
    language: TemplateLanguage,
) -> Result<Limits, MessageFault> {
    let bytes = match language {
        TemplateLanguage::Go => size,
        TemplateLanguage::Handlebars => COPIES_IN_HANDLEBARS * size,
    };
    let most = room.min(MOST_DATA);
    if bytes > most.max(LEAST_MEMORY) {
        return Err(MessageFault::TooMuchData { changes, bytes, most });
    }
    let memory = LIMITS.memory.min(room.saturating_sub(bytes)).max(LEAST_MEMORY);
    Ok(Limits { memory, ..LIMITS })
}
