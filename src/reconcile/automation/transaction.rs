//! Turns an automation into a request for the writer, and its answer into a conclusion.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use tagboat_api::settings::{AutomationSettings, Delivery, MergeTime};
use tagboat_api::{GitRepository, ImagePolicy, ImageRef, ImageUpdateAutomation, Reason};

use super::batch_logins::BatchLogins;
use super::branch_plan::{self, BranchNaming, BranchPlan, BranchSourceError};
use super::conclusion::{Conclusion, PushedCommit, Stage};
use super::delivered::{Delivered, ForgeProgress};
use super::delivery::CautiousAutomation;
use super::forge_login::{ForgeAccessError, forge_access};
use super::forge_signing::forge_signing;
use super::login::{LoggedIn, LoginOptions};
use super::proposal::{Detail, MessageSource, UpdateProposal};
use super::proposal_error::{ProposalError, stage_of};
use super::pull_requests::{PullRequestQueue, PullRequestRun, PullRequestSetupError};
use super::request::{self, ImageOverrides, Request};
use super::reverts::{Reverts, StatusBaseline};
use super::siblings::{SiblingInputs, Siblings};
use super::signing::signing_key;
use super::source::{SourceConfiguration, SourceError, SourceReference};
use super::waiting::{
    EarlierRun, GroupHolds, KnownWait, QuietPeriod, RunWait, WriteGate, WriteRules, own_windows,
};
use crate::cancel::Cancellation;
use crate::error::chain;
use crate::git::checkout::Revision;
use crate::git::outcome::Outcome;
use crate::git::{
    self, Answer, BranchName, BranchOutcome, CommitTime, Failure, Keyring, MirrorKey, Proposal,
};
use crate::objects::{ObjectName, Objects};
use crate::reconcile::branch_references::BranchReferences;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::repository::request::ObjectIdentity;
use crate::reconcile::times::TimeBounds;
use crate::reference::ImageReference;
use crate::tenancy::Capacity;
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
    /// The work queue of pull requests.
    pub pull_requests: PullRequestQueue,
    /// The rules by which automations may write; none if nothing is written.
    pub rules: Option<WriteRules>,
    /// The wait that an earlier run found, if it holds while nothing changes.
    pub known_wait: Option<KnownWait>,
    /// The active automations of the namespace and GitRepository.
    pub siblings: Siblings,
    /// True if only branches are dealt with whose pull requests have ended.
    pub ends_branches_only: bool,
    /// The policies whose images a person named, which are written in any case.
    pub named: BTreeSet<ObjectName>,
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

