//! `tagboat crds`, `rbac`, `schema` and `completions`: output generated from tables and types.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use clap_complete::Shell;
use tagboat_api::crds::CrdFile;
use tagboat_go_text::Regexp;

use super::Failure;
use super::explain::{AutomationExplanation, PolicyExplanation};
use super::history::HistoryDocument;
use super::outcome::Outcome;
use super::terminal::print;
use crate::permissions::{self, RoleFile};

/// Print the CustomResourceDefinitions of the kinds that Tagboat serves
///
/// In a cluster with Flux, Flux applies them.
#[derive(Debug, Args)]
pub(super) struct CrdsArguments {
    /// Write them as files below DIR instead of printing them
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,

    /// Print the one of DeploymentStatus instead, which reports rollouts and is not Flux's
    #[arg(long)]
    rollout: bool,

    /// Print the one of NodePool instead, which rolls out images of nodes
    #[arg(long, conflicts_with = "rollout")]
    nodes: bool,
}

pub(super) fn crds(arguments: &CrdsArguments) -> Result<(), Failure> {
    let files = match arguments {
        CrdsArguments { rollout: true, .. } => vec![tagboat_api::crds::rollout_file()],
        CrdsArguments { nodes: true, .. } => vec![tagboat_api::crds::nodes_file()],
        _ => tagboat_api::crds::files(),
    };
    let Some(directory) = &arguments.write else {
        let texts: Vec<String> = files.into_iter().map(|file| file.text).collect();
        return Ok(print(&texts.concat())?);
    };
    files.iter().try_for_each(|CrdFile { path, text }| write(directory, path, text))
}

/// Print the roles that the controller needs, each rule with its reason
///
/// If Tagboat replaces Flux's image controllers, their roles are sufficient, except for reports of rollouts.
#[derive(Debug, Args)]
pub(super) struct RbacArguments {
    /// Write the chosen ones, or else all and those of the chart, below DIR
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,

    /// Print the role for reports of rollouts instead, which is optional and not Flux's
    #[arg(long)]
    rollout: bool,

    /// Print the roles for NodePools instead, of the controller and of the agent
    #[arg(long, conflicts_with = "rollout")]
    nodes: bool,

    /// The value of `tagboat controller --watch-label-selector`; the names of the Leases depend on it
    #[arg(long, value_name = "SELECTOR", conflicts_with_all = ["rollout", "nodes"])]
    watch_label_selector: Option<String>,
}

pub(super) fn rbac(arguments: &RbacArguments) -> Result<(), Failure> {
    let selector = arguments.watch_label_selector.as_deref().filter(|text| !text.is_empty());
    if let Some(selector) = selector.filter(|selector| !is_selector(selector)) {
        return Err(Failure::Usage(format!(
            "--watch-label-selector {selector:?} cannot be used: write requirements such as KEY=VALUE, separated by commas"
        )));
    }
    let files = permissions::files(selector);
    let folder = match arguments {
        RbacArguments { rollout: true, .. } => "rollout/",
        RbacArguments { nodes: true, .. } => "nodes/",
        // Without a choice, all files are written, and the roles of every installation are printed.
        RbacArguments { write: Some(_), .. } => "",
        _ => "rbac/",
    };
    let mut chosen = files.iter().filter(|file| file.path.starts_with(folder));
    let Some(directory) = &arguments.write else {
        let texts: Vec<&str> = chosen.map(|file| file.text.as_str()).collect();
        return Ok(print(&texts.join("---\n"))?);
    };
    chosen.try_for_each(|RoleFile { path, text }| write(directory, path, text))
}

/// Returns true for text in the form of a label selector: requirements, separated by commas.
///
/// The API server checks keys and values; no cluster takes part here.
fn is_selector(text: &str) -> bool {
    let key = "[A-Za-z0-9][-A-Za-z0-9_./]*";
    let comparison = format!(r"{key}\s*(?:==?|!=|<|>)\s*[-A-Za-z0-9_.]*");
    let requirement = format!(r"(?:!?\s*{key}|{comparison}|{key}\s+(?:not)?in\s*\([^()]*\))");
    let selector = format!(r"^\s*{requirement}(?:\s*,\s*{requirement})*\s*$");
    let selector = Regexp::compile_within(&selector, 1 << 20).expect("the expression is valid");
    selector.is_match(text.as_bytes())
}

/// Writes a file below `directory`, and creates the directories above it.
fn write(directory: &Path, path: &str, text: &str) -> Result<(), Failure> {
    if directory.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(Failure::new(format!("--write {}: it is not a directory", directory.display())));
    }
    let path = directory.join(path);
    let written =
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text));
    written.map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}

/// Print the JSON schema of what `--output json` prints
#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    /// The document
    #[arg(value_name = "DOCUMENT", value_enum, default_value_t = Document::Outcome)]
    document: Document,
}

/// A document with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Document {
    /// The output of `tagboat update` and `tagboat run`
    Outcome,
    /// The output of `tagboat history`
    History,
    /// The output of `tagboat explain policy`
    ExplainPolicy,
    /// The output of `tagboat explain automation`
    ExplainAutomation,
}

pub(super) fn schema(arguments: &SchemaArguments) -> Result<(), Failure> {
    let schema = match arguments.document {
        Document::Outcome => schemars::schema_for!(Outcome),
        Document::History => schemars::schema_for!(HistoryDocument),
        Document::ExplainPolicy => schemars::schema_for!(PolicyExplanation),
        Document::ExplainAutomation => schemars::schema_for!(AutomationExplanation),
    };
    let text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    Ok(print(&format!("{text}\n"))?)
}

/// Print completions for a shell
///
/// For example: `tagboat completions bash > /etc/bash_completion.d/tagboat`
#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

pub(super) fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::command(), "tagboat", &mut text);
    Ok(print(&String::from_utf8_lossy(&text))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_of_every_operator_are_a_selector() {
        for text in [
            "a",
            "!a",
            "a=b",
            " a == b , c != d",
            "sharding.fluxcd.io/key=shard1",
            "a=",
            "a in (b, c),d notin (e)",
            "a>1",
        ] {
            assert!(is_selector(text), "{text}");
        }
        for text in ["!!", "=a", "a=b,", ",a", "a b", "shard in shard1", "a=b=c", "a in (b"] {
            assert!(!is_selector(text), "{text}");
        }
    }
}
