//! `tagboat update`: rewrite the marked values of a directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use kube::ResourceExt;
use tagboat_api::ImageUpdateAutomation;
use tagboat_api::settings::{AutomationSettings, PolicySettings, RepositorySettings};

use super::outcome::{AutomationName, Outcome, OutcomeKind};
use super::progress::ProgressLine;
use super::report::{self, Report};
use super::terminal::{Palette, print, say};
use super::{Failure, diff};
use crate::directory::{self, Directory, Lock};
use crate::objects::manifests::{self, Manifests};
use crate::reconcile::automation::request::{self, GivenImages, Request};
use crate::reference::ImageReference;
use crate::sentence::chain;
use crate::update::{FileEdit, PolicyName, ResultV2, UpdatePlan, plan};

/// Rewrite the marked values in a directory of YAML files
///
/// Reads ImagePolicies (and an ImageUpdateAutomation, if there is one) from manifest files, and writes each
/// policy's latest image where a marker names it. Only the bytes of the marked values change. Where an
/// automation is given, its namespace, policy selector and update path hold; otherwise every policy counts.
///
/// Exit status: 0 done (markers that could not be resolved and files that could not be read are reported, and
/// do not count as failures unless --strict is given), 1 something failed or a manifest could not be read,
/// 2 wrong usage.
#[derive(Debug, Args)]
#[command(override_usage = "tagboat update <DIR> --policies <PATH>... [OPTIONS]")]
pub(super) struct UpdateArguments {
    /// The directory whose files to rewrite
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,

    /// Manifests: files, directories, or - for standard input
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    pub(super) policies: Vec<PathBuf>,

    /// Which automation to carry out, where the manifests hold several
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub(super) automation: Option<String>,

    /// A policy's latest image, such as web=ghcr.io/org/web:1.2; counts more than its status
    #[arg(long, value_name = "[NAMESPACE/]NAME=IMAGE")]
    pub(super) latest: Vec<String>,

    /// Write nothing and print a unified diff
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Fail when a marker cannot be resolved or a marked file cannot be read
    #[arg(long)]
    pub(super) strict: bool,

    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    pub(super) output: OutputFormat,
}

/// How to print a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

pub(super) fn run(arguments: &UpdateArguments) -> Result<(), Failure> {
    let mut outcome = Outcome::new(None);
    let (text, done) = match update(arguments, &mut outcome) {
        Ok(text) => (text, finish(arguments, &outcome)),
        Err(Failure::Failed(sentences)) => {
            let sentences: Vec<String> =
                sentences.into_iter().map(|sentence| prefixed(&outcome, &sentence)).collect();
            outcome.outcome = OutcomeKind::Failed;
            outcome.errors.clone_from(&sentences);
            outcome.message = outcome.automation.is_some().then(|| sentences.join("; "));
            (String::new(), Err(failed(&outcome, sentences)))
        }
        Err(other) => return Err(other),
    };
    let text = if arguments.output == OutputFormat::Json { to_json(&outcome) } else { text };
    Failure::after(print(&text), done)
}

/// Turns what was said into an exit status.
fn finish(arguments: &UpdateArguments, outcome: &Outcome) -> Result<(), Failure> {
    if !outcome.errors.is_empty() {
        return Err(failed(outcome, outcome.errors.clone()));
    }
    let unresolved = outcome.markers.iter().filter(|marker| marker.worth_saying).count();
    let unreadable = outcome.unparsable.len();
    if arguments.strict && unresolved + unreadable > 0 {
        let sentence = format!(
            "--strict allows neither unresolved markers ({unresolved}) nor unreadable files ({unreadable})"
        );
        return Err(failed(outcome, vec![prefixed(outcome, &sentence)]));
    }
    Ok(())
}

/// A failure with sentences that [`prefixed`] made.
fn failed(outcome: &Outcome, sentences: Vec<String>) -> Failure {
    if outcome.automation.is_some() { Failure::FailedFor(sentences) } else { Failure::Failed(sentences) }
}

