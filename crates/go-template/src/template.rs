//! Templates: parsed once, rendered with values any number of times.

use std::collections::HashMap;

use crate::budget::{Budget, Limits};
use crate::error::TemplateError;
use crate::execute::execute;
use crate::functions::find;
use crate::syntax::{Name, Node, parse};
use crate::text::without_middle;
use crate::value::Value;

/// A template with the templates that it defines.
#[derive(Debug)]
pub struct Template {
    name: String,
    text: String,
    trees: HashMap<Name, Vec<Node>>,
}

impl Template {
    /// Parses a text as a template; errors show the name.
    ///
    /// # Errors
    ///
    /// If the text is not a valid template, with Go's message.
    pub fn parse(name: &str, text: &str) -> Result<Self, TemplateError> {
        let trees = parse(name, text, find)
            .map_err(|message| TemplateError::Parse { message: without_middle(message) })?;
        Ok(Self { name: name.to_owned(), text: text.to_owned(), trees })
    }

    /// Renders with data, within the default limits.
    ///
    /// # Errors
    ///
    /// If the template uses fields that the data lacks, passes wrong arguments to a function, or exceeds a limit.
    pub fn render(&self, data: &Value) -> Result<Vec<u8>, TemplateError> {
        self.render_within(data, Limits::default())
    }

    /// Renders with data, within limits.
    ///
    /// # Errors
    ///
    /// As [`Template::render`].
    pub fn render_within(&self, data: &Value, limits: Limits) -> Result<Vec<u8>, TemplateError> {
        self.render_until(data, limits, &|| false)
    }

    /// Renders with data, within limits, until `is_interrupted` returns true.
    ///
    /// `is_interrupted` is called every thousand steps. Values that the template put into dicts of the data are
    /// removed again with their content.
    ///
    /// # Errors
    ///
    /// As [`Template::render`]; [`TemplateError::Interrupted`] if it was interrupted.
    pub fn render_until(
        &self,
        data: &Value,
        limits: Limits,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, TemplateError> {
        let mut budget = Budget::new(limits, is_interrupted);
        let rendered = execute(self, data, &mut budget);
        if budget.was_interrupted() {
            return Err(TemplateError::Interrupted);
        }
        rendered.map_err(|message| TemplateError::Execute { message: without_middle(message) })
    }

    /// Returns the name.
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

    /// Formats a position as `LINE:COLUMN`, as errors show it.
    pub(crate) fn location(&self, at: usize) -> String {
        let (line, column) = self.line_and_column(at);
        format!("{}:{line}:{column}", self.name)
    }

    /// Returns the line of a position, from 1, and its column in bytes, from 0.
    pub(crate) fn line_and_column(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = at - before.rfind('\n').map_or(0, |line_break| line_break + 1);
        (line, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Map;

    /// A dict that contained itself was never freed.
    ///
    /// A tenant could make one in each rendering.
    #[test]
    fn cyclic_values_are_freed_at_the_end_of_the_rendering() {
        for text in [
            r#"{{ with .dict }}{{ set . "x" $ | len }}{{ end }}"#,
            r#"{{ with .dict }}{{ set . "a" . | len }}{{ end }}"#,
            r#"{{ $_ := set .dict "x" (list 1 (dict "y" .dict)) }}"#,
            r#"{{ $_ := merge .dict (dict "b" (list .dict)) }}"#,
            r#"{{ $_ := mergeOverwrite .inner (dict "deep" (dict "b" .dict)) .dict }}"#,
            r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}"#,
            r#"{{ $d := fromJson "{\"a\": {}}" }}{{ $_ := set $d.a "d" (list $d) }}"#,
            r#"{{ $d := deepCopy .inner }}{{ $_ := set $d.deep "d" $d }}"#,
            r#"{{ $d := dict }}{{ range 3000 }}{{ $e := dict }}{{ $_ := set $e "e" $e }}{{ end }}"#,
            r#"{{ $d := dict }}{{ range 14000 }}{{ $d = dict "d" (list $d) }}{{ end }}{{ $d = 1 }}"#,
            r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ fail "x" }}"#,
        ] {
            let dict = Map::dict([("a".into(), 1.5.into())]);
            let inner = Map::dict([("deep".into(), Map::dict([]).into())]);
            let gone: Vec<_> = [&dict, &inner].map(|map| map.downgrade().unwrap()).into();
            let data = Value::from(Map::dict([("dict".into(), dict.into()), ("inner".into(), inner.into())]));
            let mut budget = Budget::new(Limits::default(), &|| false);
            let heap = budget.heap();
            let template = Template::parse("x", text).unwrap();
            let rendered = execute(&template, &data, &mut budget);
            assert_eq!(rendered.is_ok(), !text.contains("fail"), "{text}: {rendered:?}");
            drop(budget);
            // The template's constants are counted as well if a function returns them.
            drop(template);
            assert_eq!(heap.used(), 0, "{text}");
            drop(data);
            assert!(gone.iter().all(|map| !map.is_alive()), "{text}");
        }
    }
}
