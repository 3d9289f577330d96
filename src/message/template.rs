//! Compiles and renders templates of messages.

use std::collections::BTreeMap;

use tagboat_api::ObjectName;
use tagboat_api::settings::TemplateLanguage;
use tagboat_go_template::Limits;

use super::data::{self, MessageData, PolicyImages};
use super::delivery::{BRANCH_LIMITS, BranchData, HANDLEBARS_BRANCH_STEPS, PullRequestData, TemplateData};
use super::error::{TemplateError, TemplateErrorKind};
use super::go::GoTemplate;
use super::handlebars::HandlebarsTemplate;
use super::{limits, preset};
use crate::update::ResultV2;

/// The message without a template, or with one that renders to nothing.
pub const DEFAULT_MESSAGE: &str = "Update from image update automation";

/// A compiled template.
#[derive(Debug)]
pub struct Template {
    engine: Engine,
}

/// The update that a message describes.
#[derive(Clone, Copy, Debug)]
pub struct UpdateData<'u> {
    /// The automation.
    pub automation: &'u ObjectName,
    /// `messageTemplateValues`.
    pub values: &'u BTreeMap<String, String>,
    /// The changes.
    pub result: &'u ResultV2,
    /// The images of the policies.
    pub images: &'u PolicyImages<'u>,
}

#[derive(Debug)]
enum Engine {
    Go(GoTemplate),
    Handlebars(HandlebarsTemplate),
}

impl Template {
    /// Compiles a text in a language.
    ///
    /// A text that consists of `preset:NAME` is that preset in any language.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not a template, or names a preset that does not exist.
    pub fn compile(text: &str, language: TemplateLanguage) -> Result<Self, TemplateError> {
        let engine = Self::engine(text, language).map_err(TemplateError::Invalid)?;
        Ok(Self { engine })
    }

    fn engine(text: &str, language: TemplateLanguage) -> Result<Engine, TemplateErrorKind> {
        let most = limits::template_size(language);
        if text.len() > most {
            return Err(TemplateErrorKind::TooLarge { size: text.len(), most });
        }
        Ok(match (preset::named_by(text)?, language) {
            (Some(preset), _) => Engine::Go(GoTemplate::compile(preset.text)?),
            (None, TemplateLanguage::Go) => Engine::Go(GoTemplate::compile(text)?),
            (None, TemplateLanguage::Handlebars) => Engine::Handlebars(HandlebarsTemplate::compile(text)?),
        })
    }

    /// Renders a message; the template's text and [`MessageData::values`] are in it byte for byte.
    ///
    /// An empty message, or one of white space only, is no message in git: it is replaced by [`DEFAULT_MESSAGE`].
    ///
    /// # Errors
    ///
    /// Returns an error if the template uses data that do not exist, or exceeds a limit.
    pub fn render(&self, data: &MessageData) -> Result<Vec<u8>, TemplateError> {
        self.render_within(limits::MAX_DATA, data, &|| false).map_err(TemplateError::Render)
    }

    /// Renders the message of an update with `remaining` bytes of memory.
    ///
    /// An interrupt is checked every thousand steps. Only the parts of the update that the template mentions are
    /// converted into data.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Template::render`], and [`TemplateErrorKind::Interrupted`] after an interrupt.
    pub fn render_update(
        &self,
        update: &UpdateData<'_>,
        remaining: usize,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, TemplateError> {
        let UpdateData { automation, values, result, images } = *update;
        // Texts may be long, so the memory for them is checked before they are copied.
        let data = if self.mentions_files() {
            let size = (result.edits(), data::min_size(result));
            limits::within(remaining, size, self.language())
                .map(|_| MessageData::new(automation, values.clone(), result, images))
        } else {
            let changes = result.changes();
            let size = (changes.len(), data::size_of_changes(changes.iter().copied()));
            limits::within(remaining, size, self.language())
                .map(|_| MessageData::summary(automation, values.clone(), &changes, images))
        };
        data.and_then(|data| self.render_within(remaining, &data, is_interrupted))
            .map_err(TemplateError::Render)
    }

    /// Renders the title or the body of a pull request.
    ///
    /// An interrupt is checked every thousand steps.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Template::render`], and [`TemplateErrorKind::Interrupted`] after an interrupt.
    pub fn render_pull_request(
        &self,
        data: &PullRequestData<'_>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<String, TemplateError> {
        let message = data.message;
        limits::within(limits::MAX_DATA, (message.count(), message.size()), self.language())
            .and_then(|limits| {
                let bounds = (limits, limits::HANDLEBARS_STEPS);
                self.render_data(&TemplateData::PullRequest(data), bounds, is_interrupted)
            })
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .map_err(TemplateError::Render)
    }

    /// Renders the name of a branch, which may be no valid name.
    ///
    /// # Errors
    ///
    /// Returns an error if the template uses data that do not exist, or exceeds a limit.
    pub fn render_branch(&self, data: &BranchData<'_>) -> Result<String, TemplateError> {
        let bounds = (BRANCH_LIMITS, HANDLEBARS_BRANCH_STEPS);
        self.render_data(&TemplateData::Branch(data), bounds, &|| false)
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .map_err(TemplateError::Render)
    }

    /// Returns true if the text may depend on a policy or its image.
    pub fn mentions_policy(&self) -> bool {
        match &self.engine {
            Engine::Go(template) => template.mentions_policy(),
            Engine::Handlebars(template) => template.mentions_policy(),
        }
    }

    /// Returns true if the template uses more than the distinct changes and images.
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
        remaining: usize,
        data: &MessageData,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, TemplateErrorKind> {
        let limits = limits::within(remaining, (data.count(), data.size()), self.language())?;
        let bounds = (limits, limits::HANDLEBARS_STEPS);
        let message = self.render_data(&TemplateData::Message(data), bounds, is_interrupted)?;
        if message.iter().all(u8::is_ascii_whitespace) {
            return Ok(DEFAULT_MESSAGE.into());
        }
        Ok(message)
    }

    /// Renders any data, within limits for Go and a number of steps for handlebars.
    fn render_data(
        &self,
        data: &TemplateData<'_>,
        (limits, steps): (Limits, usize),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, TemplateErrorKind> {
        match &self.engine {
            Engine::Go(template) => template.render(data, limits, is_interrupted),
            Engine::Handlebars(template) => template.render(data, steps, is_interrupted),
        }
    }
}
