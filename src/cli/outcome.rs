//! The JSON document that describes the outcome of a run.
//!
//! Other programs rely on it: names are fixed, and members may be added. `docs/outcome.schema.json` is generated from
//! these types and those that they contain.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::branch_outcome::{Branch, PullRequest};
use super::output::prefixed;
use super::terminal::count;
use crate::error::chain;
use crate::git::outcome as git;
use crate::git::{BranchAction, BranchOutcome};
use crate::message::recorded::{FileChanges, ObjectChanges, SCHEMA};
use crate::reconcile::automation::conclusion::Conclusion;
use crate::reconcile::automation::delivered::Delivered;
use crate::reconcile::automation::pull_requests::{PullRequestOutcome, PullRequestProgress};
use crate::reconcile::automation::request::Request;
use crate::reconcile::automation::reverts::{HeldMarker, RevertOutcome};
use crate::reconcile::automation::waiting::WaitOutcome;
use crate::update::{MarkerOutcome, NearMiss, ResultV2, Severity, Skipped, Unparsable, UpdatePlan};

/// The outcome of one automation, or of a run with policies only.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcome {
    /// The schema of this document: `tagboat.dev/outcome/v1`.
    pub(super) schema: String,
    /// The automation; absent in a run with policies only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) automation: Option<AutomationName>,
    /// The kind of outcome.
    pub(super) outcome: OutcomeKind,
    /// The outcome as a sentence; absent in a run with policies only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// The selected policies that have an image, by name.
    pub(super) policies: BTreeMap<String, Image>,
    /// The images that selected policies chose from registries; absent if none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(super) choices: Vec<PolicyChoice>,
    /// `messageTemplateValues` of the automation; absent in a run with policies only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) values: Option<BTreeMap<String, String>>,
    /// The changes, by file relative to `update.path`.
    pub(super) changes: BTreeMap<String, FileChanges>,
    /// Every comment that holds a marker object, by file and line.
    pub(super) markers: Vec<Marker>,
    /// Files that hold the token and cannot be read.
    pub(super) unparsable: Vec<Unparsable>,
    /// Comments that mention the token and are not markers.
    pub(super) near_misses: Vec<NearMiss>,
    /// Links and directories that were not followed.
    pub(super) skipped: Vec<Skipped>,
    /// The number of files that were read.
    pub(super) files_read: usize,
    /// Selected policies whose latest image cannot be used; their markers are `policy-without-image`.
    pub(super) unusable_images: Vec<UnusableImage>,
    /// Files that could not be written; their markers are `changed`, but the files are not.
    pub(super) not_written: Vec<String>,
    /// The commit that was pushed; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<Commit>,
    /// The automation's own branches, by name; absent if its commits go to the push branch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(super) branches: Vec<Branch>,
    /// The pull requests of these branches, by branch; absent if none was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(super) pull_requests: Vec<PullRequest>,
    /// The images that may not be written yet; absent if nothing waits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(super) waiting: Vec<Waiting>,
    /// The values that others took back and that are not written; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(super) held: Vec<Held>,
    /// The errors, one sentence each.
    pub(super) errors: Vec<String>,
    /// The changes of a dry run as a unified diff; absent in other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<String>,
}

/// The outcomes of several automations.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Outcomes<'a> {
    /// The outcome of each automation, in the order of the manifests.
    pub(super) automations: Vec<&'a Outcome>,
}

/// A commit that was pushed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Commit {
    /// The commit's id.
    id: String,
    /// The branch that has it.
    branch: String,
    /// The message of the commit. One of more than 255 KiB, or beyond 16 MiB of a push, is truncated, with a note at its
    /// end.
    message: String,
}

/// A value that is not written, because others took it back.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Held {
    /// The policy, as namespace/name.
    policy: String,
    /// The image that is not written.
    image: String,
    /// The value in the file.
    value: String,
    /// The file, relative to `update.path`.
    file: String,
    /// The line, counted from 1.
    line: usize,
    /// The commits between which the value was changed; null if they are not known.
    between: Option<[String; 2]>,
    /// The author of the change; null unless the second commit is the only one.
    author: Option<String>,
    /// `hold` or `pause`.
    mode: String,
}

