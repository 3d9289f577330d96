//! A run of an ImagePolicy, from the object as it stands to what is said of it (spec §3.2).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::policy::{DigestReflectionPolicy, ImagePolicyStatus};
use tagboat_api::settings::PollInterval;
use tagboat_api::{ImagePolicy, ImageRepository};

use super::access::{self, AccessError};
use super::choice::{self, Choice, Offer};
use super::digest::{Following, Need, Polled, Question};
use super::report::{Conclusion, Report, Resolved, Stop, report};
use super::request::{Request, RequestError};
use crate::objects::{ObjectName, ObjectsError};
use crate::policy::regression::Cause;
use crate::policy::{Ages, Birth, Regression};
use crate::polling::PollingInterval;
use crate::reconcile::automation::source::CrossNamespace;
use crate::reconcile::course::{Beginning, Course, Ending};
use crate::reconcile::repository::request::{ObjectIdentity, wants_identity};
use crate::reconcile::tags::{Place, Registry, Shelf};
use crate::reference::RepositoryAddress;

/// What all runs of policies go by.
#[derive(Clone, Copy, Debug)]
pub struct PolicyOptions {
    /// Whether a policy may use a repository of another namespace.
    pub cross_namespace: CrossNamespace,
    /// Whether a repository may act as a service account of its own.
    pub identity: ObjectIdentity,
    /// When to look again for tags that are not there.
    pub requeue_dependency: Duration,
    /// How long a lower winner must hold.
    pub regression: Regression,
    /// How often digests are looked up where nobody says otherwise.
    pub polling: PollingInterval,
}

/// What a policy finds around it.
pub struct Scene<'a> {
    /// The repository that it names, if there is one.
    pub repository: Option<Arc<ImageRepository>>,
    /// The labels of the policy's namespace, where they decide about access.
    pub labels: Result<BTreeMap<String, String>, ObjectsError>,
    /// What brought about this run.
    pub cause: Cause,
    /// What the poller knows of a tag, if it follows that for this policy.
    pub polled: &'a (dyn Fn(&Followed) -> Option<Polled> + Sync),
}

/// A tag whose digest is followed.
#[derive(Clone, Debug)]
pub struct Followed {
    /// Where the tag is.
    pub place: Place,
    /// The tag.
    pub tag: String,
    /// The time between two looks.
    pub interval: Duration,
    /// The group that gets its digests together.
    pub group: Option<String>,
}

/// How a run ended, and what is to be followed from then on.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub conclusion: Conclusion,
    /// The tag to follow.
    pub followed: Option<Followed>,
    /// Whether the digest that is reported has only just been looked up.
    pub is_fresh: bool,
}

/// A run that is about to begin.
#[derive(Debug)]
pub struct Run {
    policy: Arc<ImagePolicy>,
    course: Course,
    request: Result<Request, RequestError>,
    previous: ImagePolicyStatus,
}

impl Run {
    /// The run of an object that begins now.
    pub fn of(policy: Arc<ImagePolicy>, now: Timestamp) -> Self {
        let course = Course::of(policy.as_ref(), now);
        let previous = policy.status.clone().unwrap_or_default();
        Self { course, request: Request::of(&policy), previous, policy }
    }

    /// The repository that the policy names.
    pub fn repository(&self) -> Option<&ObjectName> {
        self.request.as_ref().ok().map(|request| &request.repository)
    }

    /// Whether a person changed the policy since it was last carried out, or asked for it.
    pub fn is_wanted(&self) -> bool {
        self.course.is_changed(&self.previous) || self.course.is_requested(&self.previous)
    }

    /// The status with which the run begins.
    pub fn begin(&self, previous: &ImagePolicyStatus) -> Beginning<ImagePolicyStatus> {
        self.course.begin(previous)
    }

