//! A run of an ImagePolicy, from the object to its report (`docs/flux-behaviour.md`, Policies).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::policy::{DigestReflectionPolicy, ImagePolicyStatus};
use tagboat_api::settings::{PollInterval, UnknownAge};
use tagboat_api::{GoDuration, ImagePolicy, ImageRepository, Reason};

use super::access::{self, AccessError};
use super::ages::{AgeResolver, KnownAges, MissingAges};
use super::choice::{self, Choice, ChoiceError, Held, SelectionInputs, is_same_tag};
use super::digest::{DigestResolver, DigestSource, FirstImage, Following, Polled, Resolution};
use super::group::{ReleaseGroup, Survey};
use super::report::{Conclusion, LOOKUP_REQUEUE, Report, Resolved, RunFailure, report};
use super::request::{Request, RequestError};
use crate::error::ReconcileError;
use crate::objects::{ObjectName, ObjectsError};
use crate::policy::downgrade::Trigger;
use crate::policy::{Ages, DowngradeProtection, Policy, PolicyError};
use crate::polling::PollingInterval;
use crate::reconcile::conditions;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::lookup::Staleness;
use crate::reconcile::repository::request::{ObjectIdentity, wants_identity};
use crate::reconcile::repository::run::ScanOptions;
use crate::reconcile::run::{Outcome, ReconcileRun, Started};
use crate::reconcile::tags::{OpenTags, Registry, RepositoryTarget, SharedTagStore};
use crate::reconcile::times::{self, TimeBounds};
use crate::reference::RepositoryAddress;
use crate::tenancy::{Capacity, Checkpoint};

/// The memory in bytes of the verdict on one tag.
///
/// It is used until the winner is known.
const BYTES_OF_VERDICT: usize = 512;

