//! Messages in handlebars: strict, as plain text, without file access, and with limits.
//!
//! The crate has no limits of its own, so everything that could run without end is limited here: [`nesting`] checks a
//! template before it is parsed, loops ([`each`]) and comparisons ([`equal`]) draw on a [`budget`], nothing copies the
//! data ([`lookup`]), and the output ends at its limit. A value without text or length is an error ([`text`], [`len`])
//! rather than a placeholder.

mod budget;
mod each;
mod equal;
mod len;
mod lookup;
mod nesting;
mod text;
mod value;

use std::fmt;
use std::io;

use ::handlebars::template::TemplateElement;
use ::handlebars::{
    Context, Decorator, Handlebars, HelperResult, Output, RenderContext, RenderError, RenderErrorReason,
    Renderable, Template, TemplateErrorReason, no_escape,
};
use tagboat_go_template::without_middle;

use self::budget::Budget;
use self::each::Each;
use self::equal::Equal;
use self::len::Len;
use self::lookup::Lookup;
use self::text::{SHOW, Show, show_names};
use super::delivery::TemplateData;
use super::error::TemplateErrorKind;
use super::limits::LIMITS;

/// A template in handlebars.
pub(super) struct HandlebarsTemplate {
    template: Template,
    mentions_files: bool,
    mentions_policy: bool,
}

impl fmt::Debug for HandlebarsTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HandlebarsTemplate")
    }
}

impl HandlebarsTemplate {
    pub(super) fn compile(text: &str) -> Result<Self, TemplateErrorKind> {
        let invalid =
            |location, cause| TemplateErrorKind::Handlebars { location, cause: without_middle(cause) };
        nesting::check(text).map_err(|cause| invalid(None, cause))?;
        let mut template = Template::compile(text).map_err(|error| {
            let cause = match error.reason() {
                TemplateErrorReason::InvalidSyntax(message) => {
                    format!("invalid syntax: {}", one_line(message).replace('_', " "))
                }
                other => one_line(&other.to_string()),
            };
            invalid(error.pos(), cause)
        })?;
        if let Some(location) = partial_with_content(&template) {
            let message = "partials are not supported in commit messages".to_owned();
            return Err(invalid(Some(location), message));
        }
        show_names(&mut template, &|name| HELPERS.contains(&name));
        let (mentions_files, mentions_policy) = (mentions_files(text), mentions_policy(text));
        Ok(Self { template, mentions_files, mentions_policy })
    }

    /// Returns true if the text mentions a name of the data of files and objects.
    pub(super) fn mentions_files(&self) -> bool {
        self.mentions_files
    }

    /// Returns true if the text mentions a name of the data of policies.
    pub(super) fn mentions_policy(&self) -> bool {
        self.mentions_policy
    }

    pub(super) fn render(
        &self,
        data: &TemplateData<'_>,
        steps: usize,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, TemplateErrorKind> {
        let registry = registry(&Budget::new(steps));
        let context = Context::from(value::template_data(data));
        let mut message = Message { bytes: Vec::new(), writes: 0, is_interrupted, was_interrupted: false };
        let rendered = self.template.render(&registry, &context, &mut RenderContext::new(None), &mut message);
        match rendered {
            _ if message.was_interrupted => Err(TemplateErrorKind::Interrupted),
            Ok(()) => Ok(message.bytes),
            Err(error) => Err(TemplateErrorKind::Handlebars {
                location: error.line_no.zip(error.column_no),
                cause: without_middle(describe(&error, LIMITS.output)),
            }),
        }
    }
}

/// Returns true if the text mentions files, objects, or all data at once.
fn mentions_files(text: &str) -> bool {
    const NAMES: [&str; 7] = ["Files", "FileChanges", "Objects", "@root", "lookup", "each this", "each ."];
    let is_reference = |tag: &str, name: &str| {
        tag.match_indices(name).any(|(at, _)| !tag[at + name.len()..].starts_with('.'))
    };
    // With a quotation mark before it, the end may be inside a text.
    let tag = |text: &'_ str| {
        let end = text.find("}}").filter(|end| !text[..*end].contains(['"', '\'']));
        one_line(&text[..end.unwrap_or(text.len())])
    };
    text.split("{{").skip(1).map(tag).any(|tag| {
        NAMES.iter().any(|name| tag.contains(name))
            || ["Changed", "Updated", "ImageResult"].iter().any(|name| is_reference(&tag, name))
    })
}