    /// Chooses, and says how that ended.
    pub async fn carry_out(
        &self,
        options: &PolicyOptions,
        scene: Scene<'_>,
        shelf: &Shelf,
        registry: &impl Registry,
    ) -> Ended {
        let chosen = match self.choose(options, &scene, shelf) {
            Ok(chosen) => chosen,
            Err(stop) => {
                return Ended { conclusion: Conclusion::Stopped(stop), followed: None, is_fresh: false };
            }
        };
        let Chosen { place, choice, followed, digests } = chosen;
        let polled = followed.as_ref().and_then(|followed| (scene.polled)(followed));
        let following =
            match (&options.polling, followed.as_ref().and_then(|followed| followed.group.as_ref())) {
                (PollingInterval::Disabled, _) => Following::Disabled,
                (_, Some(_)) => Following::InGroup,
                (_, None) => Following::Alone,
            };
        let image = place.address.to_string();
        let question = Question {
            image: &image,
            tag: &choice.tag,
            digests: &digests,
            cause: scene.cause,
            polled: polled.as_ref(),
            following,
        };
        let mut is_fresh = false;
        let resolution = match question.need(&self.previous) {
            Need::Settled(digest) => Ok(question.settled(digest)),
            Need::AwaitGroup => question.awaiting(&self.previous),
            Need::Look { wants_digest } => {
                let answer = registry.digest(&place, &choice.tag).await;
                is_fresh = wants_digest && answer.is_ok();
                question.looked(wants_digest, answer, &self.previous)
            }
        };
        let conclusion = match resolution {
            // The poller wakes the policy when there is something new.
            Ok(resolution) => Conclusion::Resolved(Resolved {
                resolution,
                held: choice.held,
                matures_in: choice.matures_in,
            }),
            Err(unresolved) => Conclusion::Stopped(Stop {
                ending: unresolved.ending,
                staleness: Some(unresolved.staleness),
                // A group is complete when its poller says so.
                retry_after: (following == Following::InGroup).then_some(options.requeue_dependency),
            }),
        };
        Ended { conclusion, followed, is_fresh }
    }

    /// Everything before the digest.
    fn choose(&self, options: &PolicyOptions, scene: &Scene<'_>, shelf: &Shelf) -> Result<Chosen, Stop> {
        let request = self.request.as_ref().map_err(|error| Stop::at(Ending::of(error)))?;
        let repository =
            self.repository_of(request, options, scene).map_err(|error| Stop::at_repository(&error))?;
        let spec = &repository.spec;
        let address = RepositoryAddress::parse(&spec.image, spec.insecure)
            .map_err(|error| Stop::at(Ending::of(&error)))?;
        if options.identity == ObjectIdentity::Off && wants_identity(spec) {
            return Err(Stop::at(Ending::of(&RequestError::IdentityIsOff)));
        }
        let policy = request
            .policy
            .as_ref()
            .map_err(|error| Stop::at(Ending::of(&RequestError::Policy(error.clone()))))?;
        let stored = shelf.read(&request.repository, &address.canonical());
        let stored = stored
            .filter(|stored| !stored.tags.is_empty())
            .ok_or_else(|| Stop::without_tags(options.requeue_dependency))?;
        let birth = |tag: &str| Birth { first_seen: stored.first_seen(tag), created: None };
        let last = repository.status.as_ref().and_then(|status| status.last_scan_result.as_ref());
        let image = address.to_string();
        let offer = Offer {
            image: &image,
            tags: &stored.tags,
            ages: Ages { now: self.course.started, birth: &birth },
            scanned: last.and_then(|last| last.scan_time.as_ref()).map(|time| time.0),
            cause: scene.cause,
            regression: options.regression,
        };
        let choice =
            choice::choose(policy, &offer, &self.previous).map_err(|error| Stop::at(Ending::of(&error)))?;
        // A bad timeout stalls the repository; until then it is as if there were none.
        let timeout = spec.effective_timeout().unwrap_or(Duration::from_secs(60));
        let place = Place { repository, address, timeout };
        let interval = polling(request, options.polling);
        let followed = interval.map(|interval| Followed {
            place: place.clone(),
            tag: choice.tag.clone(),
            interval,
            group: request.group.clone(),
        });
        let digests = request.digests.clone();
        Ok(Chosen { place, choice, followed, digests })
    }

    fn repository_of(
        &self,
        request: &Request,
        options: &PolicyOptions,
        scene: &Scene<'_>,
    ) -> Result<Arc<ImageRepository>, AccessError> {
        let own = self.policy.namespace().unwrap_or_default();
        access::check_namespace(&own, &request.repository, options.cross_namespace)?;
        let repository = scene
            .repository
            .clone()
            .ok_or_else(|| AccessError::Missing { name: request.repository.name.clone() })?;
        match &scene.labels {
            Ok(labels) => access::check(&own, &repository, labels)?,
            Err(error) => return Err(AccessError::NoLabels { words: crate::sentence::chain(error) }),
        }
        Ok(repository)
    }

    /// What is to be said of the run, where the status before it was `previous`.
    pub fn report(&self, previous: &ImagePolicyStatus, conclusion: &Conclusion, now: Timestamp) -> Report {
        report(&self.course, previous, conclusion, now)
    }
}

/// What is known before the digest.
struct Chosen {
    place: Place,
    choice: Choice,
    followed: Option<Followed>,
    digests: DigestReflectionPolicy,
}

/// How often the digest of a policy is looked up, if at all.
fn polling(request: &Request, process: PollingInterval) -> Option<Duration> {
    let PollingInterval::Every(default) = process else { return None };
    let spec = request.interval?;
    match request.polling {
        PollInterval::Spec => Some(spec),
        PollInterval::Process => Some(default),
        PollInterval::Every(interval) => Some(interval).filter(|interval| !interval.is_zero()),
    }
}
