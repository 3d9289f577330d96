//! The component of an object.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::deployment_status::{BlockReason, ComponentStatus, MAX_TEXT, State, StatusError};

use super::chain::{Chain, rank};
use super::context::{Context, file};
use super::found_images::{FoundImages, compare};
use super::inputs::PodRequest;
use super::progress::{self, PreviousRollout};
use crate::printable::printable;
use crate::rollout::aggregate::Component;
use crate::rollout::assess::{Assessment, Counts, Failure, Progress};
use crate::rollout::bounds::cut;
use crate::rollout::history::{complete_since, is_unknown};
use crate::rollout::image::{WantedImage, is_any};
use crate::rollout::index::Cluster;
use crate::rollout::message::message;
use crate::rollout::pods::{self, UNAVAILABLE};
use crate::rollout::tie::TiedPlace;
use crate::rollout::watched::{WatchedId, WatchedObject};

/// A live object with its places.
struct Live<'c> {
    context: &'c Context<'c>,
    cluster: &'c Cluster<'c>,
    id: &'c WatchedId,
    object: &'c WatchedObject,
    /// The places, the best tie first.
    places: Vec<TiedPlace<'c>>,
    /// The component of the previous status.
    ///
    /// It is that of the object, or that of its place without an object.
    previous: Option<&'c ComponentStatus>,
}

