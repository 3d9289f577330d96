//! `tagboat explain policy`: which tag a policy chooses, and why not another.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::ImagePolicy;
use tagboat_api::settings::PolicySettings;

use super::report::{self, ExplainedTag, Explanation, SubjectName};
use super::tags::TagSource;
use crate::cli::Failure;
use crate::cli::given::{policy_name, split_name};
use crate::cli::inputs::{read_manifests, secret_directory};
use crate::cli::registry_login::RegistryLogin;
use crate::cli::terminal::{Palette, print, say};
use crate::cli::update::{OutputFormat, to_json};
use crate::objects::manifests::{ManifestStore, Manifests};
use crate::policy::{Ages, Birth, Policy, Selection, SelectionError};
use crate::reference::TagList;
use crate::sentence::chain;

/// How soon Flux looks again where no tags are stored yet: the default of its --requeue-dependency.
const REQUEUE_DEPENDENCY: &str = "30s";

/// Say which tag an ImagePolicy chooses, and why each other tag lost
///
/// The policy is read from manifests, and the tags from the registry of its ImageRepository, or from a file. Every tag
/// is listed: those in the contest from the best to the last, then the others.
///
/// Exit status: 0 a tag won, 1 none did or something could not be read, 2 wrong usage.
#[derive(Debug, Args)]
#[command(override_usage = "tagboat explain policy <NAME> --policies <PATH>... [OPTIONS]")]
pub(super) struct PolicyArguments {
    /// The policy's name
    #[arg(value_name = "NAME")]
    name: String,

    /// Manifests: files, directories, or - for standard input
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    policies: Vec<PathBuf>,

    /// The policy's namespace, where policies of several namespaces have the name
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// The tags to choose from, one a line, or - for standard input; no ImageRepository is needed then
    #[arg(long, value_name = "FILE")]
    tags: Option<PathBuf>,

    /// A secret that the ImageRepository names, as a directory with one file a key; counts more than one among the
    /// manifests
    #[arg(long, value_name = "[NAMESPACE/]NAME=DIR")]
    secret: Vec<String>,

    /// Who logs in to the registry: the secrets, or you, with the logins of docker's config.json
    #[arg(long, value_name = "WHO", value_enum, default_value_t = RegistryLogin::Secrets)]
    registry_login: RegistryLogin,

    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

pub(super) fn run(arguments: &PolicyArguments) -> Result<(), Failure> {
    let login = arguments.registry_login;
    let source = TagSource::choose(arguments.tags.as_deref(), &arguments.policies, login)?;
    let secrets = arguments.secret.iter().map(|text| secret_directory(text)).collect::<Result<_, _>>()?;
    let store = ManifestStore { manifests: read_manifests(&arguments.policies)?, secrets, state: None };
    let object = find(&store.manifests, &arguments.name, arguments.namespace.as_deref())?;
    let tags = source.read(&store, object)?;
    let explanation = explain(object, &tags);
    let text = match arguments.output {
        OutputFormat::Json => to_json(&explanation),
        OutputFormat::Text => report::render(&explanation, Palette::for_output()),
    };
    let done = match &explanation.error {
        None => Ok(()),
        Some(error) => Err(Failure::FailedFor(vec![format!("{}: {error}", policy_name(object))])),
    };
    Failure::after(print(&text), done)
}

/// The policy of that name, of which there may be one only.
fn find<'m>(
    manifests: &'m Manifests,
    name: &str,
    namespace: Option<&str>,
) -> Result<&'m ImagePolicy, Failure> {
    let (own_namespace, plain_name) = split_name(name);
    if let (Some(one), Some(other)) = (own_namespace, namespace)
        && one != other
    {
        return Err(Failure::Usage(format!("{name} is not in the namespace {other} of --namespace")));
    }
    let namespace = namespace.or(own_namespace);
    let fits = |policy: &&ImagePolicy| {
        policy.name_any() == plain_name
            && namespace.is_none_or(|namespace| policy.namespace().as_deref() == Some(namespace))
    };
    let found: Vec<&ImagePolicy> = manifests.policies().filter(fits).collect();
    match found.as_slice() {
        [policy] => {
            if policy.spec.suspend {
                say(&format!("warning: {} is suspended; it is explained all the same", policy_name(policy)));
            }
            Ok(policy)
        }
        [] => {
            let all: Vec<String> =
                manifests.policies().map(|policy| policy_name(policy).to_string()).collect();
            let there = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
            let place =
                namespace.map(|namespace| format!(" in the namespace {namespace}")).unwrap_or_default();
            Err(Failure::Usage(format!(
                "no ImagePolicy {plain_name} is among the manifests{place}; there is {there}"
            )))
        }
        several => {
            let names: Vec<String> = several.iter().map(|policy| policy_name(policy).to_string()).collect();
            Err(Failure::Usage(format!("{} have that name; say which by --namespace", names.join(" and "))))
        }
    }
}

/// What a policy makes of the tags; an error is worded as its condition would have it.
fn explain(object: &ImagePolicy, tags: &TagList) -> Explanation {
    let name = policy_name(object);
    let mut explanation = Explanation {
        policy: SubjectName { namespace: name.namespace, name: name.name },
        latest: None,
        error: None,
        tags: Vec::new(),
        has_values: false,
    };
    // How old the tags of a file are is not known.
    let ages = Ages { now: Timestamp::now(), birth: &|_| Birth::default() };
    let policy = PolicySettings::from_annotations(object.annotations())
        .map_err(|errors| chain(&errors))
        .and_then(|settings| Policy::new(&object.spec, settings).map_err(|error| chain(&error)));
    let judged = policy.and_then(|policy| {
        let selection = policy.select(tags, ages).map_err(|error| chain(&error))?;
        explanation.latest = selection.latest().map(str::to_owned);
        explanation.has_values = selection.has_values();
        explanation.tags = explained_tags(&selection);
        selection.error().map_or(Ok(()), |error| Err(condition_text(error)))
    });
    explanation.error = judged.err();
    explanation
}

fn explained_tags(selection: &Selection<'_, '_>) -> Vec<ExplainedTag> {
    let explained = selection.verdicts().iter().map(|verdict| ExplainedTag {
        tag: verdict.tag.to_owned(),
        value: verdict.value.as_deref().map(str::to_owned),
        outcome: verdict.outcome.as_str(),
        reason: selection.reason(verdict),
    });
    explained.collect()
}

fn condition_text(error: &SelectionError) -> String {
    match error {
        SelectionError::NoTags => format!("retrying in {REQUEUE_DEPENDENCY} error: {error}"),
        error => error.to_string(),
    }
}
