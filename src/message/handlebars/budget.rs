//! Limits the steps of rendering handlebars, since the crate has no limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::handlebars::template::{HelperTemplate, Parameter, TemplateElement};
use ::handlebars::{JsonValue as Json, RenderError, RenderErrorReason, Template};

/// The number of bytes of a text that cost one step.
const SIZE_OF_STEP: usize = 64;

/// The remaining steps; clones share them.
///
/// The count is atomic because helpers must be `Send` and `Sync`.
#[derive(Clone)]
pub(super) struct Budget {
    most: usize,
    left: Arc<AtomicUsize>,
}

impl Budget {
    pub(super) fn new(most: usize) -> Self {
        Self { most, left: Arc::new(AtomicUsize::new(most)) }
    }

    /// Deducts steps.
    pub(super) fn take(&self, steps: usize) -> Result<(), RenderError> {
        let left = self.left.load(Ordering::Relaxed);
        let Some(left) = left.checked_sub(steps) else {
            let message = format!("the template takes more than the limit of {} steps", self.most);
            return Err(RenderErrorReason::Other(message).into());
        };
        self.left.store(left, Ordering::Relaxed);
        Ok(())
    }
}

/// The number of steps to render a template with one iteration per loop and branch.
pub(super) fn steps_of(template: &Template) -> usize {
    let elements = template.elements.iter().map(|element| match element {
        TemplateElement::HtmlExpression(call)
        | TemplateElement::Expression(call)
        | TemplateElement::HelperBlock(call) => steps_of_call(call),
        _ => 1,
    });
    1 + elements.sum::<usize>()
}

fn steps_of_call(call: &HelperTemplate) -> usize {
    let given = std::iter::once(&call.name).chain(&call.params).chain(call.hash.values());
    let bodies = call.template.iter().chain(&call.inverse);
    1 + given.map(steps_of_parameter).sum::<usize>() + bodies.map(steps_of).sum::<usize>()
}

fn steps_of_parameter(parameter: &Parameter) -> usize {
    match parameter {
        Parameter::Name(_) | Parameter::Path(_) => 1,
        Parameter::Literal(value) => steps_of_value(value),
        Parameter::Subexpression(inner) => match inner.as_element() {
            TemplateElement::Expression(call) => steps_of_call(call),
            _ => 1,
        },
        _ => 1,
    }
}

/// The number of steps to traverse a value.
pub(super) fn steps_of_value(value: &Json) -> usize {
    1 + match value {
        Json::String(text) => text.len() / SIZE_OF_STEP,
        Json::Array(items) => items.iter().map(steps_of_value).sum(),
        Json::Object(members) => members.values().map(steps_of_value).sum(),
        _ => 0,
    }
}
