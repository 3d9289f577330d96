//! Messages in Go's template language.
//!
//! [`types`] describes the data as Flux's types, [`value`] converts the data into values of them, [`methods`]
//! implements their methods, and [`image`] the type of images.

mod fields;
mod image;
mod methods;
mod name;
mod types;
mod value;

use std::sync::Arc;

use tagboat_go_template as engine;

use super::delivery::TemplateData;
use super::error::TemplateErrorKind;

/// Flux's name of the template, which errors show.
const NAME: &str = "commit message";

/// The parts of the data that exist without files and objects.
const WITHOUT_FILES: [&[&str]; 5] = [
    &["AutomationObject"],
    &["Values"],
    &["Changed", "Changes"],
    &["Changed", "ImageResult", "Images"],
    &["Updated", "Images"],
];

/// A template in Go's language.
#[derive(Debug)]
pub(super) struct GoTemplate {
    template: engine::Template,
}

impl GoTemplate {
    pub(super) fn compile(text: &str) -> Result<Self, TemplateErrorKind> {
        let template = engine::Template::parse(NAME, text).map_err(TemplateErrorKind::Go)?;
        Ok(Self { template })
    }

    /// Returns true if the template uses parts of the data that are not in [`WITHOUT_FILES`].
    pub(super) fn mentions_files(&self) -> bool {
        let is_within = |way: &Vec<Arc<str>>| {
            let is_part = |part: &&[&str]| {
                part.len() <= way.len() && part.iter().zip(way).all(|(name, field)| **name == **field)
            };
            WITHOUT_FILES.iter().any(is_part)
        };
        !self.template.used_values().iter().all(is_within)
    }

    /// Returns true if the text may depend on a policy or its image.
    pub(super) fn mentions_policy(&self) -> bool {
        let is_whole = |way: &Vec<Arc<str>>| way.is_empty();
        let is_of_policy =
            |way: &Vec<Arc<str>>| way.first().is_some_and(|first| matches!(&**first, "Policy" | "Image"));
        self.template.used_values().iter().any(is_whole)
            || self.template.field_usages().iter().any(|field| is_of_policy(&field.path))
    }

    pub(super) fn render(
        &self,
        data: &TemplateData<'_>,
        limits: engine::Limits,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, TemplateErrorKind> {
        let value = value::template_data(data);
        self.template.render_until(&value, limits, is_interrupted).map_err(|error| match error {
            engine::TemplateError::Interrupted => TemplateErrorKind::Interrupted,
            other => TemplateErrorKind::Go(other),
        })
    }
}
