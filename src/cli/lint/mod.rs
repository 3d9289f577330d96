//! `tagboat lint`: checks manifests, markers and templates.

use std::path::PathBuf;

use clap::Args;

use super::Failure;
use super::output::{OutputFormat, to_json};
use super::terminal::{Palette, count, print, say};
use crate::lint::{Finding, Report, lint};
use crate::printable::printable;

mod sources;

/// Check manifests, markers and templates for mistakes
///
/// Reads YAML files (and templates of commit messages, if PATH names them), and reports unknown fields and annotations,
/// invalid values, templates that fail on sample data or use removed fields, markers without a policy, and policies
/// without a marker. Give all related paths at once: a marker may name a policy of any of them.
///
/// Each finding is one line: FILE:LINE:COLUMN: RULE: SENTENCE. docs/lint.md describes the rules.
///
/// Exit status: 0 nothing found, 1 findings (a file that cannot be read is one), 2 wrong usage (a path that does not
/// exist is one).
#[derive(Debug, Args)]
pub(super) struct LintArguments {
    /// Files, directories (all YAML files below them), or - for standard input; a file named *.tmpl, *.gotmpl, *.hbs
    /// or *.handlebars is a template
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// The format of the findings
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

pub(super) fn run(arguments: &LintArguments) -> Result<(), Failure> {
    let sources = sources::collect(&arguments.paths)?;
    for warning in &sources.warnings {
        say(&format!("warning: {warning}"));
    }
    let report = lint(&sources.files);
    let text = match arguments.output {
        OutputFormat::Text => text(&report.findings, Palette::for_output()),
        OutputFormat::Json => to_json(&report.findings),
    };
    let printed = print(&text);
    summarize(&report, sources.number());
    let done = if report.findings.is_empty() { Ok(()) } else { Err(Failure::Failed(Vec::new())) };
    Failure::after(printed, done)
}

fn text(findings: &[Finding], palette: Palette) -> String {
    let mut text = String::new();
    for Finding { file, location, rule, message } in findings {
        let location = format!("{}:{}:{}", printable(file), location.line, location.column);
        let Palette { location: colour, reset, .. } = palette;
        text.push_str(&format!("{colour}{location}{reset}: {}: {}\n", rule.name(), one_line(message)));
    }
    text
}

/// Returns a sentence on one line: text of a file must not start another line.
fn one_line(message: &str) -> String {
    printable(&message.replace('\t', " ")).into_owned()
}

fn summarize(report: &Report, files: usize) {
    if report.lacks_policies {
        say(
            "hint: there is no ImagePolicy in the files, so no marker can be looked up; add the path of the policies",
        );
    }
    let found = match report.findings.len() {
        0 => "nothing found".to_owned(),
        number => count(number, "finding"),
    };
    say(&format!("{found}; {} read", count(files, "file")));
}