/// Puts the automation's name in front of a sentence.
fn prefixed(outcome: &Outcome, sentence: &str) -> String {
    match &outcome.automation {
        Some(AutomationName { namespace, name }) => format!("{namespace}/{name}: {sentence}"),
        None => sentence.to_owned(),
    }
}

fn to_json(outcome: &Outcome) -> String {
    let text = serde_json::to_string_pretty(outcome).expect("an outcome is plain JSON");
    format!("{text}\n")
}

/// Carries out the update, fills in the outcome and gives the report as text.
fn update(arguments: &UpdateArguments, outcome: &mut Outcome) -> Result<String, Failure> {
    let manifests = read_manifests(&arguments.policies)?;
    let automation = choose_automation(&manifests, arguments.automation.as_deref())?;
    let given = given_images(&arguments.latest, &manifests, automation)?;
    outcome.automation = automation.map(name_of);
    let request = make_request(automation, &manifests, &given)?;
    for unusable in &request.unusable {
        say(&format!("warning: {}", prefixed(outcome, &unusable.to_string())));
    }
    warn_of_idle_images(&request, &given);
    warn_of_empty_selection(automation, &manifests, &request, outcome);
    outcome.set_request(&request);
    let directory = open(&arguments.directory)?;
    let lock = if arguments.dry_run { None } else { Some(lock(&arguments.directory)?) };
    let mut progress = ProgressLine::new();
    let plan = plan(&directory, &request.update, &mut |at| progress.show(at))
        .map_err(|error| Failure::new(format!("failed to apply policies: {}", chain(&error))))?;
    drop(progress);
    outcome.set_plan(&plan);
    let palette = Palette::for_output();
    let mut text = String::new();
    let mut result = plan.result.clone();
    if arguments.dry_run {
        let diff = diff::unified(&directory, &plan.edits).map_err(|error| Failure::new(chain(&error)))?;
        text.push_str(&diff::coloured(&diff, palette));
        if !diff.is_empty() {
            text.push('\n');
        }
        outcome.diff = Some(diff);
    } else {
        for failure in write(&directory, &plan.edits) {
            outcome.errors.push(prefixed(outcome, &failure.sentence));
            for file in failure.files {
                outcome.changes.remove(file);
                outcome.not_written.push(file.to_owned());
                result.file_changes.remove(file);
            }
        }
    }
    drop(lock);
    conclude(arguments, outcome, &plan, &result);
    let automation = outcome.automation.as_ref().map(|name| format!("{}/{}", name.namespace, name.name));
    let report = Report {
        automation,
        request: &request,
        plan: &plan,
        result: &result,
        is_dry_run: arguments.dry_run,
        not_written: outcome.not_written.len(),
    };
    text.push_str(&report::render(&report, palette));
    Ok(text)
}

fn conclude(arguments: &UpdateArguments, outcome: &mut Outcome, plan: &UpdatePlan, result: &ResultV2) {
    let (values, files) = (result.edits(), result.file_changes.len());
    let (kind, message) = if !outcome.errors.is_empty() {
        (OutcomeKind::Failed, outcome.errors.join("; "))
    } else if plan.edits.is_empty() {
        (OutcomeKind::Unchanged, "nothing to change".to_owned())
    } else if arguments.dry_run {
        (OutcomeKind::DryRun, format!("would change {values} values in {files} files"))
    } else {
        (OutcomeKind::Updated, format!("changed {values} values in {files} files"))
    };
    outcome.outcome = kind;
    outcome.message = outcome.automation.is_some().then_some(message);
}

