//! The selection of a tag: its inputs, the ages of images, and the choice.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use tagboat_api::policy::DigestReflectionPolicy;
use tagboat_api::settings::{PollInterval, UnknownAge};
use tagboat_api::{GoDuration, ImageRepository, Reason};

use super::access::{self, AccessError};
use super::ages::{AgeResolver, KnownAges, MissingAges};
use super::choice::{self, Choice, ChoiceError, Held, SelectionInputs};
use super::digest::Resolution;
use super::group::Survey;
use super::report::{LOOKUP_REQUEUE, Resolved, RunFailure};
use super::request::{Request, RequestError};
use super::run::{FollowedTag, PolicyInputs, PolicyOptions, Run};
use crate::error::ReconcileError;
use crate::objects::ObjectName;
use crate::policy::downgrade::Trigger;
use crate::policy::{Ages, Policy, PolicyError};
use crate::polling::PollingInterval;
use crate::reconcile::lookup::Staleness;
use crate::reconcile::repository::request::{ObjectIdentity, wants_identity};
use crate::reconcile::run::Outcome;
use crate::reconcile::tags::{OpenTags, Registry, RepositoryTarget, SharedTagStore};
use crate::reconcile::times;
use crate::reference::RepositoryAddress;
use crate::tenancy::{Capacity, Checkpoint};

/// The memory in bytes of the verdict on one tag.
///
/// It is used until the winner is known.
const BYTES_OF_VERDICT: usize = 512;

/// The shortest requeue.
const MIN_REQUEUE: Duration = Duration::from_secs(1);

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
    pub(super) namespace: String,
    pub(super) request: &'r Request,
    pub(super) policy: Arc<Policy>,
    pub(super) target: RepositoryTarget,
    /// The release group, if the policy is in one.
    pub(super) survey: Option<Survey>,
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

/// The selection, before its digest.
pub(super) struct Chosen {
    pub(super) target: RepositoryTarget,
    pub(super) choice: Choice,
    pub(super) followed: Option<FollowedTag>,
    pub(super) digests: DigestReflectionPolicy,
    pub(super) missing_ages: Option<MissingAges>,
}

impl Run {
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
    pub(super) async fn ages(
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
    pub(super) async fn choose(
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

    pub(super) fn repository_of(
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
}

/// Returns whether ages are missing that matter; none do if unknown ages are accepted.
pub(super) fn is_wanting(ages: &KnownAges, policy: &Policy) -> bool {
    ages.missing_ages.is_some() && policy.unknown_age() == UnknownAge::Wait
}

/// Returns the staleness of an image that a release group keeps.
pub(super) fn incomplete(message: String) -> Staleness {
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
