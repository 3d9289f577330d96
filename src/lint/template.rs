//! Checks commit message templates on sample data, and for fields that Flux removed.

use std::collections::BTreeMap;

use tagboat_api::nearest::nearest;
use tagboat_api::settings::{PREFIX, TemplateLanguage};
use tagboat_api::{Kind, ObjectName};
use tagboat_go_template as go;

use super::finding::{Findings, Location, Rule};
use super::object::Object;
use crate::git::CommitError;
use crate::message::{MessageData, RemovedField, Template, TemplateError, TemplateErrorKind, presets};
use crate::yaml::tree::Content;
use crate::yaml::{Node, Style};

/// The name of every template, with which its errors begin.
const NAME: &str = "commit message";

/// The annotation that selects the language.
const LANGUAGE: &str = "template-language";

/// Checks the template of an automation in the file `source`.
pub(super) fn check_object(object: &Object<'_>, source: &str, findings: &mut Findings<'_>) {
    if object.kind != Kind::Automation {
        return;
    }
    let commit = object.node.at(&["spec", "git", "commit"]);
    let Some(node) = commit.and_then(|commit| commit.at(&["messageTemplate"])) else { return };
    let language = object.annotations().and_then(|fields| fields.text_at(&[&format!("{PREFIX}{LANGUAGE}")]));
    // A language that does not exist is a finding of its own.
    let Ok(language) = language.map_or(Ok(TemplateLanguage::default()), str::parse) else { return };
    let Some(text) = node.text().filter(|_| !node.is_null()) else { return };
    let values = commit.and_then(|commit| commit.at(&["messageTemplateValues"]));
    let values = values.map(Node::fields).unwrap_or_default();
    let values: BTreeMap<String, String> = values
        .into_iter()
        .filter_map(|field| Some((field.name.to_owned(), field.value.text()?.to_owned())))
        .collect();
    let name = ObjectName {
        namespace: object.namespace().unwrap_or("default").to_owned(),
        name: object.name().to_owned(),
    };
    let data = MessageData::sample().of_automation(&name).with_values(values);
    let location = |line, column| file_location(node, source, line, column);
    check(text, language, &data, &mut |rule, (line, column), sentence| {
        findings.add(location(line, column), rule, sentence);
    });
}

/// Checks a template file.
pub(super) fn check_file(content: &[u8], language: TemplateLanguage, findings: &mut Findings<'_>) {
    let Ok(text) = std::str::from_utf8(content) else { return };
    // The available values are unknown, so all that the template uses are defined.
    let mut values = MessageData::sample().values().clone();
    for name in named_values(text, language) {
        values.entry(name).or_insert_with(|| "value".to_owned());
    }
    let data = MessageData::sample().with_values(values);
    check(text, language, &data, &mut |rule, (line, column), sentence| {
        let before = text.lines().nth(line - 1).and_then(|line| line.get(..column?));
        let column = before.map_or(1, |before| before.chars().count() + 1);
        findings.add(Location { line, column }, rule, sentence);
    });
}

/// The members of `.Values` that a template uses.
fn named_values(text: &str, language: TemplateLanguage) -> Vec<String> {
    const VALUES: &str = "Values";
    if language == TemplateLanguage::Handlebars {
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let behind =
            text.match_indices(VALUES).filter_map(|(at, _)| text[at + VALUES.len()..].strip_prefix('.'));
        return behind.map(|rest| rest.chars().take_while(|c| is_name(*c)).collect()).collect();
    }
    let usages = go::Template::parse(NAME, text).map(|template| template.field_usages()).unwrap_or_default();
    let name = |field: go::FieldUsage| match field.path.as_slice() {
        [first, name, ..] if **first == *VALUES => Some(name.to_string()),
        _ => None,
    };
    usages.into_iter().filter_map(name).collect()
}

/// A position in a template: a line counted from 1, and a column if known.
///
/// The column is in bytes, counted from 0.
type Position = (usize, Option<usize>);