fn read_manifests(paths: &[PathBuf]) -> Result<Manifests, Failure> {
    let manifests = manifests::read(paths)
        .map_err(|errors| Failure::Failed(errors.iter().map(|error| chain(error)).collect()))?;
    for note in &manifests.notes {
        say(&format!("warning: {note}"));
    }
    if manifests.policies().next().is_none() {
        say("warning: there is no ImagePolicy among the manifests");
    }
    for policy in manifests.policies() {
        if let Err(errors) = PolicySettings::from_annotations(policy.annotations()) {
            let name = policy_name(policy);
            say(&format!("warning: ImagePolicy {name}: {}", chain(&errors)));
        }
    }
    for repository in manifests.repositories() {
        if let Err(errors) = RepositorySettings::from_annotations(repository.annotations()) {
            let (namespace, name) = (repository.namespace().unwrap_or_default(), repository.name_any());
            say(&format!("warning: ImageRepository {namespace}/{name}: {}", chain(&errors)));
        }
    }
    Ok(manifests)
}

fn policy_name(policy: &tagboat_api::ImagePolicy) -> PolicyName {
    PolicyName { namespace: policy.namespace().unwrap_or_default(), name: policy.name_any() }
}

/// Understands `--latest`.
///
/// Where policies of several namespaces have the name, the one in the automation's namespace is meant: no other
/// could have an effect.
fn given_images(
    texts: &[String],
    manifests: &Manifests,
    automation: Option<&ImageUpdateAutomation>,
) -> Result<GivenImages, Failure> {
    let own_namespace = automation.and_then(ResourceExt::namespace);
    let is_own = |policy: &PolicyName| own_namespace.as_ref() == Some(&policy.namespace);
    let mut given = GivenImages::new();
    for text in texts {
        let (name, image) = text.split_once('=').ok_or_else(|| {
            Failure::Usage(format!("--latest {text:?} is not of the form [NAMESPACE/]NAME=IMAGE"))
        })?;
        let image = ImageReference::parse(image)
            .map_err(|error| Failure::Usage(format!("--latest {text:?}: {}", chain(&error))))?;
        let (namespace, name) = split_name(name);
        let fits = |policy: &PolicyName| {
            policy.name == name && namespace.is_none_or(|namespace| policy.namespace == namespace)
        };
        let mut found: Vec<PolicyName> = manifests.policies().map(policy_name).filter(fits).collect();
        if found.iter().any(is_own) {
            found.retain(is_own);
        }
        let policy = match found.as_slice() {
            [policy] => policy,
            [] => {
                let sentence = "no ImagePolicy of that name is among the manifests";
                return Err(Failure::Usage(format!("--latest {text:?}: {sentence}")));
            }
            [policy, other, ..] => {
                return Err(Failure::Usage(format!(
                    "--latest {text:?}: both {policy} and {other} have that name; say which by NAMESPACE/NAME"
                )));
            }
        };
        if given.insert(policy.clone(), image).is_some() {
            return Err(Failure::Usage(format!("--latest gives two images for {policy}; keep one")));
        }
    }
    Ok(given)
}

/// Says so when an automation selects no policy although there are some in its namespace.
fn warn_of_empty_selection(
    automation: Option<&ImageUpdateAutomation>,
    manifests: &Manifests,
    request: &Request,
    outcome: &Outcome,
) {
    let Some(automation) = automation.filter(|automation| automation.spec.policy_selector.is_some()) else {
        return;
    };
    let own = manifests.policies().filter(|policy| policy.namespace() == automation.namespace()).count();
    if own > 0 && request.update.setters.selected().next().is_none() {
        let sentence =
            format!("spec.policySelector selects none of the {own} ImagePolicies of its namespace");
        say(&format!("warning: {}", prefixed(outcome, &sentence)));
    }
}

/// Says which of the given images nobody asks for.
fn warn_of_idle_images(request: &Request, given: &GivenImages) {
    let selected: BTreeSet<&PolicyName> = request.update.setters.images().map(|(policy, _)| policy).collect();
    for policy in given.keys() {
        if !selected.contains(policy) {
            say(&format!(
                "warning: --latest for {policy} has no effect: the automation does not select the policy"
            ));
        }
    }
}