/// Holds the policies of release groups whose members have different values.
///
/// The filters of policies are compiled on the pool.
pub async fn hold_groups(
    mut selected: Selected,
    automation: &ImageUpdateAutomation,
    given: &ImageOverrides,
    capacity: &Capacity,
) -> Selected {
    if !selected.policies.iter().any(|policy| GroupHolds::concern(policy)) {
        return selected;
    }
    let namespace = automation.namespace().unwrap_or_default();
    let (automation, given) = (automation.clone(), given.clone());
    let hold = move || {
        let policies = selected.policies.iter().map(Arc::as_ref);
        selected.request.hold_groups(&automation, policies, &given);
        selected
    };
    capacity.pool.run(&namespace, hold).await
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
    let parsed = options.rules.as_ref().map(|rules| rules.parsed.clone()).unwrap_or_default();
    let own = own_windows(&selected.settings, &parsed)
        .map_err(|error| Conclusion::stopped(Stage::Policies, &error))?;
    let identity = options.login.git.identity;
    let (source, repository) = configure(objects, automation, options.cross_namespace, identity).await?;
    let mut source = SourceConfiguration { timeout: options.times.timeout(source.timeout), ..source };
    let mut branches = own_branches(automation, &selected, (&source, repository), options)
        .await
        .map_err(|error| Conclusion::stopped(Stage::Source, &error))?;
    if let Some(plan) = &branches {
        source.target = plan.target().clone();
    }
    let namespace = automation.namespace().unwrap_or_default();
    let logged_in = options.logins.log_in(objects, &namespace, &source, &options.login).await?;
    let Selected { request, settings, .. } = selected;
    let policies = observed(&request.update);
    let quiet = QuietPeriod::new(&settings, automation.status.as_ref());
    let mut gate = options.rules.clone().map(|rules| rules.gate(ObjectName::of(automation), own, quiet));
    gate.iter_mut().for_each(|gate| gate.observe(&policies));
    let pull_requests = match &mut branches {
        Some(plan) if settings.delivery == Delivery::PullRequest => {
            let of_source = (&source, &logged_in, gate.clone());
            let run = pull_request_run(objects, (automation, &settings), plan, of_source, options);
            run.await.map_err(|error| Conclusion::stopped(Stage::Source, &error))?
        }
        _ => None,
    };
    let signed_by = (namespace.as_str(), settings.signed_by);
    let signing = forge_signing(objects, signed_by, &source, &logged_in, &options.login)
        .await
        .map_err(|error| Conclusion::stopped(Stage::Source, &error))?;
    let signer = signing_key(objects, &source, &options.keyring, options.time)
        .await
        .map_err(|error| Conclusion::stopped(Stage::Source, &error))?;
    let LoggedIn { remote, entry } = logged_in;
    let wanted = wanted(&request.update);
    let (earlier, mut known) =
        EarlierRun::compare(automation.status.as_ref(), options.known_wait.clone(), &wanted);
    let mode = options.rules.as_ref().map(|_| settings.on_revert);
    let baseline = automation.status.as_ref().map(StatusBaseline::of).unwrap_or_default();
    let reverts = Reverts::new(mode, baseline, options.named.clone());
    // A report of all markers has the held ones as well.
    let is_unreported = options.detail != Detail::Warnings && reverts.has_held();
    known.is_unchanged &= !options.is_forced && !reverts.has_changed() && !is_unreported;
    let message = MessageSource {
        automation: ObjectName::of(automation),
        values: request.values,
        template: source.message_template,
        language: settings.template_language,
    };
    let name = proposal_name(automation);
    let proposer = Box::new(UpdateProposal {
        update: request.update,
        author: source.author,
        message,
        time: options.time,
        signer,
        unusable: request.unusable,
        policies,
        login: entry,
        signing_login: signing.login,
        reselection: None,
        detail: options.detail,
        places: None,
        compare: None,
        has_unparsable: false,
        wanted,
        wait: RunWait::new(gate, earlier, request.groups),
        branches,
        siblings: options.siblings.clone(),
        reverts,
        pull_requests,
        delivered: None,
        plan: None,
        findings: None,
        signing: signing.result,
        diff: None,
    });
    let repository = source.repository;
    // Work through a cross-namespace reference counts for the namespace of the automation, and no mirror is shared with
    // another namespace: their transactions would wait for each other.
    let is_own = repository.namespace == namespace;
    let repository = if is_own { repository.name } else { repository.to_string() };
    let mirror = MirrorKey { namespace: namespace.clone(), name: repository, url: remote.url.to_string() };
    let cancellation = Cancellation::default();
    let (target, signing) = (source.target, signing.forge);
    let proposal = Proposal { name, namespace, target, known, signing, cancellation, proposer };
    Ok(git::Request { mirror, remote, proposal })
}

/// Returns the automation's own branches; none if its commits go to the push branch.
///
/// The branches of its siblings are rendered on the pool.
async fn own_branches(
    automation: &ImageUpdateAutomation,
    selected: &Selected,
    (source, repository): (&SourceConfiguration, Option<GitRepository>),
    options: &TransactionOptions,
) -> Result<Option<BranchPlan>, BranchSourceError> {
    let Selected { request, settings, policies } = selected;
    let references = options.references;
    let Some(base) = branch_plan::base(&source.target, settings, references)? else { return Ok(None) };
    let naming = BranchNaming::of(automation, settings, &source.target, base);
    let series = match options.siblings.known_series() {
        Some(series) => series,
        None => {
            let (policies, given) = (policies.clone(), options.given.clone());
            let inputs = SiblingInputs { repository, policies, given, references };
            let (siblings, pool) = (options.siblings.clone(), &options.login.capacity.pool);
            let namespace = automation.namespace().unwrap_or_default();
            pool.run(&namespace, move || siblings.find_series(&inputs)).await
        }
    };
    Ok(Some(BranchPlan::new(naming, request, policies, series)?))
}

