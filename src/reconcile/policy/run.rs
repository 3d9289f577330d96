//! A run of an ImagePolicy, from the object to its report (`docs/flux-behaviour.md`, Policies).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::{ImagePolicy, ImageRepository, Reason};

use super::ages::MissingAges;
use super::choice::is_same_tag;
use super::digest::{DigestResolver, DigestSource, FirstImage, Following, Polled, Resolution};
use super::group::ReleaseGroup;
use super::report::{Conclusion, Report, Resolved, RunFailure, report};
use super::request::{Request, RequestError};
use super::selection::{Chosen, NoChoice, incomplete, is_wanting};
use crate::objects::{ObjectName, ObjectsError};
use crate::policy::DowngradeProtection;
use crate::policy::downgrade::Trigger;
use crate::polling::PollingInterval;
use crate::reconcile::conditions;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::lookup::Staleness;
use crate::reconcile::repository::request::ObjectIdentity;
use crate::reconcile::repository::run::ScanOptions;
use crate::reconcile::run::{ReconcileRun, Started};
use crate::reconcile::tags::{Registry, RepositoryTarget, SharedTagStore};
use crate::reconcile::times::TimeBounds;
use crate::reference::RepositoryAddress;
use crate::tenancy::Capacity;

/// The options of all runs of policies.
#[derive(Clone, Debug)]
pub struct PolicyOptions {
    /// Allows or forbids repositories of another namespace.
    pub cross_namespace: CrossNamespace,
    /// Allows or forbids repositories to log in as a service account of their own.
    pub identity: ObjectIdentity,
    /// The requeue of a policy whose repository has no tags.
    pub requeue_dependency: Duration,
    /// The time for which a downgrade must hold.
    pub downgrade_protection: DowngradeProtection,
    /// The default interval of digest lookups.
    pub polling: PollingInterval,
    /// The treatment of a winner that replaces no other tag.
    pub first_image: FirstImage,
    /// Bounds on timeouts.
    pub times: TimeBounds,
    /// The threads and the memory that all tenants share.
    pub capacity: Capacity,
}

impl PolicyOptions {
    /// Returns the same options for scans.
    pub fn scans(&self) -> ScanOptions {
        ScanOptions { identity: self.identity, times: self.times, capacity: self.capacity.clone() }
    }
}

/// The inputs of a run besides the policy.
pub struct PolicyInputs<'a> {
    /// The repository that it names, if there is one.
    pub repository: Option<Arc<ImageRepository>>,
    /// The labels of the policy's namespace, if they decide about access.
    pub labels: Arc<NamespaceLabels>,
    /// The reason for which the registry of that repository cannot be asked.
    ///
    /// There is one if the last scan failed because of that.
    pub scan_failure: Option<Staleness>,
    /// The trigger of the run.
    pub trigger: Trigger,
    /// Returns the poller's state for a tag, if it follows it for this policy.
    pub polled: &'a (dyn Fn(&FollowedTag) -> Option<Polled> + Sync),
    /// The release group of the policy, if it is in one.
    pub group: Option<ReleaseGroup>,
}

/// The labels of a namespace.
pub type NamespaceLabels = Result<BTreeMap<String, String>, ObjectsError>;

/// A tag whose digest is followed.
#[derive(Clone, Debug)]
pub struct FollowedTag {
    /// The repository of the tag.
    pub target: RepositoryTarget,
    /// The tag.
    pub tag: String,
    /// The time between two lookups.
    pub interval: Duration,
    /// The group whose members get their digests together.
    pub group: Option<String>,
}

/// The result of a reconcile of a policy, with the tag to follow next.
#[derive(Debug)]
pub struct PolicyRunResult {
    /// The conclusion.
    pub conclusion: Conclusion,
    /// The tag to follow.
    pub followed: Option<FollowedTag>,
    /// True if the reported digest was looked up in this run.
    pub is_fresh: bool,
    /// True if a user's intent may not be satisfied yet.
    ///
    /// Either ages were missing, or the release group does not move, or the selected image cannot be announced yet.
    pub is_provisional: bool,
    /// True if the release group of the policy does not move.
    pub is_group_stopped: bool,
}

