//! Templates of messages.

use tagboat_api::settings::TemplateLanguage;

use super::data::MessageData;
use super::error::{MessageError, RemovedField, TemplateError, TemplateFault};
use super::go::GoTemplate;
use super::handlebars::HandlebarsTemplate;
use super::{limits, preset};

/// The message where there is no template, or where one renders to nothing.
pub const DEFAULT_MESSAGE: &str = "Update from image update automation";

/// A template of messages, ready to be rendered.
#[derive(Debug)]
pub struct Template {
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Go(GoTemplate),
    Handlebars(HandlebarsTemplate),
}

impl Template {
    /// Compiles a text in a language. A text that is wholly `preset:NAME` is that preset, whatever the language.
    ///
    /// # Errors
    ///
    /// When it is no template, or names a preset that does not exist.
    pub fn compile(text: &str, language: TemplateLanguage) -> Result<Self, TemplateError> {
        let engine = Self::engine(text, language).map_err(|cause| TemplateError { cause })?;
        Ok(Self { engine })
    }

    fn engine(text: &str, language: TemplateLanguage) -> Result<Engine, TemplateFault> {
        let most = limits::template_size(language);
        if text.len() > most {
            return Err(TemplateFault::TooLarge { size: text.len(), most });
        }
        Ok(match (preset::named_by(text)?, language) {
            (Some(preset), _) => Engine::Go(GoTemplate::compile(preset.text)?),
            (None, TemplateLanguage::Go) => Engine::Go(GoTemplate::compile(text)?),
            (None, TemplateLanguage::Handlebars) => Engine::Handlebars(HandlebarsTemplate::compile(text)?),
        })
    }

    /// Renders a message; the text of the template and of [`MessageData::values`] stands in it byte for byte.
    ///
    /// Nothing, or white space alone, is no message, as git has it: then it is [`DEFAULT_MESSAGE`].
    ///
    /// # Errors
    ///
    /// When the template asks the data for what they do not have, or goes beyond a limit.
    pub fn render(&self, data: &MessageData) -> Result<Vec<u8>, MessageError> {
        self.render_until(data, &|| false)
    }

    /// The same for as long as it is not interrupted, which is asked every thousand steps.
    ///
    /// # Errors
    ///
    /// As [`Template::render`], and [`MessageFault::Interrupted`] when it was interrupted.
    pub fn render_until(
        &self,
        data: &MessageData,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, MessageError> {
        let rendered = match &self.engine {
            Engine::Go(template) => limits::check_data(data, TemplateLanguage::Go)
                .and_then(|()| template.render(data, is_interrupted)),
            Engine::Handlebars(template) => limits::check_data(data, TemplateLanguage::Handlebars)
                .and_then(|()| template.render(data, is_interrupted)),
        };
        let message = rendered.map_err(|cause| MessageError { cause })?;
        if message.iter().all(u8::is_ascii_whitespace) {
            return Ok(DEFAULT_MESSAGE.into());
        }
        Ok(message)
    }

    /// The field that keeps the template from rendering these data in Flux 1.0 and newer, where it was removed.
    ///
    /// As in Flux, a branch that is not taken is not looked at.
    pub fn removed_field(&self, data: &MessageData) -> Option<RemovedField> {
        match &self.engine {
            Engine::Go(template) => template.removed_field(data),
            Engine::Handlebars(_) => None,
        }
    }
}
