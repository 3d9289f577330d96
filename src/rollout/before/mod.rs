//! The steps before a rollout: the policy chooses an image, and its automations commit it.
//!
//! A deployment fails before its rollout if its policy is not ready, or if an automation that still has to commit the
//! image fails. An automation that has committed the image everywhere is not a cause: its later failures do not delay
//! the rollout.

use kube::ResourceExt;
use tagboat_api::deployment_status::{
    BlockReason, CommitRef, ComponentStatus, DeploymentStatusStatus, Report, State, Target,
};
use tagboat_api::{Condition, ImagePolicy, ImageUpdateAutomation, ObjectName, Reason};

use super::aggregate::{DeploymentError, DeploymentErrorCode};
use super::message::message;
use super::place::{Place, ScannedPlaces};
use crate::reference::ImageReference;

/// The beginning of the message of Ready after a failed push, which has its code.
pub const PUSH_FAILED: &str = "failed to update source";

/// The beginning of the message of Ready after a failed checkout.
pub const CHECKOUT_FAILED: &str = "failed to checkout source";

/// The errors of templates, which follow [`PUSH_FAILED`] in the message of Ready.
///
/// They are those of [`TemplateError`](crate::message::TemplateError).
const TEMPLATE_ERRORS: [&str; 2] =
    ["unable to create commit message template from spec", "failed to run template from spec"];

/// An automation that updates markers of a policy.
#[derive(Clone, Copy, Debug)]
pub struct AutomationView<'a> {
    /// The automation.
    pub automation: &'a ImageUpdateAutomation,
    /// Its places; `None` if it was not scanned since the start of the process.
    pub scan: Option<&'a ScannedPlaces>,
}

/// The state of a deployment before its rollout.
#[derive(Clone, Copy, Debug)]
pub struct BeforeRollout<'a> {
    /// The policy.
    pub policy: &'a ImagePolicy,
    /// The automations that update markers of the policy, also those of its previous status.
    pub automations: &'a [AutomationView<'a>],
    /// The previous status of the deployment.
    pub previous: Option<&'a DeploymentStatusStatus>,
}

/// The cause why the wanted image of a place is not in its file yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The reason.
    pub reason: BlockReason,
    /// The message for users.
    pub message: String,
}

