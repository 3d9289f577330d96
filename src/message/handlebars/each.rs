//! The helper `each` with a limit.

use ::handlebars::{
    BlockContext, BlockParams, Context, Handlebars, Helper, HelperDef, HelperResult, JsonValue, Output,
    PathAndJson, RenderContext, RenderError, RenderErrorReason, Renderable,
};

use super::budget::{Budget, steps_of};

/// `each` as in the crate, with a cost per iteration.
pub(super) struct Each {
    budget: Budget,
}

/// One iteration of a loop.
struct Iteration<'a> {
    index: usize,
    is_last: bool,
    /// The key of an object's member.
    key: Option<&'a str>,
    item: &'a JsonValue,
}

impl Each {
    pub(super) fn new(budget: &Budget) -> Self {
        Self { budget: budget.clone() }
    }
}

impl HelperDef for Each {
    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        rendering: &mut RenderContext<'reg, 'rc>,
        output: &mut dyn Output,
    ) -> HelperResult {
        let list = helper.param(0).ok_or(RenderErrorReason::ParamNotFoundForIndex("each", 0))?;
        let Some(body) = helper.template() else { return Ok(()) };
        let (items, members) = match list.value() {
            JsonValue::Array(items) => (Some(items), None),
            JsonValue::Object(members) => (None, Some(members)),
            _ if helper.inverse().is_none() => {
                return Err(RenderError::strict_error(list.relative_path()));
            }
            _ => (None, None),
        };
        let count = items.map_or(0, Vec::len) + members.map_or(0, serde_json::Map::len);
        let steps = steps_of(body);
        self.budget.take(steps)?;
        if count == 0 {
            return match helper.inverse() {
                Some(inverse) => inverse.render(registry, context, rendering, output),
                None => Ok(()),
            };
        }
        let items = items.into_iter().flatten().map(|item| (None, item));
        let members = members.into_iter().flatten().map(|(key, item)| (Some(key.as_str()), item));
        rendering.push_block(BlockContext::new());
        for (index, (key, item)) in items.chain(members).enumerate() {
            self.budget.take(steps)?;
            // An empty write, which lets the output interrupt the rendering.
            output.write("")?;
            let iteration = Iteration { index, is_last: index + 1 == count, key, item };
            if let Some(block) = rendering.block_mut() {
                iteration.enter(block, list, helper)?;
            }
            body.render(registry, context, rendering, output)?;
        }
        rendering.pop_block();
        Ok(())
    }
}

impl Iteration<'_> {
    /// Makes the item the context of the block.
    fn enter<'rc>(
        &self,
        block: &mut BlockContext<'rc>,
        list: &PathAndJson<'rc>,
        helper: &Helper<'rc>,
    ) -> Result<(), RenderError> {
        block.set_local_var("first", (self.index == 0).into());
        block.set_local_var("last", self.is_last.into());
        block.set_local_var("index", self.index.into());
        let key: JsonValue = self.key.map_or_else(|| self.index.into(), Into::into);
        if self.key.is_some() {
            block.set_local_var("key", key.clone());
        }
        if let Some(path) = list.context_path() {
            let mut path = path.clone();
            path.push(self.key.map_or_else(|| self.index.to_string(), str::to_owned));
            *block.base_path_mut() = path;
        } else {
            block.set_base_value(self.item.clone());
        }
        if !helper.has_block_param() {
            return Ok(());
        }
        let mut names = BlockParams::new();
        let (item, name) = match (helper.block_param(), helper.block_param_pair()) {
            (Some(item), _) => (item, None),
            (None, Some((item, name))) => (item, Some(name)),
            (None, None) => return Ok(()),
        };
        if list.context_path().is_some() {
            // The block's path is that of the item; adding the value would copy everything in it.
            names.add_path(item, Vec::new())?;
        } else {
            names.add_value(item, self.item.clone())?;
        }
        if let Some(name) = name {
            names.add_value(name, key)?;
        }
        block.set_block_params(names);
        Ok(())
    }
}
