//! The helpers `eq` and `ne` with a cost per compared value.

use ::handlebars::{
    Context, Handlebars, Helper, HelperDef, HelperResult, JsonValue as Json, Output, RenderContext,
    RenderError, RenderErrorReason, Renderable, ScopedJson,
};

use super::budget::{Budget, steps_of_value};

/// `eq` or `ne`, as in the crate: as a parameter, alone or as a block.
pub(super) struct Equal {
    name: &'static str,
    budget: Budget,
}

impl Equal {
    /// The helper `eq`.
    pub(super) fn eq(budget: &Budget) -> Self {
        Self { name: "eq", budget: budget.clone() }
    }

    /// The helper `ne`.
    pub(super) fn ne(budget: &Budget) -> Self {
        Self { name: "ne", budget: budget.clone() }
    }

    fn evaluate(&self, helper: &Helper<'_>) -> Result<bool, RenderError> {
        let [left, right] = [0, 1].map(|index| {
            let given = helper.param(index).filter(|given| !given.is_value_missing());
            given.ok_or(RenderErrorReason::ParamNotFoundForIndex(self.name, index))
        });
        let (left, right) = (left?.value(), right?.value());
        if matches!(left, Json::Array(_) | Json::Object(_) | Json::String(_)) {
            self.budget.take(steps_of_value(left))?;
        }
        Ok((left == right) == (self.name == "eq"))
    }
}

impl HelperDef for Equal {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        Ok(Json::from(self.evaluate(helper)?).into())
    }

    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        rendering: &mut RenderContext<'reg, 'rc>,
        output: &mut dyn Output,
    ) -> HelperResult {
        let result = self.evaluate(helper)?;
        if !helper.is_block() {
            return Ok(output.write(&result.to_string())?);
        }
        match if result { helper.template() } else { helper.inverse() } {
            Some(body) => body.render(registry, context, rendering, output),
            None => Ok(()),
        }
    }
}
