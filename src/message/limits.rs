//! How much a template may use: templates are somebody's input.

use tagboat_api::settings::TemplateLanguage;
use tagboat_go_template::Limits;

use super::data::MessageData;

/// How many bytes a template may have.
pub(super) fn template_size(language: TemplateLanguage) -> usize {
    match language {
        TemplateLanguage::Go => 1 << 20,
        // Its parser takes four times as long for twice as much.
        TemplateLanguage::Handlebars => 1 << 16,
    }
}

/// What a message may have at least.
const LEAST_OUTPUT: usize = 1 << 20;

/// How often the data may stand in a message beyond that.
const COPIES: usize = 16;

/// How many steps there may be at least.
const LEAST_STEPS: usize = 1_000_000;

/// How many steps there may be for each byte of data beyond that.
const STEPS_OF_BYTE: usize = 4;

/// The limits for data: a large update has a long message.
pub(super) fn limits(data: &MessageData) -> Limits {
    let size = data.size();
    let bytes = LEAST_OUTPUT + COPIES * size;
    Limits { steps: LEAST_STEPS + STEPS_OF_BYTE * size, output: bytes, value: bytes, ..Limits::default() }
}
