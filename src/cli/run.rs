//! `tagboat run`: carry out automations on their git repositories, once.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::{GitRepository, ImageUpdateAutomation};

use super::choice::{choose_automation, full_name, name_of};
use super::given::{given_images, split_name};
use super::inputs::read_manifests;
use super::outcome::{Outcome, OutcomeKind, Outcomes};
use super::report::{self, Deed, Report};
use super::size::ByteSize;
use super::terminal::{Palette, print, printable, say};
use super::update::{OutputFormat, prefixed, to_json};
use super::warnings::{warn_of_empty_selection, warn_of_idle_images, warn_of_template};
use super::{Failure, diff};
use crate::git::{self, CommitTime, PrivateDirectory, Surroundings, SyncError, Writer, WriterOptions};
use crate::objects::Objects;
use crate::objects::manifests::{ManifestStore, Manifests, SecretDirectory, StateDirectory};
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::login::LoginOptions;
use crate::reconcile::automation::proposal::UpdateProposal;
use crate::reconcile::automation::request::Request;
use crate::reconcile::automation::run::Run;
use crate::reconcile::automation::source::CrossNamespace;
use crate::reconcile::automation::transaction::{self, Prepared, TransactionOptions};
use crate::sentence::chain;
use crate::update::{Setters, UpdatePlan};

/// The annotation by which a person asks for a run.
const REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";

/// How often everything is begun anew when others push faster than a transaction may try.
const ROUNDS: u32 = 16;

/// Carry out automations on their git repositories, once
///
/// Reads ImageUpdateAutomations, GitRepositories, ImagePolicies and Secrets from manifest files, updates the marked
/// values in each repository without checking it out, and pushes one commit for each automation that has something to
/// change.
///
/// Exit status: 0 done (markers that could not be resolved and files that could not be read are reported), 1 an
/// automation failed or a manifest could not be read, 2 wrong usage.
#[derive(Debug, Args)]
#[command(override_usage = "tagboat run <PATH>... [OPTIONS]")]
pub(super) struct RunArguments {
    /// Manifests: files, directories, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    pub(super) manifests: Vec<PathBuf>,

    /// Carry out this automation only
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub(super) automation: Option<String>,

    /// A policy's latest image, such as web=ghcr.io/org/web:1.2; counts more than its status
    #[arg(long, value_name = "[NAMESPACE/]NAME=IMAGE")]
    pub(super) latest: Vec<String>,

    /// Commit nothing and print a unified diff
    #[arg(long)]
    pub(super) dry_run: bool,

    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    pub(super) output: OutputFormat,

    /// Where to keep mirrors and the status of each object, so that the next run costs only what is new
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,

    /// A secret as a directory with one file a key; counts more than one among the manifests
    #[arg(long, value_name = "[NAMESPACE/]NAME=DIR")]
    pub(super) secret: Vec<String>,

    /// Who logs in to git servers: the secrets, or your own set-up of git (credential helpers, SSH agent)
    #[arg(long, value_name = "WHO", value_enum, default_value_t = GitLogin::Secrets)]
    pub(super) git_login: GitLogin,

    /// The size that the mirror of one repository may have
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    pub(super) mirror_max_size: ByteSize,
}

/// Who logs in to git servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum GitLogin {
    /// The secrets that the GitRepositories name.
    Secrets,
    /// The caller's own set-up of git.
    User,
}

pub(super) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let inputs = Inputs::read(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot begin: {error}")))?;
    let works = runtime.block_on(carry_out(&inputs, arguments.dry_run));
    let palette = Palette::for_output();
    let text = match arguments.output {
        OutputFormat::Text => {
            let texts: Vec<String> = works.iter().filter_map(|work| work.to_text(palette)).collect();
            texts.join("\n")
        }
        OutputFormat::Json => {
            to_json(&Outcomes { automations: works.iter().map(|work| &work.outcome).collect() })
        }
    };
    let errors: Vec<String> = works.into_iter().flat_map(|work| work.outcome.errors).collect();
    let done = if errors.is_empty() { Ok(()) } else { Err(Failure::FailedFor(errors)) };
    Failure::after(print(&text), done)
}

/// What the command line asks for, read and checked.
struct Inputs {
    store: ManifestStore,
    automations: Vec<ImageUpdateAutomation>,
    /// The full names of automations whose source is another than in their last run that succeeded.
    with_new_source: Vec<String>,
    started: Timestamp,
    options: TransactionOptions,
    mirrors: Mirrors,
}

