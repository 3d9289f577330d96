//! `tagboat explain policy`: explains the choice among tags.

use std::path::PathBuf;

use clap::Args;

use super::cluster::Cluster;
use super::explanation::Explainer;
use super::manifests::{InvalidPolicy, manifests};
use super::query::ObjectQuery;
use super::report::{self, Explanation};
use super::subject::{RepositoryLookup, Subject};
use super::tags::TagFile;
use crate::cli::Failure;
use crate::cli::cluster::ClusterArguments;
use crate::cli::inputs::{SECRET_ADVICE, read_manifests_in_part, secret_directory, secrets_of};
use crate::cli::output::{OutputFormat, to_json};
use crate::cli::registry_login::RegistryLogin;
use crate::cli::runtime;
use crate::cli::terminal::{Palette, print, say};
use crate::cli::warnings::warn_of_idle_secrets;
use crate::objects::manifests::ManifestStore;
use crate::objects::{ObjectName, Objects};

/// Say which tag an ImagePolicy chooses, and why each other tag lost
///
/// The policy is read from the cluster that kubectl uses, or from manifests (--policies). The tags come from the
/// registry of its ImageRepository, as it lists them now, or from a file (--tags). Every tag is listed: first the
/// candidates from best to worst, then the others.
///
/// Exit status: 0 a tag won, 1 none did or something could not be read, 2 wrong usage.
#[derive(Debug, Args)]
#[command(override_usage = "tagboat explain policy <NAME> [--policies <PATH>...] [OPTIONS]")]
pub(super) struct PolicyArguments {
    /// The policy's name
    #[arg(value_name = "NAME")]
    name: String,

    /// Manifests instead of a cluster: files, directories, or - for standard input
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["kubeconfig", "context"])]
    policies: Vec<PathBuf>,

    /// The policy's namespace; needed if several namespaces have a policy of this name
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,

    #[command(flatten)]
    cluster: ClusterArguments,

    /// The tags to choose from, one per line, or - for standard input; no ImageRepository is needed then
    #[arg(long, value_name = "FILE")]
    tags: Option<PathBuf>,

    /// With --policies, a Secret that the ImageRepository names, as a directory with one file per key; takes precedence
    /// over one among the manifests
    #[arg(long, value_name = "[NAMESPACE/]NAME=DIR", requires = "policies")]
    secret: Vec<String>,

    /// The source of registry logins
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t = RegistryLogin::Secrets)]
    registry_login: RegistryLogin,

    /// The format of the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

pub(super) fn run(arguments: &PolicyArguments) -> Result<(), Failure> {
    // Some calls of the cluster run on threads of their own.
    let runtime = runtime::single_threaded()?;
    runtime.block_on(explain(arguments))
}

async fn explain(arguments: &PolicyArguments) -> Result<(), Failure> {
    let tags =
        arguments.tags.as_deref().map(|path| TagFile::choose(path, &arguments.policies)).transpose()?;
    let query = ObjectQuery::new(&arguments.name, arguments.namespace.as_deref())?;
    if arguments.policies.is_empty() {
        let (subject, objects) = Cluster::subject(&arguments.cluster, &query, tags.is_some()).await?;
        return arguments.show(&subject, &objects, tags).await;
    }
    let secrets: Vec<_> =
        arguments.secret.iter().map(|text| secret_directory(text)).collect::<Result<_, _>>()?;
    let (readable, defects) = read_manifests_in_part(&arguments.policies, None);
    let store = ManifestStore { manifests: readable.into(), secrets, state: None, advice: SECRET_ADVICE };
    let subject = match manifests(&store.manifests, &defects, &query, tags.is_some())? {
        Ok(subject) => subject,
        Err(InvalidPolicy { name, sentences }) => {
            let mut explanation = Explanation::of(name);
            explanation.error = Some(sentences.join("; "));
            return arguments.print(&explanation, Err(Failure::Failed(sentences)));
        }
    };
    let named: Vec<ObjectName> = [&subject]
        .into_iter()
        .chain(&subject.members)
        .flat_map(|one| match &one.repository {
            RepositoryLookup::Found(repository) => {
                secrets_of(repository, &store.manifests, arguments.registry_login)
            }
            _ => Vec::new(),
        })
        .collect();
    let given: Vec<_> = arguments.secret.iter().map(String::as_str).zip(&store.secrets).collect();
    let reason = match tags {
        Some(_) => "with --tags no registry is read",
        None => "the policy's ImageRepository does not name it",
    };
    warn_of_idle_secrets(&given, &named, reason);
    arguments.show(&subject, &store, tags).await
}

impl PolicyArguments {
    /// Explains a policy and prints the explanation.
    async fn show(
        &self,
        subject: &Subject,
        objects: &impl Objects,
        tags: Option<TagFile<'_>>,
    ) -> Result<(), Failure> {
        let policy = &subject.policy;
        if policy.spec.suspend {
            say(&format!("warning: {} is suspended; explaining it anyway", ObjectName::of(policy)));
        }
        let explainer = Explainer { subject, objects, login: self.registry_login };
        let (explanation, done) = explainer.explain(tags).await?;
        self.print(&explanation, done)
    }

    fn print(&self, explanation: &Explanation, done: Result<(), Failure>) -> Result<(), Failure> {
        let text = match self.output {
            OutputFormat::Json => {
                explanation.notes.iter().for_each(|note| say(&format!("note: {note}")));
                to_json(explanation)
            }
            // Without tags there is nothing to print but the error.
            OutputFormat::Text if matches!(done, Err(Failure::Failed(_))) => String::new(),
            OutputFormat::Text => report::render(explanation, Palette::for_output()),
        };
        Failure::after(print(&text), done)
    }
}