/// The shortest requeue.
const MIN_REQUEUE: Duration = Duration::from_secs(1);

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
    policy: Arc<ImagePolicy>,
    run: ReconcileRun,
    request: Result<Request, RequestError>,
    previous: ImagePolicyStatus,
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

    /// Resolves the inputs of the selection: the policy and the repository.
    pub(super) async fn inputs<'r>(
        &'r self,
        options: &PolicyOptions,
        policy_inputs: &PolicyInputs<'_>,
    ) -> Result<ChoiceInputs<'r>, RunFailure> {
        let request = self.request.as_ref().map_err(|error| RunFailure::at(Outcome::of(error)))?;
        let repository = self
            .repository_of(request, options, policy_inputs)
            .map_err(|error| RunFailure::at_repository(&error))?;
        let spec = &repository.spec;
        let address = RepositoryAddress::parse(&spec.image, spec.insecure)
            .map_err(|error| RunFailure::at(Outcome::of(&error)))?;
        if options.identity == ObjectIdentity::Off && wants_identity(spec) {
            return Err(RunFailure::at(Outcome::of(&RequestError::IdentityIsOff)));
        }
        let namespace = self.policy.namespace().unwrap_or_default();
        let source = request.policy.clone();
        let policy = options.capacity.pool.run(&namespace, move || source.compile()).await;
        let policy = policy.map_err(|error| RunFailure::at(Outcome::of(&RequestError::Policy(error))))?;
        // An invalid timeout stalls the repository; until then the default counts.
        let timeout = options.times.timeout(spec.effective_timeout().unwrap_or(Duration::from_secs(60)));
        let own = self.policy.namespace();
        let referred_from = own.filter(|own| *own != request.repository.namespace);
        let target = RepositoryTarget { repository, address, timeout, referred_from };
        Ok(ChoiceInputs { namespace, request, policy: Arc::new(policy), target, survey: None })
    }

    /// Opens the tags to select from, with memory for their verdicts.
    pub(super) async fn open(
        &self,
        options: &PolicyOptions,
        policy_inputs: &PolicyInputs<'_>,
        inputs: &ChoiceInputs<'_>,
        tag_store: &SharedTagStore,
    ) -> Result<OpenTags, NoChoice> {
        let ChoiceInputs { namespace, request, policy, target, .. } = inputs;
        let verdicts = |tags: u64| {
            let tags = usize::try_from(tags).unwrap_or(usize::MAX);
            let bytes = tags.saturating_mul(BYTES_OF_VERDICT).saturating_add(policy.max_value_bytes(tags));
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        let canonical = target.address.canonical();
        let open = tag_store.open(namespace, &request.repository, &canonical, verdicts).await;
        let is_stored = open.is_some();
        let open = match open {
            Some(open) if open.stored.tags.is_empty() => {
                if let Some(resolved) = self.kept_by_empty_list(options, &target.address) {
                    return Err(NoChoice::EmptyList(resolved));
                }
                None
            }
            open => open,
        };
        open.ok_or_else(|| {
            let is_followed = request.digests == DigestReflectionPolicy::Always;
            let scan_failure = policy_inputs.scan_failure.clone().filter(|_| is_followed);
            RunFailure::without_tags(options.requeue_dependency, scan_failure, is_stored).into()
        })
    }

    /// Returns the image of the status after the list of tags became empty.
    ///
    /// The image is kept if it came from that list.
    fn kept_by_empty_list(&self, options: &PolicyOptions, address: &RepositoryAddress) -> Option<Resolved> {
        let image = address.to_string();
        let latest = self.previous.latest_ref.clone().filter(|latest| latest.name == image)?;
        let held = Held::by_empty_list(&image, &latest.tag, &self.previous, &options.downgrade_protection);
        let resolution = Resolution { latest, staleness: None, is_retried: false };
        Some(Resolved { resolution, held: Some(held), matures_in: None })
    }

    /// Returns the ages of the tags that could win, if they matter.
    ///
    /// No tags are held in memory while the registry is asked.
    async fn ages(
        &self,
        options: &PolicyOptions,
        inputs: &ChoiceInputs<'_>,
        policy_inputs: &PolicyInputs<'_>,
        tag_store: &SharedTagStore,
        registry: &impl Registry,
    ) -> Result<(AgeResolver, KnownAges), NoChoice> {
        let latest = self.previous.latest_ref.as_ref();
        let image = inputs.target.address.to_string();
        let resolver = AgeResolver {
            policy: inputs.policy.clone(),
            current: latest.filter(|latest| latest.name == image).map(|latest| latest.tag.clone()),
            is_wanted: policy_inputs.trigger == Trigger::User,
            now: self.run.started,
        };
        if inputs.policy.minimum_age().is_zero() || inputs.survey.as_ref().is_some_and(Survey::is_stopped) {
            return Ok((resolver, KnownAges::default()));
        }
        let possible = inputs.survey.as_ref().map(Survey::possible);
        let open = self.open(options, policy_inputs, inputs, tag_store).await?;
        let (asked, count) = (resolver.clone(), open.stored.tags.len());
        let shortlist = inputs.run(&options.capacity, move |checkpoint| {
            let stored = &open.stored;
            let mut candidates = asked.policy.age_candidates(&stored.tags, &|| checkpoint.check())?;
            if let Some(possible) = possible {
                // The ages of other tags do not matter, unless they make the whole selection fail.
                let is_possible = |tag: &str| {
                    let value = asked.policy.value(tag).filter(|_| asked.policy.compare(tag, tag).is_some());
                    value.is_none_or(|value| possible.contains(value.as_ref()))
                };
                candidates.retain(|tag| is_possible(tag));
            }
            Ok(asked.shortlist(&candidates, Some(stored), &|| checkpoint.check())?)
        });
        let shortlist = shortlist.await.map_err(|error: PolicyError| inputs.failure(&error.into(), count))?;
        let answers = resolver.clone().look_up(shortlist, registry, &inputs.target).await;
        Ok((resolver, answers))
    }

    /// Selects the tag.
    async fn choose(
        &self,
        options: &PolicyOptions,
        policy_inputs: &PolicyInputs<'_>,
        mut inputs: ChoiceInputs<'_>,
        tag_store: &SharedTagStore,
        (resolver, ages): (AgeResolver, KnownAges),
    ) -> Result<Chosen, NoChoice> {
        let survey = inputs.survey.take();
        let inputs = &inputs;
        let ChoiceInputs { request, policy, target, .. } = inputs;
        let last = target.repository.status.as_ref().and_then(|status| status.last_scan_result.as_ref());
        let image = target.address.to_string();
        let missing_ages = ages.missing_ages.clone().filter(|_| is_wanting(&ages, policy));
        let scanned = last.and_then(|last| last.scan_time.as_ref()).map(|time| time.0);
        let (now, trigger, downgrade_protection) =
            (self.run.started, policy_inputs.trigger, options.downgrade_protection);
        let open = self.open(options, policy_inputs, inputs, tag_store).await?;
        let (policy, previous, count) = (policy.clone(), self.previous.clone(), open.stored.tags.len());
        let (offered, is_provisional) = (image.clone(), missing_ages.is_some());
        let choosing = inputs.run(&options.capacity, move |checkpoint| {
            let stored = &open.stored;
            let selection_inputs = SelectionInputs {
                image: &offered,
                tags: &stored.tags,
                ages: Ages { now, age_of: &|tag| resolver.age(tag, Some(stored), &ages) },
                scanned,
                trigger,
                downgrade_protection,
                is_provisional,
            };
            let check = || checkpoint.check();
            match survey {
                None => choice::choose(&policy, &selection_inputs, &previous, &check),
                Some(survey) => survey.choose(&policy, &selection_inputs, &previous, &check),
            }
        });
        let choice = choosing.await;
        let is_first = self.previous.latest_ref.as_ref().is_none_or(|latest| latest.name != image);
        // A better tag may be old enough, and an image that is soon replaced is worse than none.
        if missing_ages == Some(MissingAges::TooMany) && is_first {
            return Err(RunFailure::lookups_pending().into());
        }
        let mut choice = choice.map_err(|error| RunFailure {
            // Time helps before anything else, so no user is told of it every few minutes.
            retry_after: error
                .matures_in()
                .filter(|_| missing_ages.is_none())
                .map(|wait| wait.max(MIN_REQUEUE))
                // A change of another member makes the policy due.
                .or_else(|| error.is_of_group().then_some(options.requeue_dependency)),
            staleness: missing_ages
                .as_ref()
                .and_then(|missing_ages| missing_ages.staleness(&image))
                .or_else(|| error.is_of_group().then(|| incomplete(error.to_string()))),
            ..inputs.failure(&error, count)
        })?;
        if missing_ages == Some(MissingAges::TooMany) {
            choice.matures_in =
                Some(choice.matures_in.map_or(LOOKUP_REQUEUE, |wait| wait.min(LOOKUP_REQUEUE)));
        }
        let interval = polling(request, options.polling);
        let followed = interval.map(|interval| FollowedTag {
            target: target.clone(),
            tag: choice.tag.clone(),
            interval,
            group: request.group.clone(),
        });
        let (target, digests) = (target.clone(), request.digests.clone());
        Ok(Chosen { target, choice, followed, digests, missing_ages })
    }

    fn repository_of(
        &self,
        request: &Request,
        options: &PolicyOptions,
        policy_inputs: &PolicyInputs<'_>,
    ) -> Result<Arc<ImageRepository>, AccessError> {
        let own = self.policy.namespace().unwrap_or_default();
        access::check_namespace(&own, &request.repository, options.cross_namespace)?;
        let repository = policy_inputs
            .repository
            .clone()
            .ok_or_else(|| AccessError::Missing { name: request.repository.name.clone() })?;
        match policy_inputs.labels.as_ref() {
            Ok(labels) => access::check(&own, &repository, labels)?,
            Err(error) => return Err(AccessError::NoLabels { message: crate::error::chain(error) }),
        }
        Ok(repository)
    }

    /// Makes the report of the run, given the status before it.
    pub fn report(&self, previous: &ImagePolicyStatus, conclusion: &Conclusion, now: Timestamp) -> Report {
        report(&self.run, previous, conclusion, now)
    }
}