/// Where mirrors are.
enum Mirrors {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Inputs {
    fn read(arguments: &RunArguments) -> Result<Self, Failure> {
        let secrets = arguments.secret.iter().map(|text| secret_directory(text)).collect::<Result<_, _>>()?;
        let manifests = read_manifests(&arguments.manifests)?;
        let mut automations: Vec<ImageUpdateAutomation> = manifests.automations().cloned().collect();
        if let Some(wanted) = &arguments.automation {
            automations = choose_automation(&manifests, Some(wanted))?.cloned().into_iter().collect();
        }
        if automations.is_empty() {
            return Err(Failure::new("there is no ImageUpdateAutomation among the manifests"));
        }
        let chosen: Vec<&ImageUpdateAutomation> = automations.iter().collect();
        let given = given_images(&arguments.latest, &manifests, &chosen)?;
        let state = arguments.state.as_deref().map(StateDirectory::new);
        let mut with_new_source = Vec::new();
        if let Some(state) = &state {
            let failed = |error: std::io::Error| {
                let place = arguments.state.as_deref().unwrap_or(Path::new("")).display();
                Failure::new(format!("cannot read the state in {place}: {error}"))
            };
            for automation in &mut automations {
                state.recall(automation).map_err(failed)?;
                if let Some(source) = source_of(automation, &manifests)
                    && state.has_other_source(automation, source).map_err(failed)?
                {
                    with_new_source.push(full_name(automation));
                }
            }
        } else {
            for automation in &mut automations {
                automation.status = None;
            }
        }
        let mirrors = match &arguments.state {
            Some(state) => Mirrors::Kept(state.join("mirrors")),
            None => Mirrors::Temporary(tempfile::Builder::new().prefix("tagboat-").tempdir().map_err(
                |error| Failure::new(format!("cannot make a temporary directory for mirrors: {error}")),
            )?),
        };
        let here = std::env::current_dir()
            .map_err(|error| Failure::new(format!("cannot tell the current directory: {error}")))?;
        let options = TransactionOptions {
            given,
            cross_namespace: CrossNamespace::Allowed,
            login: LoginOptions {
                local_paths: Some(here),
                is_of_the_user: arguments.git_login == GitLogin::User,
                surroundings: Surroundings::of_this_process(),
                mirror_size: arguments.mirror_max_size.0,
            },
            time: CommitTime::now(),
            wants_diff: arguments.dry_run,
            is_forced: false,
        };
        let store = ManifestStore { manifests, secrets, state };
        Ok(Self { store, automations, with_new_source, started: Timestamp::now(), options, mirrors })
    }
}

/// The GitRepository that an automation works on, if it is among the manifests.
fn source_of<'m>(automation: &ImageUpdateAutomation, manifests: &'m Manifests) -> Option<&'m GitRepository> {
    let own = automation.namespace().unwrap_or_default();
    let reference = &automation.spec.source_ref;
    manifests.git_repository(reference.effective_namespace(&own), &reference.name)
}

/// Understands `--secret`.
fn secret_directory(text: &str) -> Result<SecretDirectory, Failure> {
    let (name, directory) = text
        .split_once('=')
        .filter(|(name, directory)| !name.is_empty() && !directory.is_empty())
        .ok_or_else(|| {
            Failure::Usage(format!("--secret {text:?} is not of the form [NAMESPACE/]NAME=DIR"))
        })?;
    let (namespace, name) = split_name(name);
    Ok(SecretDirectory {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        directory: directory.into(),
    })
}

/// One automation's run, as far as it has come.
struct Work<'i> {
    automation: &'i ImageUpdateAutomation,
    outcome: Outcome,
    setters: Setters,
    plan: Option<UpdatePlan>,
    is_done: bool,
}

/// Runs all automations; those that share a repository and a branch share a transaction.
async fn carry_out(inputs: &Inputs, is_rehearsal: bool) -> Vec<Work<'_>> {
    PrivateDirectory::sweep();
    let mirrors = match &inputs.mirrors {
        Mirrors::Kept(path) => path.clone(),
        Mirrors::Temporary(directory) => directory.path().to_owned(),
    };
    let writer = Writer::new(WriterOptions { mirrors, is_rehearsal });
    let mut works: Vec<Work<'_>> = inputs.automations.iter().map(Work::new).collect();
    for round in 0..ROUNDS {
        let (mut waiting, mut requests, mut policies) = (Vec::new(), Vec::new(), Vec::new());
        for (index, work) in works.iter_mut().enumerate().filter(|(_, work)| !work.is_done) {
            match work.prepare(inputs, round == 0).await {
                Ok(prepared) => {
                    waiting.push(index);
                    requests.push(prepared.request);
                    policies.push(prepared.policies);
                }
                Err(conclusion) => work.conclude(&conclusion, inputs, is_rehearsal).await,
            }
        }
        let receivers = writer.submit(requests);
        for ((index, policies), receiver) in waiting.into_iter().zip(policies).zip(receivers) {
            let answer = receiver.await.expect("the writer answers every request");
            let is_overtaken = matches!(&answer.result,
                Err(git::Failure::Sync(error)) if matches!(**error, SyncError::Overtaken { .. }));
            if is_overtaken && round + 1 < ROUNDS {
                continue;
            }
            let (conclusion, proposal) = transaction::conclude(answer, policies);
            works[index].take(proposal);
            works[index].conclude(&conclusion, inputs, is_rehearsal).await;
        }
        if works.iter().all(|work| work.is_done) {
            break;
        }
    }
    works
}