impl BeforeRollout<'_> {
    /// Returns the image that the policy has selected.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        self.policy.status.as_ref()?.latest_ref.clone()
    }

    /// Returns the image that the policy has selected, if it is a valid reference.
    #[must_use]
    pub fn image(&self) -> Option<ImageReference> {
        let Target { name, tag, digest } = self.target()?;
        ImageReference::from_parts(&name, &tag, digest.as_deref().filter(|digest| !digest.is_empty())).ok()
    }

    /// Returns the error of the policy or of an automation.
    ///
    /// Without an image, that of the policy counts. Otherwise it counts, like that of an automation, only while the image
    /// has to be committed. A suspended automation is no error.
    #[must_use]
    pub fn error(&self) -> Option<DeploymentError> {
        let image = self.image();
        let is_open =
            |view: &&AutomationView<'_>| image.as_ref().is_none_or(|image| self.is_open(view, image));
        let is_policy_relevant = image.is_none() || self.automations.iter().any(|view| is_open(&view));
        let conditions = self.policy.status.as_ref().map_or(&[][..], |status| &status.conditions);
        if let Some(failure) = failure(conditions).filter(|_| is_policy_relevant) {
            let source = format!("ImagePolicy/{}", ObjectName::of(self.policy));
            let code = DeploymentErrorCode::PolicyNotReady;
            return Some(DeploymentError { code, source, message: message(&failure.message) });
        }
        let active = self.automations.iter().filter(|view| !view.automation.spec.suspend);
        active.filter(is_open).find_map(|view| {
            let failure = failure(conditions_of(view.automation))?;
            let source = format!("ImageUpdateAutomation/{}", ObjectName::of(view.automation));
            Some(DeploymentError { code: code(failure), source, message: message(&failure.message) })
        })
    }

    /// Returns true if an automation has a place without the image.
    ///
    /// Before its first scan, the previous status tells.
    fn is_open(&self, view: &AutomationView<'_>, image: &ImageReference) -> bool {
        let Some(scan) = view.scan else { return !self.had_committed(view) };
        let places = scan.of_policy(&ObjectName::of(self.policy));
        places.iter().any(|place| !has(place.committed_value(), place, image))
    }

    /// Returns true if the previous status tells that an automation has committed the image everywhere.
    fn had_committed(&self, view: &AutomationView<'_>) -> bool {
        use BlockReason::{AwaitingMerge, NotApplied, NotFound};
        let Some(Report { target, omitted, components, .. }) = self.previous.map(|previous| &previous.report)
        else {
            return false;
        };
        let name = view.automation.name_any();
        let mut own =
            components.iter().filter(|component| component.automation.as_ref() == Some(&name)).peekable();
        let is_committed = |component: &ComponentStatus| match component.reason {
            Some(reason) => matches!(reason, AwaitingMerge | NotApplied | NotFound),
            // Its cluster did not respond.
            None => component.state != State::Pending,
        };
        *target == self.target() && *omitted == 0 && own.peek().is_some() && own.all(is_committed)
    }

    /// Returns the cause why a place of an automation does not have the wanted image.
    ///
    /// Returns `None` if it has.
    #[must_use]
    pub fn block(&self, automation: &ObjectName, place: &Place) -> Option<Block> {
        let Some(image) = self.image() else {
            let policy = ObjectName::of(self.policy);
            let text = match self.target() {
                Some(target) => {
                    format!("ImagePolicy {policy} has selected {target}, which is not a valid image")
                }
                None => format!("ImagePolicy {policy} has selected no image"),
            };
            return Some(Block { reason: BlockReason::NotChosen, message: message(&text) });
        };
        if has(&place.value, place, &image) {
            return None;
        }
        let view = self.automations.iter().find(|view| ObjectName::of(view.automation) == *automation);
        if has(place.committed_value(), place, &image) {
            let text = match view.and_then(|view| view.scan) {
                Some(scan) => awaiting_merge(scan, place),
                None => {
                    self.known_message(automation, place).unwrap_or("a commit is not merged yet").to_owned()
                }
            };
            return Some(Block { reason: BlockReason::AwaitingMerge, message: message(&text) });
        }
        let text = match view {
            Some(view) => not_committed(view.automation, automation),
            None => format!("ImageUpdateAutomation {automation} does not exist"),
        };
        Some(Block { reason: BlockReason::NotCommitted, message: message(&text) })
    }

    /// Returns the message of the previous status about the merge of a place.
    fn known_message(&self, automation: &ObjectName, place: &Place) -> Option<&str> {
        let location = place.location();
        let known = self.previous?.report.components.iter().find(|component| {
            component.reason == Some(BlockReason::AwaitingMerge)
                && component.automation.as_ref() == Some(&automation.name)
                && component.place.as_ref() == Some(&location)
        });
        known?.message.as_deref()
    }

    /// Returns the commit of the target, if Tagboat pushed it.
    ///
    /// It is the newest one that wrote the target into a place. If this process has not written it, it is that of the
    /// previous status with the same target, or the last push of an automation since the file lacked the target.
    #[must_use]
    pub fn commit(&self) -> Option<CommitRef> {
        let image = self.image()?;
        let written = self.committed_places(&image).filter_map(|place| place.written.as_ref());
        if let Some(newest) = written.max_by(|left, right| left.commit.time.cmp(&right.commit.time)) {
            return Some(newest.commit.clone());
        }
        let previous = self.previous?;
        let Report { target, commit, since, components, .. } = &previous.report;
        let is_same_target = *target == self.target();
        if is_same_target && commit.is_some() {
            return commit.clone();
        }
        // Otherwise a push of other images would count as that of a target which a person committed.
        let lacked_target =
            || components.iter().any(|component| component.reason == Some(BlockReason::NotCommitted));
        let is_newer = |push: &CommitRef| match is_same_target {
            true => lacked_target() && push.time >= *since,
            false => push.time > previous.time_stamp,
        };
        let committed = self.automations.iter().filter(|view| self.has_committed(view, &image));
        let pushes = committed.filter_map(last_push).filter(is_newer);
        pushes.max_by(|left, right| left.time.cmp(&right.time))
    }

    /// Returns the revision that the status describes.
    ///
    /// It is that of the newest scan with places of the policy, or else that of the previous status.
    #[must_use]
    pub fn revision(&self) -> Option<String> {
        let policy = ObjectName::of(self.policy);
        let scans = self.automations.iter().filter_map(|view| Some((view.automation, view.scan?)));
        let with_places = scans.filter(|(_, scan)| !scan.of_policy(&policy).is_empty());
        let last_run = |automation: &ImageUpdateAutomation| {
            automation.status.as_ref().and_then(|status| status.last_automation_run_time.clone())
        };
        let newest = with_places.max_by_key(|(automation, _)| last_run(automation));
        let revision = newest.map(|(_, scan)| scan.revision.clone());
        revision.or_else(|| self.previous.and_then(|previous| previous.report.revision.clone()))
    }

    /// Returns the places that have the image, in their branch or on the push branch.
    fn committed_places<'s>(&'s self, image: &'s ImageReference) -> impl Iterator<Item = &'s Place> {
        let policy = ObjectName::of(self.policy);
        let scans = self.automations.iter().filter_map(|view| view.scan);
        let places = scans.flat_map(move |scan| scan.of_policy(&policy));
        places.filter(|place| has(place.committed_value(), place, image))
    }

    /// Returns true if an automation has the image in a place.
    ///
    /// Before its first scan, the images of its last run tell.
    fn has_committed(&self, view: &AutomationView<'_>, image: &ImageReference) -> bool {
        match view.scan {
            Some(scan) => {
                let places = scan.of_policy(&ObjectName::of(self.policy));
                places.iter().any(|place| has(place.committed_value(), place, image))
            }
            None => {
                let status = view.automation.status.as_ref();
                let observed =
                    status.and_then(|status| status.observed_policies.get(&self.policy.name_any()));
                observed == self.target().as_ref()
            }
        }
    }
}