/// A reconcile of one ImagePolicy, not started yet.
#[derive(Debug)]
pub struct Run {
    pub(super) policy: Arc<ImagePolicy>,
    pub(super) run: ReconcileRun,
    pub(super) request: Result<Request, RequestError>,
    pub(super) previous: ImagePolicyStatus,
}

impl Run {
    /// Begins a run of an object.
    pub fn of(policy: Arc<ImagePolicy>, now: Timestamp) -> Self {
        let run = ReconcileRun::of(policy.as_ref(), now);
        let previous = policy.status.clone().unwrap_or_default();
        Self { run, request: Request::of(&policy), previous, policy }
    }

    /// Returns the policy.
    pub fn policy(&self) -> &ImagePolicy {
        &self.policy
    }

    /// Returns the status before the run.
    pub(super) fn previous(&self) -> &ImagePolicyStatus {
        &self.previous
    }

    /// Returns the time at which the run began.
    pub(super) fn started(&self) -> Timestamp {
        self.run.started
    }

    /// Returns whether the policy is suspended.
    pub(super) fn is_suspended(&self) -> bool {
        self.policy.spec.suspend
    }

    /// Returns the repository that the policy names.
    pub fn repository(&self) -> Option<&ObjectName> {
        self.request.as_ref().ok().map(|request| &request.repository)
    }

    /// Returns whether a user changed or requested the policy since it was last reconciled.
    pub fn is_wanted(&self) -> bool {
        self.run.is_changed(&self.previous) || self.is_requested()
    }

    /// Returns whether the policy was requested since it was last reconciled.
    pub fn is_requested(&self) -> bool {
        self.run.is_requested(&self.previous)
    }

    /// Makes the status with which the run begins.
    pub fn begin(&self, previous: &ImagePolicyStatus) -> Started<ImagePolicyStatus> {
        self.run.begin(previous)
    }

    /// Returns whether a Ready policy stays as it is.
    ///
    /// That is so if its repository, which it may use, has an invalid address. The defect is the
    /// repository's, whose own status shows it.
    pub fn is_untouched(&self, options: &PolicyOptions, policy_inputs: &PolicyInputs<'_>) -> bool {
        let is_ready = conditions::is_ready(&self.previous.conditions) && !self.is_wanted();
        let Ok(request) = &self.request else { return false };
        let repository = self.repository_of(request, options, policy_inputs);
        let is_invalid = |repository: Arc<ImageRepository>| {
            RepositoryAddress::parse(&repository.spec.image, repository.spec.insecure).is_err()
        };
        is_ready && repository.is_ok_and(is_invalid)
    }

