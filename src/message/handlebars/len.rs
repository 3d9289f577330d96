//! The helper `len` for lists, objects and texts only.

use ::handlebars::{
    Context, Handlebars, Helper, HelperDef, JsonValue as Json, RenderContext, RenderError, RenderErrorReason,
    ScopedJson,
};

/// `len`; the crate's own returns 0 for values without a length.
pub(super) struct Len;

impl HelperDef for Len {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        let given = helper.param(0).ok_or(RenderErrorReason::ParamNotFoundForIndex("len", 0))?;
        if given.is_value_missing() {
            return Err(RenderError::strict_error(given.relative_path()));
        }
        let length = match given.value() {
            Json::Array(items) => items.len(),
            Json::Object(members) => members.len(),
            Json::String(text) => text.len(),
            other => {
                let message = format!("len of {other}: only lists, objects and texts have a length");
                return Err(RenderErrorReason::Other(message).into());
            }
        };
        Ok(Json::from(length).into())
    }
}
