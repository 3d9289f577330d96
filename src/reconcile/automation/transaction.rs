//! Turns an automation into a request for the writer, and its answer into a conclusion.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use tagboat_api::settings::AutomationSettings;
use tagboat_api::{ImagePolicy, ImageRef, ImageUpdateAutomation};

use super::batch_logins::BatchLogins;
use super::branch_plan::{self, BranchNaming, BranchPlan, BranchSourceError};
use super::conclusion::{Conclusion, Stage};
use super::delivered::Delivered;
use super::forge_signing::forge_signing;
use super::login::{LoggedIn, LoginOptions};
use super::proposal::{Detail, MessageSource, UpdateProposal};
use super::request::{self, ImageOverrides, Request, RequestError};
use super::signing::signing_key;
use super::source::{SourceConfiguration, SourceError, SourceReference};
use crate::cancel::Cancellation;
use crate::error::chain;
use crate::git::outcome::Outcome;
use crate::git::{
    self, Answer, BranchOutcome, CommitTime, Failure, FailureKind, Keyring, Known, MirrorKey, Proposal,
};
use crate::objects::{ObjectName, Objects};
use crate::reconcile::branch_references::BranchReferences;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::repository::request::ObjectIdentity;
use crate::reconcile::times::TimeBounds;
use crate::update::UpdateRequest;

/// The options of a run, besides its objects.
#[derive(Clone, Debug)]
pub struct TransactionOptions {
    /// Images that replace those in the policies' status.
    pub given: ImageOverrides,
    /// Allows or forbids repositories of another namespace.
    pub cross_namespace: CrossNamespace,
    /// The options of logins at remotes.
    pub login: LoginOptions,
    /// The logins of the automations that are reconciled together.
    pub logins: BatchLogins,
    /// The keys that were unlocked so far, in this run and earlier ones.
    pub keyring: Keyring,
    /// The time at which the run began, for commits.
    pub time: CommitTime,
    /// The level of detail in the findings.
    pub detail: Detail,
    /// True if the files are read even if nothing has changed.
    pub is_forced: bool,
    /// Bounds on timeouts.
    pub times: TimeBounds,
    /// The treatment of an existing push branch that is not checked out.
    pub references: BranchReferences,
}

/// The request of a run that is ready for the writer.
pub type Prepared = git::Request<UpdateProposal>;

/// A run whose images are selected.
#[derive(Debug)]
pub struct Selected {
    /// The update.
    pub request: Request,
    /// The settings in the automation's annotations.
    pub settings: AutomationSettings,
    /// The policies that the selection was made from.
    pub policies: Vec<Arc<ImagePolicy>>,
}

/// Selects the policies of an automation.
///
/// # Errors
///
/// If the policies cannot be read, or the automation's spec or settings are invalid.
pub async fn select(
    objects: &impl Objects,
    automation: &ImageUpdateAutomation,
    given: &ImageOverrides,
) -> Result<Selected, Conclusion> {
    let settings = AutomationSettings::from_annotations(automation.annotations())
        .map_err(|error| Conclusion::stopped(Stage::Policies, &error))?;
    let policies = objects.policies(&automation.namespace().unwrap_or_default()).await;
    let policies = policies.map_err(|error| Conclusion::stopped(Stage::Policies, &error))?;
    let request = request::of_automation(automation, policies.iter().map(Arc::as_ref), given)
        .map_err(|error| Conclusion::stopped(stage_of(&error), &error))?;
    Ok(Selected { request, settings, policies })
}

/// Makes the request for the writer from a selection.
///
/// # Errors
///
/// If the source cannot be used as it is.
pub async fn prepare(
    objects: &impl Objects,
    automation: &ImageUpdateAutomation,
    selected: Selected,
    options: &TransactionOptions,
) -> Result<Prepared, Conclusion> {
    let identity = options.login.git.identity;
    let source = configure(objects, automation, options.cross_namespace, identity).await?;
    let mut source = SourceConfiguration { timeout: options.times.timeout(source.timeout), ..source };
    let branches = own_branches(automation, &selected, &source, options.references)
        .map_err(|error| Conclusion::stopped(Stage::Source, &error))?;
    if branches.is_some() {
        source.target.own_branches = Some(branch_plan::refresh(&selected.settings));
        source.target.push = source.target.checkout.branch().unwrap_or(source.target.push);
    }
    let namespace = automation.namespace().unwrap_or_default();
    let LoggedIn { remote, entry } =
        options.logins.log_in(objects, &namespace, &source, &options.login).await?;
    let Selected { request, settings, .. } = selected;
    let signed_by = (namespace.as_str(), settings.signed_by);
    let (signing, signing_result) =
        forge_signing(objects, signed_by, &source, &remote, &options.login.forges)
            .await
            .map_err(|error| Conclusion::stopped(Stage::Source, &error))?;
    let signer = signing_key(objects, &source, &options.keyring, options.time)
        .await
        .map_err(|error| Conclusion::stopped(Stage::Source, &error))?;
    let policies = observed(&request.update);
    let status = automation.status.as_ref();
    let is_unchanged =
        !options.is_forced && status.is_some_and(|status| status.observed_policies == policies);
    let known = Known {
        is_unchanged,
        revision: status.and_then(|status| status.observed_source_revision.clone()),
        pushed: status.and_then(|status| status.last_push_commit.clone()),
    };
    let message = MessageSource {
        automation: ObjectName::of(automation),
        values: request.values,
        template: source.message_template,
        language: settings.template_language,
    };
    let name = proposal_name(automation);
    let proposer = UpdateProposal {
        update: request.update,
        author: source.author,
        message,
        time: options.time,
        signer,
        unusable: request.unusable,
        policies,
        login: entry,
        reselection: None,
        detail: options.detail,
        places: None,
        compare: None,
        branches,
        delivered: None,
        plan: None,
        findings: None,
        signing: signing_result,
        diff: None,
    };
    let repository = source.repository;
    // Work through a cross-namespace reference counts for the namespace of the automation, and no mirror is shared with
    // another namespace: their transactions would wait for each other.
    let is_own = repository.namespace == namespace;
    let repository = if is_own { repository.name } else { repository.to_string() };
    let mirror = MirrorKey { namespace: namespace.clone(), name: repository, url: remote.url.to_string() };
    let cancellation = Cancellation::default();
    let proposal =
        Proposal { name, namespace, target: source.target, known, signing, cancellation, proposer };
    Ok(git::Request { mirror, remote, proposal })
}