/// Wanted images that may not be written yet.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Waiting {
    /// The policies, as namespace/name.
    policies: Vec<String>,
    /// `Frozen`, `WindowClosed`, `QuietPeriod` or `ReleaseGroupIncomplete`.
    reason: String,
    /// The rule that delays them.
    by: String,
    /// The end of the wait in RFC 3339; null if none is known.
    until: Option<String>,
    /// The wait as a sentence.
    message: String,
}

/// An automation's namespace and name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct AutomationName {
    /// The namespace.
    pub(super) namespace: String,
    /// The name.
    pub(super) name: String,
}

/// The kind of outcome of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OutcomeKind {
    /// Files were written, without git.
    Updated,
    /// A commit was pushed.
    Pushed,
    /// The files were read, and nothing had to change.
    Unchanged,
    /// Policies and remote did not change since the last run, or the automation is suspended; no file was read.
    Skipped,
    /// Something would be written or pushed, and nothing was.
    DryRun,
    /// Something would change, and may not be written yet; `waiting` says why.
    Waiting,
    /// Something failed.
    #[default]
    Failed,
}

/// A policy's image.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Image {
    /// The name without tag and digest.
    name: String,
    /// The tag.
    tag: String,
    /// The digest; empty if there is none.
    digest: String,
}

/// The image that a policy chose from its registry.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct PolicyChoice {
    /// The policy, as namespace/name.
    pub(super) policy: String,
    /// The ImageRepository that was scanned for it, as namespace/name.
    pub(super) repository: String,
    /// The image that counts, as name:tag@digest; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latest: Option<String>,
    /// The held downgrade that may replace it, and until when it is held; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) held: Option<String>,
    /// The reason for which the image may be out of date; absent if it is up to date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stale: Option<String>,
    /// The reason for which the policy chose nothing in this run, so that an earlier image counts; absent if it chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// A marker and its outcome.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Marker {
    /// The file, relative to `update.path`.
    file: String,
    /// The line of the comment, counted from 1.
    line: usize,
    /// The setter as written.
    setter: String,
    /// One of changed, current, other-namespace, policy-not-selected, unknown-policy, policy-without-image,
    /// unknown-field, not-on-scalar, waiting, held.
    #[schemars(schema_with = "marker_outcomes")]
    outcome: MarkerOutcome,
    /// `warning` if the marker should be looked at, else `info`.
    pub(super) severity: Severity,
    /// The object around it, as kind/namespace/name.
    object: String,
}

/// The schema of the outcome of a marker: one of its names.
fn marker_outcomes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": MarkerOutcome::ALL})
}

/// A selected policy whose latest image cannot be used.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnusableImage {
    /// The policy, as namespace/name.
    policy: String,
    /// The image as its status states it.
    image: String,
    /// The error in the image.
    cause: String,
}

impl Outcome {
    /// Creates the outcome of a run that has not started.
    pub(super) fn new(automation: Option<AutomationName>) -> Self {
        Self { schema: SCHEMA.to_owned(), automation, ..Self::default() }
    }

    /// Sets the policies, their images and the values.
    pub(super) fn set_request(&mut self, request: &Request) {
        let images: Vec<_> = request.update.setters.images().collect();
        let mut namesakes: BTreeMap<&str, usize> = BTreeMap::new();
        for (policy, _) in &images {
            *namesakes.entry(&policy.name).or_default() += 1;
        }
        self.policies = images
            .iter()
            .map(|(policy, image)| {
                // Policies of one name are in two namespaces, which is possible without an automation only.
                let key = if namesakes[policy.name.as_str()] > 1 {
                    policy.to_string()
                } else {
                    policy.name.clone()
                };
                let digest = image.digest.as_ref().map(ToString::to_string).unwrap_or_default();
                (key, Image { name: image.name.to_string(), tag: image.tag.to_string(), digest })
            })
            .collect();
        self.unusable_images = request
            .unusable
            .iter()
            .map(|unusable| UnusableImage {
                policy: unusable.policy.to_string(),
                image: unusable.image.clone(),
                cause: chain(&unusable.cause),
            })
            .collect();
        self.values = self.automation.is_some().then(|| request.values.clone());
    }

    /// Sets what waits; this comes before the result.
    pub(super) fn set_wait(&mut self, namespace: &str, outcome: &WaitOutcome) {
        let WaitOutcome::Waiting(wait) = outcome else { return };
        self.waiting = vec![Waiting {
            policies: wait.policies.iter().map(|policy| format!("{namespace}/{policy}")).collect(),
            reason: wait.reason.reason().to_string(),
            by: wait.by.clone(),
            until: wait.until.map(|until| until.to_string()),
            message: wait.to_string(),
        }];
    }