impl<'i> Work<'i> {
    fn new(automation: &'i ImageUpdateAutomation) -> Self {
        let mut outcome = Outcome::new(Some(name_of(automation)));
        let is_done = automation.spec.suspend;
        if is_done {
            outcome.outcome = OutcomeKind::Skipped;
            outcome.message = Some("the automation is suspended".to_owned());
        }
        Self { automation, outcome, setters: Setters::default(), plan: None, is_done }
    }

    /// Gets as far as the writer's request.
    async fn prepare(&mut self, inputs: &Inputs, is_first: bool) -> Result<Prepared, Conclusion> {
        let given = &inputs.options.given;
        let selected = transaction::select(&inputs.store, self.automation, given).await?;
        let request = &selected.request;
        if is_first {
            self.warn(request, inputs);
        }
        self.outcome.set_request(request);
        self.setters = request.update.setters.clone();
        let is_forced = self.is_new_here() || self.has_new_source(inputs);
        let options = TransactionOptions { is_forced, ..inputs.options.clone() };
        transaction::prepare(&inputs.store, self.automation, selected, &options).await
    }

    /// Says what is odd about the automation and no error.
    fn warn(&self, request: &Request, inputs: &Inputs) {
        for unusable in &request.unusable {
            say(&format!("warning: {}", prefixed(&self.outcome, &unusable.to_string())));
        }
        warn_of_idle_images(request, &inputs.options.given);
        warn_of_empty_selection(Some(self.automation), &inputs.store.manifests, request, &self.outcome);
        warn_of_template(self.automation, &self.outcome);
    }

    /// Whether the automation has changed since its last run, or was asked for anew.
    fn is_new_here(&self) -> bool {
        let status = self.automation.status.as_ref();
        let observed = status.and_then(|status| status.observed_generation);
        observed != self.automation.metadata.generation
    }

    fn has_new_source(&self, inputs: &Inputs) -> bool {
        inputs.with_new_source.contains(&full_name(self.automation))
    }

    fn take(&mut self, proposal: UpdateProposal) {
        if let Some(plan) = proposal.plan {
            self.outcome.set_plan(&plan);
            self.plan = Some(plan);
        }
        self.outcome.diff = proposal.diff;
    }

    /// Takes over how the run ended, and keeps the status that it leads to.
    async fn conclude(&mut self, conclusion: &Conclusion, inputs: &Inputs, is_rehearsal: bool) {
        self.is_done = true;
        self.outcome.set_conclusion(conclusion);
        if is_rehearsal {
            return;
        }
        let run = Run {
            generation: self.automation.metadata.generation.unwrap_or(1),
            interval: self.automation.spec.interval.to_duration().unwrap_or_default(),
            requested_at: self.automation.annotations().get(REQUESTED_AT).cloned(),
            started: inputs.started,
        };
        let previous = self.automation.status.clone().unwrap_or_default();
        let report = run.report(&previous, conclusion, Timestamp::now());
        if let Err(error) = inputs.store.write_status(self.automation, &report.status).await {
            let sentence = prefixed(&self.outcome, &chain(&error));
            self.outcome.errors.push(sentence);
        }
        let source = source_of(self.automation, &inputs.store.manifests);
        if let (Conclusion::Success { .. }, Some(state), Some(source)) =
            (conclusion, &inputs.store.state, source)
            && let Err(error) = state.keep_source(self.automation, source)
        {
            let sentence = prefixed(&self.outcome, &format!("cannot keep the state: {error}"));
            self.outcome.errors.push(sentence);
        }
    }

    /// The report; none of a run that failed before it found anything, for why it failed is said elsewhere.
    fn to_text(&self, palette: Palette) -> Option<String> {
        let is_failed = self.outcome.outcome == OutcomeKind::Failed;
        if is_failed && self.plan.is_none() {
            return None;
        }
        let mut text = String::new();
        if let Some(diff) = self.outcome.diff.as_ref().filter(|diff| !diff.is_empty()) {
            text.push_str(&diff::coloured(diff, palette));
            text.push('\n');
        }
        let automation = full_name(self.automation);
        // Where no file was looked into there is nothing to report but why.
        text.push_str(&match &self.plan {
            None => report::heading(&automation, palette),
            Some(plan) => {
                let is_pushed = self.outcome.outcome == OutcomeKind::Pushed;
                let report = Report {
                    automation: Some(automation),
                    setters: &self.setters,
                    plan,
                    result: &plan.result,
                    deed: if is_pushed { Deed::Changed } else { Deed::WouldChange },
                    not_written: 0,
                };
                report::render(&report, palette)
            }
        });
        // The summary says what a dry run would do, and standard error what failed.
        let is_said = is_failed || self.outcome.outcome == OutcomeKind::DryRun;
        if let Some(message) = self.outcome.message.as_ref().filter(|_| !is_said) {
            text.push_str(&printable(message));
            text.push('\n');
        }
        Some(text)
    }
}