/// The end of a run before a tag is selected.
pub(super) enum NoChoice {
    /// There are no tags, or an error stopped the run.
    Failed(RunFailure),
    /// The list has become empty, so the earlier image stays.
    EmptyList(Resolved),
}

impl From<RunFailure> for NoChoice {
    fn from(failure: RunFailure) -> Self {
        Self::Failed(failure)
    }
}

/// The inputs of a selection, resolved.
pub(super) struct ChoiceInputs<'r> {
    /// The policy's namespace, for which the work counts.
    namespace: String,
    request: &'r Request,
    pub(super) policy: Arc<Policy>,
    pub(super) target: RepositoryTarget,
    /// The release group, if the policy is in one.
    survey: Option<Survey>,
}

impl ChoiceInputs<'_> {
    /// Runs a job over all tags on the pool, within the repository's timeout.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        capacity: &Capacity,
        job: impl FnOnce(&Checkpoint) -> T + Send + 'static,
    ) -> T {
        capacity.pool.run_within(&self.namespace, self.target.timeout, job).await
    }

    /// Makes the failure of a run whose selection failed.
    pub(super) fn failure(&self, error: &ChoiceError, tags: usize) -> RunFailure {
        if !matches!(error, ChoiceError::Policy(PolicyError::Interrupted(_))) {
            return RunFailure::at(Outcome::of(error));
        }
        let RepositoryTarget { repository, address, timeout, .. } = &self.target;
        let message = format!(
            "not all {tags} tags of {address} were evaluated within {}: use a simpler rule or filter, or a longer spec.timeout \
             of ImageRepository '{}'",
            GoDuration::from(*timeout),
            ObjectName::of(repository.as_ref()),
        );
        RunFailure::at(Outcome::Failure(error.reason(), message))
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

/// The selection, before its digest.
struct Chosen {
    target: RepositoryTarget,
    choice: Choice,
    followed: Option<FollowedTag>,
    digests: DigestReflectionPolicy,
    missing_ages: Option<MissingAges>,
}

/// Returns whether ages are missing that matter; none do if unknown ages are accepted.
fn is_wanting(ages: &KnownAges, policy: &Policy) -> bool {
    ages.missing_ages.is_some() && policy.unknown_age() == UnknownAge::Wait
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

/// Returns the staleness of an image that a release group keeps.
fn incomplete(message: String) -> Staleness {
    Staleness { reason: Reason::GroupIncomplete, message }
}

/// Returns the interval of digest lookups for a policy, if there are any.
fn polling(request: &Request, process: PollingInterval) -> Option<Duration> {
    let PollingInterval::Every(default) = process else { return None };
    let spec = request.interval?;
    let interval = match request.polling {
        PollInterval::Spec => Some(spec),
        PollInterval::Process => Some(default),
        PollInterval::Every(interval) => Some(interval).filter(|interval| !interval.is_zero()),
    };
    interval.map(times::interval)
}