    /// Sets what waits at the forge; this comes after the result.
    pub(super) fn set_withheld(&mut self, namespace: &str, wait: &WaitOutcome) {
        self.set_wait(namespace, wait);
        if matches!(wait, WaitOutcome::Waiting(_)) && self.outcome == OutcomeKind::Unchanged {
            self.outcome = OutcomeKind::Waiting;
            self.message = self.waiting.first().map(|wait| wait.message.clone());
        }
    }

    /// Sets the values that are held.
    pub(super) fn set_held(&mut self, namespace: &str, outcome: &RevertOutcome) {
        let RevertOutcome::Known(holds) = outcome else { return };
        let held = |marker: &HeldMarker| {
            let between = marker.between.as_ref();
            Held {
                policy: format!("{namespace}/{}", marker.policy),
                image: marker.image.clone(),
                value: marker.value.clone(),
                file: marker.file.clone(),
                line: marker.line,
                between: between.map(|between| [between.from.to_string(), between.to.to_string()]),
                author: between.and_then(|between| between.author.clone()),
                mode: holds.mode.as_str().to_owned(),
            }
        };
        self.held = holds.markers.iter().map(held).collect();
    }

    /// Sets the result of the reconcile.
    pub(super) fn set_conclusion(&mut self, conclusion: &Conclusion) {
        let (kind, message) = match conclusion {
            Conclusion::Success { outcome, .. } => match outcome {
                git::Outcome::NothingNew => {
                    (OutcomeKind::Skipped, "no change since last reconciliation".to_owned())
                }
                git::Outcome::NothingToCommit { .. } | git::Outcome::Branches { .. } => {
                    match self.waiting.first() {
                        Some(wait) => (OutcomeKind::Waiting, wait.message.clone()),
                        None => (OutcomeKind::Unchanged, "repository up-to-date".to_owned()),
                    }
                }
                git::Outcome::DryRun { refspec: Some(refspec), .. } => {
                    (OutcomeKind::DryRun, format!("would push refspecs '{refspec}'"))
                }
                git::Outcome::DryRun { refspec: None, .. } => {
                    let objects = self.changes.values().flat_map(|file| &file.objects);
                    let values = count(objects.map(|object| object.changes.len()).sum(), "value");
                    let files = count(self.changes.len(), "file");
                    (OutcomeKind::DryRun, format!("would change {values} in {files}"))
                }
                git::Outcome::Waiting { .. } => {
                    let message = self.waiting.first().map(|wait| wait.message.clone());
                    (OutcomeKind::Waiting, message.unwrap_or_else(|| "a push waits".to_owned()))
                }
                git::Outcome::Pushed(push) => {
                    let (branch, message) = (push.branch.to_string(), push.message.clone());
                    self.commit = Some(Commit { id: push.commit.to_string(), branch, message });
                    (OutcomeKind::Pushed, push.to_string())
                }
            },
            Conclusion::Stall(stop) | Conclusion::Failure(stop) => {
                if let Some(pushed) = &stop.pushed {
                    let (branch, message) = (pushed.branch.to_string(), pushed.message.clone());
                    self.commit = Some(Commit { id: pushed.commit.to_string(), branch, message });
                }
                let message = stop.full_message();
                self.errors.push(prefixed(self, &message));
                (OutcomeKind::Failed, message)
            }
        };
        self.outcome = kind;
        self.message = Some(message);
    }

    /// Sets the automation's own branches.
    pub(super) fn set_branches(&mut self, delivered: &Delivered, is_dry_run: bool) {
        let branch = |outcome| Branch::of(outcome, &delivered.base, is_dry_run);
        self.branches = delivered.branches.iter().map(branch).collect();
        let invalid: Vec<String> = delivered.invalid.iter().map(|error| prefixed(self, error)).collect();
        self.errors.extend(invalid);
        if self.outcome == OutcomeKind::DryRun && self.changes.is_empty() {
            let deleted = delivered.branches.iter().filter(|one| one.action == BranchAction::Deleted);
            let deleted: Vec<String> = deleted.map(|one| branch(one).message).collect();
            self.message =
                Some(deleted.join("; ")).filter(|message| !message.is_empty()).or(self.message.take());
        }
        let Some(last) = delivered.pushed().last() else { return };
        let count = delivered.pushed().count();
        if let Some(id) = last.commit.map(|commit| commit.to_string()) {
            let (branch, message) = (last.branch.to_string(), last.message.clone());
            self.commit = Some(Commit { id, branch, message });
        }
        if self.outcome != OutcomeKind::Failed {
            self.outcome = OutcomeKind::Pushed;
            self.message = Some(match count {
                1 => branch(last).message,
                _ => format!("pushed commits to {count} branches"),
            });
        }
    }

