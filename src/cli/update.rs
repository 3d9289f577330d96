//! `tagboat update`: rewrite the marked values of a directory.

use std::path::{Path, PathBuf};

use clap::Args;
use kube::ResourceExt;
use tagboat_api::ImageUpdateAutomation;
use tagboat_api::settings::AutomationSettings;

use super::Failure;
use super::choice::{choose_automation, full_name, name_of};
use super::inputs::{read_manifests, warn_of_repository_settings, warn_of_settings};
use super::outcome::{Outcome, OutcomeKind};
use super::output::{OutputFormat, prefixed, to_json};
use super::overrides::image_overrides;
use super::progress::ProgressLine;
use super::reconcile_arguments::ReconcileArguments;
use super::report::{self, Report, ReportMode};
use super::terminal::{Palette, coloured, count, print, say};
use super::warnings::{warn_of_empty_selection, warn_of_idle_images, warn_of_wait};
use crate::directory::{self, Directory, Lock};
use crate::error::chain;
use crate::objects::manifests::Manifests;
use crate::reconcile::automation::request::{self, ImageOverrides, Request};
use crate::update::{self, MarkerIndex, ResultV2, Severity, UpdatePlan, plan};

/// Rewrite the marked values in a directory of YAML files
///
/// Reads ImagePolicies (and an ImageUpdateAutomation, if there is one) from manifest files, and writes the latest
/// image of each policy into the values whose markers name it. Only the bytes of these values change. The namespace,
/// policy selector and update path of the automation apply; without an automation, every policy counts.
///
/// Exit status: 0 done (unresolved markers and unreadable files are reported, and are failures with --strict only),
/// 1 something failed or a manifest could not be read, 2 wrong usage.
#[derive(Debug, Args)]
#[command(override_usage = "tagboat update <DIR> --policies <PATH>... [OPTIONS]")]
pub(super) struct UpdateArguments {
    /// The directory of the files to rewrite
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Manifests: files, directories, or - for standard input
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    policies: Vec<PathBuf>,

    #[command(flatten)]
    reconcile: ReconcileArguments,

    /// Fail if a marker cannot be resolved or a marked file cannot be read
    #[arg(long)]
    strict: bool,
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
    let text = if arguments.reconcile.output == OutputFormat::Json { to_json(&outcome) } else { text };
    Failure::after(print(&text), done)
}

/// Returns the failure of an outcome with errors or, with `--strict`, with warnings.
fn finish(arguments: &UpdateArguments, outcome: &Outcome) -> Result<(), Failure> {
    if !outcome.errors.is_empty() {
        return Err(failed(outcome, outcome.errors.clone()));
    }
    let unresolved = outcome.markers.iter().filter(|marker| marker.severity == Severity::Warning).count();
    let unreadable = outcome.unparsable.len();
    if arguments.strict && unresolved + unreadable > 0 {
        let sentence = format!(
            "--strict allows neither unresolved markers ({unresolved}) nor unreadable files ({unreadable})"
        );
        return Err(failed(outcome, vec![prefixed(outcome, &sentence)]));
    }
    Ok(())
}

/// Creates a failure with sentences that [`prefixed`] returned.
pub(super) fn failed(outcome: &Outcome, sentences: Vec<String>) -> Failure {
    if outcome.automation.is_some() { Failure::FailedFor(sentences) } else { Failure::Failed(sentences) }
}

