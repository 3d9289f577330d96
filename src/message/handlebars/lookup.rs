//! The helper `lookup` without copies: it refers to values in the data.

use ::handlebars::{
    Context, Handlebars, Helper, HelperDef, HelperResult, JsonValue as Json, Output, RenderContext,
    RenderError, RenderErrorReason, ScopedJson,
};

use super::text::text_of;

/// The member of a value at an index or key, which must exist.
pub(super) struct Lookup;

impl HelperDef for Lookup {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        context: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        let given =
            |index| helper.param(index).ok_or(RenderErrorReason::ParamNotFoundForIndex("lookup", index));
        let (whole, key) = (given(0)?, given(1)?.value());
        let missing = || RenderError::strict_error(None);
        let Some(path) = whole.context_path() else {
            return member(whole.value(), key).cloned().map(ScopedJson::Derived).ok_or_else(missing);
        };
        let step = |value: &'rc Json, name: &String| match value {
            Json::Array(items) => items.get(name.parse::<usize>().ok()?),
            Json::Object(members) => members.get(name),
            _ => None,
        };
        let whole = path.iter().try_fold(context.data(), step);
        let found = whole.and_then(|whole| member(whole, key)).ok_or_else(missing)?;
        let name = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        Ok(ScopedJson::Context(found, [path.as_slice(), &[name]].concat()))
    }

    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        rendering: &mut RenderContext<'reg, 'rc>,
        output: &mut dyn Output,
    ) -> HelperResult {
        let found = self.call_inner(helper, registry, context, rendering)?;
        Ok(output.write(&text_of(found.as_json(), "what lookup finds")?)?)
    }
}

fn member<'v>(value: &'v Json, key: &Json) -> Option<&'v Json> {
    match value {
        Json::Array(items) => items.get(usize::try_from(key.as_u64()?).ok()?),
        Json::Object(members) => members.get(key.as_str()?),
        _ => None,
    }
}