    /// Selects an image.
    pub async fn reconcile(
        &self,
        options: &PolicyOptions,
        policy_inputs: PolicyInputs<'_>,
        tag_store: &SharedTagStore,
        registry: &impl Registry,
    ) -> PolicyRunResult {
        let mut is_provisional = false;
        let chosen = async {
            let mut inputs = self.inputs(options, &policy_inputs).await?;
            // Boxed, because most policies are in no group.
            inputs.survey = Box::pin(self.survey(options, &policy_inputs, &inputs, tag_store)).await?;
            let (resolver, mut ages) =
                self.ages(options, &inputs, &policy_inputs, tag_store, registry).await?;
            is_provisional = is_wanting(&ages, &inputs.policy);
            let facts = std::mem::take(&mut ages.facts);
            let canonical = inputs.target.address.canonical();
            tag_store
                .save_image_facts(&inputs.namespace, &inputs.request.repository, &canonical, facts)
                .await;
            self.choose(options, &policy_inputs, inputs, tag_store, (resolver, ages)).await
        };
        let chosen = match Box::pin(chosen).await {
            Ok(chosen) => chosen,
            Err(NoChoice::EmptyList(resolved)) => return PolicyRunResult::of_empty_list(resolved),
            Err(NoChoice::Failed(failure)) => {
                let stale = failure.staleness.as_ref();
                let is_group_stopped = stale.is_some_and(|stale| stale.reason == Reason::GroupIncomplete);
                let conclusion = Conclusion::Failed(failure);
                return PolicyRunResult {
                    conclusion,
                    followed: None,
                    is_fresh: false,
                    is_provisional,
                    is_group_stopped,
                };
            }
        };
        let Chosen { target, choice, followed, digests, missing_ages } = chosen;
        let polled = followed.as_ref().and_then(|followed| (policy_inputs.polled)(followed));
        let following =
            match (&options.polling, followed.as_ref().and_then(|followed| followed.group.as_ref())) {
                (PollingInterval::Disabled, _) => Following::Disabled,
                (_, Some(_)) => Following::InGroup,
                (_, None) => Following::Alone,
            };
        let image = target.address.to_string();
        let question = DigestResolver {
            image: &image,
            tag: &choice.tag,
            digests: &digests,
            trigger: policy_inputs.trigger,
            polled: polled.as_ref(),
            following,
            first: options.first_image,
        };
        let mut is_fresh = false;
        let resolution = match question.need(&self.previous) {
            DigestSource::Settled(digest) => Ok(question.settled(digest)),
            DigestSource::AwaitGroup => question.awaiting(&self.previous),
            DigestSource::Lookup { wants_digest } => {
                let answer = registry.digest(&target, &choice.tag).await;
                is_fresh = wants_digest && answer.is_ok();
                question.looked(wants_digest, answer, &self.previous)
            }
        };
        let is_announced =
            |resolution: &Resolution| is_same_tag(Some(&resolution.latest), &image, &choice.tag);
        let is_group_stopped = choice.incomplete.is_some();
        is_provisional |=
            is_group_stopped || resolution.as_ref().is_ok_and(|resolution| !is_announced(resolution));
        let conclusion = match resolution {
            // The poller makes the policy due when the digest changes.
            Ok(resolution) => Conclusion::Resolved(Resolved {
                resolution: in_group(with_missing_ages(resolution, missing_ages.as_ref()), choice.incomplete),
                held: choice.held,
                matures_in: choice.matures_in,
            }),
            Err(unresolved) => Conclusion::Failed(RunFailure {
                staleness: Some(unresolved.staleness),
                // The poller makes the policy due when its group is complete.
                retry_after: (following == Following::InGroup).then_some(options.requeue_dependency),
                ..RunFailure::at(unresolved.outcome)
            }),
        };
        PolicyRunResult { conclusion, followed, is_fresh, is_provisional, is_group_stopped }
    }

    /// Makes the report of the run, given the status before it.
    pub fn report(&self, previous: &ImagePolicyStatus, conclusion: &Conclusion, now: Timestamp) -> Report {
        report(&self.run, previous, conclusion, now)
    }
}

impl PolicyRunResult {
    /// Creates the end of a run that keeps its image because there are no tags.
    ///
    /// That cannot satisfy a user's intent.
    fn of_empty_list(resolved: Resolved) -> Self {
        let conclusion = Conclusion::Resolved(resolved);
        Self { conclusion, followed: None, is_fresh: false, is_provisional: true, is_group_stopped: false }
    }
}

/// Adds the staleness of a selection for which the registry did not return all ages.
fn with_missing_ages(resolution: Resolution, missing_ages: Option<&MissingAges>) -> Resolution {
    let Some(found) = missing_ages.and_then(|missing_ages| missing_ages.staleness(&resolution.latest.name))
    else {
        return resolution;
    };
    let staleness = resolution.staleness.clone().or(Some(found));
    Resolution { staleness, is_retried: true, ..resolution }
}

/// Adds the staleness of an image that a release group keeps.
fn in_group(resolution: Resolution, message: Option<String>) -> Resolution {
    let staleness = message.map(incomplete).or_else(|| resolution.staleness.clone());
    Resolution { staleness, ..resolution }
}