/// Performs the update, fills in the outcome and returns the report as text.
fn update(arguments: &UpdateArguments, outcome: &mut Outcome) -> Result<String, Failure> {
    let manifests = read_manifests(&arguments.policies, None)?;
    manifests.policies().for_each(warn_of_settings);
    manifests.repositories().for_each(warn_of_repository_settings);
    let automation = choose_automation(&manifests, arguments.reconcile.automation.as_deref())?;
    let given = image_overrides(&arguments.reconcile.latest, &manifests, automation.as_slice())?;
    outcome.automation = automation.map(name_of);
    let request = make_request(automation, &manifests, &given)?;
    for unusable in &request.unusable {
        say(&format!("warning: {}", prefixed(outcome, &unusable.to_string())));
    }
    let setters = &request.update.setters;
    warn_of_idle_images(&given, 1, |policy| setters.selected().any(|(selected, _)| selected == policy));
    warn_of_empty_selection(automation, &manifests, &request, outcome);
    outcome.set_request(&request);
    let directory = open(&arguments.directory)?;
    let lock = if arguments.reconcile.dry_run { None } else { Some(lock(&arguments.directory)?) };
    let mut progress = ProgressLine::new();
    let mut show = |at| {
        progress.show(at);
        Ok(())
    };
    let plan = plan(&directory, &request.update, &mut MarkerIndex::default(), &mut show)
        .map_err(|error| Failure::new(format!("failed to apply policies: {}", chain(&error))))?;
    drop(progress);
    outcome.set_plan(&plan);
    if let Some(automation) = automation.filter(|_| !plan.edits.is_empty()) {
        warn_of_wait(automation, &manifests, &request);
    }
    let palette = Palette::for_output();
    let mut text = String::new();
    let mut result = plan.result.clone();
    if arguments.reconcile.dry_run {
        let diff = update::diff::unified(&directory, &plan.edits, &mut |_| Ok(()))
            .map_err(|error| Failure::new(chain(&error)))?;
        text.push_str(&coloured(&diff, palette));
        if !diff.is_empty() {
            text.push('\n');
        }
        outcome.diff = Some(diff);
    } else {
        for failure in directory::write_all(&directory, &plan.edits) {
            outcome.errors.push(prefixed(outcome, &failure.message));
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
        is_headed: false,
        setters: &request.update.setters,
        plan: &plan,
        result: &result,
        mode: if arguments.reconcile.dry_run { ReportMode::WouldChange } else { ReportMode::Changed },
        not_written: outcome.not_written.len(),
    };
    text.push_str(&report::render(&report, palette));
    Ok(text)
}

fn conclude(arguments: &UpdateArguments, outcome: &mut Outcome, plan: &UpdatePlan, result: &ResultV2) {
    let (values, files) = (count(result.edits(), "value"), count(result.file_changes.len(), "file"));
    let (kind, message) = if !outcome.errors.is_empty() {
        (OutcomeKind::Failed, outcome.errors.join("; "))
    } else if plan.edits.is_empty() {
        (OutcomeKind::Unchanged, "nothing to change".to_owned())
    } else if arguments.reconcile.dry_run {
        (OutcomeKind::DryRun, format!("would change {values} in {files}"))
    } else {
        (OutcomeKind::Updated, format!("changed {values} in {files}"))
    };
    outcome.outcome = kind;
    outcome.message = outcome.automation.is_some().then_some(message);
}

fn make_request(
    automation: Option<&ImageUpdateAutomation>,
    manifests: &Manifests,
    given: &ImageOverrides,
) -> Result<Request, Failure> {
    let Some(automation) = automation else {
        return Ok(request::of_policies_alone(manifests.policies(), given));
    };
    AutomationSettings::from_annotations(automation.annotations())
        .map_err(|errors| Failure::new(chain(&errors)))?;
    if automation.spec.suspend {
        say(&format!("warning: {} is suspended; reconciling it anyway", full_name(automation)));
    }
    request::of_automation(automation, manifests.policies(), given)
        .map_err(|error| Failure::new(chain(&error)))
}

fn open(path: &Path) -> Result<Directory, Failure> {
    Directory::open(path)
        .map_err(|error| Failure::new(format!("cannot read the directory {}: {error}", path.display())))
}

fn lock(path: &Path) -> Result<Lock, Failure> {
    Lock::acquire(path).map_err(|error| Failure::new(chain(&error)))
}