/// Returns true if the text mentions policies, images, or all data at once.
fn mentions_policy(text: &str) -> bool {
    const NAMES: [&str; 6] = ["Policy", "Image", "@root", "lookup", "this", "each"];
    let is_in_path = |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || "]_-".contains(c));
    let has_dot_alone = text.match_indices('.').any(|(at, _)| !is_in_path(&text[..at]));
    text.contains("{{") && (has_dot_alone || NAMES.iter().any(|name| text.contains(name)))
}

/// The helpers that templates can call.
const HELPERS: [&str; 16] = [
    "if", "unless", "each", "with", "lookup", "raw", "eq", "ne", "gt", "gte", "lt", "lte", "and", "or",
    "not", "len",
];

/// The helpers and settings of a rendering.
fn registry(budget: &Budget) -> Handlebars<'static> {
    let mut registry = Handlebars::new();
    registry.set_strict_mode(true);
    registry.register_escape_fn(no_escape);
    registry.register_helper("each", Box::new(Each::new(budget)));
    registry.register_helper("eq", Box::new(Equal::eq(budget)));
    registry.register_helper("ne", Box::new(Equal::ne(budget)));
    registry.register_helper("lookup", Box::new(Lookup));
    registry.register_helper("len", Box::new(Len));
    registry.register_helper(SHOW, Box::new(Show));
    registry.unregister_helper("log");
    // Partials could call one another without end.
    registry.register_decorator("inline", Box::new(refuse_inline));
    registry
}

/// Finds a partial with content, which the crate would render, copying the data.
fn partial_with_content(template: &Template) -> Option<(usize, usize)> {
    template.elements.iter().zip(&template.mapping).find_map(|(element, location)| match element {
        TemplateElement::PartialBlock(_) => Some((location.0, location.1)),
        TemplateElement::HelperBlock(call) => {
            call.template.iter().chain(&call.inverse).find_map(partial_with_content)
        }
        _ => None,
    })
}

fn refuse_inline(
    _: &Decorator<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
) -> HelperResult {
    Err(RenderErrorReason::Other("inline partials are not supported in commit messages".to_owned()).into())
}

/// Describes an error without its location.
fn describe(error: &RenderError, most: usize) -> String {
    match error.reason() {
        RenderErrorReason::MissingVariable(Some(name)) => format!("there is no {name:?} in the data"),
        RenderErrorReason::MissingVariable(None) => "a value is not in the data".to_owned(),
        RenderErrorReason::HelperNotFound(name) => {
            let helpers = HELPERS.join(", ");
            format!(
                "there is no helper {name:?}; there are {helpers}. A block needs one as well: {{{{#with {name}}}}} or \
                 {{{{#each {name}}}}}"
            )
        }
        RenderErrorReason::PartialNotFound(name) => {
            format!("there is no partial {name:?}")
        }
        RenderErrorReason::IOError(_) => format!("the message is longer than the limit of {most} bytes"),
        other => one_line(&other.to_string()),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The number of writes between two checks for an interrupt.
const WRITES_BETWEEN_POLLS: usize = 1_000;

/// The output of a rendering, which it ends at the limit or when interrupted.
struct Message<'i> {
    bytes: Vec<u8>,
    writes: usize,
    is_interrupted: &'i dyn Fn() -> bool,
    was_interrupted: bool,
}

impl Output for Message<'_> {
    fn write(&mut self, part: &str) -> io::Result<()> {
        self.was_interrupted |= self.writes.is_multiple_of(WRITES_BETWEEN_POLLS) && (self.is_interrupted)();
        self.writes += 1;
        if self.was_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.bytes.len() + part.len() > LIMITS.output {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(part.as_bytes());
        Ok(())
    }

    fn write_fmt(&mut self, parts: fmt::Arguments<'_>) -> io::Result<()> {
        self.write(&parts.to_string())
    }
}