/// Prepares the pull requests of a run, and adds the known ones to the plan.
///
/// There is none in a dry run without a login at the forge.
async fn pull_request_run(
    objects: &impl Objects,
    (automation, settings): (&ImageUpdateAutomation, &AutomationSettings),
    plan: &mut BranchPlan,
    (source, logged_in, gate): (&SourceConfiguration, &LoggedIn, Option<WriteGate>),
    options: &TransactionOptions,
) -> Result<Option<PullRequestRun>, PullRequestSetupError> {
    let namespace = automation.namespace().unwrap_or_default();
    let (clouds, queue) = (&options.login.git.clouds, &options.pull_requests);
    let access = match forge_access((objects, clouds), &namespace, source, logged_in).await {
        Err(ForgeAccessError::NoLogin { .. }) if queue.is_dry_run() => return Ok(None),
        access => access?,
    };
    let place = (plan.base().clone(), &source.repository);
    let mut run = PullRequestRun::new(queue, automation, settings, place, access, gate)?;
    run.set_cautious(more_cautious((automation, settings), options).await);
    if queue.has_no_tasks() {
        let mut images = plan.bundle_images().clone();
        if options.ends_branches_only {
            // Of the branches that policies render, only those end that people have given up.
            let (snapshot, _) = run.snapshot();
            let given_up: BTreeSet<&BranchName> = snapshot.given_up(plan.base()).collect();
            images.retain(|branch, _| given_up.contains(branch));
        }
        if !options.ends_branches_only || !images.is_empty() {
            run.look_up(&images).await;
        }
    }
    let (snapshot, is_up_to_date) = run.snapshot();
    let known = run.known_branches(&snapshot);
    plan.add_pull_requests(snapshot, is_up_to_date, known, run.owners());
    plan.ends_branches_only = options.ends_branches_only;
    Ok(Some(run))
}

