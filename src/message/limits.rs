//! Bounds of templates and of their data, which are the input of tenants. None grows with the data.

use tagboat_api::settings::TemplateLanguage;
use tagboat_go_template::Limits;

use super::data::MessageData;
use super::error::MessageFault;

/// The bounds of a rendering.
pub(super) const LIMITS: Limits =
    Limits { depth: 250, steps: 10_000_000, output: 4 << 20, value: 2 << 20, memory: 24 << 20 };

/// How many steps a rendering in handlebars may take: one of them is more work than one in Go.
pub(super) const HANDLEBARS_STEPS: usize = 2_000_000;

/// How many bytes the data may take as values of a template.
const MOST_DATA: usize = 128 << 20;

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

/// Refuses data that would take too much memory as values, before the values are made.
pub(super) fn check_data(data: &MessageData, language: TemplateLanguage) -> Result<(), MessageFault> {
    let bytes = match language {
        TemplateLanguage::Go => data.size(),
        TemplateLanguage::Handlebars => COPIES_IN_HANDLEBARS * data.size(),
    };
    if bytes > MOST_DATA {
        return Err(MessageFault::TooMuchData { changes: data.count(), bytes, most: MOST_DATA });
    }
    Ok(())
}