    /// Sets the branches that were to end, deleted or not.
    pub(super) fn set_ended_branches(&mut self, ended: &[&BranchOutcome], base: &str) {
        for outcome in ended {
            let branch = Branch::of(outcome, base, false);
            self.branches.retain(|other| other.name() != branch.name());
            self.branches.push(branch);
        }
        self.branches.sort_by(|one, other| one.name().cmp(other.name()));
    }

    /// Sets the pull requests.
    pub(super) fn set_pull_requests(&mut self, progress: &PullRequestProgress, is_dry_run: bool) {
        let of = |outcome: &PullRequestOutcome| PullRequest::of(outcome, is_dry_run);
        self.pull_requests = progress.outcomes.iter().map(of).collect();
    }

    /// Sets the markers, files and changes of a plan.
    pub(super) fn set_plan(&mut self, plan: &UpdatePlan) {
        self.changes = changes(&plan.result);
        self.markers = plan.markers.iter().map(marker).collect();
        self.unparsable.clone_from(&plan.unparsable);
        self.near_misses.clone_from(&plan.near_misses);
        self.skipped.clone_from(&plan.skipped);
        self.files_read = plan.files;
    }
}

fn changes(result: &ResultV2) -> BTreeMap<String, FileChanges> {
    let file_changes = |objects: &crate::update::result::ObjectChanges| FileChanges {
        objects: objects
            .iter()
            .map(|(object, changes)| ObjectChanges {
                api_version: object.api_version.clone(),
                kind: object.kind.clone(),
                namespace: object.namespace.clone(),
                name: object.name.clone(),
                changes: changes.clone(),
            })
            .collect(),
    };
    result.file_changes.iter().map(|(file, objects)| (file.to_string(), file_changes(objects))).collect()
}

fn marker(report: &crate::update::MarkerReport) -> Marker {
    Marker {
        file: report.file.clone(),
        line: report.line,
        setter: report.setter.clone(),
        outcome: report.outcome,
        severity: report.outcome.severity(),
        object: report.object.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::LeftReason;

    /// Nothing said that the branch stayed.
    #[test]
    fn a_branch_that_still_waits_after_its_pull_request_was_closed_is_reported() {
        let of = |name: &str, action| BranchOutcome {
            branch: name.parse().unwrap(),
            action,
            tip: None,
            commit: None,
            message: String::new(),
            dropped: Vec::new(),
        };
        let abandoned = of("a", BranchAction::Left(LeftReason::Abandoned));
        for (action, expected) in [
            (BranchAction::Deleted, ["deleted", "", "deleted branch 'a'"]),
            (
                BranchAction::Left(LeftReason::AwaitingForge),
                [
                    "left",
                    "awaiting-forge",
                    "branch 'a' is left alone until the forge has answered about its pull request",
                ],
            ),
            (
                BranchAction::Left(LeftReason::Waiting { closed: Vec::new() }),
                ["left", "waiting", "branch 'a' is left alone until it may be pushed"],
            ),
        ] {
            let mut outcome = Outcome::new(None);
            outcome.branches = [of("b", BranchAction::Kept), abandoned.clone()]
                .map(|one| Branch::of(&one, "main", false))
                .into();
            outcome.set_ended_branches(&[&of("a", action)], "main");
            let json = serde_json::to_value(&outcome).unwrap();
            let text = |index: usize, member: &str| {
                json["branches"][index][member].as_str().unwrap_or_default().to_owned()
            };
            assert_eq!(["action", "reason", "message"].map(|member| text(0, member)), expected);
            assert_eq!((text(1, "branch"), json["branches"].as_array().unwrap().len()), ("b".to_owned(), 2));
        }
    }
}