/// Returns the automation's own branches; none if its commits go to the push branch.
fn own_branches(
    automation: &ImageUpdateAutomation,
    selected: &Selected,
    source: &SourceConfiguration,
    references: BranchReferences,
) -> Result<Option<BranchPlan>, BranchSourceError> {
    let Selected { request, settings, policies } = selected;
    let Some(base) = branch_plan::base(&source.target, settings, references)? else { return Ok(None) };
    let naming = BranchNaming::of(automation, settings, &source.target, base);
    Ok(Some(BranchPlan::new(naming, request, policies, BTreeMap::new())?))
}

/// Returns the name of an automation's proposals.
///
/// It contains the uid, so that a new object does not own the pushes of an old one with its name.
pub fn proposal_name(automation: &ImageUpdateAutomation) -> String {
    let name = ObjectName::of(automation);
    match automation.uid() {
        Some(uid) => format!("{name} {uid}"),
        None => name.to_string(),
    }
}

/// Makes the conclusion of a run from the answer of the writer.
pub fn conclude(mut answer: Answer<UpdateProposal>) -> (Conclusion, UpdateProposal) {
    let policies = std::mem::take(&mut answer.proposer.policies);
    if let Some(findings) = &mut answer.proposer.findings {
        findings.signing = answer.proposer.signing.clone();
    }
    let conclusion = match answer.result {
        Ok(Outcome::Branches { base: source, branches, is_dry_run }) => {
            let base = source.reference.as_ref().map(|name| name.short().to_owned()).unwrap_or_default();
            let plan = answer.proposer.branches.as_ref();
            let invalid = plan.map(BranchPlan::invalid).unwrap_or_default();
            let invalid = invalid.iter().map(|invalid| chain(invalid)).collect();
            let delivered = Delivered { base, branches, invalid };
            let failure = delivered.failure();
            let would_change = is_dry_run && delivered.branches.iter().any(BranchOutcome::is_changed);
            answer.proposer.delivered = Some(delivered);
            match failure {
                Some(failure) => Conclusion::stopped(Stage::Push, &failure),
                None if would_change => Conclusion::Success { outcome: Outcome::DryRun { source }, policies },
                None => Conclusion::Success { outcome: Outcome::NothingToCommit { source }, policies },
            }
        }
        Ok(outcome) => Conclusion::Success { outcome, policies },
        Err(Failure::Proposer(error)) => Conclusion::stopped(error.stage(), &error),
        Err(Failure::Sync(error)) => {
            if error.failure_kind() == Some(FailureKind::Authentication)
                && let Some(entry) = &answer.proposer.login
            {
                entry.refuse();
            }
            let stage = if error.is_checkout() { Stage::Checkout } else { Stage::Push };
            Conclusion::stopped(stage, error.as_ref()).with_hint(error.hint())
        }
    };
    (conclusion, answer.proposer)
}

/// Flux validates the strategy last.
pub(super) fn stage_of(error: &RequestError) -> Stage {
    match error {
        RequestError::UnsupportedUpdateStrategy { .. } => Stage::Update,
        _ => Stage::Policies,
    }
}

async fn configure(
    objects: &impl Objects,
    automation: &ImageUpdateAutomation,
    cross_namespace: CrossNamespace,
    identity: ObjectIdentity,
) -> Result<SourceConfiguration, Conclusion> {
    let stopped = |error: SourceError| Conclusion::stopped(Stage::Source, &error);
    let reference = SourceReference::of(automation, cross_namespace).map_err(stopped)?;
    let name = reference.repository();
    let found = objects.git_repository(&name.namespace, &name.name).await;
    let found = found.map_err(|cause| stopped(SourceError::UnreadableRepository { cause: cause.into() }))?;
    reference.configure(found.as_ref(), identity).map_err(stopped)
}

/// Returns the images of the selected policies, as a status has them.
pub(super) fn observed(update: &UpdateRequest) -> BTreeMap<String, ImageRef> {
    let images = update.setters.images();
    let image = |image: &crate::reference::ImageReference| ImageRef {
        name: image.name.to_string(),
        tag: image.tag.to_string(),
        digest: image.digest.as_ref().map(ToString::to_string),
    };
    images.map(|(policy, reference)| (policy.name.clone(), image(reference))).collect()
}