/// Returns the other automations of the repository that want a more cautious merge.
///
/// Their branches are rendered on the pool.
async fn more_cautious(
    (automation, settings): (&ImageUpdateAutomation, &AutomationSettings),
    options: &TransactionOptions,
) -> Vec<CautiousAutomation> {
    let merge = settings.pull_request.merge;
    if merge == MergeTime::ByHand {
        return Vec::new();
    }
    let (siblings, name) = (options.siblings.clone(), ObjectName::of(automation));
    let namespace = name.namespace.clone();
    let pool = &options.login.capacity.pool;
    pool.run(&namespace, move || siblings.more_cautious(&name, merge)).await
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
pub fn conclude(mut answer: Answer<UpdateProposal>) -> (Conclusion, Box<UpdateProposal>) {
    let policies = std::mem::take(&mut answer.proposer.policies);
    if let Some(findings) = &mut answer.proposer.findings {
        findings.signing = answer.proposer.signing.clone();
    }
    let conclusion = match answer.result {
        Ok(Outcome::Branches { base, branches, is_dry_run }) => {
            conclude_branches(&mut answer.proposer, policies, (base, branches, is_dry_run))
        }
        Ok(outcome) => {
            let outcome = match outcome {
                Outcome::Waiting { .. } => {
                    answer.proposer.wait.add_push();
                    outcome
                }
                // The status does not change while every policy waits.
                Outcome::NothingToCommit { source } if answer.proposer.waits_for_groups() => {
                    Outcome::Waiting { source }
                }
                outcome => outcome,
            };
            Conclusion::Success { outcome, policies }
        }
        Err(Failure::Proposer(error)) => {
            let conclusion = Conclusion::stopped(error.stage(), &error);
            match error {
                ProposalError::Text(_) => conclusion.with_reason(Reason::InvalidSettings),
                _ => conclusion,
            }
        }
        Err(Failure::Sync(error)) => {
            let stage = if error.is_checkout() { Stage::Checkout } else { Stage::Push };
            let conclusion = Conclusion::stopped(stage, error.as_ref()).with_hint(error.hint());
            conclusion.with_pushed(PushedCommit::before(&error))
        }
    };
    (conclusion, answer.proposer)
}

/// Makes the conclusion of a run with branches of its own.
fn conclude_branches(
    proposer: &mut UpdateProposal,
    policies: BTreeMap<String, ImageRef>,
    (source, branches, is_dry_run): (Revision, Vec<BranchOutcome>, bool),
) -> Conclusion {
    let base = source.reference.as_ref().map(|name| name.short().to_owned()).unwrap_or_default();
    let invalid = proposer.branches.as_ref().map(BranchPlan::invalid).unwrap_or_default();
    let without_branch = invalid.iter().map(|invalid| invalid.policy.name.clone()).collect();
    let policies_of_branches = proposer.policies_of_branches();
    let redactor = proposer.pull_requests.as_ref().map(PullRequestRun::redactor).unwrap_or_default();
    let invalid = invalid.iter().map(|invalid| redactor.redact(&chain(invalid))).collect();
    let shown = Delivered::shown_names(&branches, &redactor);
    let forge =
        if proposer.pull_requests.is_some() { ForgeProgress::Awaited } else { ForgeProgress::NotAsked };
    let delivered =
        Delivered { base, branches, invalid, without_branch, policies: policies_of_branches, forge, shown };
    let failure = delivered.failure();
    let has_waiting = proposer.wait.add_branches(&delivered.branches);
    proposer.withhold_branches(&delivered.branches);
    let would_change = is_dry_run && delivered.branches.iter().any(BranchOutcome::is_changed);
    proposer.delivered = Some(delivered);
    let outcome = match failure {
        Some(failure) => return Conclusion::stopped(Stage::Push, &failure),
        None if has_waiting || proposer.waits_for_groups() => Outcome::Waiting { source },
        None if would_change => Outcome::DryRun { source, refspec: None },
        None => Outcome::NothingToCommit { source },
    };
    Conclusion::Success { outcome, policies }
}

async fn configure(
    objects: &impl Objects,
    automation: &ImageUpdateAutomation,
    cross_namespace: CrossNamespace,
    identity: ObjectIdentity,
) -> Result<(SourceConfiguration, Option<GitRepository>), Conclusion> {
    let stopped = |error: SourceError| Conclusion::stopped(Stage::Source, &error);
    let reference = SourceReference::of(automation, cross_namespace).map_err(stopped)?;
    let name = reference.repository();
    let found = objects.git_repository(&name.namespace, &name.name).await;
    let found = found.map_err(|cause| stopped(SourceError::UnreadableRepository { cause: cause.into() }))?;
    let source = reference.configure(found.as_ref(), identity).map_err(stopped)?;
    Ok((source, found))
}

/// Returns the images of the selected policies that count, as a status has them.
pub fn observed(update: &UpdateRequest) -> BTreeMap<String, ImageRef> {
    as_in_status(update.setters.images())
}

/// Returns the images that are wanted, be they held or not.
pub(super) fn wanted(update: &UpdateRequest) -> BTreeMap<String, ImageRef> {
    as_in_status(update.setters.wanted())
}

fn as_in_status<'s>(
    images: impl Iterator<Item = (&'s ObjectName, &'s ImageReference)>,
) -> BTreeMap<String, ImageRef> {
    let image = |image: &ImageReference| ImageRef {
        name: image.name.to_string(),
        tag: image.tag.to_string(),
        digest: image.digest.as_ref().map(ToString::to_string),
    };
    images.map(|(policy, reference)| (policy.name.clone(), image(reference))).collect()
}
