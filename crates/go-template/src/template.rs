//! Templates: parsed once, rendered with values as often as wanted.

use std::collections::HashMap;

use crate::budget::{Budget, Limits};
use crate::error::TemplateError;
use crate::execute::execute;
use crate::functions::find;
use crate::syntax::{Name, Node, parse};
use crate::value::Value;

/// A template with those that it defines.
#[derive(Debug)]
pub struct Template {
    name: String,
    text: String,
    trees: HashMap<Name, Vec<Node>>,
}

impl Template {
    /// Parses a text as the template of a name, which shows in errors.
    ///
    /// # Errors
    ///
    /// When the text is no template, in the words of Go.
    pub fn parse(name: &str, text: &str) -> Result<Self, TemplateError> {
        let trees = parse(name, text, find).map_err(|message| TemplateError::Parse { message })?;
        Ok(Self { name: name.to_owned(), text: text.to_owned(), trees })
    }

    /// Renders with data, within the limits that are the default.
    ///
    /// # Errors
    ///
    /// When the template asks the data for what they do not have, calls a function wrongly, or goes beyond a limit.
    pub fn render(&self, data: &Value) -> Result<Vec<u8>, TemplateError> {
        self.render_within(data, Limits::default())
    }

    /// Renders with data, within limits.
    ///
    /// # Errors
    ///
    /// As [`Template::render`].
    pub fn render_within(&self, data: &Value, limits: Limits) -> Result<Vec<u8>, TemplateError> {
        let mut budget = Budget::new(limits);
        execute(self, data, &mut budget).map_err(|message| TemplateError::Execute { message })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn tree(&self, name: &Name) -> Option<&[Node]> {
        self.trees.get(name).map(Vec::as_slice)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The line and column of a place, as errors name them.
    pub(crate) fn location(&self, at: usize) -> String {
        let (line, column) = self.line_and_column(at);
        format!("{}:{line}:{column}", self.name)
    }

    /// The line of a place, counted from 1, and its column in bytes, counted from 0.
    pub(crate) fn line_and_column(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = at - before.rfind('\n').map_or(0, |line_break| line_break + 1);
        (line, column)
    }
}