/// Returns the component of an object, and its request for pods.
pub(super) fn component(
    context: &Context<'_>,
    position: usize,
    id: &WatchedId,
    places: &[TiedPlace<'_>],
) -> (Component, Option<PodRequest>) {
    let cluster = context.cluster(position);
    let name = cluster.name_of(id);
    let object = cluster.index.get(id).expect("the index has the objects that ties name");
    let mut places = places.to_vec();
    places.sort_by_cached_key(|tied| rank(context, position, object, tied));
    let previous = context.previous.get(name.as_str()).copied();
    let mut live = Live { context, cluster, id, object, places, previous };
    let found = compare(context, cluster.index, object, &live.places, previous);
    let deciding = &live.places[found.lacking.unwrap_or(0)];
    let chain = Chain::of_object(context, position, id, deciding);

    let mut status = ComponentStatus::new(name, State::Pending, context.now.clone());
    // As the status has it, with which the next observation compares it.
    status.image = found.shown.as_deref().map(|image| cut(printable(image).into(), MAX_TEXT));
    status.automation = Some(deciding.automation.name.clone());
    status.place = Some(deciding.place().location());
    status.tie = live.places.first().map(|tied| tied.tie);
    live.previous = previous.or_else(|| context.absent.of(&status).filter(|absent| !live.is_older(absent)));
    if let Some((applier, revision)) = chain.applier() {
        status.applier = Some(applier.to_owned());
        status.applied_revision = revision.map(str::to_owned);
    }
    if let Some(revision) = chain.own_revision() {
        status.applied_revision = Some(revision.to_owned());
    }
    if let Some(deleted) = &object.metadata().deletion_timestamp {
        live.set_counts(&mut status);
        status.state = State::Removing;
        status.since = deleted.clone().min(context.now.clone());
        status.message = Some("the object is being deleted".to_owned());
        return (Component { status, has_wanted_image: found.lacking.is_none() }, None);
    }
    if found.lacking.is_some() {
        live.set_counts(&mut status);
        live.set_lacking(&mut status, &found, deciding, &chain);
        return (Component { status, has_wanted_image: false }, None);
    }
    let pods = live.set_progress(&mut status, &chain);
    (Component { status, has_wanted_image: true }, pods)
}

impl Live<'_> {
    /// Sets the counts of an object whose rollout does not matter.
    fn set_counts(&self, status: &mut ComponentStatus) {
        let assessment = progress::assess_other_image(self.cluster.index, self.id, self.object);
        self.set_assessment(status, &assessment);
    }

    /// Sets the counts, and at the first observation the end of a complete rollout.
    fn set_assessment(&self, status: &mut ComponentStatus, assessment: &Assessment) {
        let Counts { desired, updated, ready, updated_ready } = assessment.counts;
        (status.desired, status.updated, status.ready) = (desired, updated, ready);
        status.updated_ready = Some(updated_ready);
        if self.previous.is_none() && assessment.progress == Progress::Complete {
            status.complete_since = Some(self.finished(assessment, status.image.as_deref()));
        }
    }

    /// Sets the state of an object without the wanted image.
    fn set_lacking(
        &self,
        status: &mut ComponentStatus,
        found: &FoundImages,
        deciding: &TiedPlace<'_>,
        chain: &Chain,
    ) {
        let verdict = chain.verdict(deciding.scan, deciding.place(), self.previous);
        let block = self.context.inputs.before.block(deciding.automation, deciding.place());
        let has_image = || match found.shown.as_deref() {
            Some(image) => message(&format!("the object has the image {image}")),
            None => "the object has no image of the policy".to_owned(),
        };
        let (reason, text) = match block {
            Some(block) => (block.reason, block.message),
            None => {
                let text = verdict.not_applied.or(verdict.message).unwrap_or_else(has_image);
                (BlockReason::NotApplied, text)
            }
        };
        status.reason = Some(reason);
        status.message = Some(found.problem.as_deref().map_or(text, message));
        if let Some(failure) = verdict.failure {
            status.state = State::Failed;
            status.error = Some(failure);
        }
    }

    /// Sets the state of an object with the wanted image.
    ///
    /// Returns its request for pods.
    fn set_progress(&self, status: &mut ComponentStatus, chain: &Chain) -> Option<PodRequest> {
        let wanted: Vec<WantedImage> = self.wanted();
        let is_wanted = |image: &str| is_any(&wanted, image);
        let image = status.image.clone();
        let observed = self.previous.filter(|previous| !self.ran_before(previous));
        let previous = PreviousRollout::new(self.context, observed, image.as_deref());
        let assessment = progress::assess(self.cluster.index, self.id, self.object, previous, &is_wanted);
        let counts = assessment.counts;
        self.set_assessment(status, &assessment);

        let is_settled = assessment.progress == Progress::Complete && counts.ready >= counts.desired;
        let request = if is_settled { None } else { self.request(&wanted) };
        let last = request.as_ref().and_then(|request| self.cluster.pods.get(&request.object));
        let (listed, refused) = match last {
            Some(Ok(listed)) => (Some(listed), None),
            Some(Err(error)) => (None, Some(message(&format!("its pods cannot be listed: {error}")))),
            None => (None, None),
        };
        let mut report = listed.map(|listed| pods::report(listed, is_wanted)).unwrap_or_default();
        if listed.is_none() && request.is_some() {
            report.failure = self.last_failure_of_pods(image.as_deref());
        }
        if let Some(listed) = listed.filter(|listed| !pods::has_any(&listed.pods, is_wanted)) {
            let since = self.without_pods_since(&assessment, image.as_deref());
            report.failure = since.and_then(|since| pods::none_created(since, listed.listed_at));
        }
        // The object may be newer than the list.
        let is_available = counts.updated_ready > 0;
        report.failure = report.failure.filter(|failure| failure.code != UNAVAILABLE || !is_available);
        status.message = refused.or(report.message).or_else(|| assessment.message.clone());
        match self.failure(&assessment, report.failure, chain, &status.name) {
            Some(error) => {
                status.state = State::Failed;
                status.error = Some(error);
            }
            None if assessment.progress == Progress::Complete => {
                status.state = State::Installed;
                status.since = self.finished(&assessment, image.as_deref());
            }
            None => status.state = State::Installing,
        }
        request
    }

    /// Returns `true` if the object ran before its file's component was without an object.
    ///
    /// Its marker is new in the file. A failed component had an attempt, of which the object may be.
    fn is_older(&self, absent: &ComponentStatus) -> bool {
        let created = self.object.metadata().creation_timestamp.as_ref();
        let is_of_file = file(absent) == Some(&absent.name) && absent.state == State::Pending;
        if !is_of_file || created.is_none_or(|created| *created >= absent.since) {
            return false;
        }
        let assessment = progress::assess_other_image(self.cluster.index, self.id, self.object);
        let has_ended = assessment.finished.is_none_or(|finished| finished < absent.since.0);
        assessment.progress == Progress::Complete && has_ended
    }

    /// Returns `true` if the object is older than a component without a known object.
    fn ran_before(&self, previous: &ComponentStatus) -> bool {
        let created = self.object.metadata().creation_timestamp.as_ref();
        is_unknown(previous) && created.is_none_or(|created| *created < previous.since)
    }

    /// Returns the failure that the pods had in the last status, with the same image.
    ///
    /// It holds until the pods are listed: after a restart of the controller, no list is known.
    fn last_failure_of_pods(&self, image: Option<&str>) -> Option<Failure> {
        let previous = self.previous.filter(|previous| previous.image.as_deref() == image)?;
        let error = previous.error.as_ref().filter(|error| error.source == previous.name)?;
        pods::is_code(&error.code)
            .then(|| Failure { code: error.code.clone(), message: error.message.clone() })
    }

    fn wanted(&self) -> Vec<WantedImage> {
        let image = self.context.image.iter();
        image.flat_map(|image| self.places.iter().map(|tied| tied.place().wanted(image))).collect()
    }

    /// Returns the error of a rollout.
    ///
    /// It is that of its pods, of the object, or of an applier. An applier that fails does not change a complete
    /// rollout, since it may fail for another object. Only the failed test of a release does.
    fn failure(
        &self,
        assessment: &Assessment,
        of_pods: Option<Failure>,
        chain: &Chain,
        name: &str,
    ) -> Option<StatusError> {
        let own = |failure: Failure| StatusError {
            code: failure.code,
            source: name.to_owned(),
            message: failure.message,
        };
        let of_object = match &assessment.progress {
            Progress::Failed(failure) => Some(failure.clone()),
            Progress::InProgress | Progress::Complete => None,
        };
        let (cause, unavailable) = match of_pods {
            Some(failure) if failure.code == UNAVAILABLE => (None, Some(failure)),
            cause => (cause, None),
        };
        let of_applier = || match assessment.progress {
            Progress::Complete => chain.failed_test(),
            Progress::InProgress | Progress::Failed(_) => chain.failure(self.previous),
        };
        let known = cause.or(of_object).map(own);
        known.or_else(of_applier).or_else(|| unavailable.map(own))
    }

    /// Returns the time since which the object should have pods and has none.
    ///
    /// Jobs end their pods, and a user may have paused a Deployment. The target of a Canary may have no pods.
    fn without_pods_since(&self, assessment: &Assessment, image: Option<&str>) -> Option<Timestamp> {
        let previous = self.previous.filter(|previous| previous.image.as_deref() == image)?;
        let keeps_pods = match self.object {
            WatchedObject::Deployment(object) => object.spec.get().is_ok_and(|spec| !spec.paused),
            WatchedObject::StatefulSet(_) | WatchedObject::DaemonSet(_) => true,
            _ => false,
        };
        let counts = assessment.counts;
        let has_none = counts.desired > 0
            && [counts.updated, counts.ready, previous.updated, previous.ready] == [0; 4]
            && assessment.progress == Progress::InProgress
            && self.cluster.index.referrers(self.id).next().is_none();
        let was_unavailable = previous.error.as_ref().is_some_and(|error| error.code == UNAVAILABLE);
        match previous.state {
            _ if !keeps_pods || !has_none => None,
            State::Installing => Some(previous.since.0),
            State::Failed if was_unavailable => Some(Timestamp::MIN),
            _ => None,
        }
    }

    /// Returns the end of a complete rollout.
    ///
    /// An object that does not report it, and was complete before with the same image, is so since then.
    fn finished(&self, assessment: &Assessment, image: Option<&str>) -> Time {
        let now = self.context.now.clone();
        let same = self.previous.filter(|previous| previous.image.as_deref() == image);
        let before =
            || same.and_then(|previous| complete_since(previous).or(previous.last_deployed.as_ref()));
        // An object that was still to be listed may be as old as its creation.
        let created = || self.object.metadata().creation_timestamp.clone();
        let at_first = || self.previous.filter(|previous| is_unknown(previous)).and_then(|_| created());
        let finished = assessment.finished.map(Time).or_else(|| before().cloned()).or_else(at_first);
        finished.unwrap_or_else(|| now.clone()).min(now)
    }

    /// Returns the request for the object's pods.
    fn request(&self, wanted: &[WantedImage]) -> Option<PodRequest> {
        let target = self.object.target().and_then(|target| self.cluster.index.get(&target));
        let selector = self.object.pod_selector().or_else(|| target?.pod_selector())?;
        Some(PodRequest {
            cluster: self.cluster.name.map(str::to_owned),
            object: self.id.clone(),
            namespace: self.id.namespace.clone(),
            selector: selector.into_owned(),
            generation: self.object.metadata().generation,
            wanted: wanted.to_vec(),
        })
    }
}