/// Returns true if a value is the one that the marker of a place wants.
fn has(value: &str, place: &Place, image: &ImageReference) -> bool {
    place.field.value_in(image).is_some_and(|wanted| wanted == value)
}

fn conditions_of(automation: &ImageUpdateAutomation) -> &[Condition] {
    automation.status.as_ref().map_or(&[], |status| &status.conditions)
}

/// Returns the condition that tells the failure of an object.
///
/// Stalled comes first: like Flux, an automation that stalls keeps the message of an earlier failure in Ready.
fn failure(conditions: &[Condition]) -> Option<&Condition> {
    let find = |type_: &str, status: &str| {
        conditions.iter().find(|condition| condition.type_ == type_ && condition.status == status)
    };
    find("Stalled", "True").or_else(|| find("Ready", "False"))
}

/// Returns the code of an automation's failure.
fn code(failure: &Condition) -> DeploymentErrorCode {
    let is = |reason: Reason| failure.reason == reason.to_string();
    let message = &failure.message;
    if is(Reason::RemovedTemplateField) {
        return DeploymentErrorCode::TemplateInvalid;
    }
    if let Some(cause) = message.strip_prefix(PUSH_FAILED).and_then(|rest| rest.strip_prefix(": ")) {
        let is_of_template = TEMPLATE_ERRORS.iter().any(|error| cause.starts_with(error));
        return if is_of_template {
            DeploymentErrorCode::TemplateInvalid
        } else {
            DeploymentErrorCode::GitPushRejected
        };
    }
    let is_of_source = [
        Reason::AccessDenied,
        Reason::FeatureGateDisabled,
        Reason::InvalidSourceConfiguration,
        Reason::SourceManagerFailed,
        Reason::GitOperationFailed,
    ];
    if message.starts_with(CHECKOUT_FAILED) || is_of_source.into_iter().any(is) {
        return DeploymentErrorCode::GitCheckoutFailed;
    }
    DeploymentErrorCode::UpdateFailed
}

fn awaiting_merge(scan: &ScannedPlaces, place: &Place) -> String {
    let commit = place
        .written
        .as_ref()
        .map_or_else(|| "a commit".to_owned(), |written| format!("commit {}", written.commit.short_id()));
    let into =
        scan.checkout.as_ref().map_or_else(|| scan.revision.clone(), |branch| format!("branch {branch}"));
    let branch = place.written.as_ref().map_or(&scan.push, |written| &written.commit.branch);
    format!("{commit} on branch {branch} is not merged into {into}")
}

fn not_committed(automation: &ImageUpdateAutomation, name: &ObjectName) -> String {
    if automation.spec.suspend {
        return format!("ImageUpdateAutomation {name} is suspended");
    }
    match failure(conditions_of(automation)) {
        Some(failure) => format!("ImageUpdateAutomation {name}: {}", failure.message),
        None => format!("ImageUpdateAutomation {name} has not committed the image yet"),
    }
}

/// Returns the last push of an automation, as its status has it.
fn last_push(view: &AutomationView<'_>) -> Option<CommitRef> {
    let status = view.automation.status.as_ref()?;
    Some(CommitRef {
        id: status.last_push_commit.clone()?,
        branch: push_branch(view)?,
        time: status.last_push_time.clone()?,
        automation: view.automation.name_any(),
    })
}

/// Returns the branch to which an automation pushes.
///
/// Before its first scan, it is that of its spec, or else the one that its last run has read.
fn push_branch(view: &AutomationView<'_>) -> Option<String> {
    let of_spec = || {
        let push = view.automation.spec.git.as_ref()?.push.as_ref()?;
        push.branch.clone().filter(|branch| !branch.is_empty())
    };
    let of_status = || {
        let revision = view.automation.status.as_ref()?.observed_source_revision.as_ref()?;
        revision.split_once('@').map(|(branch, _)| branch.to_owned())
    };
    view.scan.map(|scan| scan.push.clone()).or_else(of_spec).or_else(of_status)
}

#[cfg(test)]
mod tests;
