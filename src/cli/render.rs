//! `tagboat render`: a commit message, before anything is committed.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tagboat_api::settings::TemplateLanguage;

use super::Failure;
use super::choice::existing;
use super::inputs::{input_name, is_standard_input, read_input};
use super::overrides::split_name;
use super::terminal::{print_bytes, say};
use crate::error::chain;
use crate::git::CommitError;
use crate::message::recorded::{self, Recorded};
use crate::message::{MessageData, Template};
use crate::objects::ObjectName;

/// The namespace of an automation without one.
const DEFAULT_NAMESPACE: &str = "default";

/// Render the template of a commit message
///
/// Renders on sample data, or on a result that `tagboat run --output json` or `tagboat update --output json` printed:
/// then the message is that of the automation's commit. Only the message is written to standard output, byte for
/// byte, without an added line break at the end.
///
/// Presets: preset:detailed, preset:conventional, preset:summary.
///
/// Exit status: 0 done, 1 the template failed or something could not be read, 2 wrong usage.
#[derive(Debug, Args)]
pub(super) struct RenderArguments {
    /// The template: a file, - for standard input, or preset:NAME
    #[arg(long, value_name = "FILE|preset:NAME")]
    template: PathBuf,

    /// The language of the template
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t = Language::Go)]
    language: Language,

    /// The automation: one of several in the result, or the name that the sample gets
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    name: Option<String>,

    /// A result as JSON: a file, or - for standard input
    #[arg(long, value_name = "RESULT.json")]
    from: Option<PathBuf>,
}

/// A language of templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// Go's text/template with sprig's functions.
    Go,
    /// Handlebars.
    Handlebars,
}

impl From<Language> for TemplateLanguage {
    fn from(language: Language) -> Self {
        match language {
            Language::Go => Self::Go,
            Language::Handlebars => Self::Handlebars,
        }
    }
}

pub(super) fn run(arguments: &RenderArguments) -> Result<(), Failure> {
    if is_standard_input(&arguments.template) && arguments.from.as_deref().is_some_and(is_standard_input) {
        return Err(Failure::Usage("--template and --from cannot both be standard input".to_owned()));
    }
    let name = arguments.name.as_deref().map(Selection::parse).transpose()?;
    let data = match &arguments.from {
        Some(path) => recorded_data(path, name.as_ref())?,
        None => sample(name.as_ref()),
    };
    let text = template(&arguments.template)?;
    let template =
        Template::compile(&text, arguments.language.into()).map_err(|error| Failure::new(error.detail()))?;
    let message = template.render(&data).map_err(|error| Failure::new(error.detail()))?;
    if message.contains(&0) {
        return Err(Failure::new(CommitError::Message.to_string()));
    }
    if data.files().is_empty() {
        say("note: the result has no changes, so there would be no commit");
    }
    Ok(print_bytes(&message)?)
}

/// The automation that `--name` selects.
struct Selection<'a> {
    text: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
}

impl<'a> Selection<'a> {
    fn parse(text: &'a str) -> Result<Self, Failure> {
        let (namespace, name) = split_name(text);
        if name.is_empty() || name.contains('/') || namespace.is_some_and(str::is_empty) {
            return Err(Failure::Usage(format!("--name {text:?} is not of the form [NAMESPACE/]NAME")));
        }
        Ok(Self { text, namespace, name })
    }

    fn fits(&self, automation: &ObjectName) -> bool {
        automation.name == self.name
            && self.namespace.is_none_or(|namespace| automation.namespace == namespace)
    }

    /// Returns the full name, with `namespace` if none was given.
    fn within(&self, namespace: &str) -> ObjectName {
        let namespace = self.namespace.unwrap_or(namespace).to_owned();
        ObjectName { namespace, name: self.name.to_owned() }
    }
}

/// Reads the template; the name of a preset is a template, too.
fn template(path: &Path) -> Result<String, Failure> {
    if let Some(text) = path.to_str().filter(|text| text.starts_with("preset:")) {
        return Ok(text.to_owned());
    }
    String::from_utf8(read("the template", path)?)
        .map_err(|_| Failure::new(format!("the template {} is not UTF-8", path.display())))
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    let input = if is_standard_input(path) { "from standard input".into() } else { path.to_string_lossy() };
    read_input(path).map_err(|error| Failure::new(format!("cannot read {what} {input}: {error}")))
}

fn sample(selected: Option<&Selection<'_>>) -> MessageData {
    let sample = MessageData::sample();
    let Some(selected) = selected else { return sample };
    let automation = selected.within(&sample.automation().namespace);
    sample.of_automation(&automation)
}

/// Returns the data of the selected result.
fn recorded_data(path: &Path, selected: Option<&Selection<'_>>) -> Result<MessageData, Failure> {
    let input = input_name(path);
    let results = recorded::read(&read("the result", path)?).map_err(|error| {
        Failure::new(format!(
            "{input} is not the output of tagboat run or tagboat update with --output json: {}",
            chain(&error)
        ))
    })?;
    let (result, automation) = choose(&results, selected, &input)?;
    result.data(&automation).map_err(|error| Failure::new(format!("{input}: {}", chain(&error))))
}

/// Selects a result and its automation.
fn choose<'r>(
    results: &'r [Recorded],
    selected: Option<&Selection<'_>>,
    input: &str,
) -> Result<(&'r Recorded, ObjectName), Failure> {
    if let [result] = results
        && result.automation().is_none()
    {
        let Some(selected) = selected else {
            return Err(Failure::Usage(format!(
                "the result in {input} has no automation, because the update had only policies: name the automation of \
                 the message with --name [NAMESPACE/]NAME"
            )));
        };
        return Ok((result, selected.within(DEFAULT_NAMESPACE)));
    }
    let known: Vec<(&Recorded, ObjectName)> =
        results.iter().filter_map(|result| Some((result, result.automation()?))).collect();
    let names: Vec<String> = known.iter().map(|(_, name)| name.to_string()).collect();
    let mut found = known
        .into_iter()
        .filter(|(_, name)| selected.is_none_or(|selected| selected.fits(name)))
        .collect::<Vec<_>>();
    match (found.pop(), found.is_empty(), selected) {
        (Some(one), true, _) => Ok(one),
        (Some(_), false, _) => Err(Failure::Usage(format!(
            "{input} holds the results of several automations ({}); choose one with --name NAMESPACE/NAME",
            names.join(", ")
        ))),
        (None, _, None) => Err(Failure::new(format!("{input} holds no result of an automation"))),
        (None, _, Some(selected)) => Err(Failure::Usage(format!(
            "--name {}: no automation of that name is in {input}; {}",
            selected.text,
            existing(&names)
        ))),
    }
}
