//! Templates of messages.

use std::collections::BTreeMap;

use tagboat_api::settings::TemplateLanguage;

use super::data::{self, AutomationName, MessageData, PolicyImages};
use super::error::{MessageError, MessageFault, RemovedField, TemplateError, TemplateFault};
use super::go::GoTemplate;
use super::handlebars::HandlebarsTemplate;
use super::{limits, preset};
use crate::update::ResultV2;

/// The message where there is no template, or where one renders to nothing.
pub const DEFAULT_MESSAGE: &str = "Update from image update automation";

/// A template of messages, ready to be rendered.
#[derive(Debug)]
pub struct Template {
    engine: Engine,
}

/// An update of which a message speaks.
#[derive(Clone, Copy, Debug)]
pub struct UpdateData<'u> {
    /// The automation.
    pub automation: &'u AutomationName,
    /// `messageTemplateValues`.
    pub values: &'u BTreeMap<String, String>,
    /// The changes.
    pub result: &'u ResultV2,
    /// The images of the policies that were to be written.
    pub images: &'u PolicyImages<'u>,
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
    /// Returns an error if it is no template, or names a preset that does not exist.
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
    /// Returns an error if the template asks the data for what they do not have, or goes beyond a limit.
    pub fn render(&self, data: &MessageData) -> Result<Vec<u8>, MessageError> {
        self.render_within(limits::MOST_DATA, data, &|| false).map_err(|cause| MessageError { cause })
    }

    /// Renders the message of an update in `room` bytes of memory, for as long as it is not interrupted, which is asked
    /// every thousand steps. Of the update only that is made into data which the template mentions.
    ///
    /// # Errors
    ///
    /// As [`Template::render`], and [`MessageFault::Interrupted`] when it was interrupted.
    pub fn render_update(
        &self,
        update: &UpdateData<'_>,
        room: usize,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, MessageError> {
        let UpdateData { automation, values, result, images } = *update;
        // Texts may be long, so they are not copied before it is known that there is room for them.
        let data = if self.mentions_files() {
            let size = (result.edits(), data::least_size(result));
            limits::within(room, size, self.language())
                .map(|_| MessageData::new(automation, values.clone(), result, images))
        } else {
            let changes = result.changes();
            let size = (changes.len(), data::size_of_changes(changes.iter().copied()));
            limits::within(room, size, self.language())
                .map(|_| MessageData::summary(automation, values.clone(), &changes, images))
        };
        data.and_then(|data| self.render_within(room, &data, is_interrupted))
            .map_err(|cause| MessageError { cause })
    }

    /// Returns true if the template asks for more than the different changes and images.
    fn mentions_files(&self) -> bool {
        match &self.engine {
            Engine::Go(template) => template.mentions_files(),
            Engine::Handlebars(template) => template.mentions_files(),
        }
    }

    fn language(&self) -> TemplateLanguage {
        match &self.engine {
            Engine::Go(_) => TemplateLanguage::Go,
            Engine::Handlebars(_) => TemplateLanguage::Handlebars,
        }
    }

    pub(super) fn render_within(
        &self,
        room: usize,
        data: &MessageData,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, MessageFault> {
        let limits = limits::within(room, (data.count(), data.size()), self.language())?;
        let message = match &self.engine {
            Engine::Go(template) => template.render(data, limits, is_interrupted),
            Engine::Handlebars(template) => template.render(data, is_interrupted),
        }?;
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