fn check(
    text: &str,
    language: TemplateLanguage,
    data: &MessageData,
    report: &mut dyn FnMut(Rule, Position, String),
) {
    match Template::compile(text, language) {
        Ok(template) => {
            let plain = || template.render(&plain_data(data));
            match template.render(data) {
                // An error that the simplest changes cause too is one of the template; any other may depend on the
                // values.
                Err(error) if plain().is_err() => {
                    let detail = error.detail();
                    let sentence = format!("the template fails on sample data: {detail}");
                    report(Rule::TemplateError, position(&detail), sentence);
                }
                Ok(message) if message.contains(&0) => {
                    let sentence = format!("the template fails on sample data: {}", CommitError::Message);
                    report(Rule::TemplateError, (1, None), sentence);
                }
                _ => {}
            }
            if let Some(preset) = near_preset(text) {
                let sentence = format!(
                    "the text names no preset and is itself the message; did you mean `{preset}`, without anything else?"
                );
                report(Rule::UnknownPreset, (1, None), sentence);
            }
        }
        Err(error) => {
            let detail = error.detail();
            let (rule, sentence) = match error {
                TemplateError::Invalid(TemplateErrorKind::UnknownPreset { .. }) => {
                    (Rule::UnknownPreset, detail.clone())
                }
                _ => (Rule::TemplateError, format!("the text is not a template: {detail}")),
            };
            return report(rule, position(&detail), sentence);
        }
    }
    if language != TemplateLanguage::Go {
        return;
    }
    let Ok(template) = go::Template::parse(NAME, text) else { return };
    for usage in template.field_usages() {
        let Some(removed) = removed(&usage) else { continue };
        let sentence = format!(
            "the template uses `{}`, which renders here, but which Flux has removed: from version 1.0 on its \
             controller stalls; use {}",
            removed.name(),
            removed.replacement()
        );
        report(Rule::RemovedTemplateField, (usage.line, Some(usage.column)), sentence);
    }
}

/// Replaces the changes by simple ones, each between two versions of an image.
fn plain_data(data: &MessageData) -> MessageData {
    MessageData::plain_sample().of_automation(data.automation()).with_values(data.values().clone())
}

/// Finds the preset that a text almost names.
///
/// It has wrong capitals, blanks or a byte-order mark.
pub(super) fn near_preset(text: &str) -> Option<String> {
    let bare = text.trim_start_matches('\u{feff}').trim();
    let (word, name) = bare.split_once(':')?;
    let name = name.trim().to_lowercase();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    if !word.trim().eq_ignore_ascii_case("preset")
        || !is_name
        || text.trim().starts_with("preset:") && !bare.contains(": ")
    {
        return None;
    }
    let names = || presets().iter().map(|preset| preset.name);
    let near = names().find(|known| *known == name).or_else(|| nearest(&name, names()));
    Some(format!("preset:{}", near.unwrap_or("NAME")))
}

/// The removed field used here, unless the dot already was inside it.
fn removed(usage: &go::FieldUsage) -> Option<RemovedField> {
    let before = usage.path.len() - usage.own;
    match usage.path.iter().map(|field| &**field).collect::<Vec<_>>().as_slice() {
        ["Updated", ..] if before < 1 => Some(RemovedField::Updated),
        ["Changed", "ImageResult", ..] if before < 2 => Some(RemovedField::ImageResult),
        _ => None,
    }
}

/// The position in an error: `template: commit message:LINE:COLUMN: …`.
fn position(detail: &str) -> Position {
    let numbers = detail.split_once(&format!("{NAME}:")).map_or("", |(_, rest)| rest);
    let mut parts = numbers.splitn(3, ':');
    let line = parts.next().and_then(|line| line.parse().ok()).unwrap_or(1);
    (line, parts.next().and_then(|column| column.parse().ok()))
}

/// Maps a position in a template to the file that contains it, if possible.
fn file_location(node: &Node, source: &str, line: usize, column: Option<usize>) -> Location {
    let whole = Location::of(node);
    let Content::Scalar { text, style, .. } = &node.content else { return whole };
    let first = match style {
        Style::Literal => first_line(node, source),
        // Other styles may join lines.
        _ if line == 1 => whole.line,
        _ => return whole,
    };
    let Some(of_template) = text.split('\n').nth(line - 1) else { return whole };
    let Some(of_file) = source.lines().nth(first + line - 2) else { return whole };
    let Some(before) = of_template.get(..column.unwrap_or(0)) else { return whole };
    let start = match style {
        Style::Literal if of_file.ends_with(of_template) => of_file.len() - of_template.len(),
        Style::Plain | Style::SingleQuoted | Style::DoubleQuoted if column.is_some() => {
            let skipped: usize = of_file.chars().take(whole.column - 1).map(char::len_utf8).sum();
            match of_file[skipped..].find(before) {
                Some(at) if at <= 1 => skipped + at,
                _ => return whole,
            }
        }
        _ => return whole,
    };
    Location { line: first + line - 1, column: of_file[..start].chars().count() + before.chars().count() + 1 }
}

/// The first line of a literal block's text; the span excludes blank lines before it.
fn first_line(node: &Node, source: &str) -> usize {
    let Some(text) = node.text() else { return node.line };
    let blank = text.split('\n').take_while(|line| line.is_empty()).count();
    let lines: Vec<&str> = source.lines().take(node.line.saturating_sub(1)).collect();
    let above = lines.iter().rev().take_while(|line| line.trim().is_empty()).count();
    node.line - blank.min(above)
}
