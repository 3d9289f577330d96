//! Renders values as text; most objects and lists have none.

use ::handlebars::template::{HelperTemplate, Parameter, TemplateElement};
use ::handlebars::{
    Context, Handlebars, Helper, HelperDef, HelperResult, JsonRender, JsonValue as Json, Output,
    RenderContext, RenderError, RenderErrorReason, Template,
};

/// The name of the helper that renders values; no template can contain it.
pub(super) const SHOW: &str = "the text of";

/// The member with an object's text; automations, policies and images have one.
const TEXT: &str = "String";

/// The helper that renders its parameter.
pub(super) struct Show;

impl HelperDef for Show {
    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
        output: &mut dyn Output,
    ) -> HelperResult {
        let shown = helper.param(0).ok_or(RenderErrorReason::ParamNotFoundForIndex(SHOW, 0))?;
        let name = shown.relative_path();
        if shown.is_value_missing() {
            return Err(RenderError::strict_error(name));
        }
        Ok(output.write(&text_of(shown.value(), name.map_or("the value", String::as_str))?)?)
    }
}

/// The text of a value.
pub(super) fn text_of(value: &Json, name: &str) -> Result<String, RenderError> {
    let advice = match value {
        Json::Object(members) => match members.get(TEXT) {
            Some(Json::String(text)) => return Ok(text.clone()),
            _ => "an object, which has no text: show one of its members, or go through them with {{#each}}",
        },
        Json::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            "a list of objects, which has no text: go through it with {{#each}}"
        }
        value => return Ok(value.render()),
    };
    Err(RenderErrorReason::Other(format!("{name} is {advice}")).into())
}

/// Replaces every name that stands alone, unless a helper's, by a call of [`Show`].
pub(super) fn show_names(template: &mut Template, is_helper: &dyn Fn(&str) -> bool) {
    for element in &mut template.elements {
        match element {
            TemplateElement::Expression(call) | TemplateElement::HtmlExpression(call) => {
                show_name(call, is_helper);
            }
            TemplateElement::HelperBlock(call) => {
                let bodies = call.template.iter_mut().chain(&mut call.inverse);
                bodies.for_each(|body| show_names(body, is_helper));
            }
            _ => {}
        }
    }
}

fn show_name(call: &mut HelperTemplate, is_helper: &dyn Fn(&str) -> bool) {
    let is_value = matches!(call.name, Parameter::Path(_)) && !call.name.as_name().is_some_and(is_helper);
    if is_value && call.params.is_empty() && call.hash.is_empty() {
        let value = std::mem::replace(&mut call.name, Parameter::Name(SHOW.to_owned()));
        call.params.push(value);
    }
}