/// Splits `[NAMESPACE/]NAME`.
fn split_name(text: &str) -> (Option<&str>, &str) {
    text.split_once('/').map_or((None, text), |(namespace, name)| (Some(namespace), name))
}

fn choose_automation<'m>(
    manifests: &'m Manifests,
    wanted: Option<&str>,
) -> Result<Option<&'m ImageUpdateAutomation>, Failure> {
    let fits = |automation: &&ImageUpdateAutomation| {
        let (namespace, name) = split_name(wanted.unwrap_or_default());
        wanted.is_none()
            || (automation.name_any() == name
                && namespace.is_none_or(|namespace| automation.namespace().as_deref() == Some(namespace)))
    };
    let found: Vec<_> = manifests.automations().filter(fits).collect();
    let names = |automations: &[&ImageUpdateAutomation]| {
        let names: Vec<String> = automations.iter().map(|found| full_name(found)).collect();
        names.join(", ")
    };
    match (found.as_slice(), wanted) {
        ([], None) => Ok(None),
        ([one], _) => Ok(Some(one)),
        ([], Some(wanted)) => {
            let all: Vec<_> = manifests.automations().collect();
            let there = if all.is_empty() { "none".to_owned() } else { names(&all) };
            Err(Failure::Usage(format!(
                "--automation {wanted}: no ImageUpdateAutomation of that name is among the manifests; there is {there}"
            )))
        }
        (several, _) => Err(Failure::Usage(format!(
            "the manifests hold several ImageUpdateAutomations ({}); say which by --automation NAMESPACE/NAME",
            names(several)
        ))),
    }
}

fn name_of(automation: &ImageUpdateAutomation) -> AutomationName {
    AutomationName { namespace: automation.namespace().unwrap_or_default(), name: automation.name_any() }
}

fn full_name(automation: &ImageUpdateAutomation) -> String {
    let AutomationName { namespace, name } = name_of(automation);
    format!("{namespace}/{name}")
}

fn make_request(
    automation: Option<&ImageUpdateAutomation>,
    manifests: &Manifests,
    given: &GivenImages,
) -> Result<Request, Failure> {
    let Some(automation) = automation else {
        return Ok(request::of_policies_alone(manifests.policies(), given));
    };
    AutomationSettings::from_annotations(automation.annotations())
        .map_err(|errors| Failure::new(chain(&errors)))?;
    if automation.spec.suspend {
        say(&format!("warning: {} is suspended; it is carried out all the same", full_name(automation)));
    }
    request::of_automation(automation, manifests.policies(), given)
        .map_err(|error| Failure::new(chain(&error)))
}

fn open(path: &Path) -> Result<Directory, Failure> {
    Directory::open(path)
        .map_err(|error| Failure::new(format!("cannot read the directory {}: {error}", path.display())))
}

fn lock(path: &Path) -> Result<Lock, Failure> {
    Lock::take(path).map_err(|error| Failure::new(chain(&error)))
}

/// Files that could not be written, and why.
struct WriteFailure<'p> {
    files: Vec<&'p str>,
    sentence: String,
}

/// Writes the edits, each file for itself; a full disk ends it, for nothing further would fit.
fn write<'p>(directory: &Directory, edits: &'p [FileEdit]) -> Vec<WriteFailure<'p>> {
    directory::sweep(directory, edits);
    let mut failures = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let Err(error) = directory::write_edit(directory, edit) else { continue };
        let sentence = chain(&error);
        if error.is_disk_full() {
            let files: Vec<&str> = edits[index..].iter().map(|edit| edit.key.as_str()).collect();
            let sentence = format!("{sentence}; {} more files were left as they are", files.len() - 1);
            failures.push(WriteFailure { files, sentence });
            break;
        }
        failures.push(WriteFailure { files: vec![&edit.key], sentence });
    }
    failures
}
